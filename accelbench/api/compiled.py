"""Describe how compiling a variant for a target ended. The program's numbers are in `VariantResult.numbers`.

There is no field for a time: nothing ran, and a time cannot be derived from a program.
"""

from pydantic import Field

from accelbench import figures
from accelbench.document import Document, Line


class CompiledVariant(Document):
    """Describe one variant that was compiled for one target."""

    variant: Line = Field(description="The variant's name.")
    target: Line = Field(description="The target that it was compiled for.")
    devices: int = Field(ge=1, description="Devices of the target.")
    fits: bool = Field(description="True if it fits into the memory of each device.")
    peak_bytes: int | None = Field(
        default=None, description="The most bytes held on one device at once; none: the compiler refused the program."
    )
    device_memory_bytes: int | None = Field(
        default=None, description="Memory of one device that a program can use, in bytes."
    )
    refused: Line = Field(default="", description="The compiler's message if it made no program.")
    divided: bool = Field(default=False, description="False: each device holds and computes everything.")
    dispatched: bool = Field(
        default=False, description="Nothing was compiled: operations were dispatched on arrays without numbers."
    )
    fused: tuple[Line, ...] = Field(default=(), description="Operations in the largest fusions.")
    estimates: tuple[Line, ...] = Field(
        default=(), description="Numbers that are estimates here, by name; the others are exact."
    )

    @property
    def headline(self) -> str:
        """Return the result in a few words: `jax/jit fits v5e-16 (4.2 MB of 16.9 GB a device)`."""
        verb = "fits" if self.fits else "does not fit"
        finding = f"{self.variant} {verb} {self.target}"
        if self.device_memory_bytes is None:
            return finding
        memory = figures.quantity(self.device_memory_bytes, "B")
        if self.peak_bytes is None:
            return f"{finding} ({memory} a device)"
        peak = figures.quantity(self.peak_bytes, "B")
        return f"{finding} ({peak} of {memory} a device)"
