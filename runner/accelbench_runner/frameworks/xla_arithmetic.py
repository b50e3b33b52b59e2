"""Count floating-point operations of an optimised XLA program.

One rule makes the counts of programs comparable, as written (`jaxpr_arithmetic`), as optimised, and in PyTorch
(`torch_operations`): 2 m n k for a product, one for each result of elementwise arithmetic and for each operand of a
sum, and none for moving, comparing, choosing and sorting. A complex product counts four times. XLA's own cost
analysis cannot be used, because it counts a loop's body once.
"""

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from accelbench_runner.frameworks import library_operations
from accelbench_runner.frameworks.xla_operations import (
    TARGET,
    Instruction,
    Module,
    UncountableError,
    common_count,
    is_convolution_call,
    is_product_call,
    trip_count,
)

ELEMENTWISE = {
    *("add", "subtract", "multiply", "divide", "power", "sqrt", "rsqrt", "cbrt", "exponential"),
    *("exponential-minus-one", "log", "log-plus-one", "tanh", "logistic", "sine", "cosine", "tan", "atan2", "erf"),
    *("acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"),
}
COMBINING = {"reduce": 0, "reduce-window": 0, "scatter": 1, "select-and-scatter": 1}
"""Instructions that combine numbers by the computation that they call, and the position of the operand with these
numbers among the floating-point operands."""
FACTORISATIONS = (
    (re.compile(r"getrf"), "lu"),
    (re.compile(r"potrf"), "cholesky"),
    (re.compile(r"trsm"), "triangular_solve"),
    (re.compile(r"geqrf|geqp3|orgqr|ungqr|householder"), "qr"),
    (re.compile(r"syev|heev"), "symmetric_eigenvalues"),
    (re.compile(r"geev|gees"), "eigenvalues"),
    (re.compile(r"gesdd|gesvd"), "singular_values"),
)
"""Kinds of `library_operations.FACTORISATIONS`, by LAPACK's names in the targets of custom calls."""
FACTORISING = {"cholesky": "cholesky", "triangular-solve": "triangular_solve"}
"""Kinds of `library_operations.FACTORISATIONS`, by HLO's opcodes."""
REAL_FFT = re.compile(r"fft_type=I?RFFT")
FFT_LENGTHS = re.compile(r"fft_length=\{([\d,]*)\}")
RESULT = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = \(?(bf16|[fc]\d+\w*)\[([\d,]*)\]")
"""Matches the type of an instruction's first result: a library's call also returns its workspace."""
OPERANDS = re.compile(r"%([\w.\-]+)")
CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
LABELS = re.compile(r"dim_labels=\w+_(\w+)->(\w+)")
"""Matches the dimension labels of a convolution's kernel and result: `o` and `f` are output features, `i` input
features. A library's call for a gradient carries the labels of the forward convolution."""

Shape = tuple[int, ...]


class Numbers(NamedTuple):
    """Hold the shape of an array of floating-point or complex numbers."""

    shape: Shape
    is_complex: bool

    @property
    def size(self) -> int:
        """Return how many numbers the array contains."""
        return math.prod(self.shape)


NO_NUMBERS = Numbers((0,), is_complex=False)


def count_hlo(text: str) -> float | None:
    """Count the floating-point operations of one run of an optimised HLO module.

    Return None if the text contains no module, or if the number of operations depends on data.
    """
    module = Module(text)
    if not module.entry:
        return None
    try:
        return _Counter(module, text).count(module.entry)
    except UncountableError:
        return None


class _Counter:
    """Count the operations of a module's computations."""

    def __init__(self, module: Module, text: str) -> None:
        """Read the shape of each instruction's floating-point result from the module's text."""
        self._module = module
        self._counts: dict[str, float] = {}
        """Counted operations, by computation."""
        self._results: dict[str, Numbers] = {}
        """The result of each instruction, by name; of an instruction with several results, the first."""
        for line in text.splitlines():
            match = RESULT.match(line)
            if match:
                self._results[match[1]] = _parse_numbers(match)

    def count(self, computation: str) -> float:
        """Count the floating-point operations of one run of a computation; later calls reuse the count."""
        if computation not in self._counts:
            instructions = self._module.instructions(computation)
            self._counts[computation] = math.fsum(map(self._count_instruction, instructions))
        return self._counts[computation]

    def _count_called(self, instruction: Instruction) -> float:
        """Count the floating-point operations of the computations that an instruction calls, if each runs once."""
        return math.fsum(map(self.count, instruction.called))

    def _count_instruction(self, instruction: Instruction) -> float:
        """Count the floating-point operations of an instruction, with those of computations that it calls."""
        line = instruction.line
        match = RESULT.match(line)
        result = _parse_numbers(match) if match else NO_NUMBERS
        right_hand_side = line.partition(" = ")[2]
        operands = [self._results[name] for name in OPERANDS.findall(right_hand_side) if name in self._results]
        match instruction.opcode:
            case "while":
                body = self._count_called(instruction)
                return body * trip_count(line) if body else 0.0  # a loop that computes nothing may have any length
            case "conditional":
                return common_count(list(map(self.count, instruction.called)))
            # A reduction, for example, runs the called computation once for each number that it combines.
            case opcode if opcode in COMBINING and len(operands) > COMBINING[opcode]:
                combined = operands[COMBINING[opcode]]
                return self._count_called(instruction) * combined.size
            case "fusion" | "call" | "async-start" | "call-start":
                return self._count_called(instruction)
            case _:
                return _count_without_calls(instruction.opcode, line, result, operands)


def _parse_numbers(match: re.Match[str]) -> Numbers:
    """Return the shape of an instruction's result from a match of `RESULT`, such as `c64[2,3]`."""
    return Numbers(_dimensions(match[3]), is_complex=match[2].startswith("c"))


def _count_without_calls(opcode: str, line: str, result: Numbers, operands: Sequence[Numbers]) -> float:
    """Count the floating-point operations of an HLO instruction, without computations that it calls."""
    match opcode:
        case "dot" | "convolution":
            return _count_product(opcode, line, result, operands)
        case "custom-call":
            return _count_library_call(line, result, operands)
        case "fft" if operands and (lengths := FFT_LENGTHS.search(line)):
            numbers = max(result.size, operands[0].size)
            real = REAL_FFT.search(line) is not None
            return library_operations.count_fft(_dimensions(lengths[1]), numbers, real=real)
        case _ if opcode in FACTORISING:
            return _count_factorisation(FACTORISING[opcode], operands)
        case _ if opcode in ELEMENTWISE:
            factor = library_operations.complex_factor(opcode) if result.is_complex else 1
            return float(factor * result.size)
        case _:
            return 0.0


def _count_product(opcode: str, line: str, result: Numbers, operands: Sequence[Numbers]) -> float:
    """Count a multiplication and an addition for each term of the sums in a matrix product or a convolution."""
    if len(operands) < 2:  # noqa: PLR2004 - a product has two
        return 0.0
    left, right = operands[:2]
    factor = 2.0 * (library_operations.COMPLEX_PRODUCT if result.is_complex else 1)
    if opcode == "dot" and (contracted := CONTRACTED.search(line)):
        contracted_lengths = [left.shape[index] for index in _dimensions(contracted[1])]
        return factor * result.size * math.prod(contracted_lengths)
    if labels := LABELS.search(line):
        feature_index = _feature_dimension(line, kernel_labels=labels[1], result_labels=labels[2])
        # Each number of the result sums over all elements of the second operand that belong to one feature.
        return factor * result.size * right.size / max(1, right.shape[feature_index])
    return 0.0


def _count_library_call(line: str, result: Numbers, operands: Sequence[Numbers]) -> float:
    """Count the operations of an HLO custom call to a library: a convolution, a product or a factorisation."""
    if is_convolution_call(line):
        return _count_product("convolution", line, result, operands)
    if is_product_call(line) and len(operands) > 1:
        # A library's call does not say which dimensions it contracts. With operands (m, k) and (k, n) and a result
        # (m, n), the count is 2 mn k, and k = sqrt(mk * kn / mn).
        return 2.0 * result.size * math.sqrt(operands[0].size * operands[1].size / max(1, result.size))
    target = TARGET.search(line)
    kinds = [kind for name, kind in FACTORISATIONS if target and name.search(target[1])]
    return _count_factorisation(kinds[0], operands) if kinds else 0.0


def _count_factorisation(kind: str, operands: Sequence[Numbers]) -> float:
    """Count the operations of a factorisation or a solve; `kind` is a key of `library_operations.FACTORISATIONS`."""
    if not operands:
        return 0.0
    shapes = [operand.shape for operand in operands]
    return library_operations.count_factorisation(kind, shapes, is_complex=operands[0].is_complex)


def _feature_dimension(line: str, kernel_labels: str, result_labels: str) -> int:
    """Return which dimension of a convolution's second operand holds the features of its result.

    For a gradient, the labels are those of the forward convolution: `i` for its input features, `o` and `f` for its
    output features.
    """
    if "BackwardInput" in line:
        return kernel_labels.index("i")  # the second operand is the kernel, the result the input's gradient
    if "BackwardFilter" in line:
        return result_labels.index("f")  # the second operand is the forward result's gradient
    return kernel_labels.index("o")  # the second operand is the kernel


def _dimensions(text: str) -> Shape:
    """Parse dimensions such as `2,3`."""
    return tuple(int(number) for number in text.split(",") if number)
