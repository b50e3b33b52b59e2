"""What has to be alike before two results may be compared, by names that `--allow-different` takes. Pure.

What changes how long a step takes, or what the step is, matters: a difference in it refuses the comparison unless its
name, or that of its group, is given. The rest is listed. An entry that one side does not have was not recorded there
(an older accelbench, a framework that did not run) and cannot refuse; a variable or a parameter that one side does not
have was not set, which is a difference. What matters and why:
docs/adr/0012-what-must-be-alike-to-compare.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from accelbench.api.result import Result

PARAMETER = "parameter."

GROUPS: Mapping[str, tuple[str, ...]] = {
    "source": ("workloadSource",),
    "parameters": (PARAMETER,),
    "precision": ("precision",),
    "seed": ("seed",),
    "variants": ("variant.",),
    "hardware": (
        "cpu", "cpuFlags", "cpuVectors", "virtualMachine", "cpus", "cores", "turbo", "governor", "numaNodes", "device.",
    ),
    "limits": ("cpusUsed", "cpuLimit", "memoryLimitBytes"),
    "versions": ("python", "version.", "device.driver"),
    "environment": ("env.",),
}  # fmt: skip
"""What matters; a name with a dot at its end stands for all that begin with it."""

INCIDENTAL = (
    "accelbench", "image", "kernel", "memoryBytes", "transparentHugePages", "device.uuid",
    "env.CUDA_VISIBLE_DEVICES", "env.NVIDIA_VISIBLE_DEVICES", "env.NVIDIA_DRIVER_CAPABILITIES",
)  # fmt: skip
"""What is listed and never refuses: it tells one machine of a kind from another, or has no known effect on a step."""

NOT_SET = "not set"
NEVER = ("protocol", "unit")
"""Times that differ in these are not the same quantity; nobody can insist on comparing them."""


@dataclass(frozen=True)
class Difference:
    """An entry that is not the same in all results that are to be compared."""

    name: str
    group: str | None
    """None: it does not matter."""
    before: tuple[str, ...]
    """Every value on that side; empty: not recorded."""
    after: tuple[str, ...]

    @property
    def matters(self) -> bool:
        """Whether it refuses the comparison; of what only one side recorded it is not known that it differs."""
        recorded = bool(self.before and self.after)
        return self.group is not None and (recorded or max(len(self.before), len(self.after)) > 1)

    def allowed(self, names: Iterable[str]) -> bool:
        """Whether these names, of entries or groups, cover it."""
        return self.group not in NEVER and not {self.name, self.group}.isdisjoint(names)


def identity(result: Result) -> dict[str, str]:
    """All of a result that a comparison looks at: its fingerprint, and what its case asked for."""
    case = result.case
    asked = {"precision": case.measurement.precision, "seed": str(case.measurement.seed), "unit": result.unit}
    asked |= {f"{PARAMETER}{name}": str(value) for name, value in case.parameters.items()}
    asked |= {f"variant.{each.name}": _variant(each.use, each.options) for each in case.variants}
    if result.protocol is not None:
        asked["protocol"] = result.protocol
    return {**asked, **result.fingerprint}


def parameters(result: Result) -> dict[str, str]:
    """What the workload was given: by a sweep, without one, or by default."""
    known = identity(result).items()
    return {name.removeprefix(PARAMETER): value for name, value in known if name.startswith(PARAMETER)}


def _variant(use: str, options: Mapping[str, object]) -> str:
    said = ", ".join(f"{name} {value}" for name, value in sorted(options.items()))
    return f"{use} ({said})" if said else use


def group_of(name: str) -> str | None:
    """The group that an entry belongs to; None where it does not matter."""
    if name in NEVER:
        return name
    if name in INCIDENTAL:
        return None
    # The longer name wins: a GPU's driver is a version, what else is told of a GPU is hardware.
    matching = [
        (len(begin), group)
        for group, begins in GROUPS.items()
        for begin in begins
        if name == begin or (begin.endswith(".") and name.startswith(begin))
    ]
    return max(matching)[1] if matching else None


def differences(before: Iterable[Result], after: Iterable[Result]) -> tuple[Difference, ...]:
    """Every entry that not all of them share, what matters first."""
    sides = [[identity(result) for result in side] for side in (before, after)]
    found = []
    for name in dict.fromkeys(name for side in sides for each in side for name in each):
        group = group_of(name)
        absent = NOT_SET if group in {"environment", "parameters"} else ""
        values = [
            tuple(dict.fromkeys(value for each in side if (value := each.get(name, absent)) != "")) for side in sides
        ]
        # A variant that only one side has is no difference: it is compared with nothing.
        unknown = not all(values) and group not in {None, "variants"}
        if len({value for side in values for value in side}) > 1 or unknown:
            found.append(Difference(name, group, *values))
    return ordered(found)


def ordered(found: Iterable[Difference]) -> tuple[Difference, ...]:
    """Each once, what matters first."""
    return tuple(sorted(dict.fromkeys(found), key=lambda each: (not each.matters, each.group is None)))


def names(results: Iterable[Result]) -> tuple[str, ...]:
    """Everything that may be allowed to differ: the groups, and every entry of these results."""
    entries = dict.fromkeys(name for result in results for name in identity(result) if name not in NEVER)
    return (*GROUPS, *entries)
