"""The modes that each framework can run a step in, and their options; the runner's adapters implement them."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from accelbench.workload import VariantKind, WorkloadParameters

PACKAGES: dict[str, str] = {"jax": "jax", "pytorch": "torch"}
"""The package that each framework is imported as, which is also the extra of accelbench that installs it."""


def not_installed(package: str, extra: str) -> str:
    """What to say, and what to do, where a package is missing that the extra of accelbench brings along."""
    return f"{package} is not installed: pip install 'accelbench[{extra}]'"


class NoOptions(WorkloadParameters):
    """The mode has no options."""


class CompileOptions(WorkloadParameters):
    """Options of torch.compile, by its own names."""

    mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = Field(
        default="default", description="What Inductor optimises for, and how long it may search."
    )
    dynamic: bool | None = Field(
        default=None, description="Shapes as symbols: always, never, or once a shape has changed (default)."
    )
    fullgraph: bool = Field(default=False, description="Fail where the step cannot be captured as one graph.")


MODES: Mapping[str, Mapping[str, type[WorkloadParameters]]] = {
    "jax": {
        "jit": NoOptions,  # one compiled program; the steps of a call unrolled
        "op-by-op": NoOptions,  # every operation dispatched on its own
        "scan": NoOptions,  # one compiled program; the steps of a call in a loop of the program's own
    },
    "pytorch": {
        "eager": NoOptions,
        "compile": CompileOptions,
    },
}
COMPILED_BEFORE = frozenset({"eager", "op-by-op", "jit", "scan"})
"""Modes whose first call is a step and no more: it was compiled before, or never is."""


def options_model(kind: VariantKind) -> type[WorkloadParameters]:
    """The options that a variant takes: its mode's, or none where the workload's author has placed everything."""
    return MODES[kind.framework].get(kind.mode, NoOptions) if kind.method == kind.framework else NoOptions
