"""Headlines and events keep their size whatever they have to say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.api.result import SpeedupEstimate
from accelbench.delivery.log import (
    MAXIMUM_HEADLINE_BYTES,
    MAXIMUM_LINE_BYTES,
    Headline,
    RoundFinished,
    encode_event,
    parse_event,
)

text = st.text(st.characters(exclude_categories=["Cs"]))
comparisons = st.lists(
    st.builds(
        SpeedupEstimate,
        variant=st.text("abc-/", min_size=1, max_size=63),
        verdict=st.sampled_from(["faster", "inconclusive", None]),
        speedup=st.just("1.23456"),
        lower=st.just("1.23456"),
        upper=st.just("1.23456"),
        invalid=st.lists(st.just("impossible-speed"), max_size=14).map(tuple),
    ),
    max_size=16,
).map(tuple)


@given(comparisons, text.map(lambda message: message * 50))
def test_a_headline_always_fits_a_termination_message(found: tuple[SpeedupEstimate, ...], message: str) -> None:
    headline = Headline(case="all", attempt=1, state="running", running="jax/jit", comparisons=found, message=message)
    written = headline.to_message()
    assert len(written.encode()) <= MAXIMUM_HEADLINE_BYTES
    read = Headline.model_validate_json(written)
    assert read.running == "jax/jit"
    assert read.comparisons == found[: len(read.comparisons)]
    assert headline.message.startswith(read.message.removesuffix("…").rstrip())


def test_a_headline_that_fits_is_written_whole() -> None:
    headline = Headline(case="all", attempt=1, state="finished", message="ä" * 1000)
    assert Headline.model_validate_json(headline.to_message()) == headline


def test_a_headline_that_nothing_can_shorten_is_refused() -> None:
    headline = Headline(case="c" * 4000, attempt=1, state="running")
    with pytest.raises(ValueError, match="more than 3072 bytes"):
        headline.to_message()


@given(comparisons)
def test_an_event_always_fits_a_line(found: tuple[SpeedupEstimate, ...]) -> None:
    line = encode_event(RoundFinished(round=3, comparisons=found))
    assert len(line.encode()) <= MAXIMUM_LINE_BYTES
    event = parse_event(line)
    assert isinstance(event, RoundFinished)
    assert event.comparisons == found[: len(event.comparisons)]
