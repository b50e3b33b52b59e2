"""A proxy that makes requests of the operator to the API server fail.

A fault is armed for the n-th request of a kind, such as the second `update benchmarkruns/status`; where it names a run,
requests for that run alone are counted. Everything else reaches the real API server and comes back as it is.
"""

import asyncio
import contextlib
import functools
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web

from accelbench.cluster_api.kinds import verb_and_resource
from operator_world.client import cut

FAULTS = {
    "kill-before": (False, "kill"),
    "kill-after": (True, "kill"),
    "no-answer-before": (False, "cut"),
    "no-answer-after": (True, "cut"),
    "conflict": (False, "conflict"),
    "too-many": (False, "too-many"),
    "error-before": (False, "error"),
    "error-after": (True, "timed-out"),
    "slow": (False, "slow"),
    "hang": (False, "hang"),
    "half": (False, "half"),
    "watch-ends": (False, "watch-ends"),
    "watch-expired": (False, "watch-expired"),
    "list-expired": (False, "list-expired"),
}
"""By name: whether the request is carried out first, and what is answered; where nothing is, the connection ends."""

KILLS: tuple[str, ...] = ("kill-before", "kill-after")
OF_ANY: tuple[str, ...] = ("no-answer-before", "too-many", "error-before", "slow", "hang")
OF_A_WRITE: tuple[str, ...] = (*OF_ANY, "no-answer-after", "error-after", "conflict")
OF_A_WATCH: tuple[str, ...] = ("no-answer-before", "too-many", "error-before", "watch-ends", "watch-expired")
WRITES = frozenset({"create", "update", "delete"})
SECONDS = {"slow": 3.0, "hang": 40.0, "half": 40.0}
"""Before anything is answered, or, of half an answer, the rest; 40 s is longer than the operator waits."""
RETRY_AFTER_SECONDS = 1
SMALL = 64 * 1024
PASSED_ON = ("Authorization", "Accept", "Content-Type", "User-Agent")


@dataclass
class Rule:
    """Define the fault of the n-th request of a kind."""

    kind: str
    ordinal: int
    fault: str
    """One of `FAULTS`."""
    run: str = ""
    """Only requests for the run of that name are counted; empty: all are."""
    seen: int = 0
    fired: bool = False

    def __str__(self) -> str:
        """For a report."""
        return f"{self.fault} at {self.kind} #{self.ordinal}" + (f" of {self.run}" if self.run else "")

    def meets(self, request: "Seen") -> bool:
        """Whether this is the request; it is counted."""
        if self.fired or request.kind != self.kind or not (self.run in request.names or not self.run):
            return False
        self.seen += 1
        self.fired = self.seen == self.ordinal
        return self.fired


@dataclass(frozen=True)
class Seen:
    """A request: what kind, and in which names it speaks of a run."""

    kind: str
    names: frozenset[str] = frozenset()


@dataclass
class Proxy:
    """One operator's way to the API server. Use as a context manager; `kill` ends the operator and starts another."""

    kubeconfig: Path
    kill: Callable[[], None]
    rules: list[Rule] = field(default_factory=list)
    runs: Callable[[], Iterable[str]] = tuple
    """The names of runs that rules may ask for."""
    requests: list[Seen] = field(default_factory=list)
    ahead: Callable[[], float] = float
    """How many seconds the `Date` of the next answer is ahead."""

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.url = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(30)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> str:
        cluster = json.loads(self.kubeconfig.read_text())["clusters"][0]["cluster"]
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it lies on loopback, and is ours
        self._upstream = cluster["server"]
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        self._server = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await self._server.setup()
        site = web.TCPSite(self._server, "127.0.0.1", 0)
        await site.start()
        host, port = self._server.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _stop(self) -> None:
        await self._server.cleanup()
        await self._session.close()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        seen = self._see(request, body)
        self.requests.append(seen)
        rule = next((rule for rule in self.rules if rule.meets(seen)), None)
        if rule is None:
            return await self._stream(request, body)
        before, answer = FAULTS[rule.fault]
        if before:
            await self._whole(request, body)
        if answer == "kill":
            await asyncio.to_thread(self.kill)
        if answer == "half":
            await _begin(request)
        if answer in SECONDS:
            await asyncio.sleep(SECONDS[answer])
        if answer == "slow":
            return await self._stream(request, body)
        return ANSWERS[answer]() if answer in ANSWERS else _cut(request)

    def _see(self, request: web.BaseRequest, body: bytes) -> Seen:
        verb, resource = verb_and_resource(request.method, request.path, request.query)
        text = f"{request.path_qs} {body[:SMALL].decode(errors='replace') if verb == 'create' else ''}"
        return Seen(f"{verb} {resource}", frozenset(name for name in self.runs() if name in text))

    def _asked(self, request: web.BaseRequest, body: bytes) -> Any:
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        return self._session.request(
            request.method, self._upstream + request.path_qs, data=body or None, headers=headers
        )

    async def _whole(self, request: web.BaseRequest, body: bytes) -> None:
        """Carry out the request without an answer."""
        async with self._asked(request, body) as answer:
            if "watch" not in request.query:
                await answer.read()

    async def _stream(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        async with self._asked(request, body) as answer:
            headers = {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
            headers["Date"] = formatdate(time.time() + self.ahead(), usegmt=True)
            response = web.StreamResponse(status=answer.status, headers=headers)
            try:
                with contextlib.suppress(ConnectionError):  # whoever asked is gone
                    await response.prepare(request)
                    async for chunk in answer.content.iter_any():
                        await response.write(chunk)
                    await response.write_eof()
            finally:
                cut(answer)
            return response


def _refusal(code: int, message: str, headers: dict[str, Any] | None = None) -> web.Response:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "message": message}
    sent = {name: str(value) for name, value in (headers or {}).items()}
    return web.json_response(status, status=code, headers=sent)


async def _begin(request: web.BaseRequest) -> None:
    """The head of an answer, and its first byte."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(b"{")


def _cut(request: web.BaseRequest) -> web.StreamResponse:
    """The connection ends without an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _expired() -> web.Response:
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    return web.Response(body=json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")


ANSWERS: Mapping[str, Callable[[], web.Response]] = {
    "conflict": functools.partial(_refusal, 409, "the object has been modified; apply your changes to the latest"),
    "too-many": functools.partial(_refusal, 429, "too many requests", {"Retry-After": RETRY_AFTER_SECONDS}),
    "error": functools.partial(_refusal, 500, "etcdserver: leader changed"),
    "timed-out": functools.partial(_refusal, 504, "etcdserver: request timed out"),
    "watch-ends": functools.partial(web.Response, body=b"", content_type="application/json"),
    "watch-expired": _expired,
    "list-expired": functools.partial(_refusal, 410, "The provided continue parameter is too old"),
}
