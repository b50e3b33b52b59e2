"""Test the cost of a unit of work, worked out by hand: roofline, energy, price."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.api.case import CaseAccelerator
from accelbench.launch.record import LaunchRecord
from accelbench.validity.roofline import Roof, roofline_point
from accelbench_runner.supervisor.numbers import UnitCost, reported_numbers, unit_cost, unit_joules
from judge.launches import a_case, a_launch

LIMITS = {"flops_per_second": 1e11, "bytes_per_second": 1e10}
FROM_MEMORY = {"bytes": 5_000, "cache_bytes": 1_000}
FROM_CACHE = {"bytes": 4_000, "cache_bytes": 1_000}


def launch(**facts: Any) -> LaunchRecord:
    return a_launch(facts={"limits": LIMITS, "workingSet": FROM_MEMORY, **facts})


def test_a_product_is_bound_by_arithmetic_and_a_sum_by_memory() -> None:
    product = launch(flopsPerUnit=4e8, bytesPerUnit=1e6)
    found = unit_cost(a_case(), [product], [product], seconds=0.01)
    assert (found.numbers["flops_per_second"], found.numbers["bytes_per_second"], found.numbers["intensity"]) == (
        4e10,
        1e8,
        400,
    )
    assert (found.bound, found.numbers["share_of_limit"], found.limits) == ("compute", 0.4, "measured")
    sum_ = launch(flopsPerUnit=1e6, bytesPerUnit=8e7)
    found = unit_cost(a_case(), [sum_], [sum_], seconds=0.01)
    assert (found.bound, found.numbers["share_of_limit"]) == ("memory", 0.8)


def test_work_that_fits_into_a_cache_is_not_bound_by_memory() -> None:
    cached = launch(flopsPerUnit=1e6, bytesPerUnit=8e7, workingSet=FROM_CACHE)
    found = unit_cost(a_case(), [cached], [cached], seconds=0.01)
    assert (found.bound, found.numbers["share_of_limit"]) == ("compute", 0.001)


def test_the_bound_is_unknown_if_the_cache_is_unknown() -> None:
    unknown = launch(flopsPerUnit=1e6, bytesPerUnit=8e7, workingSet={"bytes": 5_000})
    found = unit_cost(a_case(), [unknown], [unknown], seconds=0.01)
    assert (found.bound, found.numbers.get("share_of_limit")) == (None, None)
    assert found.numbers["bytes_per_second"] == 8e9


def test_limits_come_from_a_data_sheet_or_else_from_the_best_launch() -> None:
    mine = launch(flopsPerUnit=4e8, bytesPerUnit=1e6)
    better = launch(limits={"flops_per_second": 2e11, "bytes_per_second": 5e9})
    found = unit_cost(a_case(), [mine], [mine, better], seconds=0.01)
    assert (found.numbers["limit_flops_per_second"], found.numbers["limit_bytes_per_second"]) == (
        2e11,
        1e10,
    )
    sheet = launch(flopsPerUnit=4e8, device={"platform": "cuda", "name": "NVIDIA A100-SXM4-40GB", "count": 1})
    found = unit_cost(a_case(precision="tf32"), [sheet], [sheet, better], seconds=0.01)
    assert (found.numbers["limit_flops_per_second"], found.limits) == (156e12, "data-sheet")


def test_energy_is_the_median_power_times_the_seconds_of_a_unit() -> None:
    spent = [
        launch(energy={"joules": joules, "seconds": 2.0, "scope": "processors"}) for joules in (100.0, 120.0, 900.0)
    ]
    assert unit_cost(a_case(), spent, spent, seconds=0.01).numbers["cpu_joules_per_unit"] == 0.6
    by_nvml = [launch(energy={"joules": 100.0, "seconds": 2.0, "scope": "device"})]
    assert unit_joules(by_nvml, seconds=0.01) == {"device_joules_per_unit": 0.5}


@pytest.mark.parametrize("energy", [None, {}, {"joules": -1.0, "seconds": 1.0, "scope": "processors"}, "much"])
def test_energy_is_not_reported_if_it_was_not_read(energy: Any) -> None:
    assert unit_joules([launch(energy=energy)], seconds=0.01) == {}


def test_the_price_of_a_unit_follows_from_its_seconds_and_is_missing_without_an_hourly_price() -> None:
    priced = a_case().model_copy(update={"accelerator": CaseAccelerator(price_per_hour="7.20 EUR")})
    assert unit_cost(priced, [launch()], [launch()], seconds=0.01).numbers["price_per_unit"] == pytest.approx(2e-5)
    assert "price_per_unit" not in unit_cost(a_case(), [launch()], [launch()], seconds=0.01).numbers


def test_a_workload_that_declares_no_work_has_no_cost() -> None:
    nothing = launch(flopsPerUnit=0, bytesPerUnit=0)
    limits = {f"limit_{name}": limit for name, limit in LIMITS.items()}
    assert unit_cost(a_case(), [nothing], [nothing], seconds=0.01) == UnitCost(limits, limits="measured")


def test_the_largest_memory_of_all_launches_is_kept_and_garbage_is_ignored() -> None:
    launches = [launch(peakMemoryBytes=value) for value in (10, 30, "many", None)]
    assert reported_numbers(launches)["peak_memory_bytes"] == 30
    assert "reserved_memory_bytes" not in reported_numbers(launches)


positive = st.floats(1e-6, 1e6)


@given(positive, positive, positive, positive, positive)
def test_a_time_at_either_limit_is_not_above_the_roofline(
    flops: float, moved: float, most_flops: float, most_bytes: float, slower: float
) -> None:
    roof = Roof(most_flops, most_bytes, "measured")
    least = max(flops / most_flops, moved / most_bytes)
    placed = roofline_point(least * (1 + slower), flops, moved, roof, from_memory=True)
    assert placed.share == pytest.approx(1 / (1 + slower))
    assert placed.bound == ("compute" if flops / most_flops >= moved / most_bytes else "memory")
