"""Apply single decisions in a simulated cluster."""

import asyncio
from collections.abc import Callable
from typing import Any

from accelbench.api.run import Attempt
from accelbench.cluster_api.errors import ApiError
from accelbench_operator.engine.kinds import Key
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.actions import Collect, CreateJob, DeleteJob
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.objects import RunObjects
from operator_world.builders import ALL_RETRIES, NAME, NAMESPACE, UID, make_attempt, make_plan, run_manifest
from operator_world.played import PlayedCluster

PLAN = make_plan()
CASE = PLAN.cases[0].name
ATTEMPT = make_attempt(PLAN)
CREATE = CreateJob(CASE, 1)
KEY = Key("BenchmarkRun", NAMESPACE, NAME, UID)


class World:
    def __init__(self) -> None:
        self.cluster = PlayedCluster(run_manifest(), lambda: "")
        self.store = Store()
        self.objects = RunObjects(self.store)
        self.applier = Applier(self.cluster, self.objects, self.cluster.clock)

    def do(self, action: Any, observed: Observed | None = None) -> None:
        if isinstance(action, DeleteJob):
            asyncio.run(self.applier.delete_job(action, KEY))
        else:
            asyncio.run(self.applier.apply(action, PLAN, observed or self.observed()))

    @property
    def attempt(self) -> Attempt:
        """Return the attempt with its Job recorded."""
        return ATTEMPT.model_copy(update={"job_uid": self.cluster.jobs[ATTEMPT.job]["metadata"]["uid"]})

    def observed(self) -> Observed:
        return self.objects.observed(KEY, self.applier.memory(UID))

    def failures(self) -> list[str]:
        return [failure.reason for failure in self.applier.memory(UID).failures.values()]


def raising(error: ApiError) -> Callable[..., Any]:
    async def request(*_: Any) -> Any:
        raise error

    return request


def with_a_stored_result(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    world.do(Collect(ATTEMPT, ALL_RETRIES))
