from hypothesis import given
from hypothesis import strategies as st

from accelbench.report.table import Bounds
from accelbench.report.terminal import axis_for, draw_interval

speedups = st.floats(min_value=1e-3, max_value=1e3)


def test_2x_and_half_are_at_the_same_distance_from_1() -> None:
    both = [Bounds(0.5, 0.5, 0.5), Bounds(2.0, 2.0, 2.0)]
    on = axis_for(both, 21)
    assert on.column(0.5) + on.column(2.0) == 20
    assert on.column(1.0) == 10


def test_a_wide_interval_is_drawn_from_end_to_end() -> None:
    bounds = Bounds(0.5, 1.0, 2.0)
    assert draw_interval(bounds, axis_for([bounds], 11)).strip() == "━━━━━●━━━━━"


@given(st.lists(st.tuples(speedups, speedups, speedups), min_size=1, max_size=5), st.integers(10, 40))
def test_every_interval_fits_its_axis_and_shows_the_position_of_1(
    triples: list[tuple[float, float, float]], width: int
) -> None:
    shown = [Bounds(*sorted(triple)) for triple in triples]
    on = axis_for(shown, width)
    for bounds in shown:
        line = draw_interval(bounds, on)
        assert len(line) == width
        assert line.count("●") == 1
        inside = bounds.lower <= 1 <= bounds.upper
        assert inside or "│" in line or line[on.column(1.0)] in "●━"
