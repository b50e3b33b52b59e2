"""Define the rules that a schema keyword cannot express: in CEL for the API server, in Python for `validate`.

A rule is an annotation on the field that it is about: `variants: Annotated[tuple[Variant, ...], UNIQUE_VARIANTS]`.
`accelbench.api.crd` writes it into the CRD as `x-kubernetes-validations`, and `accelbench.api.admission` finds the
Python check by the CEL expression. The check gets JSON values with defaults filled in, as CEL does. Like CEL it also
runs if bounds or patterns fail: it must accept an empty list, or a string that matches no pattern.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

from accelbench.api.number_registry import NUMBERS

RULES_KEYWORD = "x-kubernetes-validations"
ANY_FIELDS_KEYWORD = "x-kubernetes-preserve-unknown-fields"
Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Rule:
    """Define one rule: `cel` and `holds` are equivalent, and so are `arguments_cel` and `arguments`.

    `holds` is None for rules that `validate` must not apply: transition rules, which compare with the old object, and
    fields for laptops only.
    """

    cel: str
    message: str
    holds: Callable[[Any], bool] | None
    arguments_cel: tuple[str, ...] = ()
    """CEL expressions of the values that replace the message's `%s`."""
    arguments: Callable[[Any], tuple[Any, ...]] = lambda _: ()
    """Returns the values of `arguments_cel`; it is called only for a value that breaks the rule."""
    field_path: str = ""
    """Path of the field that a refusal names, relative to the annotated field: `.baseline`."""
    forbidden: bool = False
    """True for the refusal `Forbidden: ...` instead of `Invalid value: ...`."""

    def refusal(self, value: Any) -> str | None:
        """Return the message if `value` breaks the rule; None if it does not, or if only the API server can tell."""
        if self.holds is None or self.holds(value):
            return None
        if not self.arguments_cel:
            return self.message
        message = self.message % tuple(_format_argument(argument) for argument in self.arguments(value))
        has_line_break = "\n" in message or "\r" in message
        if has_line_break:
            # The API server discards a message with a line break and uses the message without arguments.
            return self._message_without_arguments
        return message

    @property
    def _message_without_arguments(self) -> str:
        """Return the message with `...` in place of each argument."""
        return self.message.replace("%s", "...")

    def to_crd(self) -> dict[str, str]:
        """Return the rule as an entry of `x-kubernetes-validations`."""
        entry = {"rule": self.cel, "message": self._message_without_arguments}
        if self.arguments_cel:
            # `format` costs less than `+`: the API server estimates the cost of `+` from the longest possible string.
            entry["messageExpression"] = f"'{self.message}'.format([{', '.join(self.arguments_cel)}])"
        if self.field_path:
            entry["fieldPath"] = self.field_path
        if self.forbidden:
            entry["reason"] = "FieldValueForbidden"
        return entry

    def register(self) -> "Rule":
        """Add the rule to `RULES`, under its CEL expression, and return it."""
        RULES[self.cel] = self
        return self

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Register the rule, and add it to the field's JSON schema."""
        generated = handler(schema)
        self.register()
        rules = [*generated.get(RULES_KEYWORD, ()), self.to_crd()]
        return {**generated, RULES_KEYWORD: rules}


RULES: dict[str, Rule] = {}
"""Every rule that a model has, by its CEL expression; filled when the schemas are generated."""


def _format_argument(argument: Any) -> str:
    """Return the text that CEL's `format` makes of an argument."""
    if isinstance(argument, list):
        return json.dumps(argument, ensure_ascii=False)
    return str(argument)


def label(variant: Manifest) -> str:
    """Return a variant's name in results: `name`, or else `use`."""
    return str(variant.get("name", variant.get("use")))


def _label_cel(variant_cel: str) -> str:
    """Return a CEL expression for a variant's name in results."""
    return f"(has({variant_cel}.name) ? {variant_cel}.name : {variant_cel}.use)"


def _first_repeated(items: Sequence[Any]) -> Any:
    """Return the first item that occurs more than once; None if all are different."""
    return next((item for item in items if items.count(item) > 1), None)


def _variant_names(spec: Manifest) -> list[str]:
    """Return the names of the run's variants in results."""
    return [label(variant) for variant in spec["variants"]]


# -- variants, baseline, expectations ---------------------------------------------------------------------------------

_SAME_NAME = f"{_label_cel('w')} == {_label_cel('v')}"
_NAMES_CEL = f"self.variants.map(v, {_label_cel('v')})"
_NO_SUCH_VARIANT = 'no variant is called "%s"; correct it here or in spec.variants, which has %s'

