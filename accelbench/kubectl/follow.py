"""A run followed to its end: why it waits, from its conditions; how far it is, from the log of the pod that measures.

Two threads wait for the server, one for what becomes of the run, one for the lines of a log. The main thread alone
decides, draws and can be interrupted; whatever it ends with ends the others.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.cli.in_cluster import ClusterError
from accelbench.cli.live import Display
from accelbench.delivery.log import parse_event
from accelbench.kubectl.gate import condition, is_finished
from accelbench.kubectl.runs import parsed
from accelbench.kubectl.server import (
    FORBIDDEN,
    GONE,
    UNAUTHORIZED,
    Manifest,
    NotThereError,
    RefusedError,
    Server,
    path,
    pods,
)
from accelbench.kubectl.signals import Signals
from accelbench.plan.cases import plan_cases

TICK_SECONDS = 1.0
RETRY_SECONDS = 2.0
PATIENCE_SECONDS = 10.0
"""How long a run may be without any status before it is said that nobody may be there to give it one."""
TOO_MANY_REQUESTS, SERVER_ERROR = 429, 500
NOBODY = (
    "no operator has picked up {name} yet: check that one is installed, that it serves namespace {namespace}, and that "
    "its className is {class_name}"
)


class TimedOutError(Exception):
    """It has not finished in the time that was given."""


class DeletedError(ClusterError):
    """Somebody deleted the run before it had finished."""


@dataclass(frozen=True)
class _Changed:
    run: Manifest


@dataclass(frozen=True)
class _Deleted:
    run: Manifest | None


@dataclass(frozen=True)
class _Unanswered:
    error: ClusterError


@dataclass(frozen=True)
class _Failed:
    error: BaseException
    """What a thread ended with, or what a signal says: the main thread ends with it."""


@dataclass(frozen=True)
class _Opened:
    pod: str
    case: Case


@dataclass(frozen=True)
class _Logged:
    line: str


@dataclass(frozen=True)
class _Closed:
    pod: str
    lines: int
    """How many of its lines were read, those of earlier attempts at reading it included."""
    over: bool
    """No more will come."""
    refused: str = ""


_News = _Changed | _Deleted | _Unanswered | _Failed | _Opened | _Logged | _Closed


def follow(
    server: Server,
    run: Manifest,
    *,
    display: Display,
    say: Callable[[str], None],
    until: float | None = None,
    signals: Signals | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Manifest:
    """The run once it has finished.

    Raises TimedOutError after `until` by the clock, DeletedError, RefusedError, and what `signals` make of theirs.
    """
    news: queue.SimpleQueue[_News] = queue.SimpleQueue()
    following = _Following(server, run, news, display, say, clock)
    _start(news, _watch, server, run, news)
    with (signals or Signals()).heard_by(lambda error: news.put(_Failed(error))):
        while not following.finished:
            left = TICK_SECONDS if until is None else min(TICK_SECONDS, until - clock())
            if left <= 0:
                raise TimedOutError
            try:
                following.heard(news.get(timeout=left))
            except queue.Empty:
                following.tick()
    following.end()
    return following.run


class _Following:
    """What is known of a run that is followed."""

    def __init__(
        self,
        server: Server,
        run: Manifest,
        news: "queue.SimpleQueue[_News]",
        display: Display,
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.run = run
        self._server, self._news, self._display, self._clock = server, news, display, clock
        self._say = say
        self._cases = [case.name for case in plan_cases(parsed(run))]
        self._since = clock()
        self._reason: str | None = None
        self._told: set[str] = set()
        """All that was said while that reason lasts: what a run waits for may change to and fro."""
        self._reading: str | None = None
        """The pod whose log is being read."""
        self._shown: str | None = None
        """The pod whose case the display has."""
        self._lines: dict[str, int] = {}
        self._over: set[str] = set()
        self._not_before = 0.0
        self._blind = self._silent = False

    @property
    def finished(self) -> bool:
        return is_finished(self.run)

    def heard(self, news: _News) -> None:
        if isinstance(news, _Opened | _Logged | _Closed):
            self._read_of_it(news)
        else:
            self._became_of_it(news)
        self._read_on()

    def _became_of_it(self, news: _Changed | _Deleted | _Unanswered | _Failed) -> None:
        match news:
            case _Changed():
                self.run, self._silent = news.run, False
                self._tell()
            case _Deleted():
                self.run = news.run or self.run
                if not self.finished:
                    raise DeletedError(
                        f"benchmarkrun/{self.run['metadata']['name']} was deleted before it had finished"
                    )
            case _Unanswered():
                if not self._silent:
                    self._say(f"warning: {news.error}; trying again")
                self._silent = True
            case _Failed():
                raise news.error

    def _read_of_it(self, news: _Opened | _Logged | _Closed) -> None:
        match news:
            case _Opened():
                self._begin(news.pod, news.case)
            case _Logged():
                if (event := parse_event(news.line)) is not None:
                    self._display.event(event)
            case _Closed():
                self._close(news)

    def tick(self) -> None:
        if not condition(self.run, "Finished") and self._clock() - self._since > PATIENCE_SECONDS:
            metadata, spec = self.run["metadata"], self.run["spec"]
            named = {"name": metadata["name"], "namespace": metadata["namespace"]}
            self._once(NOBODY.format(**named, class_name=spec.get("className", "accelbench")))
        self._display.tick()
        self._read_on()

    def end(self) -> None:
        if self._shown is not None:
            self._display.case_ends()
            self._shown = None

    def _tell(self) -> None:
        """Why it waits; how many cases are done while nobody sees them run."""
        now = condition(self.run, "Finished")
        if now.get("reason") != self._reason:
            self._reason, self._told = now.get("reason"), set()
        if now and now["status"] != "True" and (now["reason"] != "Running" or self._blind):
            self._once(f"{now['reason']}: {now['message']}")

    def _once(self, message: str) -> None:
        if message not in self._told:
            self._told.add(message)
            self._say(message)

    def _read_on(self) -> None:
        """Read the log of the first pod that may have more to say, unless one is being read."""
        if self._reading is not None or self._blind or self._clock() < self._not_before:
            return
        attempts = (self.run.get("status") or {}).get("attempts") or ()
        there = [each["pod"] for each in attempts if each.get("pod") and not each.get("finished")]
        waiting = [pod for pod in there if pod not in self._over]
        if waiting:
            # One whose container waits comes last again.
            self._reading = min(waiting, key=lambda pod: (pod != self._shown, self._lines.get(pod, 0) < 0))
            skip = max(0, self._lines.get(self._reading, 0))
            namespace = self.run["metadata"]["namespace"]
            _start(self._news, _read, self._server, namespace, self._reading, self._news, skip)

    def _begin(self, pod: str, case: Case) -> None:
        if pod == self._shown:
            return
        self.end()
        self._shown = pod
        place = self._cases.index(case.name) + 1 if case.name in self._cases else 1
        self._display.case_begins(case, place, len(self._cases))

    def _close(self, news: _Closed) -> None:
        self._reading = None
        self._lines[news.pod] = news.lines
        if news.refused:
            self._blind = True
            self._say(f"warning: progress cannot be shown: {news.refused}")
            self._tell()
        if news.over:
            self._over.add(news.pod)
            if news.pod == self._shown:
                self.end()
        else:
            self._not_before = self._clock() + RETRY_SECONDS


def _start(news: "queue.SimpleQueue[_News]", does: Callable[..., None], *arguments: Any) -> None:
    """In a thread of its own, whose failure is the main one's: else that would wait for it for ever."""

    def guarded() -> None:
        try:
            does(*arguments)
        except Exception as error:  # noqa: BLE001 - raised again by whoever reads it
            news.put(_Failed(error))

    threading.Thread(target=guarded, daemon=True).start()


