"""A case that cannot be run is refused before anything starts: exit status 2 and a headline that says why."""

from collections.abc import Callable

import pytest

from runner.supervision import Ended, case_of

Run = Callable[..., Ended]

CASES = {
    "not json": "Invalid JSON",
    "{}": "origin: Field required",
    case_of("fine", "fine").to_json(): "two variants have the same name",
    case_of("fine", "fine_2").model_copy(update={"baseline": "fnie"}).to_json(): "is none of the variants",
}


@pytest.mark.parametrize("document", CASES)
def test_a_case_document_that_cannot_be_run_is_refused_with_what_is_wrong(run: Run, document: str) -> None:
    ended = run(document)
    assert ended.status == 2
    assert ended.headline.state == "failed"
    assert CASES[document] in ended.headline.message
    assert CASES[document] in ended.output.decode()
    assert ended.events == []


def test_a_case_document_that_is_not_there_is_named(run: Run) -> None:
    ended = run(case_of("fine", "fine_2"), path="/nonexistent/case.json")
    assert ended.status == 2
    assert "/nonexistent/case.json" in ended.headline.message
