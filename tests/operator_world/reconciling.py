"""A reconciler of one run on a cluster simulated in this process."""

from typing import Any

from accelbench_operator.engine.kinds import Key
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.reconcile import Reconciler
from accelbench_operator.settings import Settings
from operator_world.builders import NAME, NAMESPACE, SETTINGS, UID, run_manifest
from operator_world.played import PlayedCluster

KEY = Key("BenchmarkRun", NAMESPACE, NAME, UID)


def reconciler(cluster: PlayedCluster, settings: Settings = SETTINGS) -> Reconciler:
    store = Store()
    applier = Applier(cluster, RunObjects(store), cluster.clock)
    return Reconciler(cluster, RunObjects(store), applier, settings, cluster.clock)


def new_cluster(**policy: Any) -> PlayedCluster:
    return PlayedCluster(run_manifest(sizes=(64, 128), runPolicy=policy), lambda: "")