UNIQUE_VARIANTS = Rule(
    cel=f"self.all(v, self.exists_one(w, {_SAME_NAME}))",
    message='two variants are called "%s"; give one of them a name of its own',
    arguments_cel=(f"self.filter(v, !self.exists_one(w, {_SAME_NAME})).map(v, {_label_cel('v')})[0]",),
    holds=lambda variants: _first_repeated([label(variant) for variant in variants]) is None,
    arguments=lambda variants: (_first_repeated([label(variant) for variant in variants]),),
)

BASELINE_IS_A_VARIANT = Rule(
    cel=f"!has(self.baseline) || self.variants.exists(v, {_label_cel('v')} == self.baseline)",
    message=_NO_SUCH_VARIANT,
    arguments_cel=("self.baseline", _NAMES_CEL),
    holds=lambda spec: "baseline" not in spec or spec["baseline"] in _variant_names(spec),
    arguments=lambda spec: (spec["baseline"], _variant_names(spec)),
    field_path=".baseline",
)


def _unknown_variants(spec: Manifest) -> list[str]:
    """Return the variants that expectations name but the run does not have."""
    expected_variants = [expectation["variant"] for expectation in spec.get("expectations", ())]
    return [variant for variant in expected_variants if variant not in _variant_names(spec)]


_UNKNOWN_VARIANT_CEL = f"!self.variants.exists(v, {_label_cel('v')} == e.variant)"

EXPECTATIONS_NAME_VARIANTS = Rule(
    cel=f"!has(self.expectations) || !self.expectations.exists(e, {_UNKNOWN_VARIANT_CEL})",
    message=_NO_SUCH_VARIANT,
    arguments_cel=(f"self.expectations.filter(e, {_UNKNOWN_VARIANT_CEL})[0].variant", _NAMES_CEL),
    holds=lambda spec: not _unknown_variants(spec),
    arguments=lambda spec: (_unknown_variants(spec)[0], _variant_names(spec)),
    field_path=".expectations",
)


_METRICS_OVER_BASELINE = [number.name for number in NUMBERS.values() if number.expected and number.over_baseline]
_BASELINE_CEL = f"(has(self.baseline) ? self.baseline : {_label_cel('self.variants[0]')})"
_OF_THE_BASELINE_CEL = (
    f"has(e.metric) && e.metric in {json.dumps(_METRICS_OVER_BASELINE)} && e.variant == {_BASELINE_CEL}"
)


def _comparing_metrics_expected_of_baseline(spec: Manifest) -> list[str]:
    """Return the metrics, such as `speedup`, by which expectations would compare the baseline with itself."""
    if not spec["variants"]:  # there is no baseline; the schema refuses this
        return []
    baseline = spec.get("baseline", label(spec["variants"][0]))
    baseline_expectations = [item for item in spec.get("expectations", ()) if item["variant"] == baseline]
    metrics = [expectation.get("metric") for expectation in baseline_expectations]
    return [metric for metric in metrics if metric in _METRICS_OVER_BASELINE]


BASELINE_NOT_OVER_ITSELF = Rule(
    cel=(
        f"!has(self.expectations) || size(self.variants) == 0 || !self.expectations.exists(e, {_OF_THE_BASELINE_CEL})"
    ),
    message="%s compares a variant with the baseline; expect it of a variant that is not the baseline",
    arguments_cel=(f"self.expectations.filter(e, {_OF_THE_BASELINE_CEL})[0].metric",),
    holds=lambda spec: not _comparing_metrics_expected_of_baseline(spec),
    arguments=lambda spec: (_comparing_metrics_expected_of_baseline(spec)[0],),
    field_path=".expectations",
)

EXPECTATION_HAS_A_BOUND = Rule(
    cel="has(self.atLeast) || has(self.atMost) || has(self.equals)",
    message="give atLeast, atMost or both; for an observation, equals is possible too",
    holds=lambda expectation: not expectation.keys().isdisjoint({"atLeast", "atMost", "equals"}),
)

EQUALS_NEEDS_OBSERVATION = Rule(
    cel="!has(self.equals) || has(self.observation)",
    message="equals is only for observations; for a metric, give atLeast or atMost",
    holds=lambda expectation: "equals" not in expectation or "observation" in expectation,
)

EQUALS_EXCLUDES_BOUNDS = Rule(
    cel="!has(self.equals) || (!has(self.atLeast) && !has(self.atMost))",
    message="equals excludes atLeast and atMost; remove them",
    holds=lambda expectation: "equals" not in expectation or expectation.keys().isdisjoint({"atLeast", "atMost"}),
)

