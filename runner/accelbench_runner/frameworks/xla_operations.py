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
OPCODE = re.compile(r" = .*?(?<=\s)([a-z][a-z0-9\-]*)\(")
CALLED = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)")
CALLED_LIST = re.compile(r"(?:branch_computations|called_computations|calls)=\{([^}]*)\}")
TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
BODY = re.compile(r"body=%?([\w.\-]+)")
SMALL_CALL = 'xla_cpu_small_call="true"'
TARGET = re.compile(r'custom_call_target="([^"]+)"')
STRUCTURE = {"builtin.module", "func.func", "func.call", "func.return", "stablehlo.return", "sdy.mesh"}
"""Structure of an MLIR module; not operations."""
NO_KERNELS = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"),
    *("partition-id", "replica-id", "add-dependency", "domain", "async-update"),
}
"""Instructions for which no kernel runs."""


class UncountableError(Exception):
    """Report a loop of unknown length, or a branch whose alternatives do different work."""


@dataclass(frozen=True)
class Instruction:
    """Hold one line of HLO's text format."""

    opcode: str
    line: str

    @property
    def called(self) -> list[str]:
        """Return the names of the computations that it runs."""
        listed = [name.strip().lstrip("%") for names in CALLED_LIST.findall(self.line) for name in names.split(",")]
        return CALLED.findall(self.line) + [name for name in listed if name]


class Module:
    """Parse a module into computations, and count one run of each."""

    def __init__(self, text: str) -> None:
        self._computations: dict[str, list[Instruction]] = {}
        self._counted: dict[str, Operations] = {}
        self._kernels: dict[str, int] = {}
        self.entry = name = ""
        for line in text.splitlines():
            if header := HEADER.match(line):
                name = header[2]
                self._computations[name] = []
                self.entry = name if header[1] else self.entry
            elif name and (opcode := OPCODE.search(line)):
                self._computations[name].append(Instruction(opcode[1], line))

    def instructions(self, computation: str) -> Sequence[Instruction]:
        """Return the instructions of a computation, in order."""
        return self._computations.get(computation, ())

    def count(self, computation: str) -> Operations:
        """Count products and convolutions; raise UncountableError."""
        if computation not in self._counted:
            instructions = self.instructions(computation)
            self._counted[computation] = sum(map(self._count_one, instructions), Operations())
        return self._counted[computation]

    def _count_one(self, instruction: Instruction) -> Operations:
        """Count one instruction, with the computations that it runs."""
        inner_counts = [self.count(name) for name in instruction.called]
        match instruction.opcode:
            case "dot" | "ragged-dot" | "scaled-dot":
                return PRODUCT
            case "convolution":
                return CONVOLUTION
            case "custom-call":
                return sum(inner_counts, _library_call(instruction.line))
            case "while":
                body = sum(inner_counts, Operations())
                return body * trip_count(instruction.line) if body != Operations() else body
            case "conditional":
                return common_count(inner_counts) if inner_counts else Operations()
            case _:
                return sum(inner_counts, Operations())

    def kernels(self, computation: str) -> int:
        """Count kernels; raise UncountableError."""
        if computation not in self._kernels:
            instructions = self.instructions(computation)
            self._kernels[computation] = sum(map(self._kernels_of_one, instructions))
        return self._kernels[computation]

    def _kernels_of_one(self, instruction: Instruction) -> int:
        """Count one instruction's kernels; a fusion, reduction or sort is one kernel, whatever computations it calls.

        The condition of a loop of known length does not run, and the CPU compiles a small call into one function.
        """
        line = instruction.line
        match instruction.opcode:
            case "while":
                return sum(map(self.kernels, BODY.findall(line))) * trip_count(line)
            case "call" if SMALL_CALL not in line:
                return sum(map(self.kernels, instruction.called))
            case "call-start" | "async-start":
                return sum(map(self.kernels, instruction.called))
            case "conditional":
                return max(map(self.kernels, instruction.called), default=0)
            case opcode:
                return 0 if opcode in NO_KERNELS or opcode.endswith("-done") else 1


def count_hlo(text: str) -> Operations | None:
    """Count operations of one run of an HLO module; None without a module, or if a count depends on data."""
    return _count_entry(text, Module.count)


def count_kernels(text: str) -> int | None:
    """Count kernels of one run of an optimised HLO module; a fusion is one kernel.

    Returns None without a module, or if it has a loop of unknown length.
    """
    return _count_entry(text, Module.kernels)


def _count_entry(text: str, count: Callable[[Module, str], Number]) -> Number | None:
    """Apply `count` to the module's entry; None without a module, or if the count depends on data."""
    module = Module(text)
    if not module.entry:
        return None
    try:
        return count(module, module.entry)
    except UncountableError:
        return None


def count_stablehlo(operation: Any) -> int:
    """Count operations of an MLIR module, each function and each body once: the size of XLA's input."""
    inner = (op for region in operation.regions for block in region for op in block.operations)
    return (operation.name not in STRUCTURE) + sum(count_stablehlo(op.operation) for op in inner)


def _library_call(line: str) -> Operations:
    """Count a library call: products of oneDNN and cuBLAS, convolutions and attention of cuDNN."""
    match = TARGET.search(line)
    target = match[1].lower() if match else ""
    if "fmha" in target:
        return PRODUCT * 2
    if is_convolution_call(line):
        return CONVOLUTION
    return PRODUCT if is_product_call(line) else Operations()


def is_product_call(line: str) -> bool:
    """Return True if a custom call is a library's matrix product."""
    match = TARGET.search(line)
    return match is not None and any(word in match[1].lower() for word in ("matmul", "gemm", "dot"))


def is_convolution_call(line: str) -> bool:
    """Return True if a custom call is a library's convolution, or a gradient of one."""
    match = TARGET.search(line)
    return match is not None and "conv" in match[1].lower() and "fmha" not in match[1].lower()


def trip_count(line: str) -> int:
    """Return how often a loop's body runs; raise UncountableError if HLO does not record it."""
    known = TRIPS.search(line)
    if known is None:
        raise UncountableError
    return int(known[1])


def common_count(branches: Sequence[Amount]) -> Amount:
    """Return the count that all branches share; raise UncountableError if they differ."""
    if any(branch != branches[0] for branch in branches):
        raise UncountableError
    return branches[0]


def count_jaxpr(jaxpr: Any) -> Operations | None:
    """Count operations of one run of a jaxpr; None if a count depends on data."""
    try:
        return _count_jaxpr(jaxpr)
    except UncountableError:
        return None


def _count_jaxpr(jaxpr: Any) -> Operations:
    """Count products and convolutions of one run; raise UncountableError."""
    total = Operations()
    for equation in jaxpr.eqns:
        inner_counts = [_count_jaxpr(inner) for inner in inner_jaxprs(equation.params)]
        match equation.primitive.name:
            case "dot_general":
                total += PRODUCT
            case "conv_general_dilated":
                total += CONVOLUTION
            case "scan":
                total += sum(inner_counts, Operations()) * int(equation.params["length"])
            case "while" if sum(inner_counts, Operations()) != Operations():
                raise UncountableError
            case "cond":
                total += common_count(inner_counts)
            case _:
                total += sum(inner_counts, Operations())
    return total


def inner_jaxprs(parameters: Any) -> Iterator[Any]:
    """Yield the jaxprs among an equation's parameters."""
    for value in parameters.values():
        for parameter in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(parameter, "jaxpr", parameter)
            if hasattr(inner, "eqns"):
                yield inner
