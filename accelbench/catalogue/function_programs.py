"""Build programs of a script's functions: choose arguments, refuse changes in place, and name the results."""

import functools
import inspect
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.catalogue.arguments import (
    KEYWORD_KINDS,
    Arguments,
    call_with,
    choose_arguments,
    required_names,
    signature_of,
)
from accelbench.catalogue.pickled import unpickle
from accelbench.catalogue.results import name_results, without_dataclasses
from accelbench.catalogue.workload_checks import RESULT, InvalidWorkloadError, location, numbers_by_name, type_of
from accelbench.frameworks import Framework
from accelbench.workload import Arrays, NamedArrays, Program, Tools

VALUE_TYPES = (bool, int, float, complex, str, bytes, type(None))
CALLABLE_TYPES = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial)
CONSTANT_TYPES = (*VALUE_TYPES, *CALLABLE_TYPES)
"""Types of a setup's results that a function gets as Python constants; all other results are passed like arrays."""
SETUP = 'return {"matrix": matrix}, as in def jax(matrix, x)'


@dataclass(frozen=True)
class Setup:
    """Describe a function such as `setup_jax`, which makes further arguments of a program before anything is timed."""

    function: Callable[..., Any]

    def taken_arguments(self, arrays: Collection[str], parameters: Collection[str]) -> Arguments:
        """Return how to pass the setup function those of `arrays` and `parameters`, all names, that it takes.

        Raises InvalidWorkloadError if it takes anything else.
        """
        signature = signature_of(self.function)
        takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in signature.parameters.values())
        required = required_names(self.function, parameters) or []  # None: it can take an array of any name
        unknown_names = [name for name in required if name not in arrays]
        if unknown_names:
            raise InvalidWorkloadError(
                f"{location(self.function)} takes {', '.join(unknown_names)}, which arrays() neither returns nor "
                f"takes; there are {', '.join([*arrays, *parameters])}"
            )
        taken_arrays = [name for name in arrays if takes_all or name in signature.parameters]
        return choose_arguments(self.function, taken_arrays, parameters)

    def make(self, arrays: Mapping[str, Any], parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call the setup function, and return the program's further arguments by name; raises InvalidWorkloadError.

        `arrays` has at least the arrays that the setup function takes.
        """
        arguments = self.taken_arguments(arrays, parameters)
        call_setup = arguments.caller(unpickle(self.function), parameters)
        further_arguments = call_setup({name: arrays[name] for name in arguments.arrays})
        if not isinstance(further_arguments, Mapping):
            raise InvalidWorkloadError(
                f"{location(self.function)} returned {type_of(further_arguments)}; it has to return further arguments "
                f"by name: {SETUP}"
            )
        return further_arguments


@dataclass(frozen=True)
class Call:
    """Hold the arguments of one call of a program's function."""

    arguments: Arguments
    constants: Mapping[str, Any]
    """Parameters of `arrays()`, and Python values that a setup made."""
    batch: Mapping[str, Any]
    """Arrays, and other objects that a setup made."""


def make_build(
    function: Callable[..., Any], framework: Framework, setup: Setup | None
) -> Callable[[Mapping[str, Any], Arrays, Tools, int], Program]:
    """Return a function that builds a program which calls `function`, a function of a script.

    `setup` makes further arguments of `function`; None if there are none.
    """

    def build(parameters: Mapping[str, Any], arrays: Arrays, tools: Tools, units: int) -> Program:
        """Build a program whose step calls the function once for each batch of arrays.

        `units` is the units of work in a step.
        """
        unpickled_function = unpickle(function)
        placed_batches = [tools.put(dict(batch)) for batch in arrays.batches]
        initial_versions = [_freeze_and_read_versions(batch) for batch in placed_batches]
        names = list(arrays.batches[0])
        calls = _prepare_calls(function, setup, names, placed_batches, parameters, tools)
        callers = [_caller(unpickled_function, call, framework) for call in calls]
        batch: Any
        if len(calls) == 1:
            step, batch = _single_step(callers[0]), calls[0].batch
        else:
            step, batch = _step_over_batches(callers, calls, tools), [call.batch for call in calls]

        def export(_state: Any, out: Any) -> Mapping[str, Any]:
            """Return the results of all calls by name, for the comparison with the reference.

            Raises InvalidWorkloadError if the function changed its batch in place.
            """
            for placed_batch, versions in zip(placed_batches, initial_versions, strict=True):
                _require_unchanged(unpickled_function, placed_batch, versions)
            results = [out] if len(calls) == 1 else out  # a step over several batches returns a list
            return _name_all_results(unpickled_function, results, tools)

        # With `__wrapped__`, errors name the user's function, and its captured arrays are found.
        # `__signature__` keeps inspect from using the signature of `__wrapped__`.
        for wrapper in (step, export):
            vars(wrapper).update(__signature__=inspect.signature(wrapper), __wrapped__=unpickled_function)
        is_in_mode = len(calls) > 1  # `_step_over_batches` has applied the mode, so the adapter must not apply it again
        return Program(state={}, step=step, batches=(batch,), units=units, placed=is_in_mode, export=export)

    return build


def _caller(function: Callable[..., Any], call: Call, framework: Framework) -> Callable[[Any], Any]:
    """Return a function that calls `function` with a batch's arrays and the constants of `call`.

    Its result has dictionaries in place of dataclasses if the framework cannot return dataclasses.
    """
    caller = call.arguments.caller(function, call.constants)
    if framework.returns_dataclasses:
        return caller
    return lambda batch: without_dataclasses(caller(batch))


def _single_step(caller: Callable[[Any], Any]) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return a step that calls `caller` once and keeps the state; the adapter runs the step in the variant's mode."""

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        return state, caller(batch)

    return step


def _step_over_batches(
    callers: Sequence[Callable[[Any], Any]], calls: Sequence[Call], tools: Tools
) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Return a step that calls the function with each batch; each call, not the whole step, runs in the variant's mode.

    If the constants of all calls are equal, one compiled function takes all batches, so that it is compiled again only
    for other shapes. Otherwise each batch has a compiled function of its own.
    """
    if all(call.constants == calls[0].constants for call in calls):
        functions = [tools.in_mode(callers[0])] * len(calls)
    else:
        functions = [tools.in_mode(caller) for caller in callers]

    def step(state: Any, batches: Any) -> tuple[Any, Any]:
        return state, [function(batch) for function, batch in zip(functions, batches, strict=True)]

    return step


def _prepare_calls(
    function: Callable[..., Any],
    setup: Setup | None,
    names: Collection[str],
    batches: Sequence[Mapping[str, Any]],
    parameters: Mapping[str, Any],
    tools: Tools,
) -> list[Call]:
    """Return the arguments of the function's call for each batch; `names` are the names of a batch's arrays, in order.

    A setup that takes no array is called once for all batches.
    """
    if setup is None:
        arguments = choose_arguments(function, names, parameters)
        return [Call(arguments, parameters, batch) for batch in batches]
    taken_by_setup = setup.taken_arguments(names, parameters).arrays
    if taken_by_setup:
        setup_results = [setup.make(batch, parameters) for batch in batches]
    else:
        setup_results = [setup.make({}, parameters)] * len(batches)
    return [
        _prepare_call(function, setup_result, names, taken_by_setup, batch, parameters, tools)
        for setup_result, batch in zip(setup_results, batches, strict=True)
    ]


def _prepare_call(
    function: Callable[..., Any],
    setup_result: Mapping[str, Any],
    names: Collection[str],
    taken_by_setup: Collection[str],
    batch: Mapping[str, Any],
    parameters: Mapping[str, Any],
    tools: Tools,
) -> Call:
    """Return the arguments of the function's call for one batch, after its setup has returned `setup_result`.

    `names` are the names of the batch's arrays, and `taken_by_setup` the names of those that the setup took.
    """
    import numpy as np

    constants = {name: value for name, value in setup_result.items() if isinstance(value, CONSTANT_TYPES)}
    objects = {
        name: tools.put({name: value})[name] if isinstance(value, np.ndarray) else value
        for name, value in setup_result.items()
        if name not in constants
    }
    named_by_function = signature_of(function).parameters
    # An array that the setup took is not passed again, unless the function has a parameter of that name.
    for_setup_alone = {name for name in taken_by_setup if name not in named_by_function}
    # What the setup returned replaces an array of the same name.
    passed = [name for name in names if name not in setup_result and name not in for_setup_alone]
    all_constants = {**parameters, **constants}
    arguments = choose_arguments(function, [*objects, *passed], all_constants)
    return Call(arguments, all_constants, {**objects, **{name: batch[name] for name in passed}})


def _freeze_and_read_versions(batch: Mapping[str, Any]) -> dict[str, int | None]:
    """Make NumPy arrays read-only, and return the version of each PyTorch tensor, or None for another array.

    NumPy refuses to change a read-only array in place. PyTorch increases a tensor's version at each such change, so a
    later version shows it.
    """
    for array in batch.values():
        if hasattr(array, "setflags"):
            array.setflags(write=False)
    return {name: getattr(array, "_version", None) for name, array in batch.items()}


def _require_unchanged(
    function: Callable[..., Any], batch: Mapping[str, Any], initial_versions: Mapping[str, int | None]
) -> None:
    """Raise InvalidWorkloadError if the function changed a tensor of the batch in place.

    `initial_versions` are those that `_freeze_and_read_versions` has returned before the call.
    """
    # JAX's arrays have no `_version` and cannot change.
    changed = [name for name, array in batch.items() if getattr(array, "_version", None) != initial_versions[name]]
    if changed:
        raise InvalidWorkloadError(
            f"{location(function)} changes {', '.join(changed)} in place, and its next call would start from that; "
            "copy it first"
        )


def run_reference(
    function: Callable[..., Any], parameters: Mapping[str, Any], batches: Sequence[NamedArrays]
) -> NamedArrays:
    """Return what a NumPy function computes from the batches, by name."""
    outs = [call_with(function, batch, parameters) for batch in batches]
    return numbers_by_name(function, _name_all_results(function, outs, tools=None))


def run_canonical(
    function: Callable[..., Any],
    parameters: Mapping[str, Any],
    batches: Sequence[NamedArrays],
    outputs: NamedArrays,
) -> NamedArrays:
    """Return a script's outputs, by name, in the form in which they are compared.

    `function` is the script's `canonical`, which makes that form. It is called once for each batch: with all outputs of
    the batch, and with the inputs and parameters that it names.
    """
    outputs_by_batch = [outputs]
    if len(batches) > 1:
        outputs_by_batch = [_outputs_of_batch(outputs, index) for index in range(len(batches))]
    results = [
        _call_canonical(function, batch_outputs, {**parameters, **batch})
        for batch_outputs, batch in zip(outputs_by_batch, batches, strict=True)
    ]
    return numbers_by_name(function, _name_all_results(function, results, tools=None))


def _outputs_of_batch(outputs: NamedArrays, index: int) -> NamedArrays:
    """Return the outputs of the batch with this index, renamed from `0.y` to `y`."""
    prefix = f"{index}."
    return {name.removeprefix(prefix): array for name, array in outputs.items() if name.startswith(prefix)}


def _call_canonical(function: Callable[..., Any], outputs: NamedArrays, others: Mapping[str, Any]) -> Any:
    """Call a script's function `canonical` with the outputs, and with those of `others` that the function names.

    `others` has inputs and parameters. A single output has no name in the script: accelbench calls it `RESULT`. Unless
    the function has a parameter of that name, the output is passed as the first parameter that is not in `others`.
    """
    if outputs.keys() == {RESULT}:
        expected = signature_of(function).parameters
        free_names = [name for name in expected if name not in others and expected[name].kind in KEYWORD_KINDS]
        if RESULT not in expected and free_names:
            outputs = {free_names[0]: outputs[RESULT]}
    arguments = choose_arguments(function, outputs, [name for name in others if name not in outputs])
    return arguments.caller(unpickle(function), others)(outputs)


def _name_all_results(function: Callable[..., Any], outs: Sequence[Any], tools: Tools | None) -> dict[str, Any]:
    """Return the arrays in the function's results, by path; with several batches, as `0.y`, `1.y` and so on.

    `outs` has the result for each batch. `tools` converts Python's numbers to arrays; without it they become NumPy's.
    """
    if len(outs) == 1:
        return name_results(function, outs[0], tools)
    return {
        f"{index}.{name}": array
        for index, out in enumerate(outs)
        for name, array in name_results(function, out, tools).items()
    }
