"""The scripts of the page on functions are the examples, and do what the page says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from accelbench.local.exits import Exit
from accelbench.local.manifests import read_target
from accelbench.plan.cases import plan_cases
from tiers import on_a_push

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "functions.md").read_text()
FILES = dict(re.findall(r"^`(\w+\.py)`:\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
LAUNCHED = "principal_axes.py"
"""The script that a push checks: what others show is held by quick tests of functions, too."""


def test_the_page_shows_a_script_for_each_manifest() -> None:
    manifests = sorted((ROOT / "examples").glob("*.yaml"))
    scripts = [name for path in manifests for name in re.findall(r"key: (\w+\.py)", path.read_text())]
    # Several manifests may use one script.
    assert list(FILES) == [name for name in dict.fromkeys(scripts) if name != "softmax_rows.py"]


@pytest.mark.parametrize("name", FILES)
def test_the_examples_are_the_pages_scripts(name: str) -> None:
    assert (ROOT / "examples" / name).read_text() == FILES[name]


def test_the_pages_command_sweeps_a_parameter_over_two_programs_of_one_framework() -> None:
    assert "$ accelbench check recurrence.py --set steps=5,50\n" in PAGE
    [run] = read_target(str(ROOT / "examples" / "recurrence.py"), assignments=["steps=5,50"])
    assert [case.swept for case in plan_cases(run)] == [{"steps": 5}, {"steps": 50}]
    assert [variant.use for variant in run.spec.variants] == ["jax/jit", "jax_scan/jit"]


@pytest.mark.slow
@pytest.mark.parametrize("name", on_a_push(FILES, lambda name: name == LAUNCHED))
def test_a_script_of_the_page_passes_its_check(name: str) -> None:
    command = [sys.executable, "-c", "from accelbench.cli.main import main; main()", "check", name]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == Exit.SUCCESS, done.stdout + done.stderr
