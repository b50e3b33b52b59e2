"""Count the operations of a jaxpr, and those that a compiler may leave out: repeated, constant and unused ones.

Each equation becomes a value, and equations that compute the same share a value. A value is needed if the program's
results depend on it. A value in a loop that does not change from run to run is needed once.

`jax.grad` and the like also compute the value of the function that they differentiate, even if the program does not use
it. These operations are the framework's, not the author's, so they are counted separately.
"""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import jax

from accelbench_runner.frameworks.jaxpr_arithmetic import count_equation
from accelbench_runner.frameworks.xla_operations import UncountableError, common_count, executed_jaxprs

CALLS = {
    *("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint", "custom_jvp_call"),
    *("custom_vjp_call", "custom_vjp_call_jaxpr", "custom_vmap_call", "linear_call", "shard_map"),
}
"""Primitives that run a jaxpr once, on their operands."""
COMMUTATIVE = {"add", "add_any", "mul", "max", "min", "and", "or", "eq", "ne"}
COPYING = {"broadcast_in_dim", "convert_element_type", "copy", "reshape", "squeeze"}
"""Primitives whose result consists of the same number as their operand, if that is one number."""
INDEXING = {"add": operator.add, "sub": operator.sub, "lt": operator.lt, "ge": operator.ge}
"""Primitives by which JAX computes indices."""
JOINING = {"concatenate": "dimension", "stack": "axis"}
"""Primitives that join arrays, and their parameter that holds the dimension."""
SLICING = {"slice", "dynamic_slice"}
PLATFORMS = {"gpu": ("cuda", "rocm", "gpu")}
"""Names of a backend in `lax.platform_dependent`, if they are others than the backend's own."""

Transform = Literal["jvp", "transpose"]
"""Step of differentiation: `jvp` computes a function and linearises it, `transpose` makes the gradient of that."""


@dataclass(frozen=True)
class WrittenOperations:
    """Hold the floating-point operations of a program, and how many of these need not run."""

    written: float | None = None
    """All operations; None if they depend on data."""
    unneeded: float = 0.0
    """Operations of functions that are differentiated, if only the derivative is used."""
    dropped: float = 0.0
    """Other operations that no result depends on."""
    repeated: float = 0.0
    """Operations that repeat another operation, or compute the same in each iteration of a loop."""
    constant: float = 0.0
    """Operations that depend on no input."""


class _Joined(NamedTuple):
    """Describe an array that was concatenated or stacked: along which dimension, and the index where each part ends."""

    dimension: int
    ends: tuple[int, ...]


class _Loop(NamedTuple):
    """Hold how often a loop's body runs in a call, and how deep the loop is nested."""

    runs: float
    depth: int


_NO_LOOP = _Loop(1.0, 0)


@dataclass(eq=False)  # a value equals only itself, so values can be in sets
class _Value:
    """Hold a value of the program, and the operations that compute it from its inputs."""

    inputs: list["_Value"] = field(default_factory=list)
    operations: float = 0.0
    """Operations of computing it once."""
    written: float = 0.0
    """Operations of computing it as often as the program says."""
    loop: _Loop = _NO_LOOP
    """The innermost loop in which the value can change from run to run."""
    constant: bool = False
    transform: Transform | None = None
    """Step of differentiation that made the equation; None if the author wrote it."""
    number: bool | int | None = None
    """The integer to which every element is equal; None if unknown."""
    joined: _Joined | None = None
    """How the value was concatenated or stacked from its inputs; None if it was not."""


def count_jaxpr(jaxpr: Any) -> WrittenOperations:
    """Count the floating-point operations of a jaxpr, and how many of these need not run.

    Return empty counts if the number of operations depends on data, as that of a `while` loop does.
    """
    try:
        program = _Program(jaxpr)
    except UncountableError:
        return WrittenOperations()
    return program.count()


