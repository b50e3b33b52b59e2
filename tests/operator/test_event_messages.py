import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from accelbench.cluster_api.errors import ForbiddenError
from accelbench_operator.runs.event_messages import EventMessages
from accelbench_operator.runs.namespace_cache import CACHE_TIME_PER_DURATION, MINIMUM_CACHE_TIME
from operator_world.builders import NOW

SECOND = timedelta(seconds=1)


class Events:
    """Serve the events of every namespace, with lists that take time."""

    def __init__(self, *events: Any, seconds: int = 0) -> None:
        self.now = NOW
        self.lists = 0
        self.refused = False
        self._events = events
        self._seconds = seconds

    async def list_events(self, namespace: str) -> AsyncIterator[Any]:
        self.lists += 1
        await asyncio.sleep(0)
        self.now += self._seconds * SECOND
        if self.refused:
            raise ForbiddenError(403, "no")
        for event in self._events:
            yield event | {"message": f"{event['message']} in {namespace}"}

    def clock(self) -> datetime:
        return self.now


def event(uid: str, message: str, at: str = "2026-03-01T12:00:00Z", kind: str = "Warning") -> Any:
    about = {"involvedObject": {"uid": uid}, "metadata": {}}
    return {**about, "lastTimestamp": at, "type": kind, "reason": "Failed", "message": message}


def words_of(events: Events) -> EventMessages:
    return EventMessages(events, events.clock, lambda _: {"a", "b", "c"})  # type: ignore[arg-type]


async def test_one_list_of_events_answers_for_all_pods_of_a_namespace() -> None:
    events = Events(event("a", "no disk"), event("b", "no quota"))
    words = words_of(events)
    messages = await asyncio.gather(*(words.latest_message("x", uid) for uid in ("a", "b", "c")))
    assert (messages, events.lists) == (["Failed: no disk in x", "Failed: no quota in x", ""], 1)
    assert (await words.latest_message("y", "a"), events.lists) == ("Failed: no disk in y", 2)


async def test_the_newest_event_counts_at_any_position() -> None:
    old, new = event("a", "old", "2026-03-01T12:00:00Z"), event("a", "new", "2026-03-01T12:00:09Z", "Normal")
    for order in ((old, new), (new, old)):
        assert await words_of(Events(*order)).latest_message("x", "a") == "Failed: new in x"


@pytest.mark.parametrize(("seconds", "holds_for"), [(0, MINIMUM_CACHE_TIME), (3, CACHE_TIME_PER_DURATION * 3 * SECOND)])
async def test_an_answer_is_cached_and_longer_if_it_took_long(seconds: int, holds_for: timedelta) -> None:
    events = Events(event("a", "no disk"), seconds=seconds)
    words = words_of(events)
    await words.latest_message("x", "a")
    events.now += holds_for - SECOND
    assert (await words.latest_message("x", "b"), events.lists) == ("", 1)
    events.now += SECOND
    assert (await words.latest_message("x", "a"), events.lists) == ("Failed: no disk in x", 2)


async def test_a_refusal_is_cached_as_long_and_gives_no_message() -> None:
    events = Events(event("a", "no disk"))
    events.refused = True
    words = words_of(events)
    assert [await words.latest_message("x", "a"), await words.latest_message("x", "b"), events.lists] == ["", "", 1]
    events.refused = False
    events.now += MINIMUM_CACHE_TIME
    assert await words.latest_message("x", "a") == "Failed: no disk in x"


async def test_a_clock_that_was_set_back_expires_the_cache() -> None:
    events = Events(event("a", "no disk"))
    words = words_of(events)
    await words.latest_message("x", "a")
    events.now -= timedelta(hours=1)
    await words.latest_message("x", "a")
    assert events.lists == 2
