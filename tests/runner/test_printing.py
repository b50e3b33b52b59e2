"""Printing in a step is timed with it: the result says so."""

from collections.abc import Callable

from runner.supervision import Ended, case_of


def test_a_variant_whose_steps_print_is_named_with_how_much(run: Callable[..., Ended]) -> None:
    notes = run(case_of("fine", "prints")).result.notes
    [said] = [note for note in notes if "print" in note]
    assert said.startswith("prints printed 2 MB in one launch while its steps ran again and again: ")


def test_what_is_printed_before_the_steps_repeat_is_no_matter(run: Callable[..., Ended]) -> None:
    assert not any("printed 5" in note for note in run(case_of("fine", "floods")).result.notes)