class _Program:
    """Hold the values of a jaxpr."""

    def __init__(self, jaxpr: Any) -> None:
        """Make the values; raises UncountableError if the number of operations depends on data."""
        self.values: list[_Value] = []
        self._value_by_key: dict[Any, Any] = {}
        """Values, by the operation and the operands that compute them. A scan has a list of values."""
        self._roots: list[_Value] = []
        """Values that have to be computed: the program's results, and those that have effects."""
        arguments = [self._add(_Value()) for _ in jaxpr.invars]
        self._roots += self._evaluate(jaxpr, arguments, runs=1.0, transform=None)

    def count(self) -> WrittenOperations:
        """Add up all operations, and separately those that need not run, by the fields of `WrittenOperations`."""
        needed = self._needed_values()
        differentiates = any(value.transform for value in needed)
        counts: dict[str, list[float]] = {"unneeded": [], "dropped": [], "repeated": [], "constant": []}
        for value in self.values:
            if value not in needed:
                # `jax.grad` also computes the value of the function, even if only the derivative is used.
                is_unneeded = differentiates and value.transform == "jvp"
                counts["unneeded" if is_unneeded else "dropped"].append(value.written)
            elif value.constant:
                # The derivative of a linear function is constant, and the author did not write it.
                is_unneeded = value.transform is not None
                counts["unneeded" if is_unneeded else "constant"].append(value.written)
            else:
                # A value is needed once in each run of the loop on which it depends.
                needed_operations = value.operations * value.loop.runs
                counts["repeated"].append(value.written - needed_operations)
        written = math.fsum(value.written for value in self.values)
        # Rounding must not make a sum negative.
        sums = {field_name: max(0.0, math.fsum(terms)) for field_name, terms in counts.items()}
        return WrittenOperations(written, **sums)

    def _needed_values(self) -> set[_Value]:
        """Return the values on which the program's results and effects depend, directly or through other values."""
        needed: set[_Value] = set()
        unvisited = list(self._roots)
        while unvisited:
            value = unvisited.pop()
            if value not in needed:
                needed.add(value)
                unvisited += value.inputs
        return needed

    def _add(self, value: _Value) -> _Value:
        """Add a new value to the program, and return it."""
        self.values.append(value)
        return value

    def _evaluate(
        self, jaxpr: Any, arguments: Sequence[_Value], runs: float, transform: Transform | None
    ) -> list[_Value]:
        """Return the values of a jaxpr's results.

        Args:
            jaxpr: The jaxpr.
            arguments: The values of its input variables.
            runs: How often the jaxpr runs in a call of the program.
            transform: Step of differentiation that made the equation which calls the jaxpr; None if there is none.
        """
        values: dict[Any, _Value] = dict(zip(jaxpr.invars, arguments, strict=True))
        for variable in jaxpr.constvars:
            values[variable] = self._find_or_add(("array", id(variable)), _Value(constant=True))

        def read(atom: Any) -> _Value:
            """Return the value of an operand, which is a literal or a variable."""
            return self._literal(atom) if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            inputs = [read(atom) for atom in equation.invars]
            # If differentiation made the equation that calls this jaxpr, it made the jaxpr's equations too.
            equation_transform = transform or _transform_of(equation)
            results = self._evaluate_equation(equation, inputs, runs, equation_transform)
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _literal(self, literal: Any) -> _Value:
        """Return the value of a literal, which is a constant in a jaxpr; equal literals share a value."""
        content = literal.val
        if getattr(content, "ndim", 0):  # an array: only the same object counts as equal
            return self._find_or_add(("array", id(content)), _Value(constant=True))
        is_integer = getattr(literal.aval.dtype, "kind", "") in "biu"  # NumPy's codes of booleans and integers
        integer = int(content) if is_integer else None  # floats are not needed: `number` is used as an index
        return self._find_or_add(("literal", str(literal.aval), str(content)), _Value(constant=True, number=integer))

    def _find_or_add(self, key: Any, value: _Value) -> _Value:
        """Return the value that was added under `key`; if there is none, add this value and return it.

        A key names an operation and its operands, so that equal computations share a value.
        """
        if key not in self._value_by_key:
            self._value_by_key[key] = self._add(value)
        shared: _Value = self._value_by_key[key]
        return shared

    def _evaluate_equation(
        self, equation: Any, inputs: list[_Value], runs: float, transform: Transform | None
    ) -> Sequence[_Value]:
        """Return the values of an equation's results; evaluate the jaxpr of a scan, a call or a branch that is known.

        Args:
            equation: The equation.
            inputs: The values of its operands.
            runs: How often the equation runs in a call of the program.
            transform: Step of differentiation that made the equation; None if the author wrote it.
        """
        name = equation.primitive.name
        inner = list(executed_jaxprs(equation))
        if name == "scan":
            return self._evaluate_scan(equation, inner[0], inputs, runs, transform)
        if name == "custom_linear_solve":
            # The inputs are the constants of four functions, then the right-hand sides. Only `solve` runs.
            lengths = equation.params["const_lengths"]
            start = lengths.matvec + lengths.vecmat
            end = start + lengths.solve
            solve_constants, right_hand_sides = inputs[start:end], inputs[end + lengths.transpose_solve :]
            return self._evaluate(inner[0], solve_constants + right_hand_sides, runs, transform)
        if name == "cond" and (branch := _branch_of_platform(equation, inner)):
            return self._evaluate(branch, inputs[1:], runs, transform)  # the first input is the index of the branch
        if name in CALLS and len(inner) == 1 and len(inner[0].invars) == len(inputs):  # each operand is an argument
            return self._evaluate(inner[0], inputs, runs, transform)
        if name == "select_n" and inputs[0].number is not None:  # the first input is the index of the selected input
            return [inputs[1 + inputs[0].number]]
        return self._evaluate_opaque(equation, inputs, runs, transform)

    def _evaluate_opaque(
        self, equation: Any, inputs: list[_Value], runs: float, transform: Transform | None
    ) -> list[_Value]:
        """Return the values of an equation's results, without evaluating jaxprs that the equation calls.

        The operations of such jaxprs are counted as operations of the equation.
        """
        name = equation.primitive.name
        identities = [id(value) for value in inputs]
        if name in COMMUTATIVE:
            identities.sort()  # so that `a + b` and `b + a` have the same key
        key = (name, str(equation.params), *identities)
        constant = all(value.constant for value in inputs)
        operations = _count_with_calls(equation)
        is_single_number = all(math.prod(getattr(out.aval, "shape", ())) <= 1 for out in equation.outvars)
        if constant and is_single_number:
            operations = 0.0  # a constant that the program writes as a formula, such as `sqrt(2 / pi)`
        value = self._find_or_add(
            key,
            _Value(
                inputs=_needed_inputs(equation, inputs),
                operations=operations,
                loop=_innermost_loop(inputs),
                constant=constant,
                transform=transform,
                number=_common_integer(name, inputs),
                joined=_describe_join(equation),
            ),
        )
        value.written += runs * operations
        if equation.effects:
            self._roots.append(value)
        if len(equation.outvars) == 1:
            return [value]
        # `value` represents the whole equation. Each of its results becomes a value that depends on it.
        return [
            self._find_or_add(
                (id(value), position), _Value([value], loop=value.loop, constant=constant, transform=transform)
            )
            for position in range(len(equation.outvars))
        ]

    def _evaluate_scan(
        self, equation: Any, body: Any, inputs: list[_Value], runs: float, transform: Transform | None
    ) -> list[_Value]:
        """Return the values of a scan's results: the final state, and the stacked outputs of all iterations.

        `body` is the jaxpr that the scan repeats. `inputs` are constants, the initial state, and arrays of which each
        iteration takes a row.
        """
        parameters = equation.params
        constant_count, state_count = parameters["num_consts"], parameters["num_carry"]
        length = int(parameters["length"])
        outer_loop, constant = _innermost_loop(inputs), all(value.constant for value in inputs)
        inner_loop = _Loop(outer_loop.runs * length, outer_loop.depth + 1)
        key = ("scan", str(parameters), *map(id, inputs))
        constants = inputs[:constant_count]
        initial_states = inputs[constant_count : constant_count + state_count]
        arrays = inputs[constant_count + state_count :]
        if key not in self._value_by_key:  # an equal scan has the same values
            states = []
            for position, initial in enumerate(initial_states):
                # A state that the body returns as it is has the same value in every iteration.
                is_unchanged = body.outvars[position] is body.invars[constant_count + position]
                states.append(initial if is_unchanged else _Value([initial], loop=inner_loop))
            rows = [_Value([array], loop=inner_loop, constant=array.constant) for array in arrays]
            self._value_by_key[key] = [*states, *rows]
        states_and_rows: list[_Value] = self._value_by_key[key]
        states = states_and_rows[:state_count]
        returned = self._evaluate(body, [*constants, *states_and_rows], runs * length, transform)
        # The body returns the next states first, then its outputs, which have no state (so `strict` is False).
        for state, initial, next_state in zip(states, initial_states, returned, strict=False):
            if state is not initial:
                state.inputs.append(next_state)  # each iteration begins with the state that the one before returned
        results = []
        for position, output in enumerate(returned):
            is_state = position < state_count
            result_inputs = [initial_states[position], output] if is_state else [output]
            result = _Value(result_inputs, loop=outer_loop, constant=constant, transform=transform)
            results.append(self._find_or_add((*key, position), result))
        return results


