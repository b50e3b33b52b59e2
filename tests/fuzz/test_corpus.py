"""Every input that once broke a reader, and what fuzzing found worth keeping; and new ones."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from fuzz.__main__ import CORPUS
from fuzz.mutations import mutated
from fuzz.targets import TARGETS

if TYPE_CHECKING:
    from pathlib import Path

NEW = 400
"""Inputs for each target; more, and others each time, are what `make fuzz` gives."""
VARIATIONS = 20
INPUTS = [path for target in TARGETS for path in sorted((CORPUS / target).iterdir())]


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name} {path.name}")
def test_no_input_of_the_corpus_breaks_its_reader(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


@pytest.mark.parametrize("target", TARGETS)
def test_no_json_value_in_an_input_breaks_its_reader(target: str) -> None:
    for number, path in enumerate(sorted((CORPUS / target).iterdir())):
        data = path.read_bytes()
        for seed in range(VARIATIONS):
            data = mutated(data, number * VARIATIONS + seed) or data
            TARGETS[target](data)


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in INPUTS) < 300_000


@pytest.mark.nightly
def test_hundreds_of_new_inputs_break_no_reader(tmp_path: Path) -> None:
    pytest.importorskip("atheris", reason="built for Linux on x86-64 alone")
    command = [sys.executable, "-m", "fuzz", f"--inputs={NEW}", f"--work={tmp_path}"]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(CORPUS.parents[1])}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
