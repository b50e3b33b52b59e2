"""Decide which differences between two results prevent their comparison. Pure.

Every setting of a case and every entry of a result's fingerprint is compared, including those that this module does not
list: a new field matters until `ENTRIES` or `NOT_COMPARED` lists it. A difference that matters prevents the comparison
unless `--allow-different` names the entry or its group; the others are only listed.

An entry that one side lacks was not recorded there (an older accelbench, a framework that did not run) and prevents
nothing. A variable or a parameter that one side lacks was not set, which is a difference.
docs/adr/0012-what-must-match-to-compare-runs.md gives the reasons.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from accelbench.api.case import Case, CaseAccelerator, CaseMeasurement, CaseVariant
from accelbench.api.result import Result
from accelbench.document import Document

PARAMETER = "parameter."
NOT_SET = "not set"
NEVER = ("protocol", "unit")
"""Times that differ in these are different quantities; no option allows comparing them."""


def _format_bytes(value: str) -> str:
    """Format a number of bytes as `16 GiB`; return other text unchanged."""
    return f"{int(value) / 2**30:.4g} GiB" if value.isdecimal() else value


@dataclass(frozen=True)
class Entry:
    """Describe how one entry of the fingerprint is compared."""

    name: str
    """A name with a dot at its end stands for all entries that begin with it; the longest match wins."""
    group: str | None
    """Name for `--allow-different`; None: a difference is listed and does not matter."""
    format: Callable[[str], str] = str
    """Formats a value for people."""
    absent: str = ""
    """Value of a side without the entry; empty: it was not recorded."""

    def applies_to(self, name: str) -> bool:
        """Return True if `name` is the name of this entry or, for an entry such as `device.`, begins with its name."""
        return name == self.name or (self.name.endswith(".") and name.startswith(self.name))


ENTRIES = (
    Entry("workloadSource", "source"),
    Entry(PARAMETER, "parameters", absent=NOT_SET),
    Entry("variant.", "variants"),
    Entry("cpu", "hardware"),
    Entry("cpuFlags", "hardware"),
    Entry("cpuVectors", "hardware"),
    Entry("virtualMachine", "hardware"),
    Entry("cpus", "hardware"),
    Entry("cores", "hardware"),
    Entry("turbo", "hardware"),
    Entry("governor", "hardware"),
    Entry("numaNodes", "hardware"),
    Entry("device.", "hardware"),
    Entry("cpusUsed", "limits"),
    Entry("cpuLimit", "limits"),
    Entry("memoryLimitBytes", "limits", _format_bytes),
    Entry("python", "versions"),
    Entry("version.", "versions"),
    Entry("device.driver", "versions"),
    Entry("env.", "environment", absent=NOT_SET),
    # These change for reasons that do not affect a step's time, or identify one of several equal machines.
    Entry("accelbench", None),
    Entry("image", None),
    Entry("kernel", None),
    Entry("memoryBytes", None, _format_bytes),
    Entry("transparentHugePages", None),
    Entry("device.uuid", None),
    Entry("env.CUDA_VISIBLE_DEVICES", None),
    Entry("env.NVIDIA_VISIBLE_DEVICES", None),
    Entry("env.NVIDIA_DRIVER_CAPABILITIES", None),
)
"""Entries with special rules; any other entry has its own name as its group."""

GROUPS = tuple(dict.fromkeys(entry.group for entry in ENTRIES if entry.group))

_NUMBER_OF_ROUNDS = "decides how many rounds there are; the interval accounts for it"
_RULE = "judges the difference; the first side's value is used"

NOT_COMPARED: Mapping[type[Document], Mapping[str, str]] = {
    Case: {
        "format": "identifies the document",
        "name": "follows from the sweep",
        "origin": "says which run measured it",
        "workload": "selects the results that are compared",
        "script": "says where the file came from; workloadSource identifies its content",
        "environments": "are recorded as variant.NAME.lock and variant.NAME.version for the variants in them",
        "swept": "repeats some of the parameters",
        "baseline": "seconds do not depend on it; results with different baselines have no relative rows",
        "comparisons_in_run": "shares the run's confidence; a comparison of runs shares its own",
    },
    CaseMeasurement: {
        "rounds_min": _NUMBER_OF_ROUNDS,
        "rounds_max": _NUMBER_OF_ROUNDS,
        "target_relative_error": _NUMBER_OF_ROUNDS,
        "time_limit_seconds": _NUMBER_OF_ROUNDS,
        "confidence": _RULE,
        "equivalence_margin": _RULE,
        "protocol": "is recorded in the result, and times of different protocols are never compared",
        "accept_noise": "a disturbed result is noisy, and noisy results are left out",
        "explain": "adds a launch after all that are timed, and these cannot see it",
    },
    CaseAccelerator: {
        "profile": "is the administrator's word for nodes whose hardware the fingerprint records",
        "platform": "is recorded as device.platform",
        "devices": "is recorded as device.count",
        "target": "is compiled for and not timed",
        "price_per_hour": "is for reports",
    },
    CaseVariant: {"name": "names the entry", "environment": "is a name; variant.NAME.lock identifies what it contains"},
}
"""Fields of a case that are not compared, with the reason."""


@dataclass(frozen=True)
class Difference:
    """Describe an entry whose value is not the same in all results."""

    name: str
    group: str | None
    """None: it does not matter."""
    before: tuple[str, ...]
    """All values on that side; empty: not recorded."""
    after: tuple[str, ...]

    @property
    def matters(self) -> bool:
        """Return True if results are only compared when the user allows this difference."""
        if self.group is None:
            return False
        # If only one side recorded a value, the other side may have the same. So the difference then matters only if
        # there are several recorded values.
        recorded_by_both = bool(self.before and self.after)
        return recorded_by_both or len(self.before) > 1 or len(self.after) > 1

    def is_allowed_by(self, names: Collection[str]) -> bool:
        """Return True if `names` allow this difference, by its name or its group; groups in `NEVER` are not allowed."""
        return self.group not in NEVER and (self.name in names or self.group in names)

    @property
    def formatted(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the values before and the values after, as people read them (`16 GiB`).

        If two different values would then look the same, return all values as they were recorded.
        """
        entry = find_entry(self.name)
        values = {*self.before, *self.after}
        formatted_values = set(map(entry.format, values))
        if len(formatted_values) < len(values):
            return self.before, self.after
        return tuple(map(entry.format, self.before)), tuple(map(entry.format, self.after))


