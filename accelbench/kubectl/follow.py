"""Follow one run to its end: print why it waits and, while a pod measures, the progress that the pod logs.

Two threads read from the API server: one reads the changes of the run, the other the lines of a log. For everything
that they read, they put a function into a queue. The main thread executes these functions and draws, and a signal can
interrupt it at any time.
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
"""Maximum time between two drawings of the display."""
RETRY_SECONDS = 2.0
"""Time before a failed or ended request is sent again."""
OPERATOR_SECONDS = 10.0
"""If no operator writes a status within this time, a message asks the user to check the operator."""
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
    deadline: float | None = None,
    signals: Signals | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Manifest:
    """Show a run's progress until it has finished, and return the run.

    `print_message` gets what the display cannot show. `deadline` is a time of `clock`, in seconds; None for no limit.
    Raises TimedOutError at the deadline, and DeletedError if the run is deleted first.
    """
    follower = _Follower(client, run, display, print_message, clock)
    follower.start_watch()
    try:
        # Without `signals`, the caller's signal handlers stay: a new `Signals` installs none outside a `with` block.
        with (signals or Signals()).handled_by(follower.raise_in_step):
            while not is_finished(follower.run):
                wait_seconds = TICK_SECONDS
                if deadline is not None:
                    wait_seconds = min(TICK_SECONDS, deadline - clock())
                if wait_seconds <= 0:
                    raise TimedOutError
                follower.step(wait_seconds)
    finally:
        follower.stopped.set()
    follower.end_displayed_case()
    return follower.run


class _Follower:
    """Hold the state of one followed run. Only the main thread reads and writes it."""

    def __init__(
        self,
        client: Client,
        run: Manifest,
        display: Display,
        print_message: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        self.run = run
        self.stopped = threading.Event()
        """Set to end the thread that watches the run."""
        self._client = client
        self._display = display
        self._print = print_message
        self._clock = clock
        self._tasks: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        """Functions that the main thread has to execute."""
        self._case_names = [case.name for case in plan_cases(parse_run(run))]
        self._start_time = clock()
        self._is_unreachable = False
        """True from a failed request until the next state of the run arrives."""
        self._last_reason: str | None = None
        """Reason of the condition `Finished` when it was last read."""
        self._printed_messages: set[str] = set()
        """All messages printed since the reason changed: a run's message can alternate between two."""
        self._reading_pod: str | None = None
        """Name of the pod whose log a thread reads now."""
        self._displayed_pod: str | None = None
        """Name of the pod whose case is on the display."""
        self._lines_read: dict[str, int] = {}
        """Number of lines read, by pod; 0 for a pod whose log could not be read yet."""
        self._pods_read_to_end: set[str] = set()
        self._next_read_time = 0.0
        """Time by the clock before which no log is read."""
        self._logs_forbidden = False
        """True if the server has refused a log: then no log is read again."""

    def step(self, timeout_seconds: float) -> None:
        """Execute the next task of the queue, or redraw if none comes in time; then start to read a log if possible."""
        try:
            task = self._tasks.get(timeout=timeout_seconds)
        except queue.Empty:
            task = self._tick
        task()
        self._read_next_log()

    def raise_in_step(self, error: BaseException) -> None:
        """Make `step` raise this exception, in the main thread: any thread may call this."""
        self._post(self._raise_error, error)

    def end_displayed_case(self) -> None:
        """End the case on the display, if there is one."""
        if self._displayed_pod is not None:
            self._display.end_case()
            self._displayed_pod = None

    def start_watch(self) -> None:
        """Start the thread that watches the run."""
        self._start_thread(self._watch_run, self.run)

    def _start_thread(self, function: Callable[..., None], *arguments: Any) -> None:
        """Execute a function in a new thread; if it raises an exception, `step` raises it in the main thread."""

        def run_function() -> None:
            """Execute the function, and pass its exception to the main thread."""
            try:
                function(*arguments)
            except Exception as error:  # noqa: BLE001 - the main thread would wait without end
                self.raise_in_step(error)

        threading.Thread(target=run_function, daemon=True).start()

    def _post(self, function: Callable[..., None], *arguments: Any) -> None:
        """Put the function into the queue of the main thread."""
        self._tasks.put(partial(function, *arguments))

    # The main thread executes these.

    def _raise_error(self, error: BaseException) -> None:
        """Raise the error when the main thread executes this task."""
        raise error

    def _tick(self) -> None:
        """Redraw; if no operator has written a status for `OPERATOR_SECONDS`, print a message once."""
        # An operator's first status already has this condition, with the status False.
        has_status = bool(condition(self.run, "Finished"))
        if not has_status and self._clock() - self._start_time > OPERATOR_SECONDS:
            metadata = self.run["metadata"]
            message = NO_OPERATOR.format(
                name=metadata["name"],
                namespace=metadata["namespace"],
                class_name=self.run["spec"].get("className", "accelbench"),
            )
            self._print_once(message)
        self._display.tick()

    def _handle_change(self, run: Manifest) -> None:
        """Store the changed run, and print why it waits, if that has changed."""
        self.run, self._is_unreachable = run, False
        self._print_condition()

    def _handle_deletion(self, run: Manifest | None) -> None:
        """Raise DeletedError if the run was deleted before it finished.

        `run` is the last state of the deleted run; None if the server did not send it.
        """
        self.run = run or self.run
        if not is_finished(self.run):
            raise DeletedError(f"benchmarkrun/{self.run['metadata']['name']} was deleted before it had finished")

    def _handle_unreachable(self, error: ApiError) -> None:
        """Warn that the API server cannot be reached, but only once until it answers again."""
        if not self._is_unreachable:
            self._print(f"warning: {error.message}; trying again")
        self._is_unreachable = True

    def _handle_log_opened(self, pod: str, case: Case) -> None:
        """Display this pod's case in place of another pod's."""
        if pod == self._displayed_pod:
            return
        self.end_displayed_case()
        self._displayed_pod = pod
        case_number = 1  # the operator's release may plan a case that this release does not plan
        if case.name in self._case_names:
            case_number = self._case_names.index(case.name) + 1
        self._display.start_case(case, case_number, len(self._case_names))

    def _handle_log_line(self, line: str) -> None:
        """Display the event that this line of a pod's log has, if any."""
        event = parse_event(line)
        if event is not None:
            self._display.event(event)

    def _handle_log_closed(self, pod: str, lines_read: int, refusal: str, *, pod_ended: bool) -> None:
        """Store how many lines were read, after a thread stopped reading the log.

        If the pod has not ended, its log is read again later. But if `refusal` is not empty, it says why no log can be
        read, and none is read again.
        """
        self._reading_pod = None
        self._lines_read[pod] = lines_read
        if refusal:
            self._logs_forbidden = True
            self._print(f"warning: progress cannot be shown: {refusal}")
            self._print_condition()  # which was not printed as long as logs could show the progress
        if pod_ended:
            self._pods_read_to_end.add(pod)
            if pod == self._displayed_pod:
                self.end_displayed_case()
        else:
            self._next_read_time = self._clock() + RETRY_SECONDS

    def _print_condition(self) -> None:
        """Print why the run waits, unless that was printed before, or logs show that it does not wait."""
        # While a run has not finished, this condition has the reason why it waits.
        finished_condition = condition(self.run, "Finished")
        reason = finished_condition.get("reason")
        if reason != self._last_reason:
            self._last_reason = reason
            self._printed_messages = set()
        if not finished_condition or finished_condition["status"] == "True":
            return  # no operator has picked up the run, or the run has finished
        # While cases run, their logs show the progress, unless the server has refused a log.
        if reason != "Running" or self._logs_forbidden:
            self._print_once(f"{reason}: {finished_condition['message']}")

    def _print_once(self, message: str) -> None:
        """Print the message unless it was printed since the reason of the run last changed."""
        if message not in self._printed_messages:
            self._printed_messages.add(message)
            self._print(message)

    def _read_next_log(self) -> None:
        """Start to read the log of a running pod.

        Do nothing while a log is being read, after the server has refused a log, or before `_next_read_time`.
        """
        if self._reading_pod is not None or self._logs_forbidden or self._clock() < self._next_read_time:
            return
        attempts = (self.run.get("status") or {}).get("attempts") or ()
        running_pods = [attempt["pod"] for attempt in attempts if attempt.get("pod") and not attempt.get("finished")]
        unread_pods = [pod for pod in running_pods if pod not in self._pods_read_to_end]
        if unread_pods:
            # False sorts before True: the displayed pod is first. Pods whose log could not be read yet (0) are last,
            # after pods whose log was not tried yet (None).
            pod = min(unread_pods, key=lambda pod: (pod != self._displayed_pod, self._lines_read.get(pod) == 0))
            self._reading_pod = pod
            self._start_thread(self._read_log, self.run["metadata"]["namespace"], pod, self._lines_read.get(pod, 0))

    # Other threads execute these. They send requests and post functions, and use no other attribute of this object.

    def _watch_run(self, run: Manifest) -> None:
        """Pass every state of the run to the main thread, until the run is deleted."""
        metadata = run["metadata"]
        collection, selector = RUN.path(metadata["namespace"]), f"metadata.name={metadata['name']}"
        # Whenever a watch ends, list the run and watch again.
        while True:
            try:
                items, version = self._client.items_and_version(collection, fieldSelector=selector)
                # Another run can have the same name after this run was deleted.
                current_run = next((item for item in items if item["metadata"]["uid"] == metadata["uid"]), None)
                if current_run is None:
                    self._post(self._handle_deletion, None)
                    return
                # The items of a list have neither apiVersion nor kind.
                type_fields = {"apiVersion": run["apiVersion"], "kind": run["kind"]}
                self._post(self._handle_change, {**type_fields, **current_run})
                for event in self._client.watch(collection, version, fieldSelector=selector):
                    if event["object"]["metadata"]["uid"] != metadata["uid"]:
                        continue
                    if event["type"] == "DELETED":
                        self._post(self._handle_deletion, event["object"])
                        return
                    self._post(self._handle_change, event["object"])
            except ExpiredError:
                pass  # The next list shows the run as it is now.
            except ApiError as error:
                if not error.is_temporary:
                    raise
                self._post(self._handle_unreachable, error)
            if self.stopped.wait(RETRY_SECONDS):
                return

    def _read_log(self, namespace: str, pod: str, lines_to_skip: int) -> None:
        """Read a pod's log in a thread, and post each line to the main thread; post at last that the log was closed.

        Skip `lines_to_skip` lines, which an earlier call has posted.
        """
        lines_read = 0
        pod_ended, refusal = False, ""
        try:
            case = _case_in_annotation(self._client.get(POD.path(namespace, pod)))
            if case is None:  # read neither this log again nor another
                pod_ended, refusal = True, f"pod {pod} runs another release than your accelbench"
                return
            # 404: the kubelet does not know the pod yet, or no longer.
            with contextlib.suppress(NotFoundError):
                for line in self._client.log(namespace, pod, follow=True):
                    if not lines_read:
                        self._post(self._handle_log_opened, pod, case)
                    lines_read += 1
                    if lines_read > lines_to_skip:
                        self._post(self._handle_log_line, line.decode(errors="replace").rstrip("\r\n"))
            phase = self._client.get(POD.path(namespace, pod))["status"].get("phase")
            pod_ended = phase in {"Succeeded", "Failed"}
        except NotFoundError:  # the API server does not know the pod: it was deleted
            pod_ended = True
        except (UnauthorizedError, ForbiddenError) as error:
            refusal = error.message
        except ApiError:
            pass  # The log is read again later: its container has not started (400), or the connection broke off.
        finally:
            # If the connection broke off early, the lines of an earlier reading still count.
            total_lines_read = max(lines_read, lines_to_skip)
            self._post(partial(self._handle_log_closed, pod_ended=pod_ended), pod, total_lines_read, refusal)


def _case_in_annotation(pod: Any) -> Case | None:
    """Return the case in the pod's annotation; None if this release cannot read it."""
    document = (pod["metadata"].get("annotations") or {}).get(labels.CASE_ANNOTATION, "")
    try:
        return Case.model_validate_json(document)
    except ValidationError:
        return None
