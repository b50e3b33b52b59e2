"""Count products, convolutions and kernels of one run, in HLO, in StableHLO or in a JAX trace.

XLA's own cost analysis counts a loop's body once and does not list operations; here a body counts as often as it runs.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from accelbench.workload import Operations

Number = TypeVar("Number", int, Operations)
Amount = TypeVar("Amount", float, Operations)
PRODUCT, CONVOLUTION = Operations(products=1), Operations(convolutions=1)
HEADER = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
"""Matches the first line of a computation, and its name."""
OPCODE = re.compile(r" = .*?(?<=\s)([a-z][a-z0-9\-]*)\(")
"""Matches an instruction's opcode, after its result type."""
CALLED = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
"""Matches the name of one called computation: `body=%name`."""
CALLED_LIST = re.compile(r"(?:branch_computations|called_computations|calls)=\{([^}]*)\}")
"""Matches the names of several called computations: `branch_computations={%first, %second}`."""
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
"""Matches how often a `while` runs its body, if XLA knows it."""
BODY = re.compile(r"body=%?([\w.\-]+)")
SMALL_CALL = 'xla_cpu_small_call="true"'
TARGET = re.compile(r'custom_call_target="([^"]+)"')
STRUCTURE = {"builtin.module", "func.func", "func.call", "func.return", "stablehlo.return", "sdy.mesh"}
"""Structure of an MLIR module; not operations."""
ONLY_DERIVED = {"transpose", "jvp", "fwd", "bwd"}
"""Parameters of equations with programs that only differentiation runs."""
NO_KERNELS = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"),
    *("partition-id", "replica-id", "add-dependency", "domain", "async-update"),
}
"""Instructions for which no kernel runs."""


class UncountableError(Exception):
    """Report a loop of unknown length, or branches that do different work: the count depends on data."""


@dataclass(frozen=True)
class Instruction:
    """Hold one line of HLO's text format."""

    opcode: str
    line: str

    @property
    def called(self) -> list[str]:
        """Return the names of the computations that the instruction calls."""
        called: list[str] = CALLED.findall(self.line)
        for names in CALLED_LIST.findall(self.line):  # such as `%first, %second`
            called += [name.strip().lstrip("%") for name in names.split(",")]
        return [name for name in called if name]  # an empty list `{}` gives an empty name


class Module:
    """Parse an HLO module into computations, and count one run of a computation."""

    def __init__(self, text: str) -> None:
        """Split a module in XLA's text format, HLO, into computations and their instructions."""
        self._computations: dict[str, list[Instruction]] = {}
        self._operations: dict[str, Operations] = {}
        """Counted operations, by computation."""
        self._kernels: dict[str, int] = {}
        """Counted kernels, by computation."""
        self.entry = ""
        """Name of the computation that a run starts with; empty if the text contains no module."""
        computation = ""
        for line in text.splitlines():
            if header := HEADER.match(line):
                is_entry, computation = bool(header[1]), header[2]
                self._computations[computation] = []
                if is_entry:
                    self.entry = computation
            elif computation and (opcode := OPCODE.search(line)):
                self._computations[computation].append(Instruction(opcode[1], line))

    @property
    def computations(self) -> Sequence[str]:
        """Return the names of all computations."""
        return tuple(self._computations)

    def instructions(self, computation: str) -> Sequence[Instruction]:
        """Return the instructions of a computation in order; none for an unknown computation."""
        return self._computations.get(computation, ())

    def count_operations(self, computation: str) -> Operations:
        """Count the matrix products and convolutions of one run of a computation; later calls reuse the count.

        Raises UncountableError if their number depends on data.
        """
        if computation not in self._operations:
            counts = map(self._count_instruction, self.instructions(computation))
            self._operations[computation] = sum(counts, Operations())
        return self._operations[computation]

    def _count_instruction(self, instruction: Instruction) -> Operations:
        """Count the matrix products and convolutions of an instruction, with those of computations that it calls."""
        inner_counts = [self.count_operations(name) for name in instruction.called]
        match instruction.opcode:
            case "dot" | "ragged-dot" | "scaled-dot":
                return PRODUCT
            case "convolution":
                return CONVOLUTION
            case "custom-call":
                return sum(inner_counts, _count_library_call(instruction.line))
            case "while":
                body = sum(inner_counts, Operations())
                # If the body has no products, the loop's length does not matter and may be unknown.
                return body * trip_count(instruction.line) if body != Operations() else body
            case "conditional":
                return common_count(inner_counts) if inner_counts else Operations()
            case _:
                return sum(inner_counts, Operations())

    def count_kernels(self, computation: str) -> int:
        """Count the kernels of one run of a computation; later calls reuse the count.

        Raises UncountableError if a loop's length is unknown.
        """
        if computation not in self._kernels:
            self._kernels[computation] = sum(map(self._count_instruction_kernels, self.instructions(computation)))
        return self._kernels[computation]

    def _count_instruction_kernels(self, instruction: Instruction) -> int:
        """Count the kernels that an instruction runs, with those of computations that it calls."""
        line = instruction.line
        match instruction.opcode:
            case "while":
                return sum(map(self.count_kernels, BODY.findall(line))) * trip_count(line)
            case "call" if SMALL_CALL not in line:  # a small call is one kernel, by the last case
                return sum(map(self.count_kernels, instruction.called))
            case "call-start" | "async-start":
                return sum(map(self.count_kernels, instruction.called))
            case "conditional":  # one branch runs: count the largest
                return max(map(self.count_kernels, instruction.called), default=0)
            case opcode:  # at most one kernel, also for a fusion or for a call that XLA marks as small
                runs_no_kernel = opcode in NO_KERNELS or opcode.endswith("-done")
                return 0 if runs_no_kernel else 1


