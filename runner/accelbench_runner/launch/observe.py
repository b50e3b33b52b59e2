"""Run the protocol `observe`: make one call for each batch, and report what happened. Nothing is timed.

An exception that a call raises is an observation: its type and first line are reported, and the next call starts from
the same state as the call that failed. Only lack of memory and an invalid step fail the launch. `out` is what a step
returns besides the new state.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.observation import NOTHING
from accelbench.catalogue.numbers import NotNumbersError
from accelbench.catalogue.observations import MAXIMUM_CHARACTERS, MAXIMUM_OWN, NAME, STANDARD, Scalar, format_value
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import Adapter, inputs_of_calls
from accelbench_runner.frameworks.work import Work

OUT = "out"


@dataclass(frozen=True)
class Call:
    """Hold the `out` or the exception of one call, and the number of compilations during the call."""

    out: Any
    """None if the call raised an exception."""
    raised: Exception | None
    compilations: int


def observe(adapter: Adapter, program: Program, work: Work, declared: Mapping[str, str]) -> dict[str, object]:
    """Make a call for each batch; return the facts about the calls, by field of `Facts`.

    Each fact is a value, or a function that reads the value. `declared` maps each name that the program may observe to
    a description.
    """
    check_names(declared)
    calls, state = make_calls(adapter, program, work)
    return {
        "observations": observations(adapter, program, calls, declared),
        "device": lambda: adapter.device((state, work.batches, [call.out for call in calls])),
    }


def make_calls(adapter: Adapter, program: Program, work: Work) -> tuple[list[Call], Any]:
    """Make one pass over the batches; return its calls and the final state.

    After a call that raises, the next call starts from the same state.
    """
    state = work.fresh()
    work.synchronise(state)
    calls: list[Call] = []
    for inputs in inputs_of_calls(program, work):
        compilations_before = len(adapter.accounting.compilations().causes)
        out: Any = None
        raised: Exception | None = None
        try:
            result = work.call(state, inputs)
            work.check(result)
            next_state, out = result
            work.synchronise((next_state, out))
            state = next_state
        except Exception as error:
            if isinstance(error, MemoryError | InvalidWorkloadError) or adapter.out_of_memory(error):
                raise  # the launch has failed: this is no observation of the call
            out, raised = None, error
        compilations = len(adapter.accounting.compilations().causes) - compilations_before
        calls.append(Call(out, raised, compilations))
    return calls, state


def observations(
    adapter: Adapter, program: Program, calls: Sequence[Call], declared: Mapping[str, str]
) -> dict[str, Scalar]:
    """Return observations by name: the standard ones of the calls, and the program's own about the calls' results.

    Raises ValueError for an undeclared name, TypeError for a value of an invalid type, and InvalidWorkloadError if a
    step returned something other than numbers.
    """
    exceptions = [call.raised for call in calls if call.raised is not None]
    observed: dict[str, Scalar] = {
        "calls": len(calls),
        "compilations": sum(call.compilations for call in calls),
        "compilationsByCall": _format_list([call.compilations for call in calls]),
        "raised": type(exceptions[0]).__name__ if exceptions else NOTHING,
        "raisedCalls": len(exceptions),
    }
    if exceptions:
        message_lines = str(exceptions[0]).strip().splitlines()
        observed["message"] = _clip(message_lines[0] if message_lines else "")
    outs = [_to_numpy(adapter, call.out) for call in calls]
    for name, value in program.observe(outs).items():
        if name not in declared:
            raise ValueError(f"the program observes {name}, which `observes` of the workload does not name")
        observed[name] = _to_scalar(name, value)
    return observed


def check_names(declared: Mapping[str, str]) -> None:
    """Raise ValueError if a workload declares too many observations, or one with an invalid or a standard name."""
    if len(declared) > MAXIMUM_OWN:
        raise ValueError(f"a workload observes {len(declared)} things of its own, at most {MAXIMUM_OWN}")
    for name in declared:
        if name in STANDARD or not NAME.fullmatch(name):
            raise ValueError(f"{name}: taken, or no name in camelCase of at most 32 letters and digits")


def _to_numpy(adapter: Adapter, out: Any) -> Any:
    """Convert the `out` of a call to NumPy: an array, or a mapping of arrays by name.

    None and Python's own numbers, booleans and texts stay as they are.
    """
    if out is None or isinstance(out, bool | int | float | str):
        return out
    try:
        return adapter.to_numpy(out) if isinstance(out, Mapping) else adapter.to_numpy({OUT: out})[OUT]
    except NotNumbersError as error:
        raise InvalidWorkloadError(f"a step returned {error}") from error


def _to_scalar(name: str, value: Any) -> Scalar:
    """Convert an observed value to a number, a boolean or a text; a list of values becomes a text such as `1, 0, 1`.

    Raises TypeError for a value of another type; `name` is the observation's name for the message.
    """
    import numpy as np

    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()  # a number of Python's own
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # JSON has no such number
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _clip(value)
    if isinstance(value, np.ndarray | Sequence):
        return _clip(_format_list(value))
    raise TypeError(
        f"{name} is observed as a {type(value).__name__}: observe a number, a boolean, a text or a list of these"
    )


def _format_list(values: Any) -> str:
    """Format values as `1, 0, 1`. A dash stands for None: the `out` of a call that raised."""

    def format_item(value: Any) -> str:
        """Format one value."""
        return "-" if value is None else format_value(_to_scalar("a value", value))

    return ", ".join(map(format_item, values))


def _clip(text: str) -> str:
    """Shorten a text to at most `MAXIMUM_CHARACTERS`."""
    return text if len(text) <= MAXIMUM_CHARACTERS else text[: MAXIMUM_CHARACTERS - 1] + "…"