BOUND = r"^[0-9]+(\.[0-9]+)?$"
"""Pattern of an expectation's bounds: decimals without a sign."""
_BOUND_CEL = BOUND.replace("\\", "\\\\")


def _bounds_can_be_met(expectation: Manifest) -> bool:
    """Return False if `atLeast` is above `atMost`, so that no value lies within both."""
    at_least = expectation.get("atLeast", "")
    at_most = expectation.get("atMost", "")
    if not re.fullmatch(BOUND, at_least) or not re.fullmatch(BOUND, at_most):
        return True  # a bound is missing, or its pattern refuses it
    return Decimal(at_least) <= Decimal(at_most)


EXPECTATION_CAN_BE_MET = Rule(
    cel=(
        f"!has(self.atLeast) || !has(self.atMost) || !self.atLeast.matches('{_BOUND_CEL}') || "
        f"!self.atMost.matches('{_BOUND_CEL}') || double(self.atLeast) <= double(self.atMost)"
    ),
    message="atLeast is above atMost, so nothing can meet it",
    holds=_bounds_can_be_met,
)

# -- sweep ------------------------------------------------------------------------------------------------------------


def _axis_names(sweep: Sequence[Manifest]) -> list[str]:
    """Return the names of the swept parameters."""
    return [axis["name"] for axis in sweep]


UNIQUE_AXES = Rule(
    cel="self.all(a, self.exists_one(b, b.name == a.name))",
    message='"%s" is swept twice; put its values into one axis',
    arguments_cel=("self.filter(a, !self.exists_one(b, b.name == a.name))[0].name",),
    holds=lambda sweep: _first_repeated(_axis_names(sweep)) is None,
    arguments=lambda sweep: (_first_repeated(_axis_names(sweep)),),
)


def _count_cases(sweep: Sequence[Manifest]) -> int:
    """Return the number of combinations of the axes' values."""
    return math.prod(len(axis["values"]) for axis in sweep)


def at_most_cases(maximum_cases: int, maximum_axes: int) -> Rule:
    """Return the rule that a sweep of up to `maximum_axes` axes has at most `maximum_cases` combinations of values."""
    # CEL has no product over a list, so write one factor for each possible axis: 1 for an axis that the sweep lacks.
    factors = [f"(size(self) > {axis} ? size(self[{axis}].values) : 1)" for axis in range(maximum_axes)]
    case_count_cel = " * ".join(factors)
    return Rule(
        cel=f"{case_count_cel} <= {maximum_cases}",
        message=f"%s cases, at most {maximum_cases}; split the sweep over several runs",
        arguments_cel=(case_count_cel,),
        holds=lambda sweep: _count_cases(sweep) <= maximum_cases,
        arguments=lambda sweep: (_count_cases(sweep),),
    )


def _swept_fixed_parameters(spec: Manifest) -> list[str]:
    """Return the parameters that are both swept and fixed in `workload.parameters`."""
    fixed_parameters = spec["workload"].get("parameters", {})
    return [name for name in _axis_names(spec.get("sweep", ())) if name in fixed_parameters]


SWEPT_OR_FIXED = Rule(
    cel=(
        "!has(self.sweep) || !has(self.workload.parameters) || "
        "!self.sweep.exists(a, a.name in self.workload.parameters)"
    ),
    message='"%s" is both swept and fixed; remove it from workload.parameters',
    arguments_cel=("self.sweep.filter(a, a.name in self.workload.parameters)[0].name",),
    holds=lambda spec: not _swept_fixed_parameters(spec),
    arguments=lambda spec: (_swept_fixed_parameters(spec)[0],),
    field_path=".sweep",
)

# -- measurement ------------------------------------------------------------------------------------------------------

PERCENTAGE = r"^[0-9]{1,2}(\.[0-9]{1,4})?%$"
_PERCENTAGE_CEL = PERCENTAGE.replace("\\", "\\\\")


