"""The processes that used the processors, by name and ID."""

import os
import subprocess
import sys

from accelbench_runner.devices.processes import ProcessUsage, busiest, read


def test_the_busiest_processes_come_first_and_idle_ones_are_left_out() -> None:
    before = {
        (1, 0.0): ProcessUsage("init", 1, 5.0),
        (2, 0.0): ProcessUsage("busy", 2, 9.0),
        (3, 0.0): ProcessUsage("idle", 3, 4.0),
    }
    after = {
        (1, 0.0): ProcessUsage("init", 1, 5.1),
        (2, 0.0): ProcessUsage("busy", 2, 9.9),
        (3, 0.0): ProcessUsage("idle", 3, 4.0),
        (4, 7.0): ProcessUsage("new", 4, 0.5),
        (5, 7.0): ProcessUsage("small", 5, 0.01),
    }
    assert [(each.name, round(each.seconds, 3)) for each in busiest(before, after)] == [
        ("busy", 0.9),
        ("new", 0.5),
        ("init", 0.1),
    ]


def test_a_reused_process_id_is_another_process() -> None:
    assert busiest({(2, 0.0): ProcessUsage("old", 2, 9.0)}, {(2, 5.0): ProcessUsage("new", 2, 0.3)}) == [
        ProcessUsage("new", 2, 0.3)
    ]


def test_another_process_is_seen_with_its_name_and_this_one_is_not() -> None:
    command = [sys.executable, "-c", "print('here', flush=True); input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        other.stdout.readline()
        found = {each.pid: each for each in read().values()}
        other.communicate("\n")
    assert found[other.pid].name.startswith("python")
    assert os.getpid() not in found
