"""Names hold for any input: bounded, legal, deterministic, and different whenever what they name differs."""

import re

from hypothesis import given
from hypothesis import strategies as st

from accelbench.plan.names import attempt_name, case_name, digest, result_name, unique_name

DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

values = st.one_of(st.integers(), st.text())
sweeps = st.dictionaries(st.text(min_size=1), values, min_size=1, max_size=4)


@given(st.text(), st.lists(st.text()))
def test_any_name_is_a_dns_label_of_at_most_63_characters(readable: str, identity: list[str]) -> None:
    name = unique_name(readable, *identity)
    assert len(name) <= 63
    assert DNS_LABEL.fullmatch(name)


@given(sweeps, sweeps)
def test_different_swept_values_have_different_case_names(
    first: dict[str, int | str], second: dict[str, int | str]
) -> None:
    assert (case_name(first) == case_name(second)) == (list(first.items()) == list(second.items()))


@given(st.lists(st.text()), st.lists(st.text()))
def test_parts_of_an_identity_are_separated_unambiguously(first: list[str], second: list[str]) -> None:
    assert (digest(*first) == digest(*second)) == (first == second)


def test_the_number_1_and_the_text_1_are_different_cases() -> None:
    assert case_name({"size": 1}) != case_name({"size": "1"})


def test_a_case_without_a_sweep_has_a_plain_name() -> None:
    assert case_name({}) == "all"


def test_a_case_name_starts_with_what_it_sweeps() -> None:
    assert case_name({"size": 512, "length": 100}).startswith("size-512-length-100-")


@given(st.text(), st.uuids(), st.text(), st.integers(1, 100))
def test_attempts_and_results_of_one_case_never_share_a_name(run: str, uid: object, case: str, attempt: int) -> None:
    first = attempt_name(run, str(uid), case, attempt)
    assert first != attempt_name(run, str(uid), case, attempt + 1)
    assert first != result_name(run, str(uid), case)


def test_two_runs_of_one_name_do_not_share_job_names() -> None:
    assert attempt_name("run", "uid-1", "all", 1) != attempt_name("run", "uid-2", "all", 1)