def percentage(minimum: str, maximum: str, example: str, *, excludes_minimum: bool = False) -> Rule:
    """Return the rule that a field is a percentage, such as `example`, from `minimum` to `maximum` per cent.

    If `excludes_minimum`, it must be above the minimum.
    """
    number_cel = "double(self.replace('%', ''))"  # to compare with the bounds, which `float` writes as doubles: 50.0
    if excludes_minimum:
        minimum_cel = f"{number_cel} > {float(minimum)}"
        bounds = f"above {minimum}% up to {maximum}%"
    else:
        minimum_cel = f"{number_cel} >= {float(minimum)}"
        bounds = f"from {minimum}% to {maximum}%"

    def holds(value: str) -> bool:
        """Return True if `value` is a percentage within the bounds."""
        if not re.fullmatch(PERCENTAGE, value):
            return False
        number = Decimal(value.removesuffix("%"))
        if excludes_minimum and number == Decimal(minimum):
            return False
        return Decimal(minimum) <= number <= Decimal(maximum)

    return Rule(
        cel=f"self.matches('{_PERCENTAGE_CEL}') && {minimum_cel} && {number_cel} <= {float(maximum)}",
        message=f'a percentage {bounds}, such as "{example}"',
        holds=holds,
    )


MIN_AT_MOST_MAX = Rule(
    cel="self.min <= self.max",
    message="min %s is above max %s",
    arguments_cel=("self.min", "self.max"),
    holds=lambda rounds: bool(rounds["min"] <= rounds["max"]),
    arguments=lambda rounds: (rounds["min"], rounds["max"]),
)

ARRIVALS_WITH_THEIR_PROTOCOL = Rule(
    cel="(has(self.protocol) && self.protocol == 'arrivals') == has(self.arrivals)",
    message="protocol: arrivals and the field arrivals need each other, as in "
    "protocol: arrivals, arrivals: {ratePerSecond: 100}",
    holds=lambda measurement: (measurement.get("protocol") == "arrivals") == ("arrivals" in measurement),
)

_ARRIVAL_SECONDS_CEL = (
    "self.measurement.arrivals.requests * self.measurement.rounds.min * size(self.variants) / "
    "self.measurement.arrivals.ratePerSecond"
)


def _arrival_seconds(spec: Manifest) -> int:
    """Return the whole seconds in which the requests of all variants arrive in the minimum of rounds."""
    measurement = spec["measurement"]
    arrivals = measurement["arrivals"]
    requests: int = arrivals["requests"] * measurement["rounds"]["min"] * len(spec["variants"])
    return requests // int(arrivals["ratePerSecond"])


ARRIVALS_FIT_THE_LIMIT = Rule(
    cel=(
        "!has(self.measurement.arrivals) || self.measurement.arrivals.ratePerSecond < 1 || "
        f"{_ARRIVAL_SECONDS_CEL} <= self.measurement.timeLimitSeconds"
    ),
    message="the requests of rounds.min rounds arrive in %s s, and timeLimitSeconds is %s: ask for fewer requests or "
    "more time",
    arguments_cel=(_ARRIVAL_SECONDS_CEL, "self.measurement.timeLimitSeconds"),
    holds=lambda spec: (
        "arrivals" not in spec["measurement"]
        or spec["measurement"]["arrivals"]["ratePerSecond"] < 1  # its bound refuses that
        or _arrival_seconds(spec) <= spec["measurement"]["timeLimitSeconds"]
    ),
    arguments=lambda spec: (_arrival_seconds(spec), spec["measurement"]["timeLimitSeconds"]),
    field_path=".measurement.arrivals",
)


AT_MOST_ONE = Rule(
    cel="self <= 1",
    message="accelbench uses one for now; more would be reserved and stay idle",
    holds=lambda count: bool(count <= 1),
)


# -- pod template -----------------------------------------------------------------------------------------------------

ENVIRONMENT_NOT_RESERVED = Rule(
    cel="!self.startsWith('ACCELBENCH_')",
    message="names that start with ACCELBENCH_ are the runner's own",
    holds=lambda name: not name.startswith("ACCELBENCH_"),
)


def forbidden_field(field: str) -> Rule:
    """Return the rule that a run must not set this field of Kubernetes."""
    return Rule(
        cel=f"!has(self.{field})",
        message="not for a run to set; remove it",
        holds=lambda value: field not in value,
        field_path=f".{field}",
        forbidden=True,
    )


def one_of(*fields: str) -> Rule:
    """Return the rule that exactly one of the fields is set."""
    presence_cel = ", ".join(f"has(self.{field})" for field in fields)
    # In CEL, `exists_one(given, given)` is true if exactly one element of the list is true.
    return Rule(
        cel=f"[{presence_cel}].exists_one(given, given)",
        message=f"give exactly one of {', '.join(fields)}",
        holds=lambda value: sum(field in value for field in fields) == 1,
    )


LAPTOP_ONLY = Rule(
    cel="false",
    message="file works only on a laptop; in a cluster, put the file into a ConfigMap, kubectl create configmap NAME "
    "--from-file=FILE, and write configMapKeyRef: {name: NAME, key: FILE} instead",
    holds=None,
    forbidden=True,
)
"""For a field that only `accelbench run` uses: its file is next to the manifest, which an API server cannot read."""

