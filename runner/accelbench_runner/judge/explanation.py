"""Explain a launch's wrong outputs: by their numbers, and by their types in the other variants."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np

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
    right = reference.values
    if outputs.keys() != right.keys():
        return RETURN_THE_SAME
    exchanged = _find_exchanged(outputs, reference)
    if exchanged:
        return exchanged
    name = worst_array or next((name for name in right if outputs[name].shape != right[name].shape), "")
    if name not in right:
        return ""
    other_outputs = {other: array for other, array in right.items() if other != name}
    inputs = {**_inputs(request.case), **other_outputs}
    difference = _difference(name, outputs[name], reference, inputs)
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

    Large and complex arrays are left out: `diagnose` explains neither.
    """
    workload = catalogue.find(case.workload)
    arrays = generate(workload, catalogue.parse_parameters(workload, case.parameters), case.measurement.seed)
    rounded = round_arrays(arrays, case.arithmetic)
    named = {**rounded.state, **(rounded.batches[0] if rounded.batches else {})}
    return {name: array for name, array in named.items() if array.size <= MAXIMUM_SIZE and array.dtype.kind in "biuf"}


def _find_exchanged(outputs: NamedArrays, reference: Reference) -> str:
    """Return a sentence that names two outputs if each has the other's right numbers; empty if there are none."""
    for first, second in combinations(reference.values, 2):
        # Outputs of different shapes are explained by their shapes, and empty outputs agree with anything.
        if outputs[first].shape != outputs[second].shape or not np.size(outputs[first]):
            continue
        is_wrong = any(_difference(name, outputs[name], reference, {}).wrong.any() for name in (first, second))
        exchanged = {first: outputs[second], second: outputs[first]}
        if is_wrong and all(
            _difference(name, array, reference, {}).is_corrected_by(array) for name, array in exchanged.items()
        ):
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
