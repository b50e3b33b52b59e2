"""Follow one run to its end: print why it waits and, while a pod measures, the progress that the pod logs.

Two threads read from the API client, one the changes of the run, the other the lines of a log. All that they do is post
calls into a queue; the main thread executes these, draws, and can be interrupted at any time.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pydantic import ValidationError

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.cluster_api.client import Client, Manifest
from accelbench.cluster_api.errors import (
    ApiError,
    ClusterError,
    ExpiredError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
)
from accelbench.cluster_api.kinds import POD, RUN
from accelbench.delivery.log import parse_event
from accelbench.kubectl.gate import condition, is_finished
from accelbench.kubectl.runs import parse_run
from accelbench.kubectl.signals import Signals
from accelbench.plan.cases import plan_cases
from accelbench.report.live import Display

TICK_SECONDS = 1.0
"""Longest time between two drawings of the display."""
RETRY_SECONDS = 2.0
OPERATOR_SECONDS = 10.0
"""Time that an operator has to write the first status; after it a message asks the user to check the operator."""
NO_OPERATOR = (
    "no operator has picked up {name} yet: check that one is installed, that it serves namespace {namespace}, and that "
    "its className is {class_name}"
)


class TimedOutError(Exception):
    """Report that the run did not finish within the time limit."""


class DeletedError(ClusterError):
    """Report that the run was deleted before it had finished."""


def follow(
    client: Client,
    run: Manifest,
    *,
    display: Display,
    print_message: Callable[[str], None],
    until: float | None = None,
    signals: Signals | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Manifest:
    """Return the run once it has finished.

    Raises TimedOutError after `until` by the clock, DeletedError, ApiError, and the exception of a signal.
    """
    follower = _Follower(client, run, display, print_message, clock)
    follower.start_watch()
    try:
        with (signals or Signals()).passed_to(follower.fail):
            while not is_finished(follower.run):
                left = TICK_SECONDS if until is None else min(TICK_SECONDS, until - clock())
                if left <= 0:
                    raise TimedOutError
                follower.step(left)
    finally:
        follower.ended.set()
    follower.end_case()
    return follower.run


class _Follower:
    """Hold the state of one followed run; the main thread alone reads and writes it."""

    def __init__(
        self,
        client: Client,
        run: Manifest,
        display: Display,
        print_message: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.run = run
        self.ended = threading.Event()
        """Set to end the thread that watches the run."""
        self._client, self._display, self._print, self._clock = client, display, print_message, clock
        self._posted_calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        """Calls that the threads have posted for the main thread."""
        self._case_names = [case.name for case in plan_cases(parse_run(run))]
        self._began = clock()
        self._unreachable = False
        self._printed_reason: str | None = None
        self._printed_messages: set[str] = set()
        """All messages printed since the reason changed: a run's message can alternate between two."""
        self._reading_pod: str | None = None
        self._displayed_pod: str | None = None
        self._lines_read: dict[str, int] = {}
        """Number of lines read, by pod; 0 for a pod whose log could not be read yet."""
        self._pods_read_to_end: set[str] = set()
        self._next_log_at = 0.0
        self._logs_forbidden = False

    def step(self, seconds: float) -> None:
        """Execute the next call of a thread; if none comes in `seconds`, redraw."""
        try:
            call = self._posted_calls.get(timeout=seconds)
        except queue.Empty:
            call = self._tick
        call()
        self._read_next_log()

    def fail(self, error: BaseException) -> None:
        """End `step` in the main thread with this exception."""
        self._post(self._raise_error, error)

    def end_case(self) -> None:
        """End the case on the display, if there is one."""
        if self._displayed_pod is not None:
            self._display.end_case()
            self._displayed_pod = None

    def start_watch(self) -> None:
        """Watch the run in a thread."""
        self._start(self._watch_run, self.run)

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        """Start a thread whose failure ends the main thread too, which would otherwise wait for ever."""

        def guarded() -> None:
            try:
                target(*arguments)
            except Exception as error:  # noqa: BLE001 - the main thread raises it again
                self.fail(error)

        threading.Thread(target=guarded, daemon=True).start()

    def _post(self, call: Callable[..., None], *arguments: Any) -> None:
        self._posted_calls.put(partial(call, *arguments))

    # The main thread executes these.

    def _raise_error(self, error: BaseException) -> None:
        raise error

    def _tick(self) -> None:
        """Redraw; if no operator has written a status after `OPERATOR_SECONDS`, print a message about it, once."""
        has_status = bool(condition(self.run, "Finished"))
        if not has_status and self._clock() - self._began > OPERATOR_SECONDS:
            metadata, spec = self.run["metadata"], self.run["spec"]
            names = {"name": metadata["name"], "namespace": metadata["namespace"]}
            self._print_once(NO_OPERATOR.format(**names, class_name=spec.get("className", "accelbench")))
        self._display.tick()

    def _handle_change(self, run: Manifest) -> None:
        """Keep the new state of the run, and print why it waits."""
        self.run, self._unreachable = run, False
        self._print_condition()

    def _handle_deletion(self, run: Manifest | None) -> None:
        """Raise DeletedError unless the run finished before it was deleted."""
        self.run = run or self.run
        if not is_finished(self.run):
            raise DeletedError(f"benchmarkrun/{self.run['metadata']['name']} was deleted before it had finished")

    def _handle_unreachable(self, error: ApiError) -> None:
        """Print a warning, but only one until the cluster answers again."""
        if not self._unreachable:
            self._print(f"warning: {error.message}; trying again")
        self._unreachable = True

    def _handle_log_opened(self, pod: str, case: Case) -> None:
        """Display the pod's case in place of the one before."""
        if pod == self._displayed_pod:
            return
        self.end_case()
        self._displayed_pod = pod
        place = self._case_names.index(case.name) + 1 if case.name in self._case_names else 1
        self._display.start_case(case, place, len(self._case_names))

    def _handle_log_line(self, line: str) -> None:
        if (event := parse_event(line)) is not None:
            self._display.event(event)

    def _handle_log_closed(self, pod: str, lines: int, refusal: str, *, ended: bool) -> None:
        """Note how far the log was read; after a refusal, warn and read no log again."""
        self._reading_pod = None
        self._lines_read[pod] = lines
        if refusal:
            self._logs_forbidden = True
            self._print(f"warning: progress cannot be shown: {refusal}")
            self._print_condition()
        if ended:
            self._pods_read_to_end.add(pod)
            if pod == self._displayed_pod:
                self.end_case()
        else:
            self._next_log_at = self._clock() + RETRY_SECONDS

    def _print_condition(self) -> None:
        """Print why the run waits; while cases run, print how many are done, but only if logs cannot be read."""
        finished = condition(self.run, "Finished")
        if finished.get("reason") != self._printed_reason:
            self._printed_reason, self._printed_messages = finished.get("reason"), set()
        if finished and finished["status"] != "True" and (finished["reason"] != "Running" or self._logs_forbidden):
            self._print_once(f"{finished['reason']}: {finished['message']}")

    def _print_once(self, message: str) -> None:
        if message not in self._printed_messages:
            self._printed_messages.add(message)
            self._print(message)

    def _read_next_log(self) -> None:
        """Start to read the log of a pod that measures, unless one is being read."""
        if self._reading_pod is not None or self._logs_forbidden or self._clock() < self._next_log_at:
            return
        attempts = (self.run.get("status") or {}).get("attempts") or ()
        running = [attempt["pod"] for attempt in attempts if attempt.get("pod") and not attempt.get("finished")]
        readable = [pod for pod in running if pod not in self._pods_read_to_end]
        if readable:
            # The displayed pod first; pods whose container had not started last.
            pod = min(readable, key=lambda pod: (pod != self._displayed_pod, self._lines_read.get(pod) == 0))
            self._reading_pod = pod
            self._start(self._read_log, self.run["metadata"]["namespace"], pod, self._lines_read.get(pod, 0))

    # Threads execute these. They use the server and post calls, and touch nothing else of this object.

    def _watch_run(self, run: Manifest) -> None:
        """Post every state of the run, however often the server ends the watch or does not answer."""
        metadata = run["metadata"]
        collection, selector = RUN.path(metadata["namespace"]), f"metadata.name={metadata['name']}"
        while True:
            try:
                listed, version = self._client.items_and_version(collection, fieldSelector=selector)
                this_run = [item for item in listed if item["metadata"]["uid"] == metadata["uid"]]
                if not this_run:
                    self._post(self._handle_deletion, None)
                    return
                # The items of a list have neither apiVersion nor kind.
                self._post(self._handle_change, {"apiVersion": run["apiVersion"], "kind": run["kind"], **this_run[0]})
                for event in self._client.watch(collection, version, fieldSelector=selector):
                    if event["object"]["metadata"]["uid"] != metadata["uid"]:
                        continue
                    if event["type"] == "DELETED":
                        self._post(self._handle_deletion, event["object"])
                        return
                    self._post(self._handle_change, event["object"])
            except ExpiredError:
                pass  # The list shows the run as it is now.
            except ApiError as error:
                if not error.is_temporary:
                    raise
                self._post(self._handle_unreachable, error)
            if self.ended.wait(RETRY_SECONDS):
                return

    def _read_log(self, namespace: str, pod: str, skip: int) -> None:
        """Post the lines of a pod's log after the first `skip`, which an earlier attempt has posted."""
        lines = 0
        ended, refusal = False, ""
        try:
            if (case := _case_of(self._client.get(POD.path(namespace, pod)))) is None:
                ended, refusal = True, f"pod {pod} runs another release than your accelbench"
                return
            # 404: the kubelet does not know the pod yet, or no longer.
            with contextlib.suppress(NotFoundError):
                for line in self._client.log(namespace, pod, follow=True):
                    if not lines:
                        self._post(self._handle_log_opened, pod, case)
                    lines += 1
                    if lines > skip:
                        self._post(self._handle_log_line, line.decode(errors="replace").rstrip("\r\n"))
            ended = self._client.get(POD.path(namespace, pod))["status"].get("phase") in {"Succeeded", "Failed"}
        except NotFoundError:
            ended = True
        except (UnauthorizedError, ForbiddenError) as error:
            refusal = error.message
        except ApiError:
            pass  # The log is read again later: its container has not started (400), or the connection broke off.
        finally:
            self._post(partial(self._handle_log_closed, ended=ended), pod, max(lines, skip), refusal)


def _case_of(pod: Any) -> Case | None:
    """Return the case in the pod's annotation; None if another release wrote it."""
    document = (pod["metadata"].get("annotations") or {}).get(labels.CASE_ANNOTATION, "")
    try:
        return Case.model_validate_json(document)
    except ValidationError:
        return None
