"""What an experiment that is not about time found: it raised, it compiled three times, the value was still 11."""

from typing import Literal

from pydantic import Field

from accelbench.document import Document, Line

ObservationType = Literal["number", "truth", "text"]

MAXIMUM_DIFFERING = 4
NOTHING = "nothing"
"""What `raised` says where no call raised."""


class ObservedValue(Document):
    """A value, and in how many launches it was observed."""

    value: Line = Field(description="A number without exponent, true or false, or a text.")
    launches: int = Field(description="How many launches observed it.")


class Observation(Document):
    """One thing that was looked at. Several values: launches differ, and the most frequent one comes first."""

    name: Line = Field(description="compilations, raised, or the workload's own name for it.")
    type: ObservationType
    values: tuple[ObservedValue, ...] = Field(
        description=f"One value if all launches that observed it agree; at most {MAXIMUM_DIFFERING} values."
    )

    @property
    def text(self) -> str:
        """The value; where launches differ, every value with its launches: `2 in 4 launches, 3 in 1`."""
        first, *others = self.values
        if not others:
            return first.value
        more = "".join(f", {each.value} in {each.launches}" for each in others)
        return f"{first.value} in {first.launches} launch{'es'[: 2 * (first.launches > 1)]}{more}"


class Observations(Document):
    """Everything that was observed of one variant."""

    variant: Line = Field(description="The variant's name.")
    launches: int = Field(description="How many launches observed it; each is a separate process.")
    found: tuple[Observation, ...] = Field(description="First the launch's own observations, then the workload's.")

    def named(self, name: str) -> Observation | None:
        """The observation of that name."""
        return next((each for each in self.found if each.name == name), None)

    @property
    def headline(self) -> str:
        """The finding in a few words: `jax/jit raised KeyReuseError`, `jax/jit compiled 3 times in 5 calls`."""
        raised, compiled, calls = (self.named(name) for name in ("raised", "compilations", "calls"))
        if raised and raised.text != NOTHING:
            return f"{self.variant} raised {raised.text}"
        if compiled and calls:
            once = " or ".join(each.value for each in compiled.values)
            return f"{self.variant} compiled {_times(once)} in {calls.text} calls"
        return f"{self.variant} observed"


def _times(count: str) -> str:
    return {"0": "nothing", "1": "once", "2": "twice"}.get(count, f"{count} times")
