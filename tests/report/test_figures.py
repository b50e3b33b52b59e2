import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench import figures


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (14.1, "14.1 s"),
        (0.117, "117 ms"),
        (8.31e-6, "8.31 µs"),
        (5.5e-8, "55.0 ns"),
        (0.9996, "1.00 s"),
        (0.000_999_9, "1.00 ms"),
        (9.996, "10.0 s"),
        (1234.0, "1,234 s"),
        (2e-11, "0.0200 ns"),
        (0.0, "0 ns"),
    ],
)
def test_a_time_has_three_digits_and_a_suitable_unit(value: float, text: str) -> None:
    assert figures.seconds(value) == text


@given(st.floats(min_value=1e-9, max_value=1e5))
def test_a_written_time_is_within_half_a_percent_of_the_measured_one(value: float) -> None:
    number, unit = figures.seconds(value).replace(",", "").split(" ")
    scale = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}[unit]
    assert float(number) * scale == pytest.approx(value, rel=0.0051)
    assert len(number.replace(".", "").lstrip("0")) >= 3


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.041, "2.04x"),
        (1.0042, "1.004x"),
        (0.9731, "0.973x"),
        (26.13, "26.1x"),
        (0.0123, "0.0123x"),
        (1041.0, "1,041x"),
    ],
)
def test_a_speedup_near_one_keeps_the_digit_that_decides(value: float, text: str) -> None:
    assert figures.speedup(value) == text


def test_an_interval_is_written_without_units() -> None:
    assert figures.interval(2.0123, 2.0712) == "2.01 to 2.07"
    assert figures.interval(0.997, 1.011) == "0.997 to 1.011"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.4, "0 s"), (45.2, "45 s"), (59.7, "1 min 00 s"), (125, "2 min 05 s"), (4200, "1 h 10 min"), (-3, "0 s")],
)
def test_a_wait_is_shown_to_the_second(value: float, text: str) -> None:
    assert figures.duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.3e11, "230 GFLOP/s"), (4.56e12, "4.56 TFLOP/s"), (999.7e9, "1.00 TFLOP/s"), (12.0, "12.0 FLOP/s")],
)
def test_a_rate_has_a_metric_prefix(value: float, text: str) -> None:
    assert figures.quantity(value, "FLOP/s") == text


def test_a_share_has_one_decimal_below_ten_percent() -> None:
    assert figures.percent(0.0041) == "0.4 %"
    assert figures.percent(0.123) == "12 %"
