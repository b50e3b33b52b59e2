"""Give the modules and arrays that a function captures the policy's type, and pass Flax's modules as state.

A compiled function cannot change a module that it captures, and `nnx.grad` refuses one: Flax wants it as an argument.
So a step that captures nnx's objects becomes one that takes their arrays as its state and returns them, as `nnx.jit`
does. Without a compiler, the objects change in place, and each block starts from their initial arrays.
"""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp

from accelbench.workload import Program
from accelbench_runner.frameworks.captured import Place, find_arguments, find_places

WIDE = {jnp.dtype("float32"), jnp.dtype("float64")}
"""Types that are converted; a narrower type was chosen on purpose."""
_originals: dict[int, tuple[jax.Array, jax.Array]] = {}
"""Results of conversion in this process, by `id`, each with its original: another adapter converts that again."""


class JaxCaptured:
    """Convert, lift and restore what functions capture."""

    def __init__(self, dtype: Any, rounded: Any) -> None:
        """Prepare to convert captured floats: each is rounded to the type `rounded`, then stored as `dtype`."""
        self._dtype, self._rounded = jnp.dtype(dtype), jnp.dtype(rounded)
        self._variables: dict[int, tuple[Any, Any]] = {}
        """Variables of nnx, each with its initial array."""

    def adopt(self, program: Program, *, compiles: bool) -> Program:
        """Convert the floats that the program's step captures to the policy's type, in their places.

        If it `compiles`, return a program whose state contains the objects of nnx; otherwise return it unchanged.
        """
        captured = list(find_places(program.step, self._is_wanted))
        from_setup = list(find_arguments(program.batches, self._is_wanted))
        for place in captured:
            self._convert(place, self._in_policy)
        for place in from_setup:
            # What a setup made of the inputs in the policy's type is right as it is.
            self._convert(place, lambda array: array if array.dtype == self._dtype else self._in_policy(array))
        modules = [place for place in captured if not isinstance(place.value, jax.Array)]
        arguments = {place.name: place.value for place in from_setup if _is_module_argument(place, program)}
        if compiles and (modules or arguments):
            return _lift(program, modules, arguments)
        return program

    def _convert(self, place: Place, convert: Callable[[Any], Any]) -> None:
        """Convert the array, or each variable of the nnx object, in a place; remember the variables' initial arrays."""
        if isinstance(place.value, jax.Array):
            place.replace(convert(place.value))
            return
        for variable in _variables_in(place.value):
            if id(variable) not in self._variables:
                variable.set_value(convert(variable.get_value()))
                self._variables[id(variable)] = (variable, variable.get_value())

    def restore(self) -> None:
        """Store the initial arrays in the variables of nnx that calls have changed."""
        for variable, initial in self._variables.values():
            if variable.get_value() is not initial:
                variable.set_value(initial)

    def _is_wanted(self, value: Any) -> bool:
        """Return True for arrays, and for modules, optimizers and variables of nnx."""
        if isinstance(value, jax.Array):
            return not isinstance(value, jax.core.Tracer)
        nnx = _nnx()
        return nnx is not None and isinstance(value, nnx.Pytree | nnx.Variable)

    def _in_policy(self, array: Any) -> Any:
        """Return an array in the policy's type; the same one if it has it already, or a type chosen on purpose."""
        # An array that was converted before is converted from its original, so that it is not rounded twice.
        _, original = _originals.get(id(array), (array, array))
        if not isinstance(original, jax.Array) or original.dtype not in WIDE:
            return array
        if original.dtype == self._dtype == self._rounded:
            return original
        converted = original.astype(self._rounded).astype(self._dtype)
        _originals[id(converted)] = (converted, original)
        return converted


def _nnx() -> ModuleType | None:
    """Return flax.nnx if the program has imported it; importing it takes seconds."""
    return sys.modules.get("flax.nnx")


def _variables_in(module: Any) -> Iterator[Any]:
    """Yield the variables of a module or an optimizer."""
    nnx: Any = _nnx()
    if isinstance(module, nnx.Variable):
        yield module
        return
    for _path, node in nnx.iter_graph(module):
        if isinstance(node, nnx.Variable):
            yield node


def _is_module_argument(place: Place, program: Program) -> bool:
    """Return True for a module of nnx, and not an array, that is itself an argument of the step."""
    return place.name in program.batches[0] and not isinstance(place.value, jax.Array)


def _lift(program: Program, places: Sequence[Place], arguments: Mapping[str, Any]) -> Program:
    """Return a program with the state `(the program's own state, arrays of modules of nnx)`.

    The modules are those that the step captures, in `places`, and those that it takes as `arguments`, by name.
    """
    nnx: Any = _nnx()
    unique_modules = {id(module): module for module in [*_values(places), *arguments.values()]}
    modules = tuple(unique_modules.values())
    positions = {id(module): position for position, module in enumerate(modules)}
    definition, initial = nnx.split(modules)
    initial_arrays, structure = jax.tree.flatten(initial)
    paths = [path for path, _variable in nnx.to_flat_state(initial)]
    step: Callable[[Any, Any], tuple[Any, Any]] = program.step

    def lifted_step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Run the step on new modules that are made of the state's arrays; return what it makes of the arrays."""
        program_state, arrays = state
        new_modules = nnx.merge(definition, jax.tree.unflatten(structure, arrays))
        new_arguments = {name: new_modules[positions[id(module)]] for name, module in arguments.items()}
        with _replaced(places, [new_modules[positions[id(module)]] for module in _values(places)]):
            next_state, out = step(program_state, {**batch, **new_arguments})
        variables = dict(nnx.to_flat_state(nnx.state(new_modules)))
        # Without the variables that the step has added: a state keeps its structure.
        kept = nnx.State.from_flat_path({path: variables[path] for path in paths})
        changed_arrays = jax.tree.leaves(kept)
        return (next_state, [_cast_like(new, old) for new, old in zip(changed_arrays, arrays, strict=True)]), out

    vars(lifted_step).update(__signature__=inspect.signature(step), __wrapped__=step)  # `inspect` shows the step
    return replace(
        program,
        state=(program.state, initial_arrays),
        step=lifted_step,
        batches=[{name: value for name, value in batch.items() if name not in arguments} for batch in program.batches],
        export=lambda state, out: program.export(state[0], out),
    )


def _values(places: Sequence[Place]) -> list[Any]:
    """Return the values in the places."""
    return [place.value for place in places]


@contextmanager
def _replaced(places: Sequence[Place], values: Sequence[Any]) -> Iterator[None]:
    """Store `values` in the places while the context is open, and then their own values again."""
    for place, value in zip(places, values, strict=True):
        place.replace(value)
    try:
        yield
    finally:
        for place in places:
            place.replace(place.value)  # a place remembers the value with which it was found


def _cast_like(new: Any, old: Any) -> Any:
    """Return the new array in the type of the old one.

    A change in place would keep the type too. For another type, JAX would compile the next call again.
    """
    return new if new.dtype == old.dtype else new.astype(old.dtype)