def _count_with_calls(equation: Any) -> float:
    """Count the operations of an equation, with those of jaxprs that it calls.

    Raises UncountableError if their number depends on data.
    """
    inner = list(executed_jaxprs(equation))
    if equation.primitive.name == "cond":
        return common_count([_count_jaxpr(branch) for branch in inner])
    if equation.primitive.name == "while":
        if any(map(_count_jaxpr, inner)):
            raise UncountableError  # a jaxpr does not hold a while loop's length
        return 0.0
    operations = count_equation(equation)
    if operations or equation.primitive.name.startswith(("reduce", "scatter", "select_and", "sort")):
        return operations  # these call a jaxpr that combines two numbers, and `count_equation` counts all of its runs
    return math.fsum(map(_count_jaxpr, inner))


def _count_jaxpr(jaxpr: Any) -> float:
    """Count all operations of a jaxpr, with those that need not run."""
    return math.fsum(value.written for value in _Program(jaxpr).values)


def _innermost_loop(values: Sequence[_Value]) -> _Loop:
    """Return the most deeply nested loop on which any of the values depends."""
    return max((value.loop for value in values), key=lambda loop: loop.depth, default=_NO_LOOP)


def _transform_of(equation: Any) -> Transform | None:
    """Return the outermost step of differentiation, `jvp` or `transpose`, that made an equation; None if none did."""
    for item in equation.source_info.name_stack.stack:
        is_transform = type(item).__name__ == "Transform"  # and not a scope that the author has named
        if is_transform and item.name == "jvp":
            return "jvp"
        if is_transform and item.name == "transpose":
            return "transpose"
    return None


