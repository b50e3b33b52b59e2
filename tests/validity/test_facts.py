"""Facts of a launch are parsed once: each is a value, or has the reason that there is none."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic.alias_generators import to_camel

from accelbench.launch.fact import Unreadable, is_reported
from accelbench.launch.facts import PROBE_OF, ExecutableSize, Facts, Threads
from accelbench.launch.record import LaunchRecord
from judge.launches import GOOD_FACTS, a_launch

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)


def test_readable_facts_are_values_and_others_have_a_reason() -> None:
    facts = Facts.parse({"threads": {"requested": 2, "affinity": 2}, "unitsPerCall": "many", "protocol": "steady"})
    assert facts.threads == Threads(requested=2, affinity=2)
    assert isinstance(facts.units_per_call, Unreadable)
    assert facts.units_per_call.why.startswith("the launch reported unitsPerCall that cannot be read: ")
    assert isinstance(facts.clock, Unreadable)
    assert facts.clock.why == "the launch did not report clock"
    assert [is_reported(fact) for fact in (facts.threads, facts.units_per_call, facts.clock)] == [True, True, False]


def test_the_reason_names_the_inner_field() -> None:
    threads = Facts.parse({"threads": {"requested": 2, "affinity": "all"}}).threads
    assert isinstance(threads, Unreadable)
    assert "threads.affinity that cannot be read" in threads.why


@pytest.mark.parametrize("number", [-1, 2**64 - 1, math.nan, math.inf, "unknown"])
def test_an_unknown_value_of_a_library_is_none_and_the_rest_of_the_fact_is_read(number: Any) -> None:
    for size in (
        ExecutableSize(kernels_per_call=3, accessed_bytes=number),
        Facts.parse({"executable": {"kernelsPerCall": 3, "accessedBytes": number}}).executable,
    ):
        assert isinstance(size, ExecutableSize)
        assert (size.kernels_per_call, size.accessed_bytes) == (3, None)


@pytest.mark.parametrize("name", PROBE_OF)
def test_only_a_missing_answer_of_our_probe_is_attributed_to_accelbench(name: str) -> None:
    reported = {fact: value for fact, value in GOOD_FACTS.items() if fact != name}
    facts = Facts.parse(reported, {PROBE_OF[name]: "it hung"}).model_dump(by_alias=True)
    assert facts[name] == {"why": "it hung", "reported": True, "ours": True}
    assert (
        Facts.parse({**reported, name: "garbage"}, {PROBE_OF[name]: "it hung"}).model_dump(by_alias=True)[name]["ours"]
        is False
    )


def test_a_launch_cannot_attribute_its_own_failure_to_accelbench() -> None:
    claimed = {"why": "accelbench's own probe hung", "ours": True, "reported": True}
    limits = Facts.parse({"limits": claimed}).limits
    assert isinstance(limits, Unreadable)
    assert (limits.probe_failed, limits.reported) == (False, True)
    assert limits.why == "the launch reported limits that cannot be read: accelbench's own probe hung"


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(GOOD_FACTS)), anything))
def test_every_record_is_unchanged_after_writing_and_reading(reported: dict[str, Any]) -> None:
    record = a_launch().model_copy(update={"facts": Facts.parse(reported, {"limits": "it hung"})})
    assert LaunchRecord.model_validate_json(record.to_json()) == record


def test_good_facts_are_all_read() -> None:
    facts = Facts.parse(GOOD_FACTS)
    reported = {name: fact for name, fact in facts if is_reported(fact)}
    assert {to_camel(name) for name in reported} == GOOD_FACTS.keys()
    assert [name for name, fact in reported.items() if isinstance(fact, Unreadable)] == []
