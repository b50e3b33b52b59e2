"""Changes to the JSON in an input: bytes that are changed at random are hardly ever JSON again."""

from __future__ import annotations

import json
import random
from typing import Any

NASTY: tuple[Any, ...] = (
    "",
    "\x1b[31mred\x1b]8;;https://example.com\x07link",
    "\x00\x07\x08\x7f\x9b",
    "two\nlines\r\u2028and more",
    "\u202eright to left\u2066",
    "<script>alert(1)</script>",
    "[link=https://example.com]text[/link] [bold] :smile:",
    "| a | b |\n|---|---|",
    "![x](https://example.com/x.png) [y](javascript:alert(1))",
    'a"} 1\nother{b="',
    "\ud800",
    "x" * 3000,
    "0",
    "-1",
    "0.0000000000000000000000000000000000000001",
    "9" * 40,
    "1e400",
    0,
    -1,
    1,
    2**31,
    2**63,
    10**30,
    0.5,
    1e308,
    True,
    None,
    [],
    {},
    [[]],
    "2026-02-30T00:00:00Z",
    "0001-01-01T00:00:00Z",
    "running",
    "finished",
    "failed",
    "faster",
    "inconclusive",
    "DIGEST",
)


def mutated(data: bytes, seed: int) -> bytes | None:
    """`data` with one value of the JSON on one of its lines changed; None where none of them has any."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    lines = data.decode(errors="replace").split("\n")
    candidates = [number for number, line in enumerate(lines) if "{" in line]
    if not candidates:
        return None
    number = chance.choice(candidates)
    start = lines[number].index("{")
    try:
        document = json.loads(lines[number][start:])
    except (ValueError, RecursionError):
        return None
    _change(document, chance)
    lines[number] = lines[number][:start] + json.dumps(document, separators=(",", ":"))
    return "\n".join(lines).encode()


def _change(document: Any, chance: random.Random) -> None:
    places = list(_places(document))
    if not places:
        return
    container, key = chance.choice(places)
    action = chance.randrange(6)
    if action == 0:
        del container[key]
    elif action == 1:
        container[key] = json.loads(json.dumps(_other(places, chance)))
    elif action == 2 and isinstance(container, list):
        container.append(json.loads(json.dumps(container[key])))
    elif action == 3 and isinstance(container, dict):
        name = chance.choice([each for each in NASTY if isinstance(each, str)])
        container[name] = container.pop(key)
    else:
        container[key] = chance.choice(NASTY)


def _other(places: list[tuple[Any, Any]], chance: random.Random) -> Any:
    container, key = chance.choice(places)
    return container[key]


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield value, key
            yield from _places(each)
