"""Probes: an operator is alive if it works, and ready if it has listed everything and its CRDs are recent."""

import copy
import json
import socket
import urllib.error
import urllib.request
from asyncio import to_thread
from typing import Any

import pytest

from accelbench.api import crd
from accelbench.cluster_api.errors import NotFoundError
from accelbench_operator import skew
from accelbench_operator.engine.health import Readings, serve_probes
from accelbench_operator.metrics.exposition import Exposition, serve_metrics
from cluster.ports import free_port
from metrics.documents import snapshot
from operator_world.world import simulated


def answer(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=5) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@pytest.mark.parametrize(
    ("readings", "status"), [({"lag": (0.1234, 30.0)}, 200), ({"lag": (0.1234, 30.0), "work": (700.0, 600.0)}, 503)]
)
async def test_the_operator_is_alive_unless_its_event_loop_or_its_work_hangs(readings: Readings, status: int) -> None:
    port = free_port()
    async with serve_probes(lambda: readings, tuple, port):
        code, body = await to_thread(answer, port, "/healthz")
    assert (code, body["lag"]) == (status, 0.123)


@pytest.mark.parametrize(("problems", "status"), [((), 200), (("not listed yet: jobs",), 503)])
async def test_the_operator_is_ready_if_nothing_is_missing_and_otherwise_lists_what_is(
    problems: tuple[str, ...], status: int
) -> None:
    port = free_port()
    async with serve_probes(dict, lambda: problems, port):
        assert await to_thread(answer, port, "/readyz") == (status, {"ready": not problems, "problems": list(problems)})
        assert (await to_thread(answer, port, "/healthz"))[0] == 200


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_probes_and_scrapes_are_answered_over_ipv4_and_ipv6() -> None:
    health, metrics = free_port(), free_port()
    async with serve_probes(dict, tuple, health), serve_metrics(Exposition(), snapshot, metrics):
        for host in ("127.0.0.1", "[::1]"):
            assert (await to_thread(answer, health, "/readyz", host))[0] == 200
            with await to_thread(urllib.request.urlopen, f"http://{host}:{metrics}/metrics", timeout=5) as scrape:
                assert scrape.status == 200


class Served:
    """Serve the CRDs of this release like an API server, with the changes of a test."""

    def __init__(self, change: Any = None) -> None:
        self.schemas = {}
        for kind in crd.KINDS:
            group = {"group": "accelbench.dev", "kind": kind.name, "version": "v1alpha1"}
            schema = copy.deepcopy(dict(skew.own_schema(kind))) | {"x-kubernetes-group-version-kind": [group]}
            self.schemas[f"dev.accelbench.v1alpha1.{kind.name}"] = schema
        if change:
            change(self.schemas)

    async def get(self, path: str) -> Any:
        if path == "/apis/accelbench.dev/v1alpha1":
            return {"resources": [{"kind": name.rpartition(".")[2]} for name in self.schemas]}
        assert path == "/openapi/v3/apis/accelbench.dev/v1alpha1"
        return {"components": {"schemas": self.schemas}}


def status_of(schemas: Any) -> Any:
    return schemas["dev.accelbench.v1alpha1.BenchmarkRun"]["properties"]["status"]["properties"]


async def test_crds_of_this_release_lack_nothing() -> None:
    assert await skew.find_skew(Served()) == ""  # type: ignore[arg-type]


async def test_a_newer_crd_lacks_nothing() -> None:
    newer = Served(lambda schemas: status_of(schemas).update(invented={"type": "string"}))
    assert await skew.find_skew(newer) == ""  # type: ignore[arg-type]


async def test_a_field_that_the_server_would_drop_is_named_with_the_remedy() -> None:
    older = Served(lambda schemas: status_of(schemas)["attempts"]["items"]["properties"].pop("notBefore"))
    assert await skew.find_skew(older) == (  # type: ignore[arg-type]
        "the cluster's CRDs are from another release and lack BenchmarkRun.status.attempts[].notBefore: "
        "apply those of this release, kubectl apply --server-side -f crds/"
    )


async def test_a_value_that_the_server_would_refuse_is_named() -> None:
    def change(schemas: Any) -> None:
        spec = schemas["dev.accelbench.v1alpha1.BenchmarkRun"]["properties"]["spec"]["properties"]
        spec["runPolicy"]["properties"]["resultRetentionPolicy"]["enum"].remove("Delete")

    found = await skew.find_skew(Served(change))  # type: ignore[arg-type]
    assert "BenchmarkRun.spec.runPolicy.resultRetentionPolicy=Delete" in found


@pytest.mark.parametrize("check", [skew.find_skew, skew.find_missing_kinds])
async def test_one_missing_crd_is_named_with_the_remedy(check: Any) -> None:
    without_results = Served(lambda schemas: schemas.pop("dev.accelbench.v1alpha1.BenchmarkResult"))
    assert await check(Served()) == ""
    assert "CRDs of BenchmarkResult are not installed: apply those of this release" in await check(without_results)


async def test_missing_crds_are_named_with_the_remedy() -> None:
    class Bare:
        async def get(self, path: str) -> Any:
            raise NotFoundError(404, path)

    assert "are not installed: apply those of this release, kubectl apply" in await skew.find_skew(Bare())  # type: ignore[arg-type]


@pytest.mark.parametrize("reference", [{"allOf": [{"$ref": "#/ObjectMeta"}]}, {"$ref": "#/ObjectMeta"}])
async def test_metadata_that_is_served_by_reference_lacks_nothing(reference: Any) -> None:
    def change(schemas: Any) -> None:
        for schema in schemas.values():
            schema["properties"]["metadata"] = reference

    assert await skew.find_skew(Served(change)) == ""  # type: ignore[arg-type]


def test_an_operator_whose_crds_are_deleted_is_not_ready_until_they_are_back() -> None:
    with simulated() as world:
        world.passes(60.0)
        [operator] = world.operators()
        assert operator.readiness_problems() == ()
        world.server.plurals -= {"benchmarkruns", "benchmarkresults"}
        world.end_watches()
        world.passes(60.0)
        assert "the CRDs of BenchmarkRun and BenchmarkResult are not installed" in str(operator.readiness_problems())
        world.server.plurals |= {"benchmarkruns", "benchmarkresults"}
        world.passes(60.0)
        assert operator.readiness_problems() == ()
        world.apply({})
        world.finish()
        assert len(world.server.all("benchmarkresults")) == 1
