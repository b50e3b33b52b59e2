"""Numbers of results are held packed, and nobody notices."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench_operator.runs.summary import Packed

NUMBERS = st.dictionaries(st.text(max_size=8), st.floats(allow_nan=False), max_size=12)


@given(NUMBERS)
def test_packed_numbers_are_those_of_the_dict(numbers: dict[str, float]) -> None:
    packed = Packed(numbers)
    assert dict(packed) == numbers
    assert packed == numbers
    assert list(packed) == list(numbers)
    assert all(packed[name] == number for name, number in numbers.items())


@given(NUMBERS, st.text(min_size=9))
def test_a_name_that_is_not_held_is_an_error(numbers: dict[str, float], name: str) -> None:
    assert Packed(numbers).get(name) is None
    with pytest.raises(KeyError, match="name"):
        Packed(numbers)["name that is too long"]


def test_two_of_the_same_names_hold_them_once() -> None:
    first, second = (Packed({f"phase {index}": float(index) for index in range(6)}) for _ in range(2))
    assert all(one is other for one, other in zip(first, second, strict=True))
    as_a_dict = dict(first)
    assert sys.getsizeof(first._values) + sys.getsizeof(first) < sys.getsizeof(as_a_dict)
