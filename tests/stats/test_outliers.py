import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.stats.outliers import Outliers, find_outliers, together

# Quartiles 3 and 7: fences at -3 and 13, -9 and 19.
PLAIN = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (13.9, {"high_mild": 1}),
        (20.6, {"high_severe": 1}),
        (-3.9, {"low_mild": 1}),
        (-10.6, {"low_severe": 1}),
        (12.9, {}),
    ],
)
def test_tukeys_fences_classify(value: float, found: dict[str, int]) -> None:
    assert find_outliers([*PLAIN, value]) == Outliers(of=10, **found)


def test_four_values_have_no_outliers() -> None:
    assert find_outliers([1.0, 1.0, 1.0, 100.0]) == Outliers(of=4)


def test_equal_values_have_none() -> None:
    assert find_outliers([2.0] * 20).count == 0


def test_each_sample_counts_by_its_own_fences() -> None:
    far = [value + 100 for value in PLAIN]
    assert together([find_outliers(PLAIN), find_outliers([*far, 200.0])]) == Outliers(of=19, high_severe=1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=60))
def test_at_least_half_of_all_values_are_none_and_all_are_counted(values: list[float]) -> None:
    found = find_outliers(values)
    assert found.of == len(values)
    assert 2 * found.count <= found.of
