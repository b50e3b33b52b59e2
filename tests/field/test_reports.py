"""Programs after public comparisons end as is right: no check of a correct one fails, and a wrong one is refused."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accelbench.api.run import BenchmarkRun
from accelbench.local.manifests import read_target
from accelbench.plan.cases import plan_cases
from cheats.said import NOISE
from cheats.trials import Asked, Trial, trials
from field.report_table import REFUSING, REPORTS, ROWS, Row
from tiers import on_a_push

pytestmark = pytest.mark.slow

Try = Callable[[Asked], Trial]


@pytest.fixture(scope="module")
def trial() -> Iterator[Try]:
    with trials() as run:
        yield run


def asked(row: Row, directory: Path) -> Asked:
    """What is run of the program: by `accelbench check`, or by its own call of `accelbench.compare`."""
    file = row.file
    if "accelbench.compare(" in file.read_text():
        run, file = compared(file, directory)
    else:
        [run] = read_target(str(file), row.uses, row.settings)
    [case] = plan_cases(run)
    uses = tuple(variant.use for variant in case.variants)
    return Asked(file.stem, uses, tuple(case.parameters.items()), case.measurement.precision, file.parent)


def compared(file: Path, directory: Path) -> tuple[BenchmarkRun, Path]:
    """The run and the script that the program's call of `accelbench.compare` makes."""
    tests = str(Path(__file__).parents[1])
    subprocess.run(
        [sys.executable, "-m", "field.notebooks", file, directory],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": tests},
        check=True,
    )
    [script] = directory.glob("*.py")
    return BenchmarkRun.model_validate_json((directory / "run.json").read_text()), script


@pytest.mark.parametrize("row", on_a_push(ROWS, chosen=lambda row: row.on_a_push), ids=str)
def test_every_report_has_its_expected_outcome(row: Row, trial: Try, tmp_path: Path) -> None:
    done = trial(asked(row, tmp_path))
    said = [check for check in done.assessment.certificate.checks if check.outcome != "passed"]
    assert not [launch.failure for launch in done.launches.values() if launch.failure]
    failed = {check.name for check in said if check.outcome == "failed"} - NOISE
    untested = {check.name for check in said if check.outcome == "untested"}
    if row.wrong:
        assert failed & REFUSING >= row.fails, said
        assert failed & REFUSING, said
    else:
        assert not failed, said
        assert untested & (REFUSING | {"work-present"}) <= row.untested, said


def test_every_report_has_a_row() -> None:
    assert {row.file for row in ROWS} == set(REPORTS.glob("*/*.py"))
