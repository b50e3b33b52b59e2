"""Ask the judge, a short-lived child between rounds: it needs numpy and scipy, which the supervisor does without."""

import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Certificate
from accelbench.launch.record import LaunchRecord
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.supervisor.children import Channel, Interruption, run_child
from accelbench_runner.supervisor.log_writer import LogWriter, OutputForwarder

MAXIMUM_ASSESSMENT_BYTES = 4 * 1024 * 1024
TAIL_BYTES = 2 * 1024


class JudgeError(Exception):
    """Report that the judge gave no assessment, which is a fault of accelbench and not of a variant."""


class JudgeKilledError(Exception):
    """Report that the judge was killed by SIGKILL, probably for lack of memory."""


class _Answer:
    """Collect what the judge writes: the assessment to standard output, errors to standard error."""

    def __init__(self, forward: OutputForwarder, limit_seconds: float) -> None:
        self.stdout = b""
        self.stderr_tail = b""
        self._forward = forward
        self._limit_seconds = limit_seconds

    def received(self, channel: Channel, data: bytes) -> None:
        """Collect the answer from standard output; forward standard error to the log."""
        if channel == "stdout":
            self.stdout += data
        else:
            self.stderr_tail = (self.stderr_tail + data)[-TAIL_BYTES:]
            self._forward(channel, data)

    def closed(self, channel: Channel) -> None:
        """Do nothing: the answer is read after the judge has ended."""

    def grace_seconds(self) -> float | None:
        """Return 0 to kill the judge if it has written too much."""
        return 0.0 if len(self.stdout) > MAXIMUM_ASSESSMENT_BYTES else None

    def seconds_left(self, elapsed: float) -> float:
        """Return the seconds until the judge's limit."""
        return self._limit_seconds - elapsed


@dataclass(frozen=True)
class Judge:
    """Start the judge, and read its answer."""

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    """Directory for requests, and for references between rounds."""
    interruption: Interruption
    log: LogWriter
    unseen_seed: int
    timed: bool = True

    def assess(
        self, case: Case, launches: Sequence[LaunchRecord], outputs: Mapping[str, Path], *, limit_seconds: float
    ) -> Assessment | None:
        """Run the judge on all rounds so far; return None if a signal interrupts it.

        `outputs` maps `ROUND/VARIANT` to directories. Raises JudgeError or JudgeKilledError.
        """
        after_signal = self.interruption.signal is not None
        request = JudgeRequest(
            case=case,
            launches=tuple(launches),
            outputs={key: str(directory) for key, directory in outputs.items()},
            directory=str(self.directory),
            unseen_seed=self.unseen_seed,
            timed=self.timed,
        )
        request_file = self.directory / "request.json"
        request_file.write_text(request.to_json())
        forward = OutputForwarder(self.log, "judge")
        answer = _Answer(forward, limit_seconds)
        child_exit = run_child(
            self.command,
            request=request_file,
            environment={**self.environment, "TMPDIR": str(self.directory), "HOME": str(self.directory)},
            listener=answer,
            # The last try after a signal goes on until its limit.
            interruption=Interruption() if after_signal else self.interruption,
        )
        forward.finish()
        if child_exit.killed_for == "interrupted" or (after_signal and child_exit.killed_for == "limit"):
            return None
        if child_exit.killed_for == "limit":
            raise JudgeError(f"the judge had not finished after {limit_seconds:.0f} s")
        if child_exit.status == -signal.SIGKILL:
            raise JudgeKilledError(
                "the judge was killed, probably for lack of memory: it holds several copies of the reference in "
                "float64; make the case smaller, or give it more memory"
            )
        if child_exit.status != 0:
            error_lines = answer.stderr_tail.decode(errors="replace").strip().splitlines()
            last_line = error_lines[-1] if error_lines else "it wrote no error"
            raise JudgeError(f"the judge ended with status {child_exit.status}: {last_line}")
        try:
            return Assessment.model_validate_json(answer.stdout)
        except ValidationError as error:
            raise JudgeError(f"the judge's answer cannot be read: {error}") from error


class NothingToJudge:
    """Stand in for the judge where variants are only compiled: there are no outputs and no times."""

    def assess(
        self, case: Case, launches: Sequence[LaunchRecord], outputs: Mapping[str, Path], *, limit_seconds: float
    ) -> Assessment:
        """Stop the case after one round: a compiler returns the same program every time."""
        del case, launches, outputs, limit_seconds
        return Assessment(certificate=Certificate(), comparisons=(), rounds=1, stop=StopReason.COMPILED)
