"""The minimum memory of a case is estimated before it starts, and compared with the available memory."""

import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs
from accelbench.machine import memory
from accelbench.workloads.matmul_chain import MatmulChain
from workloads.small import SMALL

TIMED = [
    name for name in catalogue.names() if memory.needed_bytes(catalogue.find(name), catalogue.find(name).Parameters())
]


@pytest.mark.parametrize("name", TIMED)
def test_the_estimate_is_no_more_than_what_the_inputs_and_the_reference_take(name: str) -> None:
    workload = catalogue.find(name)
    parameters = catalogue.parse_parameters(workload, dict(SMALL[name][0]))
    tracemalloc.start()
    try:
        workload.reference(parameters, inputs.generate(workload, parameters, 0), 1)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert memory.needed_bytes(workload, parameters) <= peak


def test_a_case_is_refused_with_both_numbers_only_if_it_does_not_fit() -> None:
    workload = catalogue.find("inplace-update")
    parameters = catalogue.parse_parameters(workload, {"size": 2**20})
    assert memory.refusal(workload, parameters, 8 * 2**20) is None
    assert memory.refusal(workload, parameters, None) is None
    refused = memory.refusal(workload, parameters, 8 * 2**20 - 1)
    assert refused is not None
    assert refused.startswith("needs at least 8.4 MB of memory")


def test_the_memory_of_a_workload_without_a_declaration_is_unknown() -> None:
    class Quiet(MatmulChain):
        moves_once = False

    assert memory.needed_bytes(Quiet(), Quiet.Parameters()) == 0


def test_the_memory_of_a_workload_that_is_only_observed_is_unknown() -> None:
    workload = catalogue.find("rng")
    assert memory.needed_bytes(workload, workload.Parameters()) == 0


@pytest.mark.parametrize(
    ("name", "asked", "timed"),
    [("checkpoint", {"asks": "resume"}, {}), ("variable-length", {"asks": "compilations"}, {"asks": "time"})],
)
def test_an_observed_workload_needs_as_much_memory_as_a_timed_one(
    name: str, asked: dict[str, Any], timed: dict[str, Any]
) -> None:
    workload = catalogue.find(name)
    observed = catalogue.parse_parameters(workload, asked)
    assert workload.measure(observed).protocol == "observe"
    least = memory.needed_bytes(workload, observed)
    assert least == memory.needed_bytes(workload, catalogue.parse_parameters(workload, timed)) > 0
    assert memory.refusal(workload, observed, least - 1)


@pytest.mark.parametrize(("limit", "least"), [("1073741824\n", 2**30), ("max\n", 2 * 2**30)])
def test_a_containers_limit_below_the_machines_memory_counts(tmp_path: Path, limit: str, least: int) -> None:
    process, group = tmp_path / "proc" / "self", tmp_path / "group"
    process.mkdir(parents=True)
    group.mkdir()
    (tmp_path / "proc" / "meminfo").write_text("MemTotal:  2097152 kB\nMemFree: 1 kB\n")
    (process / "cgroup").write_text("0::/\n")
    (process / "mountinfo").write_text(f"1 1 0:1 / {group} rw - cgroup2 cgroup2 rw\n")
    (group / "cgroup.procs").write_text("")
    (group / "memory.max").write_text(limit)
    assert memory.available_bytes(tmp_path) == least


def test_nothing_is_refused_if_the_machines_memory_is_unknown(tmp_path: Path) -> None:
    assert memory.available_bytes(tmp_path) is None
