"""Check what is printed while a run that is followed waits."""

import io
from collections.abc import Iterator
from typing import Any

from rich.console import Console

from accelbench.kubectl.follow import follow
from accelbench.report.live import Lines
from operator_world.builders import run_manifest


class ScriptedClient:
    """Answer a list and a watch with the states of one run, one after the other."""

    def __init__(self, *states: dict[str, Any]) -> None:
        self._states = states

    def items_and_version(self, *_: str, **__: str) -> tuple[list[dict[str, Any]], str]:
        return [self._states[0]], "1"

    def watch(self, *_: str, **__: str) -> Iterator[dict[str, Any]]:
        yield from ({"type": "MODIFIED", "object": state} for state in self._states[1:])


def state(reason: str, message: str, status: str = "False") -> dict[str, Any]:
    run = dict(run_manifest())
    condition = {"status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-03-01T12:00:00Z"}
    return {**run, "status": {"conditions": [{"type": "Finished", **condition}]}}


def messages(*states: dict[str, Any]) -> list[str]:
    printed: list[str] = []
    client: Any = ScriptedClient(*states, state("Succeeded", "", "True"))
    follow(client, states[0], display=Lines(Console(file=io.StringIO())), print_message=printed.append)
    return printed


def test_a_reason_to_wait_is_printed_once_even_if_it_alternates_with_another() -> None:
    pulls, waits = state("Queued", "the image cannot be pulled"), state("Queued", "it is tried again later")
    assert messages(pulls, waits, pulls, waits) == [
        "Queued: the image cannot be pulled",
        "Queued: it is tried again later",
    ]


def test_a_reason_to_wait_is_printed_again_after_another_event() -> None:
    waits = state("Queued", "no node")
    assert messages(waits, state("Running", ""), waits) == ["Queued: no node"] * 2
