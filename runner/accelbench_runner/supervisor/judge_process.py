"""Ask the judge, a short-lived child between rounds: it needs numpy and scipy, which the supervisor does without."""

import contextlib
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Certificate
from accelbench.launch.record import LaunchRecord
from accelbench_runner.answers import read_answer
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.supervisor.children import ChildExit, Interruption, run_child
from accelbench_runner.supervisor.listener import OutputListener
from accelbench_runner.supervisor.log_writer import LogWriter, OutputForwarder
from accelbench_runner.supervisor.outcome import crash_location

MAXIMUM_ASSESSMENT_BYTES = 4 * 1024 * 1024
SLEEPING_THREADS = {"OMP_WAIT_POLICY": "passive", "KMP_BLOCKTIME": "0", "OPENBLAS_THREAD_TIMEOUT": "4"}
"""Environment variables with which waiting threads sleep: on a busy machine, threads that spin take CPU time from the
threads that they wait for. A longer wake-up does not matter, because the judge is not timed."""


class JudgeError(Exception):
    """Report that the judge gave no assessment, which is a fault of accelbench and not of a variant."""


class JudgeKilledError(Exception):
    """Report that the judge was killed by SIGKILL, probably for lack of memory."""


class _NoAnswerError(Exception):
    """Report that the judge ended before it had answered; the message continues the sentence `the judge ...`."""


class _LateError(_NoAnswerError):
    """Report that the judge was stopped at its limit."""


@dataclass
class Judge:
    """Start the judge, and read its answer."""

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    """Directory for requests and answers, and for references between rounds."""
    interruption: Interruption
    log: LogWriter
    unseen_seed: int
    timed: bool = True

    without_reference: dict[str, str] = field(default_factory=dict)
    """Fields of a request that say why there is no reference. They are set once a judge ended, or reached its limit,
    before it had computed the reference."""

    def assess(
        self,
        case: Case,
        launches: Sequence[LaunchRecord],
        outputs: Mapping[str, Path],
        *,
        limit_seconds: float,
        last_try: bool,
    ) -> Assessment | None:
        """Run the judge on all rounds so far; return None if a signal interrupts the judge.

        The last try follows a signal: no signal interrupts it, and the result is None if it reaches its limit.
        `outputs` maps `ROUND/VARIANT` to the directory with the outputs of that launch.

        Raises JudgeError if the judge gives no answer, and JudgeKilledError if it was killed.
        """
        request = JudgeRequest(
            case=case,
            launches=tuple(launches),
            outputs={key: str(directory) for key, directory in outputs.items()},
            directory=str(self.directory),
            answer=str(self.directory / "answer.json"),
            unseen_seed=self.unseen_seed,
            timed=self.timed,
            **self.without_reference,
        )
        try:
            return self._ask(request, limit_seconds, last_try=last_try)
        except _NoAnswerError as error:
            # The judge survives exceptions. So the workload's reference() may have ended the process, or taken too
            # long: ask once more without the reference.
            if not self.without_reference:
                if isinstance(error, _LateError):  # the machine may be busy, so the reference is not blamed
                    self.without_reference = {"reference_delay": f"the process that computes the reference {error}"}
                else:
                    self.without_reference = {"reference_problem": f"the process that computed it {error}"}
                request = request.model_copy(update=self.without_reference)
                with contextlib.suppress(_NoAnswerError):
                    return self._ask(request, limit_seconds, last_try=last_try)
            raise JudgeError(f"the judge {error}") from error

    def _ask(self, request: JudgeRequest, limit_seconds: float, *, last_try: bool) -> Assessment | None:
        """Run the judge's process once, and return its answer.

        Returns None if a signal interrupts the judge, or if it reaches its limit in the last try, after a signal.
        Raises _NoAnswerError if the judge ends, or is stopped at its limit (_LateError), before it has answered;
        JudgeError if its answer cannot be read, and JudgeKilledError if something else killed it.
        """
        request_file, answer_file = self.directory / "request.json", Path(request.answer)
        request_file.write_text(request.to_json())
        answer_file.unlink(missing_ok=True)
        forward = OutputForwarder(self.log, "judge")
        listener = OutputListener(forward, limit_seconds)
        child_exit = run_child(
            self.command,
            request=request_file,
            environment={
                **self.environment,
                "TMPDIR": str(self.directory),
                "HOME": str(self.directory),
                "PYTHONFAULTHANDLER": "1",  # writes the stacks of a judge that crashes or is stopped
                **SLEEPING_THREADS,
            },
            listener=listener,
            interruption=Interruption() if last_try else self.interruption,
        )
        forward.finish()
        is_late_after_signal = last_try and child_exit.killed_for == "limit"
        if child_exit.killed_for == "interrupted" or is_late_after_signal:
            return None
        try:
            answer = read_answer(answer_file, MAXIMUM_ASSESSMENT_BYTES)
            if answer is not None:
                return Assessment.model_validate_json(answer)
        except ValueError as error:
            raise JudgeError(f"the judge's answer cannot be read: {error}") from error
        if child_exit.status == -signal.SIGKILL and child_exit.killed_for is None:
            raise JudgeKilledError(
                "the judge was killed, probably for lack of memory: it holds several copies of the reference in "
                "float64; make the case smaller, or give it more memory"
            )
        if child_exit.killed_for == "limit":
            position = crash_location(listener.stderr_tail, prefix="; it was")
            raise _LateError(f"had not finished after {limit_seconds:.0f} s{position}")
        raise _NoAnswerError(_describe_end(child_exit, listener.stderr_tail))


def _describe_end(child_exit: ChildExit, stderr_tail: bytes) -> str:
    """Describe how a judge ended by itself without an answer, as the end of a sentence that begins `the judge`."""
    if child_exit.status < 0:
        return f"was ended by {signal.Signals(-child_exit.status).name}{crash_location(stderr_tail)}"
    error_lines = stderr_tail.decode(errors="replace").strip().splitlines()
    hint = f": {error_lines[-1]}" if error_lines else "; does it call exit()?"
    return f"ended with status {child_exit.status}{hint}"


class NothingToJudge:
    """Stand in for the judge where variants are only compiled: there are no outputs and no times."""

    def assess(
        self,
        case: Case,
        launches: Sequence[LaunchRecord],
        outputs: Mapping[str, Path],
        *,
        limit_seconds: float,
        last_try: bool,
    ) -> Assessment:
        """Stop the case after one round: a compiler returns the same program every time."""
        del case, launches, outputs, limit_seconds, last_try
        return Assessment(certificate=Certificate(), comparisons=(), rounds=1, stop=StopReason.COMPILED)