def _branch_of_platform(equation: Any, branches: Sequence[Any]) -> Any:
    """Return the branch of `lax.platform_dependent` for this platform.

    Returns None if the data decide which branch runs, or if no branch is for this platform.
    """
    platforms = equation.params.get("branches_platforms")
    if not platforms:  # `lax.cond` or `lax.switch`
        return None
    backend = jax.default_backend()
    names = PLATFORMS.get(backend, (backend,))
    for platform, branch in zip(platforms, branches, strict=True):
        if platform is None or any(name in platform for name in names):  # None marks the default branch
            return branch
    return None


def _describe_join(equation: Any) -> _Joined | None:
    """Return where each operand ends in the result of a concatenation or a stack; None for other equations."""
    parameter = JOINING.get(equation.primitive.name)
    if parameter is None:
        return None
    axis = equation.params[parameter]
    ends = []
    end = 0
    for variable in equation.invars:
        # Along the new dimension that a stack makes, each operand has length 1.
        end += 1 if equation.primitive.name == "stack" else variable.aval.shape[axis]
        ends.append(end)
    return _Joined(axis, tuple(ends))


def _common_integer(name: str, inputs: Sequence[_Value]) -> int | None:
    """Return the integer that every element of a primitive's result is equal to; None if that is unknown.

    Only primitives that copy numbers, or with which JAX computes indices, are evaluated.
    """
    numbers = [value.number for value in inputs]
    if not numbers or None in numbers:
        return None
    if name in COPYING:
        return numbers[0]
    return int(INDEXING[name](*numbers)) if name in INDEXING else None


def _needed_inputs(equation: Any, inputs: list[_Value]) -> list[_Value]:
    """Return the values that an equation needs: its inputs or, for a slice of joined arrays, those that it overlaps.

    The start indices of a `dynamic_slice` are then left out: they are integers, whose operations do not count.
    """
    if equation.primitive.name not in SLICING or inputs[0].joined is None:
        return inputs
    axis, ends = inputs[0].joined
    if equation.primitive.name == "slice":
        slice_start, slice_end = equation.params["start_indices"][axis], equation.params["limit_indices"][axis]
    else:
        size = equation.params["slice_sizes"][axis]
        index = inputs[1 + axis].number  # a `dynamic_slice` has its start indices as operands
        if index is None:
            return inputs  # the data decide which arrays the slice overlaps
        slice_start = max(0, min(index, ends[-1] - size))  # `dynamic_slice` moves a slice that would leave the array
        slice_end = slice_start + size
    starts = (0, *ends[:-1])
    return [
        array
        for array, start, end in zip(inputs[0].inputs, starts, ends, strict=True)
        if start < slice_end and end > slice_start
    ]
