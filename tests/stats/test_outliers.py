import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.stats.spread import Outliers, find_outliers, total

# With a value above, quartiles 3.25 and 7.75: fences at 14.5 and 21.25. With one below, 2.25 and 6.75: -4.5 and -11.25.
PLAIN = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (14.6, {"high_mild": 1}),
        (21.3, {"high_severe": 1}),
        (-4.6, {"low_mild": 1}),
        (-11.3, {"low_severe": 1}),
        (14.4, {}),
        (21.2, {"high_mild": 1}),
        (-4.4, {}),
        (-11.2, {"low_mild": 1}),
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
    assert total([find_outliers(PLAIN), find_outliers([*far, 200.0])]) == Outliers(of=19, high_severe=1)


@given(st.lists(st.floats(-1e6, 1e6), min_size=5, max_size=60))
def test_at_most_half_of_all_values_are_outliers_and_all_are_counted(values: list[float]) -> None:
    found = find_outliers(values)
    assert found.of == len(values)
    assert 2 * found.count <= found.of
