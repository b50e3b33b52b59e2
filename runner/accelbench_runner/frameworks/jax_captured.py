"""Convert the modules and arrays that a function captures to the policy's type, and pass Flax's modules as state.

A compiled function cannot change a module that it captures, and `nnx.grad` accepts modules only as arguments. So a step
that captures objects of nnx is replaced by a step that takes their arrays as its state and returns them, as `nnx.jit`
does. Without a compiler, the objects change in place, and each block starts from their initial arrays.

A user's script may have a setup function, which makes further arguments of the step, such as a module. They are in
every batch, by name.
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
"""Converted arrays of this process, by `id`, each with its original, which another adapter converts again."""


class JaxCaptured:
    """Convert the arrays and modules that functions capture, pass modules as state, and restore them."""

    def __init__(self, dtype: Any, rounded: Any) -> None:
        """Prepare to convert captured floats: round each to the type `rounded`, then store it as `dtype`.

        The types differ only for a run in float64 that is compared with launches in a narrower type.
        """
        self._dtype, self._rounded = jnp.dtype(dtype), jnp.dtype(rounded)
        self._variables: dict[int, tuple[Any, Any]] = {}
        """Variables of nnx, each with its initial array."""

    def convert_captured(self, program: Program, *, compiles: bool) -> Program:
        """Convert the floats that a program's step captures, or gets from its setup, to the policy's type, in place.

        If the variant `compiles`, return a program with the modules of nnx in its state; otherwise return `program`.
        """
        captured = list(find_places(program.step, self._is_wanted))
        from_setup = list(find_arguments(program.batches, self._is_wanted))
        for place in captured:
            self._convert_value(place, self._in_policy_type)
        for place in from_setup:
            self._convert_value(place, self._in_policy_type_unless_done)
        captured_modules = [place for place in captured if not isinstance(place.value, jax.Array)]
        module_arguments = {place.name: place.value for place in from_setup if _is_module_argument(place, program)}
        if compiles and (captured_modules or module_arguments):
            return _move_modules_to_state(program, captured_modules, module_arguments)
        return program

    def _convert_value(self, place: Place, convert: Callable[[Any], Any]) -> None:
        """Convert an array, or each variable of a module of nnx, in place; keep initial arrays for `restore`."""
        if isinstance(place.value, jax.Array):
            place.replace(convert(place.value))
            return
        for variable in _variables_in(place.value):
            if id(variable) not in self._variables:
                variable.set_value(convert(variable.get_value()))
                self._variables[id(variable)] = (variable, variable.get_value())

    def restore(self) -> None:
        """Store the initial arrays in the variables of captured modules that calls have changed."""
        for variable, initial in self._variables.values():
            if variable.get_value() is not initial:
                variable.set_value(initial)

    def _is_wanted(self, value: Any) -> bool:
        """Return True for values to convert: arrays, and modules, optimizers and variables of Flax's nnx."""
        if isinstance(value, jax.Array):
            return not isinstance(value, jax.core.Tracer)  # a tracer has no numbers
        nnx = _nnx()
        return nnx is not None and isinstance(value, nnx.Pytree | nnx.Variable)

    def _in_policy_type(self, array: Any) -> Any:
        """Return an array of float32 or float64 rounded and stored as the constructor says; other arrays unchanged."""
        # If another adapter converted this array, convert its original, so that no number is rounded twice.
        _, original = _originals.get(id(array), (array, array))
        if not isinstance(original, jax.Array) or original.dtype not in WIDE:
            return array
        if original.dtype == self._dtype == self._rounded:
            return original
        converted = original.astype(self._rounded).astype(self._dtype)
        _originals[id(converted)] = (converted, original)
        return converted

    def _in_policy_type_unless_done(self, array: Any) -> Any:
        """Convert an array of the workload's setup, unless the setup has computed it in the policy's type."""
        return array if array.dtype == self._dtype else self._in_policy_type(array)


def _nnx() -> ModuleType | None:
    """Return flax.nnx if the program has imported it, else None: importing it takes seconds."""
    return sys.modules.get("flax.nnx")


def _variables_in(module: Any) -> Iterator[Any]:
    """Yield the variables of a module or an optimizer of Flax's nnx; of a variable, yield the variable itself."""
    nnx: Any = _nnx()
    if isinstance(module, nnx.Variable):
        yield module
        return
    for _path, node in nnx.iter_graph(module):
        if isinstance(node, nnx.Variable):
            yield node


def _is_module_argument(place: Place, program: Program) -> bool:
    """Return True if the value in a place is an argument of the program's step, and a module rather than an array."""
    # The name of a place inside an argument, such as `layers[0]`, is no name of an argument.
    return place.name in program.batches[0] and not isinstance(place.value, jax.Array)


def _move_modules_to_state(program: Program, places: Sequence[Place], arguments: Mapping[str, Any]) -> Program:
    """Return the program with the arrays of its Flax modules in the state, because a jitted step cannot change modules.

    `places` are where the step captures modules; `arguments` are the modules that it takes as arguments, by name. The
    new state is `(the program's own state, arrays)`.
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
        """Build modules from the arrays in the state, run the step on them, and return their new arrays as state."""
        program_state, arrays = state
        new_modules = nnx.merge(definition, jax.tree.unflatten(structure, arrays))

        def new_module(module: Any) -> Any:
            """Return the new module in place of a module of the program."""
            return new_modules[positions[id(module)]]

        new_arguments = {name: new_module(module) for name, module in arguments.items()}
        with _replaced(places, list(map(new_module, _values(places)))):
            next_state, out = step(program_state, {**batch, **new_arguments})
        variables = dict(nnx.to_flat_state(nnx.state(new_modules)))
        # Leave out variables that the step has added to the modules, because a state must keep its structure.
        next_variables = nnx.State.from_flat_path({path: variables[path] for path in paths})
        next_arrays = [_cast_like(new, old) for new, old in zip(jax.tree.leaves(next_variables), arrays, strict=True)]
        return (next_state, next_arrays), out

    vars(lifted_step).update(__signature__=inspect.signature(step), __wrapped__=step)  # `inspect` shows the step
    batches = [{name: value for name, value in batch.items() if name not in arguments} for batch in program.batches]
    return replace(
        program,
        state=(program.state, initial_arrays),
        step=lifted_step,
        batches=batches,
        export=lambda state, out: program.export(state[0], out),
    )


def _values(places: Sequence[Place]) -> list[Any]:
    """Return the values in the places."""
    return [place.value for place in places]


@contextmanager
def _replaced(places: Sequence[Place], values: Sequence[Any]) -> Iterator[None]:
    """Return a context in which the places hold `values`; at its end, each place gets its own value back."""
    for place, value in zip(places, values, strict=True):
        place.replace(value)
    try:
        yield
    finally:
        for place in places:
            place.replace(place.value)  # `place.value` is still the value with which the place was found


def _cast_like(new: Any, old: Any) -> Any:
    """Return the new array in the type of the old one: for a state of another type, JAX would compile the step again.

    Numbers that are stored into an existing array take its type too.
    """
    return new if new.dtype == old.dtype else new.astype(old.dtype)
