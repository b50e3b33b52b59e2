"""Decide which tests a push runs, which worker runs them, and in which order.

| tier | marker | runs | holds |
|---|---|---|---|
| quick | none | `make test` | what takes a few seconds, launches no framework and needs no cluster |
| push | `slow`, `cluster`, `node` | `make check`, which `.ci/run` calls | every behaviour once |
| nightly | `nightly` | `make test-all` | every combination, long storms, older releases |

A test is nightly if a test of another tier holds the same behaviour with other inputs. `one_of_each` applies that rule
to a table; `pytest.mark.nightly` applies it to a whole test or module.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from _pytest.mark import ParameterSet

Row = TypeVar("Row")

DURATIONS = Path(__file__).with_name("durations.json")
"""Seconds that each group took when `make test-all` last recorded them."""
E2E = "tests/e2e/"
"""Tests on the real node are one group: a machine has room for one node."""


def one_of_each(rows: Iterable[Row], by: Callable[[Row], Hashable]) -> list[ParameterSet]:
    """Return a parameter for each row; all but the first row of each kind are nightly.

    Args:
        rows: the table, in order.
        by: returns the kind of a row: the behaviour that it stands for.
    """
    seen: set[Hashable] = set()
    parameters = []
    for row in rows:
        kind = by(row)
        parameters.append(pytest.param(row, marks=[pytest.mark.nightly] if kind in seen else []))
        seen.add(kind)
    return parameters


def on_a_push(rows: Iterable[Row], chosen: Callable[[Row], bool]) -> list[ParameterSet]:
    """Return a parameter for each row; those that are not chosen are nightly.

    Args:
        rows: the table, in order.
        chosen: returns True for a row that a push runs.
    """
    return [pytest.param(row, marks=[] if chosen(row) else [pytest.mark.nightly]) for row in rows]


def group_of(node_id: str) -> str:
    """Return the name of the group that one worker runs as a whole: a module, or all of `tests/e2e`."""
    module = node_id.partition("::")[0]
    return E2E if module.startswith(E2E) else module


class Order(LoadScopeScheduling):  # type: ignore[misc]
    """Hand out groups in the order of the collection, which `sort` has made the order of their durations."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def sort(items: list[pytest.Item]) -> None:
    """Sort tests by their groups' recorded durations, longest first; a group without a record counts as short."""
    recorded: dict[str, int] = json.loads(DURATIONS.read_text())
    items.sort(key=lambda item: (-recorded.get(group_of(item.nodeid), 0), group_of(item.nodeid)))


class Recorder:
    """Record how long each group takes: `--record-durations`."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the duration of one phase of a test to its group."""
        self._seconds[group_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the durations of the groups that ran; keep what is recorded of others."""
        recorded: dict[str, int] = json.loads(DURATIONS.read_text())
        seconds = recorded | {group: round(taken) for group, taken in self._seconds.items()}
        kept = {group: taken for group, taken in seconds.items() if taken and Path(group).exists()}
        DURATIONS.write_text(json.dumps(kept, indent=1, sort_keys=True) + "\n")
