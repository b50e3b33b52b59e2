"""Define the observations of an experiment that is not timed: it raised, it compiled three times, it returned 11."""

from typing import Literal

from pydantic import Field

from accelbench.document import Document, Line

ObservationType = Literal["number", "truth", "text"]

MAXIMUM_DIFFERING = 4
NOTHING = "nothing"
"""Value of `raised` if no call raised."""


class ObservedValue(Document):
    """Hold a value, and the number of launches that observed it."""

    value: Line = Field(description="A number without exponent, true or false, or a text.")
    launches: int = Field(description="How many launches observed it.")


class Observation(Document):
    """Hold one observation; if launches differ, its values start with the most frequent one."""

    name: Line = Field(description="compilations, raised, or the workload's own name for it.")
    type: ObservationType = Field(description="How to read the values.")
    values: tuple[ObservedValue, ...] = Field(
        description=f"One value if all launches that observed it agree; at most {MAXIMUM_DIFFERING} values."
    )

    @property
    def text(self) -> str:
        """Return the value, or all values if launches differ: `2 in 4 launches, 3 in 1`."""
        most_frequent, *other_values = self.values
        if not other_values:
            return most_frequent.value
        noun = "launches" if most_frequent.launches > 1 else "launch"
        counts = [f"{most_frequent.value} in {most_frequent.launches} {noun}"]
        counts += [f"{other.value} in {other.launches}" for other in other_values]
        return ", ".join(counts)


class Observations(Document):
    """Hold everything that was observed of one variant."""

    variant: Line = Field(description="The variant's name.")
    launches: int = Field(description="How many launches observed it; each is a separate process.")
    found: tuple[Observation, ...] = Field(description="First the launch's own observations, then the workload's.")

    def find(self, name: str) -> Observation | None:
        """Return the observation with that name; None if there is none."""
        for observation in self.found:
            if observation.name == name:
                return observation
        return None

    @property
    def headline(self) -> str:
        """Return the result in a few words: what a call raised, or else `jax/jit compiled 3 times in 5 calls`.

        Without either, return only that the variant was observed.
        """
        raised = self.find("raised")
        compilations = self.find("compilations")
        calls = self.find("calls")
        if raised and raised.text != NOTHING:
            return f"{self.variant} raised {raised.text}"
        if compilations and calls:
            count = " or ".join(value.value for value in compilations.values)
            return f"{self.variant} compiled {_spell_count(count)} in {calls.text} calls"
        return f"{self.variant} observed"


def _spell_count(count: str) -> str:
    """Spell a count: `nothing`, `once`, `twice`, `3 times`."""
    words_by_count = {"0": "nothing", "1": "once", "2": "twice"}
    return words_by_count.get(count, f"{count} times")
