"""Test that nothing that a workload's code prints, closes or ends spoils the judge's answer."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from accelbench.api.result import Check
from accelbench.catalogue import script
from accelbench_runner.supervisor.log_writer import MAXIMUM_OUTPUT_BYTES_PER_LAUNCH
from cluster.wait import HANG_SECONDS

REFERENCE = "def reference(x):\n    {}\n    return 2 * x\n"
CLOSES = """
    import atexit, threading
    atexit.register(os._exit, 3)
    threading.Thread(target=threading.Event().wait).start()
    sys.stdout.close()
    sys.stderr = None
    os.closerange(1, 64)
"""
HANGS = """
import json, pathlib, sys, time
request = json.load(sys.stdin)
while not request["referenceDelay"]:
    time.sleep(1)
check = {"name": "parity", "outcome": "untested", "reading": request["referenceDelay"]}
answer = {"certificate": {"checks": [check]}, "comparisons": [], "rounds": 1}
pathlib.Path(request["answer"]).write_text(json.dumps(answer))
"""
ASK = """
import os, signal, sys
from pathlib import Path
from accelbench_runner.supervisor.children import Interruption, adopt_orphans
from accelbench_runner.supervisor.judge_process import Judge
from accelbench_runner.supervisor.log_writer import LogWriter
from judge.launches import a_case, a_launch

directory, seconds, *command = sys.argv[1:]
adopt_orphans()
interruption = Interruption()
if os.environ.get("SIGNAL"):
    interruption.signal = signal.Signals[os.environ["SIGNAL"]]
judge = Judge(
    command=command,
    environment=os.environ,
    directory=Path(directory),
    interruption=interruption,
    log=LogWriter(1),
    unseen_seed=1,
    timed=False,
)
assessment = judge.assess(
    a_case("numpy/eager").model_copy(update={"workload": "doubles", "parameters": {}}),
    [a_launch("numpy/eager", facts={"parityUnits": 2})],
    {"1/numpy/eager": Path(directory, "outputs")},
    limit_seconds=float(seconds),
    last_try=False,
)
if assessment is not None:
    [check] = [check for check in assessment.certificate.checks if check.name == "parity"]
    Path(directory, "check.json").write_text(check.to_json())
"""
TESTS = Path(__file__).parents[1]
JUDGE = (sys.executable, "-m", "accelbench_runner.judge")
PRINTS = """
import ctypes, os, subprocess, sys

print("at the top")

def arrays(rng):
    print("in arrays")
    sys.stderr.write("to standard error\\n")
    return {"x": rng.standard_normal(8)}

def numpy(x):
    print("in the baseline")
    os.write(1, b"to the descriptor\\n\\xff\\xfe\\x00\\n")
    subprocess.run(["echo", "in a subprocess"])
    ctypes.CDLL(None).puts(b"in C")
    sys.stdout.write("without a line end")
    return 2 * x
"""


def functions(body: str, reference: str = REFERENCE) -> str:
    """Return a script whose reference begins with `body`."""
    head = "import ctypes, os, signal, sys\n\ndef arrays(rng):\n    return {'x': rng.standard_normal(8)}\n\n"
    return head + "def numpy(x):\n    return 2 * x\n\n" + reference.format(body)


def judged(text: str, directory: Path, *, seconds: float = 60, command: Sequence[str] = JUDGE) -> tuple[Check, str]:
    """Return the check of parity for a right output of the script, and the log."""
    (directory / "doubles.py").write_text(text)
    (directory / "outputs").mkdir()
    x = np.random.default_rng(0).standard_normal(8).astype(np.float32)
    np.savez(directory / "outputs" / "outputs.npz", y=2 * x)
    # A process of its own, because the supervisor ends all its descendants.
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(directory), str(seconds), *command],
        env={
            **os.environ,
            script.SCRIPT_VARIABLE: str(directory / "doubles.py"),
            "PYTHONPATH": os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return Check.model_validate_json((directory / "check.json").read_text()), done.stdout


def test_output_of_a_workload_is_shown_and_does_not_corrupt_the_judgement(tmp_path: Path) -> None:
    check, log = judged(PRINTS, tmp_path)
    assert check.outcome == "passed"
    places = ("at the top", "in arrays", "in the baseline", "to the descriptor", "in a subprocess", "in C")
    assert {f"[judge stdout] {place}" for place in places} <= set(log.splitlines())
    assert "[judge stderr] to standard error\n" in log


@pytest.mark.parametrize(
    "body",
    [
        CLOSES,
        "os.write(1, b'x' * 5_000_000); sys.stdout = open(os.devnull, 'w')",
    ],
)
def test_a_reference_that_closes_floods_or_replaces_its_output_is_still_judged(body: str, tmp_path: Path) -> None:
    check, log = judged(functions(body), tmp_path)
    assert check.outcome == "passed", check.reading
    assert len(log) < 2 * MAXIMUM_OUTPUT_BYTES_PER_LAUNCH


@pytest.mark.parametrize(
    ("body", "reading"),
    [
        ("os._exit(3)", "the process that computed it ended with status 3; does it call exit()?"),
        ("ctypes.string_at(0)", "was ended by SIGSEGV at doubles.py, line 10 in reference"),
    ],
)
def test_a_reference_that_ends_the_judge_fails_parity_and_is_named(body: str, reading: str, tmp_path: Path) -> None:
    check, _ = judged(functions(body), tmp_path)
    assert check.outcome == "failed"
    assert reading in check.reading


def test_launches_are_judged_without_a_reference_that_never_ends(tmp_path: Path) -> None:
    (tmp_path / "hangs.py").write_text(HANGS)
    command = (sys.executable, str(tmp_path / "hangs.py"))
    check, _ = judged(functions("pass"), tmp_path, seconds=4, command=command)
    assert "had not finished after 4 s; it was at hangs.py, line 5 in <module>" in check.reading


def test_a_signal_that_comes_just_before_the_judge_starts_interrupts_it(tmp_path: Path) -> None:
    environment = {**os.environ, "SIGNAL": "SIGTERM", "PYTHONPATH": str(TESTS)}
    never_ends = [sys.executable, "-c", "import threading; threading.Event().wait()"]
    command = [sys.executable, "-c", ASK, str(tmp_path), str(10 * HANG_SECONDS), *never_ends]
    subprocess.run(command, env=environment, check=True, timeout=HANG_SECONDS)
    assert not (tmp_path / "check.json").exists()
