"""Readings of NVML reach the checks that need them; missing ones neither fail nor pass a check."""

from pathlib import Path
from typing import Any

import pytest

from accelbench.api.case import Case, CaseAccelerator
from accelbench.validity import shared_device, throttled
from accelbench.validity.check import Finding, LaunchCheck
from accelbench_runner.supervisor.numbers import unit_cost
from devices.gpu import H100, Gpu, library, watched
from judge.launches import a_case, a_launch

SLICE = {**H100, "mig": 1, "sliceUuid": "MIG-aaaaaaaa-2222-3333-4444-555555555555"}


def on_cuda() -> Case:
    return a_case().model_copy(update={"accelerator": CaseAccelerator(platform="cuda")})


def finding(check: LaunchCheck, facts: dict[str, Any]) -> Finding:
    reported = {name: value for name, value in facts.items() if value is not None}
    good = {"deviceReading", "energy", "throttling", "neighbours"}
    return check.evaluate(on_cuda(), a_launch(facts={**dict.fromkeys(good, "unread"), **reported}))


HOT = 0x20
NO_VALUE = 2**64 - 1
HARDWARE_HOT = 0x48
CAPPED = 0x04
IDLE = 0x01
CLOCKS = {
    "at rest": (Gpu(), "passed", ""),
    "idle between blocks": (Gpu(later={"reasons": IDLE}), "passed", ""),
    "hot by the counter": (Gpu(later={"violation1": 500_000_000}), "failed", "thermal slowdown for 25% of the phase"),
    "hot for a moment": (Gpu(later={"violation1": 15_000_000}), "passed", ""),
    "hot when looked at": (Gpu(later={"reasons": HOT}), "failed", "thermal slowdown for 67% of the phase"),
    "hot hardware": (Gpu(later={"reasons": HARDWARE_HOT}), "failed", "hardware thermal slowdown for 67% of the phase"),
    "no counter": (Gpu(later={"violation0": NO_VALUE, "violation1": NO_VALUE, "clock": 2**32 - 1}), "passed", ""),
    "capped": (Gpu(later={"violation0": 1_900_000_000}), "passed", "power cap for 95% of the phase"),
    "capped when looked at": (Gpu(later={"reasons": CAPPED}), "passed", "power cap for 67% of the phase"),
    "capped and hot": (Gpu(later={"violation0": 1_900_000_000, "reasons": HOT}), "failed", "thermal slowdown for 67%"),
    "a hot slice": (
        Gpu(said={**SLICE, "reasons": HOT}, environment={"CUDA_VISIBLE_DEVICES": SLICE["sliceUuid"]}),
        "failed",
        "thermal slowdown for 100%",
    ),
}
PROCESSES = {
    "ours alone": (Gpu(), "passed", "0 other processes on the GPU"),
    "one came": (Gpu(later={"pids": "OWN 4711"}), "failed", "1 other process on the GPU"),
    "two were there": (
        Gpu(before={"pids": "4711 4712"}, later={"pids": "4711 4712 OWN"}),
        "failed",
        "2 other processes on the GPU",
    ),
    "one left": (Gpu(before={"pids": "4711"}), "passed", "0 other processes on the GPU"),
    # In a container our own process has the host's number, which it does not know.
    "in a container": (Gpu(later={"pids": "99999"}), "passed", "0 other processes on the GPU"),
    "in a container, one was there": (
        Gpu(before={"pids": "88888"}, later={"pids": "88888 99999"}),
        "failed",
        "1 other process on the GPU",
    ),
    "in a container, one came": (Gpu(later={"pids": "77777 99999"}), "failed", "1 other process on the GPU"),
    "in a container, hidden": (Gpu(later={"pids": ""}), "untested", "NVML does not list the processes on the GPU"),
}


