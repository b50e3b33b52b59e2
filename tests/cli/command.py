"""Start `accelbench` as a process, with the real runner or the fake one."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.wait import HANG_SECONDS

ROOT = Path(__file__).parents[2]
FAKE = Path(__file__).parent / "fake_runner"
UNDRAWN = Path(__file__).parent / "undrawn"
EXAMPLE = ROOT / "examples" / "01-matmul-chain.yaml"
START = [sys.executable, "-c", "from accelbench.cli.main import main; main()"]

MANIFEST = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: chain}
spec:
  workload: {name: matmul-chain, parameters: {size: 64, length: 4}}
  variants: [{use: pytorch/eager}, {use: jax/jit}]
  measurement: {rounds: {min: 3, max: 3}, timeLimitSeconds: 60}
"""


def environment(play: str | None = None, *, drawn: bool = False, **more: str) -> dict[str, str]:
    """Return the environment without the terminal's colour and width; with `play`, the fake runner hides the real one.

    A play writes no HTML page unless `drawn` is True, because drawing takes longer than the rest.
    """
    variables = {
        name: value for name, value in os.environ.items() if name not in {"COLUMNS", "NO_COLOR", "FORCE_COLOR"}
    }
    if play is not None:
        path = (FAKE, ROOT / "tests", ROOT) if drawn else (UNDRAWN, FAKE, ROOT / "tests", ROOT)
        variables |= {"FAKE_RUNNER": play, "PYTHONPATH": os.pathsep.join(map(str, path))}
    return variables | more


def accelbench(
    *arguments: str,
    cwd: Path,
    play: str | None = None,
    drawn: bool = False,
    manifest: str | None = None,
    **more: str,
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, with `manifest` as standard input."""
    return subprocess.run(
        [*START, *arguments],
        cwd=cwd,
        env=environment(play, drawn=drawn, **more),
        input=manifest or "",
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )


@contextmanager
def started(
    *arguments: str, cwd: Path, play: str | None = None, drawn: bool = False
) -> Iterator[subprocess.Popen[str]]:
    """Start the command; kill it at the end if it still runs."""
    with subprocess.Popen(
        [*START, *arguments],
        cwd=cwd,
        env=environment(play, drawn=drawn),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
