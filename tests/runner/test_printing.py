"""Printing in a step is timed with it: the result says so."""

from runner.simulation import Simulation
from runner.supervision import case_of


def test_a_variant_whose_steps_print_is_named_with_how_much(simulate: Simulation) -> None:
    [note] = simulate(case_of("fine", "prints-in-steady")).result.notes
    assert note.startswith("prints-in-steady printed 2 MB in one launch")


def test_what_is_printed_before_the_steps_repeat_is_no_matter(simulate: Simulation) -> None:
    assert simulate(case_of("fine", "prints-in-setup")).result.notes == ()
