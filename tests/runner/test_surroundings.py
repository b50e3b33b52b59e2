"""Test where a launch runs and writes: its own directory, the same processors, as many threads."""

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from accelbench_runner.supervisor.processors import allowed_cpus, choose_cpus
from runner.supervision import Ended, Supervised, case_of

Run = Callable[..., Ended]


def test_every_launch_has_its_own_directories_which_are_deleted_afterwards(run: Run) -> None:
    ended = run(case_of("fine", "fine_2"))
    seen = [launch["facts"]["versions"] for launch in ended.launches]
    assert len(seen) == 4
    for name in ("TMPDIR", "HOME", "JAX_COMPILATION_CACHE_DIR"):
        places = {environment[name] for environment in seen}
        assert len(places) == 4
        assert all(Path(place).is_relative_to(ended.work) and not Path(place).exists() for place in places)
    assert list(ended.work.iterdir()) == []


def test_launches_run_on_the_processors_that_the_supervisor_chose_with_as_many_threads(run: Run) -> None:
    processor = str(min(os.sched_getaffinity(0)))
    ended = run(case_of("fine", "fine_2", rounds=1), wrapper=["taskset", "--cpu-list", processor])
    seen = [launch["facts"]["versions"] for launch in ended.launches]
    assert [each["processors"] for each in seen] == [f"[{processor}]"] * 2
    assert [each["OMP_NUM_THREADS"] for each in seen] == ["1", "1"]


@pytest.mark.parametrize(
    ("available", "quota", "wanted", "threads"),
    [
        *((8, None, None, 8), (8, 2.0, None, 2), (8, 3.9, None, 3), (8, 0.5, None, 1), (2, 16.0, None, 2)),
        *((8, None, 1, 1), (8, 4.0, 2, 2), (8, 2.0, 4, 2), (2, None, 4, 2)),
    ],
)
def test_the_number_of_threads_is_that_of_whole_processors_in_the_quota_or_the_requested_one(
    available: int, quota: float | None, wanted: int | None, threads: int
) -> None:
    assert allowed_cpus(available, quota, wanted) == threads


def test_idle_processors_are_chosen_before_busy_ones_and_new_cores_before_used_ones() -> None:
    busy = {0: 0.9, 1: 0.0, 2: 0.05, 3: 0.0, 4: 0.9, 5: 0.0}
    cores = {0: "a", 1: "a", 2: "b", 3: "b", 4: "c", 5: "c"}
    for seed in range(20):
        rng = random.Random(seed)  # noqa: S311 - no secret
        assert {cores[number] for number in choose_cpus(busy, 3, cores=cores, rng=rng)} == {"a", "b", "c"}
        assert set(choose_cpus(busy, 4, cores=cores, rng=rng)) == {1, 2, 3, 5}


def test_two_supervisors_on_an_idle_node_do_not_always_choose_the_same_processors() -> None:
    idle = dict.fromkeys(range(64), 0.0)
    cores = {number: str(number) for number in idle}
    generators = map(random.Random, range(20))
    chosen = {frozenset(choose_cpus(idle, 2, cores=cores, rng=rng)) for rng in generators}
    assert len(chosen) > 10


NOBODY = {"user": 65534, "group": 65534, "extra_groups": []}


def test_a_user_without_rights_or_home_needs_nothing_but_the_work_directory(
    start: Callable[..., Supervised], tmp_path: Path
) -> None:
    try:
        subprocess.run([sys.executable, "-c", "import accelbench_runner"], check=True, cwd="/", **NOBODY)
    except (PermissionError, subprocess.CalledProcessError) as error:
        pytest.skip(f"another user cannot run this Python here: {error}")
    for directory in (tmp_path, *tmp_path.parents):
        if directory.stat().st_uid == os.getuid() and directory != Path(directory.root):
            directory.chmod(directory.stat().st_mode | 0o011)
    work = tmp_path / "theirs"
    work.mkdir()
    os.chown(work, NOBODY["user"], NOBODY["group"])
    # As the kubelet makes it.
    log = tmp_path / "0" / "termination-log"
    log.parent.mkdir()
    log.touch()
    log.chmod(0o666)
    environment = {"HOME": "/nonexistent"}
    ended = start(case_of("fine", "fine_2", rounds=1), cwd="/", environment=environment, work=work, **NOBODY).end()
    assert ended.status == 0, ended.errors
    assert list(work.iterdir()) == []


READ_ONLY_ROOT = """
touch WORK/../termination-log
for place in WORK WORK/../termination-log; do mount --bind $place $place; done
mount -o remount,bind,ro /
touch /written && exit 99
exec "$@"
"""


def test_a_read_only_root_file_system_is_enough_with_a_work_directory_and_a_termination_message(run: Run) -> None:
    wrapper = ["unshare", "--mount", "sh", "-c", READ_ONLY_ROOT, "sh"]
    if subprocess.run([*wrapper[:2], "true"], check=False, capture_output=True).returncode:
        pytest.skip("mount namespaces cannot be made here")
    ended = run(case_of("fine", "fine_2", rounds=1), wrapper=wrapper)
    assert ended.status == 0, ended.errors
    assert ended.result.rounds == 1
    assert list(ended.work.iterdir()) == []


def test_the_supervisor_imports_no_numpy_and_no_framework() -> None:
    script = "import sys, json, accelbench_runner.__main__; print(json.dumps(list(sys.modules)))"
    modules = json.loads(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True).stdout)
    heavy = {"numpy", "scipy", "torch", "jax", "jaxlib", "psutil", "click", "rich", "kubernetes", "asyncio"}
    assert heavy.isdisjoint(modules)


def test_the_supervisor_stays_small_while_a_launch_measures(start: Callable[..., Supervised]) -> None:
    supervised = start(case_of("waits-in-round-2", "fine"))
    assert supervised.process.stdout is not None
    for line in iter(supervised.process.stdout.readline, b""):
        if b'"phase":"warm-up"' in line:
            break
    assert psutil.Process(supervised.process.pid).memory_info().rss < 60_000_000
