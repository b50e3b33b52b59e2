"""Name a case of a run that is being measured, for its live metrics."""

from typing import NamedTuple

from accelbench_operator.runs.accept import Plan


class RunningCase(NamedTuple):
    """Name a case of an unfinished run that is being measured."""

    plan: Plan
    case: str

    @property
    def run(self) -> str:
        """Return the name of the run."""
        return self.plan.metadata.name

    @property
    def variants(self) -> frozenset[str]:
        """Return the names of the case's variants."""
        return frozenset(variant.name for variant in self.plan.case(self.case).variants)
