"""Test that output of launches is forwarded, marked and limited, and that it can forge no line."""

from collections.abc import Callable
from pathlib import Path

from accelbench.delivery.log import MARK
from accelbench_runner.supervisor.log_writer import MAXIMUM_OUTPUT_BYTES_PER_LAUNCH
from runner.simulation import Simulation
from runner.supervision import Ended, case_of

Run = Callable[..., Ended]
PRINTS = """
import os, subprocess, sys

def arrays(rng):
    return {"x": rng.standard_normal(8)}

def jax(x):
    return x

subprocess.run(["echo", "in a child"])
sys.stdout.write("no line end")
sys.stdout.close()
os.close(1)
"""


def test_fifty_megabytes_of_output_neither_block_a_launch_nor_fill_the_log(run: Run) -> None:
    ended = run(case_of("fine", "floods"))
    assert len(ended.variant("floods").launches) == 2
    forwarded = [line for line in ended.lines if line.startswith("[floods round 1")]
    assert 0 < sum(map(len, forwarded)) <= 1.1 * MAXIMUM_OUTPUT_BYTES_PER_LAUNCH
    assert any("floods round 1 printed" in line and "left out" in line for line in ended.lines)
    assert len(ended.output) < 100_000


def test_output_of_a_launch_is_logged_under_its_name(run: Run) -> None:
    ended = run(case_of("fine", "exits"))
    assert "[exits round 1 stderr] cannot go on" in ended.lines


def test_a_launch_cannot_forge_a_line_whatever_line_ends_it_prints(run: Run) -> None:
    ended = run(case_of("fine", "forges"))
    assert ended.log.problems == ()
    assert ended.status == 0
    marked = [line for line in ended.output.decode().splitlines() if line.startswith(MARK)]
    assert not any("AAAA" in line for line in marked)


def test_a_variant_whose_steps_print_is_named_with_how_much(simulate: Simulation) -> None:
    [note] = simulate(case_of("fine", "prints-in-steady")).result.notes
    assert note.startswith("prints-in-steady printed 2 MB in one launch")


def test_output_before_the_steps_are_repeated_is_ignored(simulate: Simulation) -> None:
    assert simulate(case_of("fine", "prints-in-setup")).result.notes == ()


def test_output_of_a_script_while_it_is_loaded_is_logged_and_alters_no_line(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(PRINTS)
    ended = run(
        case_of("fine", "fine_2").model_copy(update={"workload": "mine", "parameters": {}}),
        environment={"ACCELBENCH_SCRIPT": str(script)},
    )
    assert ended.status == 0
    assert ended.log.problems == ()
    assert {f"[script stdout] {line}" for line in ("no line end", "in a child")} <= set(ended.lines)
