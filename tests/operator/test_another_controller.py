"""A second kind has its own controller next to that of runs, without any change in `engine/` or `runs/`."""

from dataclasses import dataclass
from typing import Any

from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ConflictError
from accelbench.cluster_api.kinds import RUN, Kind
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.kinds import Key, Owned, controller_of
from accelbench_operator.engine.store import Store
from accelbench_operator.operator import Operator
from operator_world.builders import run_manifest
from operator_world.world import World, simulated

NIGHTLY = Kind("Nightly", "nightlies", "example.dev/v1")


@dataclass(frozen=True)
class Child:
    key: Key
    owner: str
    phase: str


def observe(run: Any) -> Child:
    return Child(Key.of(RUN.name, run), controller_of(run)["uid"], run.get("status", {}).get("phase", ""))


class Nightlies:
    """Create a BenchmarkRun for each Nightly, and show in its status how that run is doing."""

    kind = NIGHTLY
    owns = (Owned(RUN, "example.dev/nightly", observe),)

    def __init__(self, api: KubernetesApi, store: Store) -> None:
        self._api, self._store = api, store
        self._manifests: dict[str, Any] = {}

    def changed(self, key: Key, manifest: Any) -> bool:
        self._manifests[key.uid] = manifest
        return True

    def deleted(self, key: Key) -> None:
        self._manifests.pop(key.uid, None)

    def reset(self) -> None:
        pass

    async def reconcile(self, key: Key) -> float | None:
        nightly, child = self._manifests[key.uid], next(self._store.owned(key.uid), None)
        if child is None:
            try:
                await self._api.create(RUN.path(key.namespace), child_of(key, nightly))
            except ConflictError:
                return 1.0  # it exists, and its watch is behind
        elif isinstance(child, Child) and nightly.get("status") != {"phase": child.phase}:
            body = {**nightly, "status": {"phase": child.phase}}
            await self._api.replace(f"{NIGHTLY.path(key.namespace)}/{key.name}/status", body)
        return None


def child_of(key: Key, nightly: Any) -> Manifest:
    owner = {"apiVersion": NIGHTLY.api_version, "kind": key.kind, "name": key.name, "uid": key.uid, "controller": True}
    labels = {"example.dev/nightly": key.name}
    metadata = {"name": key.name, "namespace": key.namespace, "labels": labels, "ownerReferences": [owner]}
    return {**run_manifest(**nightly["spec"]), "metadata": metadata}


def add_nightlies(api: KubernetesApi, operator: Operator) -> None:
    operator.controllers.add(Nightlies(api, operator.store))


def apply_nightly(world: World) -> None:
    world.server.plurals.add("nightlies")
    metadata = {"name": "softmax", "namespace": "team-0"}
    world.server.create("nightlies", {"metadata": metadata, "spec": {"sizes": [64, 128]}})


def phase(world: World) -> str:
    nightly = world.server.find("nightlies", "team-0", "softmax")
    return str((nightly or {}).get("status", {}).get("phase"))


def test_a_second_controller_owns_runs_that_the_first_one_measures() -> None:
    with simulated(prepare=add_nightlies) as world:
        apply_nightly(world)
        world.finish()
        assert phase(world) == "Succeeded"
        assert [run["metadata"]["name"] for run in world.server.all("benchmarkruns")] == ["softmax"]
        assert world.laws.broken == []


def test_a_second_controller_survives_crashes_and_fails_over_like_the_first() -> None:
    with simulated(
        prepare=add_nightlies, replicas=2, faults=["killed-after", "lost", "busy", "unanswered"] * 20
    ) as world:
        apply_nightly(world)
        world.passes(120.0)
        world.expire()
        world.finish()
        assert phase(world) == "Succeeded"
        assert len(world.server.all("benchmarkruns")) == 1
        assert world.laws.broken == []


def test_a_second_controller_forgets_a_deleted_object() -> None:
    with simulated(prepare=add_nightlies) as world:
        apply_nightly(world)
        world.passes(5.0)
        world.delete("nightlies", 0)
        world.passes(60.0)
        world.empty()
        assert world.server.all("benchmarkruns") == []
        assert world.laws.broken == []
