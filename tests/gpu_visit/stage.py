"""Stage visits in tests: a device that is played, a list, and the file and results of the visits."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cli.command import FAKE, ROOT, UNDRAWN
from cluster.wait import HANG_SECONDS
from gpu_visit import attempts, items, page, publish
from gpu_visit.attempts import VisitAttempt

ENTRY_POINTS = "[accelbench.platforms]\nexample.com/gpu = played_device:PLATFORM\n"
PROFILES = "nvidia: {platform: example.com/gpu}\n"
"""Gives the profile of all items the played device, so that a visit takes the same way as to an NVIDIA GPU."""
START = """
import runpy, sys
sys.path.remove(sys.argv.pop(1))
runpy.run_module("gpu_visit", run_name="__main__", alter_sys=True)
"""
"""Starts a visit whose runner is played, and which itself uses the real runner's monitors."""
MANIFEST = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: chain}
spec:
  workload: {name: matmul-chain, parameters: {size: 64, length: 4}}
  variants: [{use: pytorch/eager}, {use: jax/jit}]
  measurement: {rounds: {min: 3, max: 3}, timeLimitSeconds: 60}
"""


def install_device(site: Path) -> None:
    """Install the played device into a directory of packages."""
    about = site / "played_device-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: played-device\nVersion: 1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    shutil.copy(Path(__file__).with_name("played_device.py"), site)


class Stage:
    """A machine with a device that is played, on which visits are made."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        install_device(directory / "site")
        self.profiles = directory / "profiles.yaml"
        self.profiles.write_text(PROFILES)
        self.file = directory / "out" / "visit.jsonl"
        self.work = directory / "work"
        self.results = directory / "results"

    def manifest(self, folder: str, name: str) -> str:
        """Write a manifest and return its path."""
        path = self.directory / folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MANIFEST)
        return str(path)

    def program(self, name: str, text: str) -> str:
        """Write a program and return its path."""
        path = self.directory / f"{name}.py"
        path.write_text(text)
        return str(path)

    def list_items(self, *entries: Mapping[str, Any]) -> None:
        """Write the list."""
        (self.directory / "items.yaml").write_text(json.dumps(entries))

    def visit(self, play: str = "good", *, minutes: float = 5, **more: str) -> subprocess.CompletedProcess[str]:
        """Make a visit to its end."""
        return subprocess.run(
            self._command(minutes),
            cwd=self.directory,
            env=self._environment(play) | more,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            check=False,
        )

    def start(self, play: str) -> subprocess.Popen[bytes]:
        """Start a visit that somebody else ends."""
        return subprocess.Popen(
            self._command(5), cwd=self.directory, env=self._environment(play), stderr=subprocess.DEVNULL
        )

    def bring_home(self) -> list[str]:
        """Import the visit's file, and return a line for each attempt that is new."""
        lines = publish.import_attempts(self.attempts, items.load(self.directory / "items.yaml"), self.results)
        page.write(self.results)
        return lines

    @property
    def attempts(self) -> list[VisitAttempt]:
        return attempts.read(self.file)

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        return [(attempt.item.removeprefix(f"{self.directory}/"), attempt.outcome) for attempt in self.attempts]

    def _command(self, minutes: float) -> list[str]:
        options = ["--minutes", str(minutes), "--file", str(self.file), "--work", str(self.work)]
        return [sys.executable, "-c", START, str(FAKE), *options, "--list", str(self.directory / "items.yaml")]

    def _environment(self, play: str) -> dict[str, str]:
        path = (UNDRAWN, FAKE, self.directory / "site", ROOT / "tests", ROOT)
        return {
            **os.environ,
            "FAKE_RUNNER": play,
            "PYTHONPATH": os.pathsep.join(map(str, path)),
            "ACCELBENCH_PROFILES": str(self.profiles),
        }
