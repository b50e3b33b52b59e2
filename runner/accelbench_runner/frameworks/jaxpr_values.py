"""Count the operations of a jaxpr, and those that a compiler may leave out: repeated, constant and unused ones.

Each equation becomes a value, and equations that compute the same share one. What the results depend on is needed. A
value in a loop that depends on nothing in the loop is needed once.

`jax.grad` and the like also compute the value of the function that they differentiate, which often nobody uses. These
operations are the framework's, not the author's, and are counted apart.
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


@dataclass(frozen=True)
class WrittenOperations:
    """Hold the floating-point operations of a program, and shares of them that need not run."""

    written: float | None = None
    """All operations; None if they depend on data."""
    unneeded: float = 0.0
    """Operations of functions that are differentiated, if only the derivative is used."""
    dropped: float = 0.0
    """Other operations that no result depends on."""
    repeated: float = 0.0
    """Operations that compute what another one computes, or the same in each run of a loop."""
    constant: float = 0.0
    """Operations that depend on no input."""


class _Joined(NamedTuple):
    """Describe an array that was joined from others: along which dimension, and where each of them ends there."""

    dimension: int
    ends: tuple[int, ...]


class _Loop(NamedTuple):
    """Hold how often a loop's body runs in a call, and how deep the loop is nested."""

    runs: float
    depth: int


_NO_LOOP = _Loop(1.0, 0)


@dataclass(eq=False)
class _Value:
    """Hold a value of the program, and the operations that compute it from its inputs."""

    inputs: list["_Value"] = field(default_factory=list)
    operations: float = 0.0
    """Operations of computing it once."""
    written: float = 0.0
    """Operations of computing it as often as the program says."""
    loop: _Loop = _NO_LOOP
    """The innermost loop whose runs give it different numbers."""
    constant: bool = False
    transform: Transform | None = None
    """Step of differentiation that made the equation; None if the author wrote it."""
    number: bool | int | None = None
    """The integer that every element is; None if unknown."""
    joined: _Joined | None = None
    """How it was joined from its inputs; None if it was not."""


def count_jaxpr(jaxpr: Any) -> WrittenOperations:
    """Count the floating-point operations of a jaxpr, and those that need not run.

    The counts are empty if they depend on data.
    """
    try:
        program = _Program(jaxpr)
    except UncountableError:
        return WrittenOperations()
    return program.count()