def find_entry(name: str) -> Entry:
    """Return the entry of `ENTRIES` that applies to `name`, else a new entry whose group is `name`.

    If several apply, the one with the longest name is the most specific: `device.driver` before `device.`.
    """
    entries = [entry for entry in ENTRIES if entry.applies_to(name)]
    return max(entries, key=lambda entry: len(entry.name), default=Entry(name, group=name))


def comparable_entries(result: Result) -> dict[str, str]:
    """Return the settings and fingerprint entries in which two results may differ, as text by name."""
    case = result.case
    settings = {"unit": result.unit}
    # Four fields are left out of the case's settings, because the next lines add what they contain.
    settings |= _settings(case, {*NOT_COMPARED[Case], "parameters", "variants", "measurement", "accelerator"})
    settings |= _settings(case.measurement, NOT_COMPARED[CaseMeasurement])
    settings |= _settings(case.accelerator, NOT_COMPARED[CaseAccelerator])
    settings |= {f"{PARAMETER}{name}": str(value) for name, value in case.parameters.items()}
    settings |= {f"variant.{variant.name}": _describe_variant(variant) for variant in case.variants}
    if result.protocol is not None:
        settings["protocol"] = result.protocol
    return {**settings, **result.fingerprint}


def _settings(document: Document, excluded: Collection[str]) -> dict[str, str]:
    """Return the values of a document's fields as text, by JSON name; leave out the fields named in `excluded`."""
    values = document.model_dump(mode="json", by_alias=True, exclude=set(excluded))
    return {name: _format_value(value) for name, value in values.items()}


def _format_value(value: object) -> str:
    """Return a setting as text: `not set` for None, a string unchanged, and any other value as JSON."""
    if value is None:
        return NOT_SET
    return value if isinstance(value, str) else json.dumps(value)


def _describe_variant(variant: CaseVariant) -> str:
    """Return the variant's framework, mode and settings: `jax/jit (donate True)`.

    If the variant has an environment of its own, the text only says so; the entries `variant.NAME.lock` and
    `variant.NAME.version` identify the environment.
    """
    settings = {name: str(value) for name, value in sorted(variant.options.items())}
    if variant.environment is not None:
        settings["environment"] = "of its own"
    settings |= _settings(variant, {*NOT_COMPARED[CaseVariant], "use", "options"})
    text = ", ".join(f"{name} {value}" for name, value in settings.items())
    return f"{variant.use} ({text})" if text else variant.use


def parameters(result: Result) -> dict[str, str]:
    """Return all parameters of a result's workload as text, by name, including those with default values."""
    entries = comparable_entries(result).items()
    return {name.removeprefix(PARAMETER): value for name, value in entries if name.startswith(PARAMETER)}


def find_differences(before: Iterable[Result], after: Iterable[Result]) -> tuple[Difference, ...]:
    """Return the settings and fingerprint entries that differ between any two of these results.

    Differences that prevent a comparison are first.
    """
    before_entries = list(map(comparable_entries, before))
    after_entries = list(map(comparable_entries, after))
    names = dict.fromkeys(name for entries in (*before_entries, *after_entries) for name in entries)
    unequal = []
    for name in names:
        entry = find_entry(name)
        before_values = _distinct_values(name, entry.absent, before_entries)
        after_values = _distinct_values(name, entry.absent, after_entries)
        has_different_values = len({*before_values, *after_values}) > 1
        lacks_a_side = not before_values or not after_values
        # A variant that only one side has is compared with nothing, and an entry of the group None does not matter.
        may_lack_a_side = entry.group in {None, "variants"}
        if has_different_values or (lacks_a_side and not may_lack_a_side):
            unequal.append(Difference(name, entry.group, before_values, after_values))
    return sort_differences(unequal)


def _distinct_values(name: str, absent: str, entries: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the distinct values that the entry `name` has in several results.

    `entries` has the entries of each result. A result without the entry counts as one with the value `absent`. An empty
    value was not recorded, and is left out.
    """
    values = (values_by_name.get(name, absent) for values_by_name in entries)
    return tuple(dict.fromkeys(value for value in values if value != ""))


def sort_differences(differences: Iterable[Difference]) -> tuple[Difference, ...]:
    """Return the differences without duplicates: first those that prevent a comparison, last those that never can."""

    def rank(difference: Difference) -> int:
        """Return 0 for a difference that prevents a comparison, 1 for an entry that a side lacks, 2 for all others."""
        if difference.matters:
            return 0
        return 2 if difference.group is None else 1

    return tuple(sorted(dict.fromkeys(differences), key=rank))


def allowable_names(results: Iterable[Result]) -> tuple[str, ...]:
    """Return all names that the option `--allow-different` accepts for these results: groups, then single entries."""
    entries = dict.fromkeys(name for result in results for name in comparable_entries(result) if name not in NEVER)
    return (*GROUPS, *entries)