@pytest.fixture(scope="module")
def facts_by_gpu(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The facts of every GPU above, by its name: one process watches them all, one after the other."""
    gpus = {name: gpu for name, (gpu, _, _) in {**CLOCKS, **PROCESSES}.items()}
    return dict(zip(gpus, watched(list(gpus.values()), tmp_path_factory.mktemp("gpu"), library()), strict=True))


@pytest.mark.parametrize("name", CLOCKS)
def test_reduced_clocks_are_reported_with_cause_and_duration(
    name: str, facts_by_gpu: dict[str, dict[str, Any]]
) -> None:
    _, outcome, reading = CLOCKS[name]
    found = finding(throttled.CHECK, facts_by_gpu[name])
    assert found.outcome == outcome, found.reading
    assert reading in found.reading
    assert ("phase" in found.reading) == bool(reading)


@pytest.mark.parametrize("name", PROCESSES)
def test_another_process_on_the_gpu_is_counted(name: str, facts_by_gpu: dict[str, dict[str, Any]]) -> None:
    _, outcome, reading = PROCESSES[name]
    found = finding(shared_device.CHECK, facts_by_gpu[name])
    assert found.outcome == outcome, found.reading
    assert reading in found.reading


@pytest.mark.parametrize(
    ("gpu", "defined"),
    [
        (Gpu(), ("BARE_DRIVER",)),
        (Gpu(said={"uuid": H100["uuid"]}, before={}), ()),
        (Gpu(said={"initFails": 1}, before={}), ()),
        (Gpu(said={"count": 0}, before={}), ()),
        (Gpu(environment={"CUDA_VISIBLE_DEVICES": "7"}), ()),
        (Gpu(), None),
    ],
    ids=["bare driver", "says nothing", "does not start", "no GPU", "another GPU", "no library"],
)
def test_values_that_nvml_cannot_provide_are_untested(
    gpu: Gpu, defined: tuple[str, ...] | None, tmp_path: Path
) -> None:
    (facts,) = watched([gpu], tmp_path, None if defined is None else library(*defined))
    assert facts["energy"] is None
    for check in (throttled.CHECK, shared_device.CHECK):
        assert finding(check, facts).outcome == "untested", check.name


def test_an_older_driver_is_queried_by_the_names_that_it_knows(tmp_path: Path) -> None:
    gpu = Gpu(said={**H100, "reasons": HOT}, later={"pids": "OWN 4711"})
    (facts,) = watched([gpu], tmp_path, library("OLD_DRIVER"))
    assert "thermal slowdown for 100%" in finding(throttled.CHECK, facts).reading
    assert "1 other process on" in finding(shared_device.CHECK, facts).reading


@pytest.mark.parametrize("visible", ["", "0", H100["uuid"], "GPU-1111"])
def test_settings_of_the_device_are_in_the_fingerprint(visible: str, tmp_path: Path) -> None:
    gpu = Gpu(environment={"CUDA_VISIBLE_DEVICES": visible})
    (facts,) = watched([gpu], tmp_path, library())
    assert facts["deviceSettings"] == {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": H100["uuid"],
        "driver": "580.65.06",
        "powerLimitWatts": "700",
        "ecc": "on",
        "mig": "off",
        "maxClockMegahertz": "1980",
        "link": "PCIe 5 x16",
        "nvlinks": "18",
    }


def test_a_slice_has_its_own_name_and_the_whole_devices_settings_and_no_energy(tmp_path: Path) -> None:
    gpu = Gpu(
        said=SLICE,
        later={"energy": 5_400_000},
        environment={"CUDA_VISIBLE_DEVICES": str(SLICE["sliceUuid"])},
    )
    (facts,) = watched([gpu], tmp_path, library())
    assert facts["deviceSettings"]["uuid"] == SLICE["sliceUuid"]
    assert (facts["deviceSettings"]["mig"], facts["deviceSettings"]["powerLimitWatts"]) == ("on", "700")
    assert facts["energy"] is None


def test_an_energy_counter_that_does_not_change_is_unknown_and_not_zero(
    facts_by_gpu: dict[str, dict[str, Any]],
) -> None:
    assert facts_by_gpu["at rest"]["energy"] is None


def test_the_value_of_nvml_for_an_unknown_counter_is_not_taken_for_energy(tmp_path: Path) -> None:
    (facts,) = watched([Gpu(later={"energy": NO_VALUE})], tmp_path, library())
    assert facts["energy"] is None


def test_energy_is_power_in_the_phase_times_seconds_per_unit(tmp_path: Path) -> None:
    (facts,) = watched([Gpu(later={"energy": 5_400_000})], tmp_path, library())
    assert facts["energy"] == {"joules": 400.0, "seconds": 2.0, "scope": "device"}
    found = unit_cost(on_cuda(), [a_launch(facts=facts)], [], seconds=0.01)
    assert float(found.numbers["device_joules_per_unit"] or 0) == 2.0