class _Program:
    """Hold the values of a jaxpr."""

    def __init__(self, jaxpr: Any) -> None:
        """Make the values; raises UncountableError if operations depend on data."""
        self.values: list[_Value] = []
        self._known: dict[Any, Any] = {}
        """Values, and the loops' values, by what they are computed from."""
        self._roots: list[_Value] = []
        """Values that have effects."""
        arguments = [self._add(_Value()) for _ in jaxpr.invars]
        self._roots += self._evaluate(jaxpr, arguments, 1.0, None)

    def count(self) -> WrittenOperations:
        """Add up all operations, and those that need not run, by reason."""
        needed = self._needed()
        derives = any(value.transform for value in needed)
        counts: dict[str, list[float]] = {"unneeded": [], "dropped": [], "repeated": [], "constant": []}
        for value in self.values:
            if value not in needed:
                # The value of a differentiated function, of which only the derivative is used.
                is_unneeded = derives and value.transform == "jvp"
                counts["unneeded" if is_unneeded else "dropped"].append(value.written)
            elif value.constant:
                # The gradient of a linear function is constant, and no author wrote it.
                is_unneeded = value.transform is not None
                counts["unneeded" if is_unneeded else "constant"].append(value.written)
            else:
                needed_operations = value.operations * value.loop.runs
                counts["repeated"].append(value.written - needed_operations)
        written = math.fsum(value.written for value in self.values)
        return WrittenOperations(written, **{reason: max(0.0, math.fsum(terms)) for reason, terms in counts.items()})

    def _needed(self) -> set[_Value]:
        """Return the values on which the program's results and effects depend, directly or not."""
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
        """Return the results of a jaxpr.

        Args:
            jaxpr: The jaxpr.
            arguments: The values of its variables.
            runs: How often it runs in a call of the program.
            transform: Step of differentiation that made the equation which calls the jaxpr; None if there is none.
        """
        values: dict[Any, _Value] = dict(zip(jaxpr.invars, arguments, strict=True))
        for variable in jaxpr.constvars:
            values[variable] = self._share(("array", id(variable)), _Value(constant=True))

        def read(atom: Any) -> _Value:
            """Return the value of an operand, which is a literal or a variable."""
            return self._literal(atom) if hasattr(atom, "val") else values[atom]

        for equation in jaxpr.eqns:
            inputs = [read(atom) for atom in equation.invars]
            # What an equation of differentiation calls, differentiation has made too.
            own_transform = transform or _transform_of(equation)
            results = self._results(equation, inputs, runs, own_transform)
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _literal(self, literal: Any) -> _Value:
        """Return the value of a literal, a constant in the jaxpr's text; equal literals share a value."""
        number = literal.val
        if getattr(number, "ndim", 0):
            return self._share(("array", id(number)), _Value(constant=True))
        known = int(number) if getattr(literal.aval.dtype, "kind", "") in "biu" else None
        return self._share(("literal", str(literal.aval), str(number)), _Value(constant=True, number=known))

    def _share(self, key: Any, value: _Value) -> _Value:
        """Return the earlier value with the same key; if there is none, add this one and return it.

        The key says what is computed from what, so that equal computations share a value.
        """
        if key not in self._known:
            self._known[key] = self._add(value)
        shared: _Value = self._known[key]
        return shared

    def _results(
        self, equation: Any, inputs: list[_Value], runs: float, transform: Transform | None
    ) -> Sequence[_Value]:
        """Return the results of an equation; for a call, evaluate the jaxpr that is called.

        Args:
            equation: The equation.
            inputs: The values of its operands.
            runs: How often it runs in a call of the program.
            transform: Step of differentiation that made the equation; None if the author wrote it.
        """
        name = equation.primitive.name
        inner = list(executed_jaxprs(equation))
        if name == "scan":
            return self._scan(equation, inner[0], inputs, runs, transform)
        if name == "custom_linear_solve":
            # The inputs are the constants of four functions, then the right-hand sides. Only `solve` runs.
            lengths = equation.params["const_lengths"]
            start = lengths.matvec + lengths.vecmat
            end = start + lengths.solve
            solve_constants, right_hand_sides = inputs[start:end], inputs[end + lengths.transpose_solve :]
            return self._evaluate(inner[0], solve_constants + right_hand_sides, runs, transform)
        if name == "cond" and (branch := _branch_of_platform(equation, inner)):
            return self._evaluate(branch, inputs[1:], runs, transform)  # the first input is the index of the branch
        if name in CALLS and len(inner) == 1 and len(inner[0].invars) == len(inputs):
            return self._evaluate(inner[0], inputs, runs, transform)
        if name == "select_n" and inputs[0].number is not None:  # the first input says which of the others to return
            return [inputs[1 + inputs[0].number]]
        return self._apply(equation, inputs, runs, transform)

    def _apply(self, equation: Any, inputs: list[_Value], runs: float, transform: Transform | None) -> list[_Value]:
        """Return the results of an equation that calls nothing, or whose calls are counted but not followed."""
        name = equation.primitive.name
        identities = [id(value) for value in inputs]
        if name in COMMUTATIVE:
            identities.sort()
        key = (name, str(equation.params), *identities)
        constant = all(value.constant for value in inputs)
        operations = _count(equation)
        if constant and all(math.prod(getattr(out.aval, "shape", ())) <= 1 for out in equation.outvars):
            operations = 0.0  # a number that the program states as a formula, such as `sqrt(2 / pi)`
        value = self._share(
            key,
            _Value(
                inputs=_needed_inputs(equation, inputs),
                operations=operations,
                loop=_innermost_loop(inputs),
                constant=constant,
                transform=transform,
                number=_number(name, inputs),
                joined=_joined(equation),
            ),
        )
        value.written += runs * operations
        if equation.effects:
            self._roots.append(value)
        if len(equation.outvars) == 1:
            return [value]
        # The value stands for the whole equation, and each result depends on it.
        return [
            self._share((id(value), position), _Value([value], loop=value.loop, constant=constant, transform=transform))
            for position in range(len(equation.outvars))
        ]

    def _scan(
        self, equation: Any, body: Any, inputs: list[_Value], runs: float, transform: Transform | None
    ) -> list[_Value]:
        """Return the results of a scan: its final state, and what each run of its body returns.

        `body` is the jaxpr that the scan repeats. `inputs` are constants, the initial state, and arrays from which each
        run takes a row.
        """
        parameters = equation.params
        constants, carried = parameters["num_consts"], parameters["num_carry"]
        length = int(parameters["length"])
        outside, constant = _innermost_loop(inputs), all(value.constant for value in inputs)
        inside = _Loop(outside.runs * length, outside.depth + 1)
        key = ("scan", str(parameters), *map(id, inputs))
        starts, arrays = inputs[constants : constants + carried], inputs[constants + carried :]
        if key not in self._known:  # a scan that computes the same has the same values
            states = [
                # What a run returns unchanged is the same in every run.
                start if body.outvars[position] is body.invars[constants + position] else _Value([start], loop=inside)
                for position, start in enumerate(starts)
            ]
            rows = [_Value([array], loop=inside, constant=array.constant) for array in arrays]
            self._known[key] = [*states, *rows]
        values: list[_Value] = self._known[key]
        states = values[:carried]
        returned = self._evaluate(body, [*inputs[:constants], *values], runs * length, transform)
        for state, start, after in zip(states, starts, returned, strict=False):
            if state is not start:
                state.inputs.append(after)  # the next run begins with what this one returned
        results = []
        for position, after in enumerate(returned):
            before = [starts[position]] if position < carried else []
            result = _Value([*before, after], loop=outside, constant=constant, transform=transform)
            results.append(self._share((*key, position), result))
        return results


