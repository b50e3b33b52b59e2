"""What was observed of each variant: from its launches' facts to the result, pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from accelbench.api.case import Case
from accelbench.api.observation import MAXIMUM_DIFFERING, Observation, Observations, ObservationType, ObservedValue
from accelbench.catalogue.observations import Scalar, written
from accelbench.launch.fact import known
from accelbench.launch.record import LaunchRecord


def observed(case: Case, launches: Sequence[LaunchRecord]) -> tuple[Observations, ...]:
    """Of each variant that has launches that observed, in the case's order; each value with its number of launches."""
    found = []
    for variant in case.variants:
        mine = [
            facts
            for launch in launches
            if launch.variant == variant.name and launch.failure is None and launch.observes
            if (facts := known(launch.facts.observations)) is not None
        ]
        if mine:
            found.append(Observations(variant=variant.name, launches=len(mine), found=tuple(_together(mine))))
    return tuple(found)


def _together(launches: Sequence[Mapping[str, Scalar]]) -> Iterable[Observation]:
    """Every name that any launch observed, in the order in which they first did."""
    for name in dict.fromkeys(name for launch in launches for name in launch):
        values = [launch[name] for launch in launches if name in launch]
        counts = Counter(map(written, values)).most_common(MAXIMUM_DIFFERING)
        kinds = {_type(value) for value in values}
        yield Observation(
            name=name,
            type=kinds.pop() if len(kinds) == 1 else "text",
            values=tuple(ObservedValue(value=value, launches=count) for value, count in counts),
        )


def _type(value: Scalar) -> ObservationType:
    if isinstance(value, bool):
        return "truth"
    return "text" if isinstance(value, str) else "number"
