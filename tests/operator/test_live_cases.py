"""The progress of a running case is read from its log, even if the log holds other lines."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Self

import pytest
from aiohttp import web
from kubernetes.aio.client import Configuration

from accelbench.api.result import SpeedupEstimate
from accelbench.delivery.log import (
    LaunchFinished,
    LaunchStarted,
    PhaseReached,
    RoundFinished,
    encode_event,
)
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.metrics import live
from accelbench_operator.metrics.live import MAXIMUM_FOLLOWED, MINIMUM_AGE, LiveCases, advance
from accelbench_operator.metrics.snapshot import LiveCase
from accelbench_operator.runs.observed import ObservedPod
from accelbench_operator.runs.running_case import RunningCase
from cluster.ports import free_port
from operator_world.builders import NAMESPACE, UID, ended, make_attempt, make_plan, make_pod, running

PLAN = make_plan()
ATTEMPT = make_attempt(PLAN)
VARIANTS = {"pytorch/eager", "jax/jit", "jax/op-by-op"}
STARTED = LaunchStarted(variant="jax/jit", round=1, position=2, of=2)
STANDING = SpeedupEstimate(variant="jax/jit", speedup="2.04", lower="2.01", upper="2.07")
ROUND = RoundFinished(round=1, comparisons=(STANDING, SpeedupEstimate(variant="jax/op-by-op", invalid=("parity",))))


def test_events_advance_the_progress_of_a_case() -> None:
    begun = LiveCase(NAMESPACE, "chain", "size-64")
    launched = advance(advance(begun, STARTED, VARIANTS), PhaseReached(phase="compile"), VARIANTS)
    assert (launched.round, launched.variant, launched.phase) == (0, "jax/jit", "compile")
    over = advance(launched, LaunchFinished(variant="jax/jit", round=1, wall_seconds="3"), VARIANTS)
    assert (over.variant, over.phase) == ("", "")
    updated = advance(over, ROUND, VARIANTS)
    assert (updated.round, updated.comparisons) == (1, ROUND.comparisons)
    assert advance(updated, STARTED, VARIANTS).comparisons == updated.comparisons


def test_unknown_variants_in_a_log_become_no_series() -> None:
    begun = LiveCase(NAMESPACE, "chain", "size-64")
    launched = advance(begun, LaunchStarted(variant="forged-1", round=1, position=1, of=2), {"jax/jit"})
    assert launched.variant == ""
    forged = [SpeedupEstimate(variant=f"forged-{number}", speedup="2", lower="1", upper="3") for number in range(48)]
    updated = advance(launched, RoundFinished(round=1, comparisons=(*forged, STANDING)), {"jax/jit"})
    assert updated.comparisons == (STANDING,)


def case_of(pod: ObservedPod) -> RunningCase | None:
    """Return the case as the reconciler does."""
    return RunningCase(PLAN, ATTEMPT.case) if pod.owner == UID else None


async def test_a_pod_that_prints_a_lot_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log is read in parts."""
    lines = 20 * live.LINES_PER_TURN
    turns: list[int] = []

    async def printed(*_: Any) -> AsyncIterator[str]:
        for number in range(lines):
            turns.append(number)
            yield encode_event(STARTED)

    api = KubernetesApi(Configuration())
    monkeypatch.setattr(api, "lines", printed)
    pod = running(ATTEMPT)
    cases = LiveCases(api, list, case_of, lambda: True)
    following = asyncio.create_task(cases._follow(pod))
    most, before = 0, 0
    while len(turns) < lines:
        await asyncio.sleep(0)
        most, before = max(most, len(turns) - before), len(turns)
    following.cancel()
    assert 0 < most <= live.LINES_PER_TURN


class Logs:
    """Serve the log of any pod as it grows, like an API server."""

    def __init__(self) -> None:
        self.parts: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.port = free_port()

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.add_routes([web.get("/api/v1/namespaces/{namespace}/pods/{name}/log", self._serve)])
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.requests.append((request.match_info["name"], dict(request.query)))
        response = web.StreamResponse()
        await response.prepare(request)
        while (part := await self.parts.get()) is not None:
            await response.write(part)
        return response


@pytest.fixture
async def logs() -> AsyncIterator[Logs]:
    async with Logs() as serving:
        yield serving


async def until(holds: Any) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - any condition
            await asyncio.sleep(0.01)


@pytest.fixture
async def api(logs: Logs) -> AsyncIterator[KubernetesApi]:
    async with KubernetesApi(Configuration(host=f"http://127.0.0.1:{logs.port}")) as client:
        yield client