# -- environments -----------------------------------------------------------------------------------------------------

PYTHON_MINORS = ("3.11", "3.12", "3.13")
"""The minors of Python that accelbench measures in."""

MEASURABLE_PYTHON = Rule(
    cel=f"self.startsWith('/') || self in {json.dumps(PYTHON_MINORS)}",
    message=f"accelbench measures in Python {PYTHON_MINORS[0]} to {PYTHON_MINORS[-1]}: write one of these, such as "
    f"{PYTHON_MINORS[1]}, or the absolute path of an interpreter",
    holds=lambda python: python.startswith("/") or python in PYTHON_MINORS,
)

REQUIREMENTS_OR_INTERPRETER = Rule(
    cel="(has(self.requirements) && size(self.requirements) > 0) || (has(self.python) && self.python.startsWith('/'))",
    message="give requirements to install, or in python the absolute path of an interpreter",
    holds=lambda environment: bool(environment.get("requirements")) or environment.get("python", "").startswith("/"),
)


def _environment_names(environments: Sequence[Manifest]) -> list[str]:
    """Return the names of the run's environments."""
    return [environment["name"] for environment in environments]


UNIQUE_ENVIRONMENTS = Rule(
    cel="self.all(e, self.exists_one(f, f.name == e.name))",
    message='two environments are called "%s"; give one of them another name',
    arguments_cel=("self.filter(e, !self.exists_one(f, f.name == e.name))[0].name",),
    holds=lambda environments: _first_repeated(_environment_names(environments)) is None,
    arguments=lambda environments: (_first_repeated(_environment_names(environments)),),
)

ENVIRONMENTS_ON_LAPTOPS = Rule(
    cel="size(self) == 0",
    message="environments work only on a laptop, with accelbench run; in a cluster, each variant runs in the image",
    holds=None,
    forbidden=True,
)


def _undefined_environments(spec: Manifest) -> list[str]:
    """Return the environments that variants name but the run does not have."""
    defined = _environment_names(spec.get("environments", ()))
    named = [variant["environment"] for variant in spec["variants"] if "environment" in variant]
    return [name for name in named if name not in defined]


_UNDEFINED_CEL = (
    "has(v.environment) && !(has(self.environments) && self.environments.exists(e, e.name == v.environment))"
)

ENVIRONMENTS_ARE_DEFINED = Rule(
    cel=f"!self.variants.exists(v, {_UNDEFINED_CEL})",
    message='no environment is called "%s"; correct it here or in spec.environments',
    arguments_cel=(f"self.variants.filter(v, {_UNDEFINED_CEL})[0].environment",),
    holds=lambda spec: not _undefined_environments(spec),
    arguments=lambda spec: (_undefined_environments(spec)[0],),
    field_path=".variants",
)


# -- what may change --------------------------------------------------------------------------------------------------


_NOTHING_STARTED_CEL = " && ".join(
    f"(!has(oldSelf.status.{field}) || size(oldSelf.status.{field}) == 0)" for field in ("attempts", "measuredCases")
)
_REFUSED_CEL = (
    "has(oldSelf.status) && has(oldSelf.status.phase) && oldSelf.status.phase == 'InvalidSpec'"
    f" && {_NOTHING_STARTED_CEL}"
)


def immutable_unless_refused(path: str, reason: str) -> Rule:
    """Return the rule that no update may add, remove or change a field of a run, such as `spec.series`.

    A run that was refused before it started may change: nothing was measured, and users of GitOps correct a mistake in
    the same manifest. The rule has to stand in the schema of the whole object, because it reads the old status.
    """
    presence_cel = f"has(self.{path})"
    same_cel = f"{presence_cel} == has(oldSelf.{path}) && (!{presence_cel} || self.{path} == oldSelf.{path})"
    return Rule(
        cel=f"{same_cel} || {_REFUSED_CEL}",
        message=f"cannot be changed: {reason}",
        holds=None,  # only the API server knows the old object
        field_path=f".{path}",
        forbidden=True,
    )


CANCEL_IS_FINAL = Rule(
    cel="!oldSelf || self",
    message="a cancelled run stays cancelled; apply it under another name to run it again",
    holds=None,
    forbidden=True,
)

RESULT_IS_FINAL = Rule(
    cel="self == oldSelf",
    message="a result is never changed; delete it if it should not count",
    holds=None,
    forbidden=True,
)
