"""Limit how many finished runs stay that were created with the same `generateName`, by a schedule or in CI.

A run with a name of its own always stays: a tool that still has it in Git would create it again, and the operator would
measure it again. Results stay, as after any deletion of a run.
"""

from collections import defaultdict
from typing import NamedTuple

from accelbench_operator.engine.kinds import Key, Manifest
from accelbench_operator.runs.known import has_finished


class _GeneratedRun(NamedTuple):
    """Describe a run whose name was generated."""

    generate_name: str
    created: str
    """Time of the creation; such texts have the order of their times."""


class RunHistory:
    """Remember the finished runs with a `generateName`, and find those to delete."""

    def __init__(self, limit: int) -> None:
        """Create an empty history.

        Args:
            limit: maximum number of finished runs of a namespace with the same `generateName`; 0 for no limit.
        """
        self._limit = limit
        self._runs: dict[Key, _GeneratedRun] = {}

    def record(self, key: Key, run: Manifest) -> None:
        """Remember the run if it has finished and the limit applies to it; forget it if its spec was corrected."""
        generate_name = run["metadata"].get("generateName")
        if self._limit and generate_name and has_finished(run):
            self._runs[key] = _GeneratedRun(generate_name, run["metadata"]["creationTimestamp"])
        else:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """Forget a run that is deleted."""
        self._runs.pop(key, None)

    def beyond_limit(self) -> tuple[Key, ...]:
        """Return the runs beyond the limit, oldest first."""
        groups: defaultdict[tuple[str, str], list[tuple[str, Key]]] = defaultdict(list)
        for key, run in self._runs.items():
            groups[key.namespace, run.generate_name].append((run.created, key))
        surplus = [entry for entries in groups.values() for entry in sorted(entries)[: -self._limit]]
        return tuple(key for _, key in sorted(surplus))