async def test_the_log_of_a_running_case_is_followed_until_it_ends(
    logs: Logs, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "POLL_SECONDS", 0.01)
    pods = [running(ATTEMPT, since=api.clock() - 2 * MINIMUM_AGE)]
    cases = LiveCases(api, lambda: pods, case_of, lambda: True)
    work = asyncio.create_task(cases.run())
    logs.parts.put_nowait(f"{encode_event(STARTED)}\nhello\n".encode())
    await until(lambda: cases.progress and cases.progress[0].variant == "jax/jit")
    (case,) = cases.progress
    assert (case.namespace, case.run, case.case, case.round) == (NAMESPACE, "chain", ATTEMPT.case, 0)
    line = f"{encode_event(ROUND)}\n".encode()
    logs.parts.put_nowait(b"x" * 100_000)  # a program's own line, which has no end yet
    logs.parts.put_nowait(b"x" * 100_000 + b"\n" + line[:20])
    logs.parts.put_nowait(line[20:])
    await until(lambda: cases.progress[0].round == 1)
    [(name, query)] = logs.requests
    assert (name, query["follow"]) == (pods[0].key.name, "true")
    pods[:] = [ended(ATTEMPT)]
    await until(lambda: not cases.progress)
    work.cancel()


async def test_a_log_that_is_followed_again_is_not_read_again(
    logs: Logs, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(live, "RETRY_SECONDS", 0.01)
    pods = [running(ATTEMPT, since=api.clock() - 2 * MINIMUM_AGE)]
    cases = LiveCases(api, lambda: pods, case_of, lambda: True)
    work = asyncio.create_task(cases.run())
    logs.parts.put_nowait(None)
    await until(lambda: len(logs.requests) > 1)
    logs.parts.put_nowait(f"{encode_event(ROUND)}\n".encode())
    await until(lambda: cases.progress and cases.progress[0].round == 1)
    logs.parts.put_nowait(None)
    await until(lambda: len(logs.requests) > 2)
    logs.parts.put_nowait(f"{encode_event(STARTED)}\n".encode())
    await until(lambda: cases.progress[0].variant == "jax/jit")
    assert cases.progress[0].round == 1
    assert [query.get("sinceSeconds") for _, query in logs.requests] == [None, None, "2"]
    work.cancel()


async def test_a_log_that_cannot_be_followed_is_reported_and_delays_no_other(
    logs: Logs, api: KubernetesApi, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(live, "POLL_SECONDS", 0.01)
    since = api.clock() - 2 * MINIMUM_AGE
    broken, sound = running(ATTEMPT, since=since), running(ATTEMPT, since=since)
    broken = replace(broken, key=broken.key._replace(uid="broken", name="with a\nline"))
    cases = LiveCases(api, lambda: [broken, sound], case_of, lambda: True)
    lines = api.lines
    monkeypatch.setattr(api, "lines", lambda path, *rest: 1 / 0 if "line" in path else lines(path, *rest))
    work = asyncio.create_task(cases.run())
    logs.parts.put_nowait(f"{encode_event(STARTED)}\n".encode())
    await until(lambda: cases.progress and cases.progress[0].variant == "jax/jit")
    assert len(cases.progress) == 1
    assert "cannot follow the log of pod" in caplog.text
    work.cancel()


async def test_short_foreign_or_too_many_cases_are_not_followed(logs: Logs, api: KubernetesApi) -> None:
    long_ago, lately = api.clock() - 2 * MINIMUM_AGE, api.clock() - MINIMUM_AGE + timedelta(seconds=5)
    others = replace(running(ATTEMPT, since=long_ago), owner="x", key=running(ATTEMPT).key._replace(uid="x"))
    none = LiveCases(api, lambda: [make_pod(ATTEMPT), running(ATTEMPT, since=lately), others], case_of, lambda: True)
    assert list(none._select_pods()) == []
    many = [
        replace(each, key=each.key._replace(uid=f"uid-{number}"))
        for number in range(2 * MAXIMUM_FOLLOWED)
        for each in [running(ATTEMPT, since=long_ago - timedelta(seconds=number))]
    ]
    leader = LiveCases(api, lambda: many, case_of, lambda: True)
    assert [pod.key.uid for pod in leader._select_pods()] == [
        f"uid-{number}" for number in range(2 * MAXIMUM_FOLLOWED - 1, MAXIMUM_FOLLOWED - 1, -1)
    ]
    assert (leader.omitted, none.omitted) == (MAXIMUM_FOLLOWED, 0)
    assert list(LiveCases(api, lambda: many, case_of, lambda: False)._select_pods()) == []
