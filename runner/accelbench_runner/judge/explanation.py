"""Explain a launch's wrong outputs: by their numbers, and by their types in the other variants."""

from collections.abc import Mapping
from itertools import combinations

from accelbench import catalogue, figures
from accelbench.api.case import Case
from accelbench.catalogue.inputs import generate
from accelbench.launch.fact import value_or_none
from accelbench.launch.record import LaunchRecord
from accelbench.workload import Array, NamedArrays
from accelbench_runner.judge.arithmetic import EPSILON, is_float, round_arrays
from accelbench_runner.judge.diagnosis import MAXIMUM_SIZE, diagnose
from accelbench_runner.judge.diagnosis_of_values import overflowed_bits
from accelbench_runner.judge.difference import Difference
from accelbench_runner.judge.reference import Reference
from accelbench_runner.judge_protocol import JudgeRequest

RETURN_THE_SAME = (
    "every variant has to return the same arrays: a tuple of the same length, or a dictionary with the same names"
)


def explain(request: JudgeRequest, outputs: NamedArrays, reference: Reference, worst_array: str) -> str:
    """Return what the outputs show about the mistake, and what to do; empty if they show nothing.

    `worst_array` names the output to explain; if it is empty, the first output of a wrong shape is explained.
    """
    right_outputs = reference.values
    if outputs.keys() != right_outputs.keys():
        return RETURN_THE_SAME
    exchanged = _find_exchanged(outputs, reference)
    if exchanged:
        return exchanged
    names_of_wrong_shape = (name for name, right in right_outputs.items() if outputs[name].shape != right.shape)
    name = worst_array or next(names_of_wrong_shape, "")
    if not name:
        return ""
    # An output is often computed from the program's inputs, or from another output.
    other_outputs = {other: right for other, right in right_outputs.items() if other != name}
    difference = _difference(name, outputs[name], reference, {**_inputs(request.case), **other_outputs})
    sentence, types = diagnose(difference), _describe_types(name, request.launches)
    if types and overflowed_bits(difference):  # then the narrow type is the cause
        return f"{types}, and {sentence}"
    return "; ".join(filter(None, (sentence, types)))


def _difference(name: str, output: Array, reference: Reference, inputs: Mapping[str, Array]) -> Difference:
    """Return the difference between the output `name` and the right one; `inputs` are arrays that may explain it."""
    expected = reference.expected[name]
    epsilon = EPSILON[reference.precision] if is_float(expected.value) else 0.0
    return Difference(name, output, expected.value, expected.tolerance(), epsilon, inputs)


def _inputs(case: Case) -> dict[str, Array]:
    """Return the inputs of a program's first call, rounded as it gets them: the initial state and the first batch.

    Large arrays and arrays of complex numbers are left out: `diagnose` explains neither.
    """
    workload = catalogue.find(case.workload)
    arrays = generate(workload, catalogue.parse_parameters(workload, case.parameters), case.measurement.seed)
    rounded = round_arrays(arrays, case.arithmetic)
    first_batch = rounded.batches[0] if rounded.batches else {}
    named = {**rounded.state, **first_batch}
    return {name: array for name, array in named.items() if array.size <= MAXIMUM_SIZE and array.dtype.kind in "biuf"}


def _find_exchanged(outputs: NamedArrays, reference: Reference) -> str:
    """Return a sentence that names two outputs if each has the other's right numbers; empty if there are none."""

    def is_wrong(name: str, array: Array) -> bool:
        """Return True if any number of `array` would be wrong as the output `name`."""
        return bool(_difference(name, array, reference, {}).wrong.any())

    for first, second in combinations(reference.values, 2):
        arrays = (outputs[first], outputs[second], reference.values[first], reference.values[second])
        have_one_shape = len({array.shape for array in arrays}) == 1
        # A shape other than the reference's has explanations of its own, and empty outputs agree with anything.
        if not have_one_shape or not outputs[first].size:
            continue
        if not is_wrong(first, outputs[first]) and not is_wrong(second, outputs[second]):
            continue
        if not is_wrong(first, outputs[second]) and not is_wrong(second, outputs[first]):
            return f"{first} and {second} are exchanged"
    return ""


def _describe_types(name: str, launches: tuple[LaunchRecord, ...]) -> str:
    """Describe the types of an output, as `y is int32 in jax/jit and int64 in torch`; empty if variants agree."""
    variants_by_type: dict[str, list[str]] = {}
    for launch in launches:
        type_name = (value_or_none(launch.facts.output_types) or {}).get(name)
        if type_name and launch.variant not in variants_by_type.setdefault(type_name, []):
            variants_by_type[type_name].append(launch.variant)
    if len(variants_by_type) < 2:  # noqa: PLR2004 - one type is no difference
        return ""
    parts = [f"{type_name} in {figures.join_names(variants)}" for type_name, variants in variants_by_type.items()]
    return f"{name} is {figures.join_names(parts)}"
