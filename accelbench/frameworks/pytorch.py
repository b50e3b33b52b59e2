"""Describe PyTorch: eager, or compiled by Dynamo and Inductor."""

from typing import Literal

from pydantic import Field

from accelbench.frameworks.descriptor import Framework, Mode, Options

CUDA = "cuda"
"""Platform of NVIDIA's GPUs, in accelbench and in PyTorch."""
ROCM = "rocm"
"""Platform of AMD's GPUs, in accelbench; PyTorch calls them `cuda` too."""


class EagerOptions(Options):
    """Options of PyTorch without torch.compile."""

    cudnn_benchmark: bool = Field(
        default=False,
        description="torch.backends.cudnn.benchmark: cuDNN times its convolutions at the first call of each shape, and "
        "keeps the fastest. XLA does this whenever it compiles for a GPU. GPUs only.",
    )

    def unsupported(self, platform: str) -> str:
        """Return why the platform does not support `cudnn_benchmark`; empty if it does, or if the option is not set."""
        if self.cudnn_benchmark and platform not in (CUDA, ROCM):
            return f"cudnn_benchmark is a setting of a GPU's convolutions; platform {platform} has none: leave it out"
        return ""


class CompileOptions(EagerOptions):
    """Options of torch.compile, with PyTorch's names, besides those of eager PyTorch."""

    mode: Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"] = Field(
        default="default",
        description="reduce-overhead records and replays CUDA graphs: GPUs only. max-autotune also times several "
        "kernels for each product and convolution, and compiles for minutes; -no-cudagraphs leaves the graphs out.",
    )
    dynamic: bool | None = Field(
        default=None, description="Shapes as symbols: always, never, or once a shape has changed (default)."
    )
    fullgraph: bool = Field(default=False, description="Fail if the step cannot be captured as one graph.")

    @property
    def replays_graphs(self) -> bool:
        """Return True if the mode records CUDA graphs on a GPU, and replays them."""
        return self.mode in ("reduce-overhead", "max-autotune")

    def unsupported(self, platform: str) -> str:
        """Return which option the platform does not support, and why; empty if it supports all."""
        if self.mode == "reduce-overhead" and platform not in (CUDA, ROCM):
            return (
                f"mode reduce-overhead is torch.compile's default with CUDA graphs, which platform {platform} lacks: "
                "leave the mode out"
            )
        return super().unsupported(platform)


FRAMEWORK = Framework(
    name="pytorch",
    title="PyTorch",
    package="torch",
    extra="torch",
    modes={
        "eager": Mode("PyTorch by default: every operation runs when Python reaches it.", EagerOptions),
        "compile": Mode(
            "torch.compile, on the step or on the part of it that the program leaves to the mode.",
            CompileOptions,
            compiles_in_first_call=True,
        ),
    },
    adapter="accelbench_runner.frameworks.pytorch:PyTorch",
    platforms=("cpu", "cuda"),
    oldest="2.10",
    own=frozenset({"torch"}),
    caches={"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"},
    # Kineto prints messages about itself. Inductor names the kernels of a CPU only if it is asked to.
    profiling={"KINETO_LOG_LEVEL": "99", "TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE": "1"},
)