def _watch(server: Server, run: Manifest, news: "queue.SimpleQueue[_News]") -> None:
    """Put every state of the run into `news`, however often the server ends the watch or does not answer."""
    metadata = run["metadata"]
    at, field = path(metadata["namespace"]), f"metadata.name={metadata['name']}"
    while True:
        try:
            found, version = server.items_at(at, fieldSelector=field)
            now = next((each for each in found if each["metadata"]["uid"] == metadata["uid"]), None)
            if now is None:
                news.put(_Deleted(None))
                return
            news.put(_Changed(_whole(now, run)))
            for event in server.watch(at, version, fieldSelector=field):
                if event["object"]["metadata"]["uid"] != metadata["uid"]:
                    continue
                if event["type"] == "DELETED":
                    news.put(_Deleted(event["object"]))
                    return
                news.put(_Changed(event["object"]))
        except RefusedError as error:
            if error.status not in {GONE, TOO_MANY_REQUESTS} and error.status < SERVER_ERROR:
                raise
            if error.status != GONE:
                news.put(_Unanswered(error))
        except ClusterError as error:
            news.put(_Unanswered(error))
        time.sleep(RETRY_SECONDS)


def _whole(listed: Manifest, run: Manifest) -> Manifest:
    """What a list leaves out of its items, as the server gives it for one object."""
    return {"apiVersion": run["apiVersion"], "kind": run["kind"], **listed}


def _read(server: Server, namespace: str, pod: str, news: "queue.SimpleQueue[_News]", skip: int) -> None:
    """Put the lines of a pod's log into `news`, those after the first `skip`; they are counted from its beginning."""
    lines = 0
    over, refused = False, ""
    try:
        if (case := _case_of(server.get(pods(namespace, pod)))) is None:
            over, refused = True, f"pod {pod} runs another release than your accelbench"
            return
        # 404: its node has not heard of the pod yet, or no more; the pod itself is asked for below, and next time.
        with contextlib.suppress(NotThereError):
            for line in server.log(namespace, pod, follow=True):
                if not lines:
                    news.put(_Opened(pod, case))
                lines += 1
                if lines > skip:
                    news.put(_Logged(line.decode(errors="replace").rstrip("\r\n")))
        over = server.get(pods(namespace, pod))["status"].get("phase") in {"Succeeded", "Failed"}
    except NotThereError:
        over = True
    except RefusedError as error:
        # 400: its container has not started.
        refused = str(error) if error.status in {UNAUTHORIZED, FORBIDDEN} else ""
    except ClusterError:
        pass  # it is asked again, and the lines that were read are passed over
    finally:
        news.put(_Closed(pod, max(lines, skip) or -1, over, refused))


def _case_of(pod: Any) -> Case | None:
    document = (pod["metadata"].get("annotations") or {}).get(labels.CASE_ANNOTATION, "")
    try:
        return Case.model_validate_json(document)
    except ValidationError:
        return None
