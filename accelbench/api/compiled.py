"""What came of compiling a variant for a target: what is no number. The numbers stand with the variant.

There is no field for a time here: nothing ran, and none may be derived from a program.
"""

from pydantic import Field

from accelbench import figures
from accelbench.document import Document, Line


class Compiled(Document):
    """One variant, compiled for one target."""

    variant: Line = Field(description="The variant's name.")
    target: Line = Field(description="What it was compiled for.")
    devices: int = Field(ge=1, description="Devices of the target.")
    fits: bool = Field(description="Whether it fits into the memory of each device.")
    peak_bytes: int | None = Field(
        default=None, description="The most held on one device at once; none: the compiler refused."
    )
    device_memory_bytes: int | None = Field(default=None, description="What a program can use of one device.")
    refused: Line = Field(default="", description="Why the compiler made no program, in its own words.")
    divided: bool = Field(default=False, description="False: each device holds and computes everything.")
    dispatched: bool = Field(
        default=False, description="Nothing was compiled: operations were dispatched on arrays without numbers."
    )
    fused: tuple[Line, ...] = Field(default=(), description="What the largest fusions are made of.")
    estimates: tuple[Line, ...] = Field(
        default=(), description="Numbers that are estimates here, by name; the others are exact."
    )

    @property
    def headline(self) -> str:
        """The finding in a few words: `jax/jit fits v5e-16 (4.2 MB of 16.9 GB a device)`."""
        said = f"{self.variant} {'fits' if self.fits else 'does not fit'} {self.target}"
        if self.device_memory_bytes is None:
            return said
        memory = figures.quantity(self.device_memory_bytes, "B")
        peak = f"{figures.quantity(self.peak_bytes, 'B')} of " if self.peak_bytes is not None else ""
        return f"{said} ({peak}{memory} a device)"
