"""Test the warnings about what will disturb a case, before it begins."""

import json
import os
from collections.abc import Callable
from typing import Any

import pytest

from accelbench.delivery.log import LaunchStarted, MachineSeen
from accelbench.launch.facts import Process
from accelbench_runner.devices.cpu import Contention, Usage
from accelbench_runner.devices.processes import ProcessUsage, Reading
from accelbench_runner.supervisor.preflight import Survey, take_survey, warnings
from accelbench_runner.supervisor.survey import survey
from runner.supervision import Ended, case_of

PYTHON = Process(name="python", pid=1234, seconds=0.98)
SSHD = Process(name="sshd", pid=7, seconds=0.01)


def warned(*, accepts_noise: bool = False, processors: int = 2, there: int = 2, **seen: Any) -> tuple[str, ...]:
    host = {"cpusUsed": str(processors), "cpus": str(there)}
    return warnings(Survey(processors=processors, seconds=1.0, **seen), host, accepts_noise=accepts_noise)


def test_a_quiet_machine_causes_no_warning() -> None:
    assert warned(busy_seconds=0.1, steal_seconds=0.05, load=2.5, limit=2.0, governor="performance", turbo="on") == ()


def test_the_busy_process_is_named_with_its_share() -> None:
    first, *_ = warned(busy_seconds=0.99, processes=(PYTHON, SSHD))
    assert "python (pid 1234) takes 98 %" in first
    assert not any("sshd" in line for line in warned(busy_seconds=0.99, processes=(PYTHON, SSHD)))


def test_no_processor_is_recommended_if_none_is_free() -> None:
    for there in (1, 2):
        first, _ = warned(processors=1, there=there, busy_seconds=0.99, processes=(PYTHON,))
        assert "fewer processors" not in first


def test_accepted_noise_is_not_recommended_again() -> None:
    assert "--accept-noise" in " ".join(warned(steal_seconds=0.22))
    assert "--accept-noise" not in " ".join(warned(accepts_noise=True, steal_seconds=0.22))


def test_the_warnings(golden: Callable[[str, str], None]) -> None:
    surveys: dict[str, dict[str, Any]] = {
        "a busy process": {"busy_seconds": 0.99, "processes": (PYTHON, SSHD)},
        "a busy process on the only processor": {"processors": 1, "busy_seconds": 0.99, "processes": (PYTHON,)},
        "a process of many threads": {
            "processors": 8,
            "busy_seconds": 3.2,
            "processes": (PYTHON.model_copy(update={"seconds": 3.1}),),
        },
        "load of invisible processes": {"busy_seconds": 1.0, "processes": (SSHD,)},
        "steal": {"steal_seconds": 0.22},
        "steal, with noise accepted": {"steal_seconds": 0.22, "accepts_noise": True},
        "a quota": {"limit": 0.5, "processors": 1},
        "a load average": {"load": 6.2},
        "a governor with turbo": {"governor": "powersave", "turbo": "on"},
        "a governor without turbo": {"governor": "schedutil", "turbo": "off"},
    }
    text = "".join(f"{name}:\n" + "".join(f"  {line}\n" for line in warned(**seen)) for name, seen in surveys.items())
    golden("warnings.txt", text)


class Machine:
    """Its counters move on while somebody pauses."""

    now = 0.0

    def pause(self, seconds: float) -> None:
        self.now += seconds

    def clock(self) -> float:
        return 50.0 + self.now

    def usage(self) -> Usage:
        return Usage(all_seconds=9.0 + 0.7 * self.now, process_seconds=3.0 + 0.1 * self.now)

    def contention(self) -> Contention:
        return Contention(periods=0, seconds=0.0, steal_seconds=4.0 + 0.2 * self.now, pressure_seconds=0.0)

    def other_processes(self) -> Reading:
        old = {(1234, 1.0): ProcessUsage("python", 1234, 5.0 + 0.6 * self.now), (7, 2.0): ProcessUsage("sshd", 7, 1.0)}
        return old | ({(8, 51.0): ProcessUsage("cc1", 8, 0.3)} if self.now else {})

    def other_threads_seconds(self) -> float:
        return 0.0


def test_load_between_two_readings_is_measured() -> None:
    machine = Machine()
    seen = survey({"cpuLimit": "1.5", "governor": "powersave"}, machine, machine.pause, machine.clock)
    assert (seen.seconds, seen.processors) == (machine.now, len(os.sched_getaffinity(0)))
    assert seen.busy_seconds == pytest.approx(0.6 * machine.now)
    assert seen.steal_seconds == pytest.approx(0.2 * machine.now)
    assert [(each.name, each.pid) for each in seen.processes] == [("python", 1234), ("cc1", 8)]
    assert seen.processes[0].seconds == pytest.approx(0.6 * machine.now)
    assert (seen.limit, seen.governor, seen.turbo) == (1.5, "powersave", "")


def test_this_machine_can_be_surveyed() -> None:
    seen = take_survey({"governor": "powersave"})
    assert seen.processors == len(os.sched_getaffinity(0))
    assert (seen.governor, seen.seconds > 0) == ("powersave", True)


Run = Callable[..., Ended]


def test_the_warning_precedes_the_first_launch_in_the_log_and_in_the_events(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", rounds=2), environment={"SEEN": json.dumps({"steal_seconds": 0.22})})
    seen, started = (
        next(number for number, event in enumerate(ended.events) if isinstance(event, kind))
        for kind in (MachineSeen, LaunchStarted)
    )
    assert seen < started
    event = ended.events[seen]
    assert isinstance(event, MachineSeen)
    assert event.warnings[0].startswith("Hypervisor steal: 11 %")
    assert f"accelbench: warning: {event.warnings[0]}" in ended.lines


def test_a_quiet_machine_is_no_event(run: Run) -> None:
    assert not [event for event in run(case_of("fine", "fine_2", rounds=2)).events if isinstance(event, MachineSeen)]


def test_a_machine_that_cannot_be_surveyed_is_measured_nevertheless(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", rounds=2), environment={"BLIND": "1"})
    assert ended.result.rounds == 2
    assert any(line.startswith("accelbench: the machine cannot be surveyed for other load") for line in ended.lines)
