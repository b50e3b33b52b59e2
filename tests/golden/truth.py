"""The true times of a simulated launch, without any code of the product."""

from dataclasses import dataclass
from typing import Literal

from accelbench.launch.facts import GradMode


@dataclass(frozen=True)
class Truth:
    """An honest program on an honest machine, unless a field says otherwise."""

    # The program.
    call_seconds: float = 0.010
    import_seconds: float = 0.8
    device_init_seconds: float = 0.3
    compile_seconds: float = 0.0
    """0: nothing is compiled."""
    cached_compile_seconds: float = 0.05
    slow_first_call_seconds: float = 0.02
    """On top of a call."""
    block_noise: float = 0.0005
    """Of a call that stands for many: the standard deviation of its logarithm."""
    slow_every: int = 0
    """So many calls bring one that takes `slow_factor` times as long; 0: never."""
    slow_factor: float = 3.0
    drift_per_second: float = 0.0
    """Relative growth of a call's time."""
    products: int = 4
    """That one call really does."""
    escaping: float = 0.0
    """Of a call's time: how much work it gives to a thread that no synchronisation waits for."""
    lingering_seconds: float = 0.0
    """For so long the process is at work when the last call's output is there, as where memory is given back."""
    never_ready: bool = False
    recompiles: str = ""
    """`counted` or `forbidden`: in the middle of the steady phase, and how the framework tells."""
    not_a_number: bool = False
    wrong_weight: bool = False
    """In float32 alone, as in a kernel for that type."""
    wrong_formula: bool = False
    captures: bool = False
    """It computes with the inputs that it was built from, whatever it is given."""
    remembers: bool = False
    """It runs nothing for inputs that it has seen before."""
    raises: str = ""
    ends: str = ""
    """`crashes` or `hangs`, in the middle of the steady phase."""

    # What accelbench asks on its own account.
    probe: Literal["", "watch", "late work", "product", "triad"] = ""
    """The one that does not answer."""
    probe_does: Literal["raises", "hangs", "crashes"] = "raises"
    """Instead; the last two only to a launch with a process of its own."""

    # Its framework.
    platform: str = "cpu"
    device: str = "a simulated processor"
    threads: int | None = None
    """None: as many as it is asked for."""
    dtype: str = "float32"
    matmul: str = "ieee"
    flush_denormal: bool = True
    emulated: str = ""
    gradients: GradMode = "functional"
    finds_old_cache: bool = False
    """Its compile cache is not in the launch's own directory."""

    # The machine.
    synchronise_seconds: float = 2e-6
    read_seconds: float = 5e-8
    tick_seconds: float = 1e-9
    """What the clock resolves."""
    clock_runs_ahead: float = 0.0
    """As a share of the true time; the raw clock is true."""
    flops_per_second: float = 1e9
    bytes_per_second: float = 1e10
    wakes_late: float = 0.0
    """Seconds, after each wait for a moment."""
    slow_after_seconds: float = float("inf")
    """Of the process's life; from then on everything takes `slowdown` times as long."""
    slowdown: float = 1.0
    held_back: float = 0.0
    """Share of the time, once slow, that the control group's quota takes."""
    stolen: float = 0.0
    """Share of the processors that the hypervisor gives to others."""
    others: float = 0.004
    """Share of the processors that other processes take."""
