"""A visit is rehearsed from nothing to imported results, and is killed in the middle; processors play the GPU.

`python -m gpu_visit.rehearsal.test_rehearsal DIRECTORY` does it step by step and prints how long each took.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.wait import wait_until
from gpu_visit import attempts, items, page, publish
from gpu_visit.rehearsal.bare import make_bare_machine
from gpu_visit.stage import PROFILES, install_device

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # test_visit.py has each step, with a runner that is played
ROOT = Path(__file__).parents[3]
LIST = Path(__file__).with_name("items.yaml")


class Rehearsal:
    """The directory of a rehearsal: wheels, a bare machine, and the visit's file."""

    def __init__(self, directory: Path, accelbench: Path) -> None:
        self.directory, self.accelbench = directory, accelbench
        self.wheels, self.bare = directory / "wheels", directory / "bare"
        self.file, self.results = directory / "out" / "visit.jsonl", directory / "results"

    def prepare_wheels(self) -> None:
        """Fetch the wheels, as on a machine with a network."""
        version = ".".join(map(str, sys.version_info[:2]))
        options = ["--accelbench", str(self.accelbench), "--python", version, "--machine", os.uname().machine]
        command = [sys.executable, "-m", "gpu_visit.wheels", str(self.wheels), *options]
        subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT / "tests")}, check=True)

    def make_bare(self) -> None:
        """Make the machine, with the frameworks and a device, and without a network or an accelbench."""
        make_bare_machine(self.bare, self.wheels)
        [packages] = self.bare.glob("lib/python3*/site-packages")
        install_device(packages)
        (self.directory / "profiles.yaml").write_text(PROFILES)

    def start(self, minutes: float) -> subprocess.Popen[bytes]:
        """Start a visit as `make gpu-visit` does, with the bare machine's Python."""
        options = ["--wheels", str(self.wheels), "--work", str(self.directory / "work"), "--minutes", str(minutes)]
        options += ["--file", str(self.file), "--list", str(LIST)]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}
        environment |= {"ACCELBENCH_PROFILES": str(self.directory / "profiles.yaml"), "JAX_PLATFORMS": "cpu"}
        command = [str(self.bare / "bin" / "python"), str(ROOT / "tests" / "gpu_visit" / "machine.py"), *options]
        return subprocess.Popen(command, cwd=ROOT, env=environment)

    def kill_in_the_middle(self, minutes: float) -> None:
        """Kill a visit while it makes its second attempt."""
        before = len(self.attempts)
        visit = self.start(minutes)
        wait_until(lambda: len(self.attempts) > before or visit.poll() is not None, what="an attempt")
        visit.kill()
        visit.wait()

    def visit(self, minutes: float) -> int:
        """Make a visit to its end, and return its status."""
        return self.start(minutes).wait()

    def bring_home(self) -> list[str]:
        """Import what the visits measured."""
        lines = publish.import_attempts(self.attempts, items.load(LIST), self.results)
        page.write(self.results)
        return lines

    @property
    def attempts(self) -> list[attempts.VisitAttempt]:
        return attempts.read(self.file)


def test_a_visit_from_nothing_to_imported_results(tmp_path: Path) -> None:
    [accelbench] = (ROOT / "dist").glob("accelbench-*.whl")  # make wheel
    rehearsal = Rehearsal(tmp_path, accelbench)
    rehearsal.prepare_wheels()
    rehearsal.make_bare()
    rehearsal.kill_in_the_middle(10)
    assert [attempt.outcome for attempt in rehearsal.attempts] == ["measured"]
    assert rehearsal.visit(10) == 0
    measured = [attempt.item for attempt in rehearsal.attempts if attempt.outcome == "measured"]
    assert measured[:4] == [item.task.name for item in items.load(LIST)[:4]]
    assert len(measured) == len(set(measured))
    assert rehearsal.bring_home()
    assert "tiny-mlp" in (rehearsal.results / "gpu" / page.PAGE).read_text()


@contextmanager
def _timed(what: str) -> Iterator[None]:
    began = time.monotonic()
    yield
    print(f"{what}: {time.monotonic() - began:.0f} s", flush=True)


def main() -> None:
    """Rehearse in a directory, one step after the other; a step whose result is there already is left out."""
    rehearsal = Rehearsal(Path(sys.argv[1]).absolute(), Path(sys.argv[2]))
    minutes = float(sys.argv[3])
    if not rehearsal.wheels.exists():
        with _timed("wheels"):
            rehearsal.prepare_wheels()
    if not rehearsal.bare.exists():
        with _timed("bare machine"):
            rehearsal.make_bare()
    if not rehearsal.file.exists():
        with _timed("a visit that is killed"):
            rehearsal.kill_in_the_middle(minutes)
    else:
        with _timed("a visit"):
            print("status", rehearsal.visit(minutes))
    with _timed("import"):
        print("\n".join(rehearsal.bring_home()))
    print(json.dumps([(attempt.item, attempt.outcome, attempt.seconds) for attempt in rehearsal.attempts], indent=1))


if __name__ == "__main__":
    main()
