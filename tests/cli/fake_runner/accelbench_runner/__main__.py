"""Write the log of a runner; the environment variable FAKE_RUNNER names the scenario."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from accelbench.api.case import Case
from accelbench.api.result import Certificate, Check, CheckOutcome, Disturbed, Result, SpeedupEstimate, VariantResult
from accelbench.delivery import log as delivery
from report import sample

case = Case.model_validate_json(Path(sys.argv[1]).read_text())
play = os.environ["FAKE_RUNNER"]
names = tuple(variant.name for variant in case.variants)


def write(lines: str | Iterable[str]) -> None:
    for line in [lines] if isinstance(lines, str) else lines:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def result(**changes: Any) -> Result:
    times = ("0.00117", "0.000574", "0.00121", "0.002", "0.003", "0.004", "0.005", "0.006")
    fields = {
        "case": case,
        "variants": tuple(sample.variant(name, seconds) for name, seconds in zip(names, times, strict=False)),
        "comparisons": tuple(
            sample.comparison(name, "faster", "2.041", "2.012", "2.071", names[0]) for name in names[1:]
        ),
        "certificate": Certificate(checks=sample.PARITY),
    }
    return sample.result(**(fields | changes))


def deliver(kind: delivery.DocumentKind = "result", **changes: Any) -> None:
    write(delivery.encode_document(kind, case.name, result(**changes).to_json()))


def launch(name: str, number: int, position: int) -> None:
    write(delivery.encode_event(delivery.LaunchStarted(variant=name, round=number, position=position, of=len(names))))
    for phase in sample.PHASE_SECONDS:
        write(delivery.encode_event(delivery.PhaseReached(phase=phase)))
    finished = delivery.LaunchFinished(variant=name, round=number, wall_seconds="2.5")
    write(delivery.encode_event(finished))
    write(delivery.encode_document("launch", f"{number}/{name}", f'{{"variant": "{name}", "round": {number}}}'))


def round_of_launches(number: int) -> None:
    for position, name in enumerate(names, start=1):
        launch(name, number, position)
    now = SpeedupEstimate(variant=names[-1], verdict="faster", speedup="2.041", lower="2.012", upper="2.071")
    times = (
        delivery.TimeSoFar(variant=names[0], seconds="0.00117"),
        delivery.TimeSoFar(variant=names[-1], seconds="0.000574"),
    )
    write(delivery.encode_event(delivery.RoundFinished(round=number, times=times, comparisons=(now,))))


write(f"runner {os.getpid()}")
write(f"script {os.environ.get('ACCELBENCH_SCRIPT')}")
write("something a framework prints")
sys.stderr.write("and to standard error\n")
if play == "busy":
    write(
        delivery.encode_event(delivery.MachineSeen(warnings=("python (pid 1234) takes 98 % of one of 2 processors",)))
    )
round_of_launches(1)
match play:
    case "good" | "busy":
        deliver()
    case "noisy":
        now = sample.comparison(names[1], "faster", "2.041", "2.012", "2.071", names[0])
        deliver(
            comparisons=(now.model_copy(update={"verdict": None, "noisy": True, "pays_back": None}),),
            noisy=(Disturbed(round=2, reasons=(f"shared-device of jax/jit: {sample.CROWDED}",)),),
        )
    case "variant-failed":
        deliver(variants=(sample.variant(names[0], "0.001"), sample.failed(names[1])), comparisons=())
    case "invalid":
        check = Check(name="parity", outcome="failed", reading="x is off", threshold="1e-5", variant=names[1])
        deliver(
            comparisons=(sample.invalid(names[1], "parity"),),
            certificate=Certificate(checks=(*sample.PARITY, check)),
        )
    case "observed" | "observed-elsewhere":
        outcome: CheckOutcome = "passed" if play == "observed" else "failed"
        deliver(
            protocol="observe",
            variants=tuple(VariantResult(name=name, use=name) for name in names),
            comparisons=(),
            observations=tuple(sample.observations(name, calls="4", raised="KeyReuseError") for name in names),
            certificate=Certificate(checks=(Check(name="wrong-device", outcome=outcome, reading="on cpu"),)),
        )
    case "crash":
        deliver("checkpoint", complete=False, stopped=None, rounds=1)
        raise RuntimeError("the runner is broken")
    case "silent":
        sys.exit(3)
    case "altered":
        lines = list(delivery.encode_document("result", case.name, result().to_json()))
        write(line[:-9] + "AAAAAAAA=" for line in lines)
    case "patient":
        child = subprocess.Popen(["sleep", "600"])  # a child that ends silently
        awaited = {signal.SIGINT, signal.SIGTERM}
        signal.pthread_sigmask(signal.SIG_BLOCK, awaited)  # a handler could interrupt a line
        write(f"child {child.pid}")
        number = signal.sigwait(awaited)
        deliver(complete=False, stopped="Interrupted", rounds=1)
        sys.exit(128 + number)
    case "stubborn":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "600"])
        write(f"child {child.pid}")
        signal.pause()
    case _:
        raise ValueError(play)
