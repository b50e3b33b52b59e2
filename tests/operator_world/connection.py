"""The network between an operator and the API server: requests that are lost, refused, late, or never answered.

It stands in for the kubernetes client's HTTP, so that the operator's own client and its election are the real ones.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from random import Random
from typing import Any
from urllib.parse import parse_qsl

import aiohttp
from kubernetes.aio.client import Configuration

from accelbench_operator.engine.api import DatedClient
from operator_world.api_server import ApiServer, Manifest, RefusedError, lines
from operator_world.simulated_time import SimulatedTime

HOST = "http://simulated"
BOOKMARK_SECONDS = 60.0
MOMENT = 1e-3
BEFORE = ("lost", "busy", "failing", "unavailable", "conflict", "killed")
AFTER = ("unanswered", "slow", "late", "killed-after")
FAULTS = (*BEFORE, *AFTER, "still")
"""What can happen to a request: before it arrives, after it was carried out, or that its process then stands still."""
SLOW_SECONDS = (1.0, 25.0)
LATE_SECONDS = (31.0, 240.0)
STILL_SECONDS = (8.0, 240.0)


@dataclass
class Network:
    """Decide the faults of single requests, and those that last for a while."""

    time: SimulatedTime
    random: Random
    faults: Iterator[str]
    out_until: float = 0.0
    out: str = ""
    """One of `FAULTS`, which every request meets until then."""
    out_for: str = ""
    """For which plural; empty: for all."""
    date_error: Callable[[], timedelta] = timedelta
    """How far the `Date` of the next answer is ahead."""
    lags: dict[str, float] = field(default_factory=dict)
    """By plural: for how many seconds at most a watch is behind."""

    def fault(self, path: str) -> str:
        if self.time.seconds < self.out_until and self.out_for in path:
            return self.out
        return "" if "/leases" in path else next(self.faults, "")

    def lag(self, path: str) -> float:
        longest = max((lag for plural, lag in self.lags.items() if plural in path), default=0.05)
        return self.random.uniform(0.0, longest)


class Answer:
    """Hold an answer of the server, as the kubernetes client and aiohttp give it."""

    def __init__(self, status: int, body: str, content: Any = None, **headers: str) -> None:
        self.status = status
        self.reason = str(status)
        self.data = body.encode()
        self.content = content or Pieces(self.data)
        self.headers = {"content-type": "application/json"} | headers
        self.response = self

    async def read(self) -> bytes:
        return self.data

    def getheaders(self) -> dict[str, str]:
        return self.headers

    def close(self) -> None:
        pass


class Pieces:
    """Represent a complete text."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def iter_any(self) -> AsyncIterator[bytes]:
        yield self._data


class Connection(DatedClient):
    """Connect one process. `sent` gets each request; a fault can have the process `killed`, or paused (`still`)."""

    def __init__(
        self,
        server: ApiServer,
        network: Network,
        *,
        sent: Callable[[str, str], None],
        killed: Callable[[], None],
        still: Callable[[float], None],
    ) -> None:
        super().__init__(Configuration(host=HOST), lambda _: None)
        self._server = server
        self._network = network
        self._sent = sent
        self._killed = killed
        self._still = still
        self.is_cut = False
        """The process is no more."""

    async def call_api(self, method: str, url: str, *request: Any, _request_timeout: float | None = None) -> Any:
        """See `ApiClient`."""
        self._must_live()
        path, _, query = url.removeprefix(HOST).partition("?")
        self._sent(method, path)
        body = json.loads(_text(request[1])) if len(request) > 1 and request[1] else None
        async with asyncio.timeout(_request_timeout):
            answer = await self._ask(method, path, dict(parse_qsl(query)), body, _request_timeout)
        self.add_answer(format_datetime(self._network.time.now() + self._network.date_error(), usegmt=True))
        return answer

    async def _ask(
        self, method: str, path: str, query: dict[str, str], body: Manifest | None, seconds: float | None
    ) -> Answer:
        random, fault = self._network.random, self._network.fault(path)
        await asyncio.sleep(random.uniform(0.002, 0.03))
        if fault == "killed":
            self._killed()
        self._must_live()
        if refused := self._refused(fault, method):
            return refused
        if "watch" in query:
            return Answer(200, "", self._follow(path, query, seconds or 0.0))
        try:
            answer = Answer(200, self._server.answer(method, path, query, body or {}))
        except RefusedError as error:
            answer = Answer(error.code, error.body)
        await self._come_back(fault)
        return answer

    def _refused(self, fault: str, method: str) -> Answer | None:
        if fault == "lost":
            raise aiohttp.ClientConnectionError("no route to host")
        if fault == "busy":
            return Answer(429, '{"code": 429, "message": "too many requests"}', **{"Retry-After": "7"})
        if fault == "failing":
            return Answer(500, '{"code": 500, "message": "etcdserver: leader changed"}')
        if fault == "unavailable":
            return Answer(503, "upstream connect error or disconnect/reset before headers")
        if fault == "conflict" and method in {"POST", "PUT"}:
            return Answer(409, '{"code": 409, "message": "the object has been modified"}')
        return None

    async def _come_back(self, fault: str) -> None:
        random = self._network.random
        if fault == "killed-after":
            self._killed()
            self._must_live()
        if fault == "unanswered":
            raise aiohttp.ServerDisconnectedError
        if fault == "still":
            self._still(random.uniform(*STILL_SECONDS))
        if seconds := {"slow": SLOW_SECONDS, "late": LATE_SECONDS}.get(fault):
            await asyncio.sleep(random.uniform(*seconds))
        self._must_live()

    def _must_live(self) -> None:
        if self.is_cut:
            raise aiohttp.ClientConnectionError("the process is no more")

    async def _follow(self, path: str, query: dict[str, str], seconds: float) -> AsyncIterator[str]:
        loop, woken = asyncio.get_running_loop(), asyncio.Event()
        began = loop.time()
        try:
            watch = self._server.watch(path, query, lambda: loop.call_soon_threadsafe(woken.set))
        except RefusedError as error:
            yield f'{{"type": "ERROR", "object": {error.body}}}'
            return
        try:
            while not watch.ended:
                left = began + (seconds if watch.hangs else int(query["timeoutSeconds"])) - loop.time()
                if left < MOMENT:
                    if watch.hangs:
                        raise TimeoutError
                    return
                woken.clear()
                if watch.hangs or not watch.told:
                    try:
                        # Not wait_for, which takes no notice of a process that ends at the same moment (Python 3.11).
                        async with asyncio.timeout(min(left, BOOKMARK_SECONDS)):
                            await woken.wait()
                    except TimeoutError:
                        pass
                    else:
                        await asyncio.sleep(self._network.lag(path))
                self._must_live()
                if not watch.hangs:
                    for line in lines(watch, self._server.number):
                        yield line
            raise aiohttp.ClientPayloadError("connection reset by peer")
        finally:
            self._server.watches.remove(watch)


def _text(body: Any) -> str | bytes:
    """Return a body as JSON: the operator's client passes JSON, and that of the election an object."""
    return body if isinstance(body, str | bytes) else json.dumps(body)
