"""Describe PyTorch: eager, or compiled by Dynamo and Inductor."""

from typing import Literal

from pydantic import Field

from accelbench.frameworks.descriptor import Framework, Mode, Options


class CompileOptions(Options):
    """Pass options to torch.compile, by its own names."""

    mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = Field(
        default="default", description="What Inductor optimises for, and how long it may search."
    )
    dynamic: bool | None = Field(
        default=None, description="Shapes as symbols: always, never, or once a shape has changed (default)."
    )
    fullgraph: bool = Field(default=False, description="Fail if the step cannot be captured as one graph.")


FRAMEWORK = Framework(
    name="pytorch",
    title="PyTorch",
    package="torch",
    extra="torch",
    modes={
        "eager": Mode("PyTorch by default: every operation runs when Python reaches it."),
        "compile": Mode("One call of torch.compile on the step.", CompileOptions, compiles_in_first_call=True),
    },
    adapter="accelbench_runner.frameworks.pytorch:PyTorch",
    platforms=("cpu", "cuda"),
    oldest="2.10",
    own=frozenset({"torch"}),
    caches={"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"},
)
