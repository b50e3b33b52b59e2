"""Run the protocol `observe`: make one pass over the batches, a call per batch, and report what happened untimed.

An exception that a call raises is an observation: its type and first line are reported, and the next call starts from
the state before. Only lack of memory and an invalid step fail the launch.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.observation import NOTHING
from accelbench.catalogue.observations import MAXIMUM_CHARACTERS, MAXIMUM_OWN, NAME, STANDARD, Scalar, format_value
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.launch.facts import Facts
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import Adapter
from accelbench_runner.frameworks.work import Work

OUT = "out"


@dataclass(frozen=True)
class Call:
    """Hold a call's out or its exception, and the number of programs that were compiled for it."""

    out: Any
    raised: Exception | None
    compilations: int


def observe(adapter: Adapter, program: Program, work: Work, declared: Mapping[str, str]) -> Facts:
    """Make the calls; return the observations and the device of the arrays."""
    check_names(declared)
    calls, state = make_calls(adapter, program, work)
    return Facts(
        observations=observations(adapter, program, calls, declared),
        device=adapter.device((state, work.batches, [call.out for call in calls])),
    )


def make_calls(adapter: Adapter, program: Program, work: Work) -> tuple[list[Call], Any]:
    """Make a call for each batch, in order; return the calls and the final state."""
    state = work.fresh()
    work.synchronise(state)
    calls: list[Call] = []
    for batch in program.batches if program.inner == 1 else (work.batches,):
        before = len(adapter.accounting.compilations().causes)
        out: Any = None
        raised: Exception | None = None
        try:
            result = work.call(state, batch)
            work.check(result)
            after, out = result
            work.synchronise((after, out))
            state = after
        except Exception as error:
            if isinstance(error, MemoryError | InvalidWorkloadError) or adapter.out_of_memory(error):
                raise
            out, raised = None, error
        calls.append(Call(out, raised, len(adapter.accounting.compilations().causes) - before))
    return calls, state


def observations(
    adapter: Adapter, program: Program, calls: Sequence[Call], declared: Mapping[str, str]
) -> dict[str, Scalar]:
    """Return the standard and the program's observations by name; raise ValueError or TypeError for invalid ones."""
    raised = [call.raised for call in calls if call.raised is not None]
    observed: dict[str, Scalar] = {
        "calls": len(calls),
        "compilations": sum(call.compilations for call in calls),
        "compilationsByCall": _text([call.compilations for call in calls]),
        "raised": type(raised[0]).__name__ if raised else NOTHING,
        "raisedCalls": len(raised),
    }
    if raised:
        observed["message"] = _clip(next(iter(str(raised[0]).strip().splitlines()), ""))
    own = program.observe([_in_numpy(adapter, call.out) for call in calls])
    for name, value in own.items():
        if name not in declared:
            raise ValueError(f"the program observes {name}, which `observes` of the workload does not name")
        observed[name] = _scalar(name, value)
    return observed


def check_names(declared: Mapping[str, str]) -> None:
    """Raise ValueError for too many names, and for names that a result cannot hold."""
    if len(declared) > MAXIMUM_OWN:
        raise ValueError(f"a workload observes {len(declared)} things of its own, at most {MAXIMUM_OWN}")
    for name in declared:
        if name in STANDARD or not NAME.fullmatch(name):
            raise ValueError(f"{name}: taken, or no name in camelCase of at most 32 letters and digits")


def _in_numpy(adapter: Adapter, out: Any) -> Any:
    """Return an out with its arrays in NumPy; Python scalars, texts and None are unchanged."""
    if out is None or isinstance(out, bool | int | float | str):
        return out
    return adapter.to_numpy(out) if isinstance(out, Mapping) else adapter.to_numpy({OUT: out})[OUT]


def _scalar(name: str, value: Any) -> Scalar:
    """Return an observed value as a result holds it, lists as text; raise TypeError for other types."""
    import numpy as np

    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _clip(value)
    if isinstance(value, np.ndarray | Sequence):
        return _clip(_text(value))
    raise TypeError(f"{name} is observed as a {type(value).__name__}: a number, a truth, a text or a list of these")


def _text(values: Any) -> str:
    """Format values as `1, 0, 1`, with a dash for a call that raised."""
    return ", ".join("-" if value is None else format_value(_scalar("a value", value)) for value in values)


def _clip(text: str) -> str:
    """Shorten a text to `MAXIMUM_CHARACTERS`, with an ellipsis."""
    return text if len(text) <= MAXIMUM_CHARACTERS else text[: MAXIMUM_CHARACTERS - 1] + "…"
