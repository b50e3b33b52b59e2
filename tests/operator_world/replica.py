"""One replica of the operator, whose process is started, killed, terminated, paused and restarted.

All of `python -m accelbench_operator` but the servers of its metrics and its health; kopf's watch of runs is played.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from random import Random

from kubernetes.aio.client import Configuration

from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ApiError, ExpiredError
from accelbench.cluster_api.kinds import Kind
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.clock import ServerClock
from accelbench_operator.engine.election import LeaseName
from accelbench_operator.engine.kinds import Key
from accelbench_operator.operator import Operator
from accelbench_operator.settings import Settings
from operator_world.api_server import ApiServer
from operator_world.builders import SETTINGS
from operator_world.connection import Connection, Network
from operator_world.simulated_time import ProcessLoop, SimulatedTime

LEASE = LeaseName("accelbench", "operator")
WATCH_SECONDS = 300


class Replica:
    """See above. `asked` is told of each request as it is sent, and who sends it; `broken`, of a process that ended."""

    def __init__(
        self,
        number: int,
        time: SimulatedTime,
        server: ApiServer,
        network: Network,
        random: Random,
        *,
        asked: Callable[[str, str, str], None],
        broken: Callable[[str], None],
        settings: Settings = SETTINGS,
        shares_lease: bool,
        prepare: Callable[[KubernetesApi, Operator], object] = lambda _api, _operator: None,
    ) -> None:
        self._number = number
        self._time = time
        self._server = server
        self._network = network
        self._random = random
        self._asked = asked
        self._broken = broken
        self._settings = replace(settings, lease=LEASE) if shares_lease else settings
        self.skew = timedelta()
        """How far its machine's clock is ahead."""
        self._prepare = prepare
        self._lives = 0
        self._away_until = 0.0
        self.operator: Operator | None = None
        self._loop: ProcessLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._connection: Connection | None = None

    @property
    def identity(self) -> str:
        """Return the identity of this process."""
        return f"replica-{self._number}-{self._lives}"

    def clock(self) -> datetime:
        """Return the time of its machine."""
        return self._time.now() + self.skew

    def start(self) -> None:
        """Start a process."""
        if self._task is not None or self._time.seconds < self._away_until:
            return
        self._lives += 1
        loop = self._loop = ProcessLoop(self._time)
        self._connection = Connection(
            self._server,
            self._network,
            sent=partial(self._sent, self.identity),
            killed=self.kill,
            still=loop.stand_still,
        )
        self._task = loop.create_task(self._live(self._connection))
        self._task.add_done_callback(lambda task: self._time.later(0.0, lambda: self._ended(loop, task)))

    def kill(self, away_seconds: float = 2.0) -> None:
        """Kill the process: its memory is lost, and it sends no more requests."""
        if self._connection is not None:
            self._connection.is_cut = True
            self._loop.stand_still(0.0)
            self.end(away_seconds)

    def end(self, away_seconds: float = 2.0) -> None:
        """Terminate the process: work in progress is finished, within seconds."""
        self._away_until = self._time.seconds + away_seconds
        self._time.later(away_seconds, self.start)
        if self._task is not None:
            loop, task = self._loop, self._task
            loop.call_soon_threadsafe(task.cancel)
            self._task = None
            if self._connection.is_cut:
                self.operator = None

    def stand_still(self, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        if self._task is not None:
            self._loop.stand_still(seconds)

    def return_(self) -> None:
        """Whatever kept it away is over."""
        self._away_until = 0.0
        self.start()

    def _ended(self, loop: ProcessLoop, task: asyncio.Task[None]) -> None:
        if task is self._task:
            self._task = self.operator = None
            self._broken(f"{self.identity} ended by itself")
            self._time.later(2.0, self.start)
        if not task.cancelled() and (error := task.exception()):
            self._broken(f"{self.identity} ended with {error!r}")
        loop.run_forever()  # what its end has made ready
        loop.close()

    def _sent(self, identity: str, method: str, path: str) -> None:
        self._asked(identity, method, path)

    async def _live(self, connection: Connection) -> None:
        api = KubernetesApi(Configuration())
        api.client = connection
        api.clock = ServerClock(self.clock, lambda: self._time.seconds)
        connection.add_answer = api.clock.add_answer
        operator = self.operator = Operator(api, self._settings, self.identity)
        self._prepare(api, operator)
        async with asyncio.TaskGroup() as group:
            group.create_task(operator.run())
            await operator.crds_fit.wait()
            for kind in operator.controllers.kinds:
                group.create_task(self._watch(api, operator, kind))

    async def _watch(self, api: KubernetesApi, operator: Operator, kind: Kind) -> None:
        """As kopf does: a list, then a watch. What is deleted while it has to list anew is never told."""
        while True:
            try:
                version = await self._list(api, operator, kind)
                while True:
                    version = await self._follow(api, operator, kind, version)
            except ExpiredError:
                continue
            except ApiError:
                await asyncio.sleep(self._random.uniform(0.1, 60.0))

    async def _list(self, api: KubernetesApi, operator: Operator, kind: Kind) -> str:
        query = {"limit": 500}
        while True:
            page = await api.get(kind.path(), query)
            for run in page["items"]:
                _tell(operator, kind, "ADDED", run)
            if not (token := page["metadata"].get("continue")):
                return page["metadata"]["resourceVersion"]
            query["continue"] = token

    async def _follow(self, api: KubernetesApi, operator: Operator, kind: Kind, version: str) -> str:
        query = {"resourceVersion": version}
        async with contextlib.aclosing(api.watch(kind.path(), query, WATCH_SECONDS)) as events:
            async for event in events:
                if event["type"] != "BOOKMARK":
                    _tell(operator, kind, event["type"], event["object"])
                version = event["object"]["metadata"]["resourceVersion"]
        return version


def _tell(operator: Operator, kind: Kind, event: str, manifest: Manifest) -> None:
    key = Key.of(kind.name, manifest)
    if event == "DELETED":
        operator.controllers.deleted(key)
    else:
        operator.controllers.changed(key, manifest)
