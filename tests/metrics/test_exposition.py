"""Scrapes are served in the requested format, to permitted clients, and results are written once."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import threading
import urllib.request
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import urllib3
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.metrics.exposition import Exposition, Scrape, Tls, serve_metrics
from accelbench_operator.metrics.scrapers import Scrapers
from accelbench_operator.metrics.telemetry import Telemetry
from accelbench_operator.rbac import SCRAPERS
from cluster.ports import free_port
from cluster.wait import HANG_SECONDS
from metrics.certificates import Authority
from metrics.documents import faster, snapshot
from metrics.serving import served_metrics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from accelbench_operator.metrics.snapshot import Snapshot
    from cluster.cluster import Cluster

OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def text(served: Exposition, shown: Snapshot) -> bytes:
    return b"".join(served.write(shown).texts())


def test_changes_are_in_the_next_scrape() -> None:
    shown, served = snapshot(("team-a", faster())), Exposition()
    first, later = text(served, shown), text(served, replace(shown, omitted=7))
    assert (b"accelbench_series_omitted 2.0" in first, b"accelbench_series_omitted 7.0" in later) == (True, True)
    others = snapshot(("team-a", faster(speedup="2.05")))
    assert b"} 2.05\n" in text(served, others)
    assert b"accelbench_speedup_ratio{" not in text(served, replace(others, leading=False))


def test_a_scraper_that_requests_many_formats_does_not_fill_memory() -> None:
    shown, served = snapshot(("team-a", faster())), Exposition()
    for version in range(100):
        served.write(shown, f"application/openmetrics-text;version=1.0.{version}")
    assert len(served._results) == 1


def test_a_follower_has_the_text_of_results_ready() -> None:
    shown, served = snapshot(("team-a", faster())), Exposition()
    following = served.write(replace(shown, leading=False)).results
    ready = [*served._results["text/plain"]._cache[1].values()]
    leading = served.write(shown).results
    assert (following.blocks, [*map(id, leading.blocks)]) == ((), [*map(id, ready)])


def test_openmetrics_is_one_complete_document() -> None:
    telemetry = Telemetry()
    telemetry.queue.observe(3)
    scrape = Exposition(telemetry).write(snapshot(("team-a", faster())), OPENMETRICS)
    assert scrape.content_type.startswith("application/openmetrics-text")
    whole = b"".join(scrape.texts()).decode()
    families = {family.name: family for family in text_string_to_metric_families(whole)}
    assert families["accelbench_case_queue_seconds"].type == "histogram"
    assert families["accelbench_step_seconds"].samples


def test_a_scrape_is_compressed_if_the_client_accepts_it() -> None:
    shown, port = snapshot(("team-a", faster())), free_port()
    with served_metrics(lambda: shown, port):
        request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept-Encoding": "gzip"})
        with urllib.request.urlopen(request, timeout=HANG_SECONDS) as response:  # noqa: S310 - loopback
            assert response.headers["Content-Encoding"] == "gzip"
            assert b"accelbench_step_seconds{" in gzip.decompress(response.read())


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
async def test_a_scraper_that_gives_up_leaves_no_traceback(caplog: pytest.LogCaptureFixture, encoding: str) -> None:
    asked, gone, written = asyncio.Event(), threading.Event(), asyncio.Event()
    loop, port = asyncio.get_running_loop(), free_port()

    class Slow(Exposition):
        """Takes until whoever asked has gone."""

        def write(self, operator: Snapshot, accept: str = "") -> Scrape:
            loop.call_soon_threadsafe(asked.set)
            assert gone.wait(20)
            loop.call_soon_threadsafe(written.set)
            return super().write(operator, accept)

    async with serve_metrics(Slow(), snapshot, port, address="127.0.0.1"):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept-Encoding: {encoding}\r\n\r\n".encode())
        await asked.wait()
        writer.transport.abort()
        await writer.wait_closed()
        gone.set()
        await written.wait()
        # Another one is answered after it.
        with urllib3.PoolManager(retries=False) as pool:
            url = f"http://127.0.0.1:{port}/metrics"
            assert (await asyncio.to_thread(pool.request, "GET", url, timeout=HANG_SECONDS)).status == 200
    assert [record for record in caplog.records if record.name == "aiohttp.server"] == []


async def test_a_scraper_that_leaves_in_the_middle_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    begun, port = asyncio.Event(), free_port()
    ended: list[asyncio.Task[None]] = []

    class Long(Scrape):
        """Compresses to next to nothing, so that nothing is sent before its end."""

        def texts(self) -> Iterator[bytes]:
            task = asyncio.current_task()
            assert task
            ended.append(task)
            yield bytes(5000)  # the head of what is compressed, which is sent at once
            begun.set()
            for _ in range(11):
                yield bytes(5000)

    class LongOne(Exposition):
        def write(self, *_: object) -> Scrape:
            return Long("text/plain", (), b"")

    async with serve_metrics(LongOne(), snapshot, port, address="127.0.0.1"):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept-Encoding: gzip\r\n\r\n")
        await begun.wait()
        writer.transport.abort()
        await asyncio.wait(ended, timeout=HANG_SECONDS)
    assert [record for record in caplog.records if record.name == "aiohttp.server"] == []


async def test_server_and_scraper_both_present_a_certificate(tmp_path: Path) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    server, client, stranger = ours.issue("server"), ours.issue("prometheus"), theirs.issue("prometheus")
    tls, port = Tls(server.certificate, server.key, ours.certificate), free_port()

    def scrape(who: object) -> int:
        pool = urllib3.PoolManager(
            ca_certs=str(ours.certificate), cert_file=str(who.certificate), key_file=str(who.key), retries=False
        )
        return pool.request("GET", f"https://127.0.0.1:{port}/metrics", timeout=HANG_SECONDS).status

    async with serve_metrics(Exposition(), snapshot, port, address="127.0.0.1", tls=tls):
        assert await asyncio.to_thread(scrape, client) == 200
        with pytest.raises(urllib3.exceptions.HTTPError):
            await asyncio.to_thread(scrape, stranger)


async def test_a_certificate_that_is_replaced_is_used_from_then_on(tmp_path: Path) -> None:
    ours = Authority(tmp_path / "ours")
    first, second = ours.issue("server"), ours.issue("renewed")
    tls, port = Tls(first.certificate, first.key), free_port()

    def serial() -> str:
        return str(ssl.get_server_certificate(("127.0.0.1", port)))

    async with serve_metrics(Exposition(), snapshot, port, address="127.0.0.1", tls=tls, renew_seconds=0.05):
        assert await asyncio.to_thread(serial) == first.pem
        for old, new in ((first.certificate, second.certificate), (first.key, second.key)):
            shutil.copy(new, old)
        async with asyncio.timeout(20):
            while await asyncio.to_thread(serial) != second.pem:  # noqa: ASYNC110 - of a file nobody tells
                await asyncio.sleep(0.05)


async def test_the_api_server_decides_who_may_scrape(cluster: Cluster) -> None:
    names = {name: f"{name}-{cluster.namespace}" for name in ("operator", "scraper")}
    cluster.apply(
        *(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
            for name in ("operator", "prometheus", "stranger")
        ),
        *role(cluster, names["operator"], "operator", [rule.to_manifest() for rule in SCRAPERS]),
        *role(cluster, names["scraper"], "prometheus", [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
    )

    def token(name: str) -> str:
        return cluster.kubectl("create", "token", name).stdout.strip()

    try:
        configuration = await cluster.configuration()
        configuration.cert_file = configuration.key_file = None
        configuration.api_key = {"BearerToken": f"Bearer {token('operator')}"}
        async with KubernetesApi(configuration) as api:
            scrapers = Scrapers(api)

            async def may(authorization: str) -> tuple[int, str]:
                return await scrapers(authorization, "10.0.0.1")

            assert await may(f"Bearer {token('prometheus')}") == (200, "")
            status, why = await may(f"Bearer {token('stranger')}")
            assert (status, "stranger may not get /metrics" in why) == (403, True)
            assert (await may("Bearer made-up"))[0] == 401
            assert (await may(""))[0] == 401
            made = sum(api.requests.values())
            assert (await may(f"Bearer {token('prometheus')}"))[0] == 200
            known = token("prometheus")
            assert [(await may(f"Bearer {known}"))[0] for _ in range(3)] == [200] * 3
            assert sum(api.requests.values()) == made + 4
    finally:
        for kind in ("clusterrole", "clusterrolebinding"):
            cluster.kubectl("delete", kind, *names.values())


def role(cluster: Cluster, name: str, account: str, rules: list[object]) -> tuple[dict[str, object], ...]:
    """A ClusterRole of that name, and the account bound to it."""
    group = "rbac.authorization.k8s.io"
    subject = {"kind": "ServiceAccount", "name": account, "namespace": cluster.namespace}
    return (
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        },
    )
