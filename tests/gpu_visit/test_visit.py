"""A visit keeps what it measured, whatever happens to it, and the next one continues; the runner is played."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

from cluster.wait import wait_until
from gpu_visit import items
from gpu_visit.stage import Stage

QUICK = {"start": 5, "round": 5}
PRINTS = "print('{}')\n"


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_everything_on_the_list_is_measured_once_and_imported(stage: Stage) -> None:
    chain = stage.manifest("table", "chain")
    stage.list_items(
        {"manifest": chain, "variant": "jax/jit", "rounds": 1, "seconds": QUICK},
        {"program": stage.program("broken", "raise SystemExit('no such memory')"), "seconds": 5},
        {
            "program": stage.program(
                "prints", 'print(\'{"title": "T", "summary": "S", "columns": ["a", "b"], "rows": [["x", 1]]}\')'
            ),
            "seconds": 5,
        },
        {"manifest": chain, "seconds": QUICK},
    )
    done = stage.visit()
    assert done.returncode == 0, done.stderr
    assert stage.outcomes == [
        ("table/chain jax/jit", "measured"),
        ("broken", "failed"),
        ("prints", "measured"),
        ("table/chain", "measured"),
    ]
    assert "no such memory" in stage.attempts[1].message
    again = stage.visit()
    assert again.returncode == 0, again.stderr
    assert stage.outcomes[4:] == [("broken", "failed")]
    assert len(stage.bring_home()) == 5
    device = stage.results / "gpu" / "played-gpu"
    kept = {path.relative_to(device).as_posix() for path in device.glob("**/*result.json")}
    assert kept == {"table/chain/all.result.json", "table/chain/jax-jit/all.result.json"}
    page = (stage.results / "gpu" / "measured.md").read_text()
    assert "574 µs" in page or "1.17 ms" in page
    assert "| x | 1 |" in page
    assert stage.bring_home() == []


def test_a_visit_that_is_killed_loses_only_what_it_was_measuring(stage: Stage) -> None:
    chain = stage.manifest("table", "chain")
    stage.list_items({"program": stage.program("prints", PRINTS), "seconds": 5}, {"manifest": chain, "seconds": QUICK})
    visit = stage.start("patient")
    log = wait_until(lambda: next(stage.work.glob("results/*/all.log"), None), what="the runner's log")
    runner = int(wait_until(lambda: _pid(log), what="the runner's PID"))
    visit.kill()
    visit.wait()
    os.killpg(runner, signal.SIGKILL)  # all of the machine is taken away
    with stage.file.open("ab") as file:
        file.write(b'{"format": "accelbench.dev/gpu-')  # it was killed while it wrote
    done = stage.visit()
    assert done.returncode == 0, done.stderr
    assert stage.outcomes == [("prints", "measured"), ("table/chain", "measured")]


def _pid(log: Path) -> str:
    words = log.read_text().split()
    return words[1] if words[:1] == ["runner"] and len(words) > 2 else ""


def test_an_item_that_overruns_is_stopped_and_the_visit_continues(stage: Stage) -> None:
    chain = stage.manifest("table", "chain")
    stage.list_items(
        {"manifest": chain, "seconds": {"start": 1, "round": 0.2}},
        {"program": stage.program("hangs", "import time; time.sleep(600)"), "seconds": 1},
        {"program": stage.program("prints", PRINTS), "seconds": 5},
    )
    done = stage.visit("patient")
    assert done.returncode == 0, done.stderr
    assert stage.outcomes == [("table/chain", "overran"), ("hangs", "overran"), ("prints", "measured")]


@pytest.mark.nightly  # the plan's tests hold what follows from how an attempt ended
def test_a_visit_that_is_terminated_records_its_item_as_interrupted(stage: Stage) -> None:
    stage.list_items({"manifest": stage.manifest("table", "chain"), "seconds": QUICK})
    visit = stage.start("patient")
    wait_until(lambda: next(stage.work.glob("results/*/all.log"), None), what="the runner's log")
    visit.send_signal(signal.SIGTERM)
    assert visit.wait() == 130
    assert stage.outcomes == [("table/chain", "interrupted")]


@pytest.mark.nightly  # the plan's tests hold what follows from how an attempt ended
def test_no_item_starts_that_does_not_fit_into_the_time(stage: Stage) -> None:
    stage.list_items({"manifest": stage.manifest("table", "chain"), "seconds": {"start": 60, "round": 60}})
    done = stage.visit(minutes=1)
    assert done.returncode == 0, done.stderr
    assert stage.outcomes == []
    assert "0 of 1 items are measured" in done.stderr


@pytest.mark.nightly  # the plan's tests hold what follows from how an attempt ended
def test_a_broken_machine_ends_the_visit_before_every_item_fails(stage: Stage) -> None:
    stage.list_items(*({"manifest": stage.manifest("table", name), "seconds": QUICK} for name in "abcde"))
    done = stage.visit("silent")
    assert done.returncode == 1
    assert stage.outcomes == [(f"table/{name}", "failed") for name in "abc"]
    assert "3 attempts in a row failed" in done.stderr


@pytest.mark.nightly  # the plan's tests hold what follows from how an attempt ended
def test_results_of_another_device_are_not_continued(stage: Stage) -> None:
    stage.list_items({"manifest": stage.manifest("table", "chain"), "seconds": QUICK})
    assert stage.visit().returncode == 0
    lines = [json.loads(line) for line in stage.file.read_text().splitlines()]
    lines[0]["setting"]["device"] = "Another GPU"
    stage.file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert stage.visit().returncode == 0
    assert [attempt.setting.device for attempt in stage.attempts] == ["Another GPU", "Played GPU"]


def test_a_machine_without_a_driver_is_refused_before_anything_starts(stage: Stage) -> None:
    stage.profiles.write_text("{}\n")
    stage.list_items({"manifest": stage.manifest("table", "chain"), "seconds": QUICK})
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    done = stage.visit()
    assert done.returncode == 1
    assert "needs a cuda device" in done.stderr
    assert not stage.file.exists()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ({"manifest": "examples/claims/99-nothing.yaml", "seconds": QUICK}, "99-nothing.yaml"),
        ({"manifest": "{chain}", "variant": "jax/jitt", "seconds": QUICK}, "did you mean jax/jit?"),
        ({"manifest": "{chain}"}, "seconds"),
        ({"program": "nowhere.py", "seconds": 1}, "no program nowhere.py"),
    ],
)
def test_a_list_that_cannot_be_used_is_refused_with_the_item(stage: Stage, entry: dict[str, object], why: str) -> None:
    chain = stage.manifest("table", "chain")
    stage.list_items({name: chain if value == "{chain}" else value for name, value in entry.items()})
    with pytest.raises(items.InvalidListError, match=re.escape(why)):
        items.load(stage.directory / "items.yaml")
