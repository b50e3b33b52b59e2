"""A page of the documentation, taken at its word: its files are written and its commands run, in order."""

from __future__ import annotations

import doctest
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from accelbench.local.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["REGISTRY", "ROOT", "SHORT", "SHORT_COMPARE", "Command", "File", "Page", "pages"]

ROOT = Path(__file__).resolve().parents[2]
REGISTRY = "registry.example.com/ml"
"""The reader's own, on every page."""
NOT_PAGES = ("docs/adr/", "docs/method/", "docs/results/")
"""What was decided and what was measured: they are kept as they were."""
HEADING = re.compile(r"#+ (.*)")
FENCE = re.compile(r"(`{3,})(\w*)")
NAME = re.compile(r"`([\w./-]+)`:")
SHOWN = doctest.OutputChecker()
ALIKE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHORT = "--processors 1 --accept-noise --set measurement.rounds.min=3 --set measurement.rounds.max=3"
"""Tests run beside each other: what is disturbed has to count, and then there is no verdict, however many rounds.

On one processor, threads of PyTorch's do not wait for one that another test keeps from running."""
SHORT_COMPARE = 'settings={"measurement.rounds.min": 3, "measurement.rounds.max": 3}, accept_noise=True,'
"""The same, for `accelbench.compare`."""
MEASURED = {Exit.SUCCESS, Exit.NOISY, Exit.INVALID_MEASUREMENT}


@dataclass(frozen=True)
class File:
    """`NAME`: and its content below."""

    heading: str
    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """What stands after a `$`, and what the page shows of what it says; `...` is for what is different every time."""

    heading: str
    text: str
    shown: str

    @property
    def measures(self) -> bool:
        """It times something on this machine."""
        return bool(re.search(r"\baccelbench run ", self.text))

    def run(self, directory: Path, environment: Mapping[str, str]) -> str:
        """Run it as a shell would, and return what it said; fails the test where that is not what the page shows."""
        text = f"{self.text} {SHORT}" if self.measures else self.text
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        fine = MEASURED if self.measures else {Exit.SUCCESS}
        assert done.returncode in fine, f"$ {self.text}\nended with {done.returncode}:\n{done.stdout}"
        if self.shown:
            example = doctest.Example(self.text, self.shown)
            assert SHOWN.check_output(self.shown, done.stdout, ALIKE), (
                f"$ {self.text}\n{SHOWN.output_difference(example, done.stdout, ALIKE)}"
            )
        return done.stdout


@dataclass(frozen=True)
class Page:
    """Hold the files and commands of a page."""

    path: str
    steps: tuple[File | Command, ...]

    @classmethod
    def read(cls, path: str) -> Page:
        """Of a page by its path in the repository."""
        return cls(path, tuple(_steps((ROOT / path).read_text())))

    @property
    def commands(self) -> tuple[Command, ...]:
        """Those of all its headings."""
        return tuple(step for step in self.steps if isinstance(step, Command))

    @property
    def asks_for_a_checkout(self) -> bool:
        """Its reader begins in one; else in an empty folder."""
        return "checkout of this repository" in " ".join((ROOT / self.path).read_text().split())

    def run(self, directory: Path, environment: Mapping[str, str], *headings: str) -> list[str]:
        """Take the steps under these headings, or all of them; returns what each command said."""
        said = []
        for step in self.steps:
            if headings and step.heading not in headings:
                continue
            if isinstance(step, Command):
                said.append(step.run(directory, environment))
            else:
                to = directory / step.name
                to.parent.mkdir(parents=True, exist_ok=True)
                to.write_text(step.text)
        return said


def pages() -> list[str]:
    """Every page whose commands a reader may want to run."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "charts").rglob("*.md")]
    paths = sorted(path.relative_to(ROOT).as_posix() for path in found)
    return [path for path in paths if not path.startswith(NOT_PAGES)]


def _steps(text: str) -> Iterator[File | Command]:
    heading, before, fence, language = "", "", "", ""
    block: list[str] = []
    for line in text.splitlines():
        if fence and line != fence:
            block.append(line)
        elif fence:
            if language in {"console", "sh"}:
                yield from _commands(heading, block)
            elif named := NAME.fullmatch(before):
                yield File(heading, named[1], "\n".join(block) + "\n")
            fence, block, before = "", [], ""  # a name is that of the next block alone
        elif opening := FENCE.match(line):
            fence, language = opening[1], opening[2]
        else:
            heading = found[1] if (found := HEADING.match(line)) else heading
            before = line if line.strip() else before


def _commands(heading: str, block: list[str]) -> Iterator[Command]:
    """Each with its continuation lines and what is shown below it."""
    parts = re.split(r"^\$ ", "\n".join(block) + "\n", flags=re.MULTILINE)
    for part in parts[1:]:
        command, shown = re.match(r"((?:[^\n]*\\\n)*[^\n]*\n)(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        # A comment stands two spaces or more behind its command.
        yield Command(heading, re.sub(r"  +# .*$", "", command.rstrip("\n")), shown)
