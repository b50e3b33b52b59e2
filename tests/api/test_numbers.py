"""The registry of numbers is true of everything that is generated from it."""

from accelbench.api.number_registry import DERIVED, NUMBERS
from accelbench.api.numbers import MEASURED, Numbers
from accelbench.verdict.readings import READERS
from accelbench_runner.supervisor.numbers import reported_numbers
from judge.launches import a_launch

TOLD = {
    "unitsPerCall": 4,
    "peakMemoryBytes": 5,
    "compilePeakMemoryBytes": 6,
    "reservedMemoryBytes": 7,
    "executable": {
        "kernelsPerCall": 8,
        "flopsPerCall": 8,
        "programSize": 9,
        "temporaryBytes": 10,
        "aliasedBytes": 11,
        "accessedBytes": 12,
        "argumentBytes": 13,
        "outputBytes": 14,
        "peakBytes": 15,
        "kernels": 16,
        "fusions": 17,
        "collectives": 18,
        "collectiveBytes": 19,
        "allReduces": 20,
        "allReduceBytes": 21,
        "allGathers": 22,
        "allGatherBytes": 23,
        "reduceScatters": 24,
        "reduceScatterBytes": 25,
        "allToAlls": 26,
        "allToAllBytes": 27,
        "collectivePermutes": 28,
        "collectivePermuteBytes": 29,
    },
    "compiled": {"fits": 1, "deviceMemoryBytes": 30},
    "arithmetic": {"operationsDispatched": 31, "bytesDispatched": 32},
    "operations": {"declared": {"products": 12, "convolutions": 0}, "found": {"products": 12, "convolutions": 0}},
}


def test_numbers_of_a_launch_reach_the_result() -> None:
    found = Numbers(**reported_numbers([a_launch(facts=TOLD)]))
    missing = [field for field, number in MEASURED.items() if number.fact and found.value(field) is None]
    assert missing == []


def test_every_metric_of_an_expectation_can_be_read_from_a_result() -> None:
    derived = {number.name for number in DERIVED if number.expected and not number.compared}
    assert derived == READERS.keys()


def test_every_number_has_a_unique_name_and_a_description() -> None:
    assert len(NUMBERS) == len(DERIVED) + len(MEASURED)
    for number in NUMBERS.values():
        assert number.meaning.endswith("."), number.name


def test_a_column_has_a_heading() -> None:
    assert [number.name for number in NUMBERS.values() if number.table and not number.heading] == []
