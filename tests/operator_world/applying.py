"""What is done live with one decision, in a simulated cluster."""

import asyncio
from collections.abc import Callable
from typing import Any

from accelbench_operator.engine.api import ApiError
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.actions import Collect, CreateJob, DeleteJob
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.known import RunKey
from operator_world.builders import NAME, NAMESPACE, UID, make_attempt, make_plan, run_manifest
from operator_world.simulated import SimulatedCluster

PLAN = make_plan()
CASE = PLAN.cases[0].name
ATTEMPT = make_attempt(PLAN)
CREATE = CreateJob(CASE, 1)


class World:
    def __init__(self) -> None:
        self.cluster = SimulatedCluster(run_manifest(), lambda: "")
        self.store = Store(lambda _: None)
        self.applier = Applier(self.cluster, self.store, self.cluster.clock)

    def do(self, action: Any, observed: Observed | None = None) -> None:
        if isinstance(action, DeleteJob):
            asyncio.run(self.applier.delete_job(action, RunKey(NAMESPACE, NAME, UID)))
        else:
            asyncio.run(self.applier.apply(action, PLAN, observed or self.store.observed(NAMESPACE, UID, {})))

    def losses(self) -> list[str]:
        return [loss.reason for loss in self.applier.losses.get(UID, {}).values()]


def raising(error: ApiError) -> Callable[..., Any]:
    async def request(*_: Any) -> Any:
        raise error

    return request


def with_a_stored_result(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    world.do(Collect(ATTEMPT, last=False))
