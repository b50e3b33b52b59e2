"""Defects of a measurement, each injected alone into an otherwise honest experiment."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from accelbench.api.environment import CaseEnvironment
from accelbench.api.result import CheckOutcome
from accelbench.workload import Measure
from accelbench.workloads.matmul_chain import MatmulChain
from golden.experiment import BASELINE, VARIANT
from golden.truth import Truth

HONEST: Mapping[str, Truth] = {
    BASELINE: Truth(call_seconds=0.0125),
    VARIANT: Truth(call_seconds=0.010, compile_seconds=2.0),
}
UNITS = 4
"""Products in a call."""
Changes = Mapping[str, Any]


@dataclass(frozen=True)
class Defect:
    """What is wrong with the variant's launches, and which check has to name it."""

    check: str
    what: str
    changes: Changes = field(default_factory=dict)
    """To the truth of the variant's launches."""
    rounds: Callable[[int], bool] = lambda _number: True
    """In which it is wrong."""
    everywhere: Changes = field(default_factory=dict)
    """What is so in all launches of this experiment, and not wrong by itself."""
    platform: str = "cpu"
    environment: CaseEnvironment | None = None
    """That the variant's launches should run in."""
    measurement: Mapping[str, Any] = field(default_factory=dict)
    outcome: CheckOutcome = "failed"
    hides: frozenset[str] = frozenset()
    """Checks that cannot tell anything then."""
    disguise: Callable[[], AbstractContextManager[None]] = nullcontext
    """What is different where the variant's launches run, beside the truth."""

    def truth(self, variant: str, number: int) -> Truth:
        """Of a launch in the experiment with the defect."""
        there = variant == VARIANT and self.rounds(number)
        return replace(HONEST[variant], **{**self.everywhere, **(self.changes if there else {})})

    def around(self, variant: str, number: int) -> AbstractContextManager[None]:
        """Where a launch runs."""
        return self.disguise() if variant == VARIANT and self.rounds(number) else nullcontext()


@contextmanager
def another_libm() -> Iterator[None]:
    """A cosine that is rounded the other way: arrays that differ by less than any result may."""
    cosine = np.cos

    def other(x: Any) -> Any:
        return np.nextafter(cosine(x), 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(np, "cos", other)
        yield


@contextmanager
def another_version() -> Iterator[None]:
    """A workload that wants to be measured call by call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MatmulChain, "measure", lambda _self, _parameters: Measure(protocol="latency", unit="product"))
        yield


ARRIVALS: Mapping[str, Any] = {"protocol": "arrivals", "arrivals": {"rate_per_second": 40, "requests": 200}}
"""What keeps the baseline busy for half of the time."""


def _wandering(number: int) -> bool:
    """Rounds 8 to 14 of 20."""
    return 8 <= number <= 14


DEFECTS = (
    Defect("parity", "a weight is another", {"wrong_weight": True}, hides=frozenset({"depends-on-inputs"})),
    Defect(
        "formula",
        "a weight is another, by less than its type can tell",
        {"wrong_formula": True},
        hides=frozenset({"depends-on-inputs"}),
    ),
    Defect(
        "non-finite",
        "an output is no number",
        {"not_a_number": True},
        hides=frozenset({"parity", "depends-on-inputs", "formula"}),
    ),
    Defect("work-present", "three products of four are dropped", {"products": 1, "call_seconds": 0.0025}),
    Defect(
        "impossible-speed",
        "it claims more operations than its device can do",
        everywhere={"flops_per_second": 2.5e5},  # the baseline does 1.3 times, the variant 1.6 times as many
    ),
    Defect("unsynchronised", "a thread works on", {"escaping": 1.5}),
    Defect("unsynchronised", "an output is not there", {"never_ready": True}),
    Defect("recompiled", "compiled in the middle, and counted", {"recompiles": "counted"}),
    Defect("recompiled", "compiled in the middle, and forbidden", {"recompiles": "forbidden"}),
    Defect("depends-on-inputs", "it computes with what it has captured", {"captures": True}),
    Defect("work-skipped", "it remembers its results", {"remembers": True}),
    Defect("gradients", "its step has switched autograd on", {"gradients": "on"}),
    Defect("unsteady", "it becomes slower", {"drift_per_second": 0.05}),
    Defect("unsteady", "it becomes faster", {"drift_per_second": -0.05}),
    Defect(
        "unsteady",
        "it is slower from the middle of its blocks on, and nobody says why",
        {"slow_after_seconds": 4.0, "slowdown": 1.3},
        measurement={"rounds_min": 5, "rounds_max": 5},  # two launches could not tell it from chance
    ),
    Defect(
        "throttled",
        "a quota holds it back",
        {"slow_after_seconds": 0.0, "slowdown": 1.25, "held_back": 0.2},
        measurement={"time_limit_seconds": 40},
    ),
    Defect("throttled", "the hypervisor steals", {"stolen": 0.2}, measurement={"time_limit_seconds": 40}),
    Defect("shared-device", "a neighbour works beside it", {"others": 0.3}, measurement={"time_limit_seconds": 40}),
    Defect("saturated", "it is hardly faster than requests arrive", {"call_seconds": 0.024}, measurement=ARRIVALS),
    Defect(
        "generator-late",
        "requests begin a millisecond late",
        {"wakes_late": 0.001},
        measurement={**ARRIVALS, "time_limit_seconds": 40},
    ),
    Defect("clock", "the clock ticks in milliseconds", {"tick_seconds": 0.001}),
    Defect("clock", "the clock ticks in blocks", {"tick_seconds": 0.016}),
    Defect("clock", "the clock runs ahead", {"clock_runs_ahead": 0.005}),
    Defect("compile-cache", "it finds another's cache", {"finds_old_cache": True}),
    Defect("denormals", "it keeps denormals", {"flush_denormal": False}, outcome="untested"),
    Defect("precision", "it computes products in TF32", {"matmul": "tf32"}),
    Defect("precision", "its arrays are narrower", {"dtype": "bfloat16"}),
    Defect("threads", "it uses one thread too many", {"threads": 99}),
    Defect("emulated", "its devices are one processor's", {"emulated": "8 devices of one host"}),
    Defect(
        "wrong-device",
        "it falls back to the processor",
        {"platform": "cpu", "device": "a simulated processor"},
        everywhere={"platform": "cuda", "device": "Simulated GPU"},
        platform="cuda",
        hides=frozenset({"shared-device", "throttled"}),  # nothing simulates NVML here
    ),
    Defect("unsynchronised", "our own look for late work raises", {"probe": "late work"}, outcome="untested"),
    Defect(
        "throttled",
        "our own look at the machine raises",
        {"probe": "watch"},
        outcome="untested",
        hides=frozenset({"shared-device"}),
    ),
    Defect("impossible-speed", "our own triad raises", everywhere={"probe": "triad"}, outcome="untested"),
    Defect("impossible-speed", "our own product raises", everywhere={"probe": "product"}, outcome="untested"),
    Defect(
        "environment",
        "it imports another installation's NumPy",
        environment=CaseEnvironment(name="own", interpreter="/own/bin/python", directories=("/own/lib",)),
    ),
    Defect("same-inputs", "its machine rounds cosines otherwise", disguise=another_libm),
    Defect("same-protocol", "its workload is another version", disguise=another_version),
    Defect(
        "autocorrelated",
        "some hours were slower than others",
        {"call_seconds": 0.204},
        rounds=_wandering,
        everywhere={"call_seconds": 0.2, "compile_seconds": 0.0},  # ten blocks and no probe: it takes many launches
        measurement={"rounds_min": 20, "rounds_max": 20},
    ),
)
