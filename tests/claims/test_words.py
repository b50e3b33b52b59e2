"""Ratios in everyday words."""

import pytest

from accelbench.claims.words import expected_speedup, simplify_sentence, times


@pytest.mark.parametrize(
    ("speedup", "expected_text"),
    [
        ((1 / 29.117, 1 / 30.1, 1 / 28.0), "29 times as slow (28 to 30)"),
        ((2.238, 2.124, 2.362), "2.2 times as fast (2.1 to 2.4)"),
        ((1.15, 1.12, 1.17), "1.15 times as fast (1.12 to 1.17)"),
        ((1.004, 1.001, 1.008), "as fast (1.00 to 1.01)"),
        ((1.004, 0.997, 1.011), "within 2 % (0.997 to 1.01)"),
        ((0.6, 0.3, 1.2), "unknown (0.30 to 1.20)"),
        ((2234.0, 2030.0, 2330.0), "2,200 times as fast (2,000 to 2,300)"),
        ((11.1, 10.96, 11.24), "11.1 times as fast (11.0 to 11.2)"),
        ((2.0, 2.0, 2.0), "2.0 times as fast (2.0 to 2.0)"),
    ],
)
def test_a_ratio_has_two_digits_and_no_percent(speedup: tuple[float, float, float], expected_text: str) -> None:
    assert times(*speedup) == expected_text


@pytest.mark.parametrize(
    ("sentence", "expected_text"),
    [
        ("kernels of a at least 1 and at most 1: met, 1.", "kernels of a exactly 1: yes."),
        ("kernels of a at least 1 and at most 10: not-met, 11.", "kernels of a at least 1 and at most 10: no, 11."),
        (
            "accessedBytes of a at most 135559905: met, 134,217,728 B.",
            "accessedBytes of a at most 136 MB: yes, 134 MB.",
        ),
    ],
)
def test_the_outcome_of_an_expectation_is_an_answer(sentence: str, expected_text: str) -> None:
    assert simplify_sentence(sentence) == expected_text


@pytest.mark.parametrize(
    ("bounds", "expected_text"),
    [
        ((None, "1"), "a no faster than b"),
        (("1", None), "a no slower than b"),
        ((None, "0.01"), "a at least 100 times as slow as b"),
        (("2", "3"), "a at least 2 and at most 3 times as fast as b"),
    ],
)
def test_the_expectation_on_a_speedup_is_given_in_words(
    bounds: tuple[str | None, str | None], expected_text: str
) -> None:
    assert expected_speedup("a", "b", *bounds) == expected_text