def count_hlo(text: str) -> Operations | None:
    """Count the matrix products and convolutions of one run of an HLO module; None if their number depends on data."""
    return _count_entry(text, Module.count_operations)


def count_kernels(text: str) -> int | None:
    """Count the kernels of one run of an optimised HLO module; None if a loop's length is unknown."""
    return _count_entry(text, Module.count_kernels)


def _count_entry(text: str, count: Callable[[Module, str], Number]) -> Number | None:
    """Apply `count` to the computation with which an HLO module starts.

    Return None if the text contains no module, or if the count depends on data.
    """
    module = Module(text)
    if not module.entry:
        return None
    try:
        return count(module, module.entry)
    except UncountableError:
        return None


def count_stablehlo(operation: Any) -> int:
    """Count an MLIR operation, such as a module, and the operations inside it, except those in `STRUCTURE`.

    An operation counts once, even if it is in the body of a loop or in a function that is called several times.
    """
    count = 0 if operation.name in STRUCTURE else 1
    for region in operation.regions:
        for block in region:
            count += sum(count_stablehlo(inner.operation) for inner in block.operations)
    return count


def _count_library_call(line: str) -> Operations:
    """Count the matrix products and convolutions of an HLO custom call by the name of the library function."""
    match = TARGET.search(line)
    target = match[1].lower() if match else ""
    if "fmha" in target:
        return PRODUCT * 2  # cuDNN's fused attention: of queries and keys, and of the weights and values
    if is_convolution_call(line):
        return CONVOLUTION
    return PRODUCT if is_product_call(line) else Operations()


def is_product_call(line: str) -> bool:
    """Return True if an HLO custom call computes a matrix product."""
    match = TARGET.search(line)
    return match is not None and any(name in match[1].lower() for name in ("matmul", "gemm", "dot"))


def is_convolution_call(line: str) -> bool:
    """Return True if an HLO custom call computes a convolution or the gradient of one."""
    match = TARGET.search(line)
    # A name with "fmha" means fused multi-head attention, even if it also contains "conv".
    return match is not None and "conv" in match[1].lower() and "fmha" not in match[1].lower()


def trip_count(line: str) -> int:
    """Return how often an HLO `while` runs its body; raise UncountableError if XLA did not find out."""
    match = TRIPS.search(line)
    if match is None:
        raise UncountableError
    return int(match[1])


def common_count(branches: Sequence[Amount]) -> Amount:
    """Return the count of a conditional, which runs one of its branches: the count that all branches have.

    Raise UncountableError if their counts differ, or if no branch could be read.
    """
    if not branches or any(branch != branches[0] for branch in branches):
        raise UncountableError
    return branches[0]


def count_jaxpr(jaxpr: Any) -> Operations | None:
    """Count the matrix products and convolutions of a jaxpr; None if their number depends on data."""
    try:
        return _count_jaxpr(jaxpr)
    except UncountableError:
        return None


def _count_jaxpr(jaxpr: Any) -> Operations:
    """Count the matrix products and convolutions of a jaxpr; raise UncountableError if their number depends on data."""
    total = Operations()
    for equation in jaxpr.eqns:
        inner_counts = [_count_jaxpr(inner) for inner in executed_jaxprs(equation)]
        match equation.primitive.name:
            case "dot_general":
                total += PRODUCT
            case "conv_general_dilated":
                total += CONVOLUTION
            case "scan":
                total += sum(inner_counts, Operations()) * int(equation.params["length"])
            case "while" if sum(inner_counts, Operations()) != Operations():  # a loop without products adds nothing
                raise UncountableError  # a jaxpr does not hold a while loop's length
            case "cond":
                total += common_count(inner_counts)
            case _:
                total += sum(inner_counts, Operations())
    return total


def executed_jaxprs(equation: Any) -> Iterator[Any]:
    """Yield the jaxprs that an equation runs, without those that run only if the equation is differentiated."""
    for name, parameter in equation.params.items():
        if name in ONLY_DERIVED:
            continue
        # Of `custom_linear_solve`, only `solve` runs; its gradient needs the products and the transposed solve.
        value = getattr(parameter, "solve", parameter)
        candidates = value if isinstance(value, tuple | list) else (value,)
        for candidate in candidates:
            jaxpr = getattr(candidate, "jaxpr", candidate)  # a ClosedJaxpr contains the jaxpr
            if hasattr(jaxpr, "eqns"):  # and not another parameter, such as a number
                yield jaxpr