def _count(equation: Any) -> float:
    """Count the operations of an equation, and of what it calls; raises UncountableError if they depend on data."""
    inner = list(executed_jaxprs(equation))
    if equation.primitive.name == "cond":
        return common_count([_count_all(branch) for branch in inner])
    if equation.primitive.name == "while":
        if any(map(_count_all, inner)):
            raise UncountableError  # a jaxpr does not hold a while loop's length
        return 0.0
    own = count_equation(equation)
    if own or equation.primitive.name.startswith(("reduce", "scatter", "select_and", "sort")):
        return own  # the jaxpr that these call combines two numbers, and `own` has counted its runs
    return math.fsum(map(_count_all, inner))


def _count_all(jaxpr: Any) -> float:
    """Count the operations of a jaxpr, unneeded ones included."""
    return math.fsum(value.written for value in _Program(jaxpr).values)


def _innermost_loop(values: Sequence[_Value]) -> _Loop:
    """Return the innermost loop on which any of the values depends."""
    return max((value.loop for value in values), key=lambda loop: loop.depth, default=_NO_LOOP)


def _transform_of(equation: Any) -> Transform | None:
    """Return the outermost step of differentiation that made an equation; None if there was none."""
    for item in equation.source_info.name_stack.stack:
        # A scope that the author names is of another type.
        if type(item).__name__ == "Transform" and item.name in ("jvp", "transpose"):
            return "jvp" if item.name == "jvp" else "transpose"
    return None


def _branch_of_platform(equation: Any, branches: Sequence[Any]) -> Any:
    """Return the branch of `lax.platform_dependent` for this platform; None if data choose the branch."""
    platforms = equation.params.get("branches_platforms")
    if not platforms:
        return None
    backend = jax.default_backend()
    names = PLATFORMS.get(backend, (backend,))
    for platform, branch in zip(platforms, branches, strict=True):
        if platform is None or any(name in platform for name in names):  # None: for every other platform
            return branch
    return None


def _joined(equation: Any) -> _Joined | None:
    """Return how an equation joins its operands, such as a concatenation; None if it does not."""
    parameter = JOINING.get(equation.primitive.name)
    if parameter is None:
        return None
    axis, ends, end = equation.params[parameter], [], 0
    for variable in equation.invars:
        end += 1 if equation.primitive.name == "stack" else variable.aval.shape[axis]  # a stack makes a new dimension
        ends.append(end)
    return _Joined(axis, tuple(ends))


def _number(name: str, inputs: Sequence[_Value]) -> int | None:
    """Return the integer that all elements of a primitive's result are equal to; None if that is unknown.

    Only integers are followed by which JAX copies or computes indices.
    """
    numbers = [value.number for value in inputs]
    if not numbers or None in numbers:
        return None
    if name in COPYING:
        return numbers[0]
    return int(INDEXING[name](*numbers)) if name in INDEXING else None


def _needed_inputs(equation: Any, inputs: list[_Value]) -> list[_Value]:
    """Return the values that an equation needs: all inputs, or for a slice of joined arrays those within the slice."""
    if equation.primitive.name not in SLICING or inputs[0].joined is None:
        return inputs
    axis, ends = inputs[0].joined
    if equation.primitive.name == "slice":
        first, last = equation.params["start_indices"][axis], equation.params["limit_indices"][axis]
    else:
        size, start = equation.params["slice_sizes"][axis], inputs[1 + axis].number
        if start is None:
            return inputs
        first = max(0, min(start, ends[-1] - size))  # as `dynamic_slice` moves a slice that would leave the array
        last = first + size
    return [
        joined
        for joined, start, end in zip(inputs[0].inputs, (0, *ends), ends, strict=False)
        if start < last and end > first
    ]
