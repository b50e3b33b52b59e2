"""What a program of XLA's does in one run, and how large it was: counted in HLO, in StableHLO, or in a JAX trace.

XLA's own cost analysis counts a loop's body once and says nothing of single operations; here a body counts as often as
it runs.
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
FRAME = {"builtin.module", "func.func", "func.call", "func.return", "stablehlo.return", "sdy.mesh"}
"""What MLIR wraps operations in, and names devices with."""
NO_KERNELS = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"),
    *("partition-id", "replica-id", "add-dependency", "domain", "async-update"),
}
"""Instructions that name what is there already."""


class UncountableError(Exception):
    """A loop that does something and does not say how often, or a choice between more and less."""


@dataclass(frozen=True)
class Instruction:
    """One line of HLO's text format."""

    opcode: str
    line: str

    @property
    def called(self) -> list[str]:
        """The computations that it runs."""
        listed = [name.strip().lstrip("%") for names in CALLED_LIST.findall(self.line) for name in names.split(",")]
        return CALLED.findall(self.line) + [name for name in listed if name]


class Module:
    """A parsed module: its computations, and what one run of each does."""

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
        """Of a computation, in order."""
        return self._computations.get(computation, ())

    def count(self, computation: str) -> Operations:
        """Raises UncountableError."""
        if computation not in self._counted:
            instructions = self.instructions(computation)
            self._counted[computation] = sum(map(self._count_one, instructions), Operations())
        return self._counted[computation]

    def _count_one(self, instruction: Instruction) -> Operations:
        inside = [self.count(name) for name in instruction.called]
        match instruction.opcode:
            case "dot" | "ragged-dot" | "scaled-dot":
                return PRODUCT
            case "convolution":
                return CONVOLUTION
            case "custom-call":
                return sum(inside, _custom(instruction.line))
            case "while":
                body = sum(inside, Operations())
                return body * trips(instruction.line) if body != Operations() else body
            case "conditional":
                return alike(inside) if inside else Operations()
            case _:
                return sum(inside, Operations())

    def kernels(self, computation: str) -> int:
        """Raises UncountableError."""
        if computation not in self._kernels:
            instructions = self.instructions(computation)
            self._kernels[computation] = sum(map(self._kernels_of_one, instructions))
        return self._kernels[computation]

    def _kernels_of_one(self, instruction: Instruction) -> int:
        """What a fusion, a reduction or a sort calls runs inside it; the end of what was started is not another.

        A loop of known length does without its condition; a CPU makes one function of a small call.
        """
        line = instruction.line
        match instruction.opcode:
            case "while":
                return sum(map(self.kernels, BODY.findall(line))) * trips(line)
            case "call" if SMALL_CALL not in line:
                return sum(map(self.kernels, instruction.called))
            case "call-start" | "async-start":
                return sum(map(self.kernels, instruction.called))
            case "conditional":
                return max(map(self.kernels, instruction.called), default=0)
            case opcode:
                return 0 if opcode in NO_KERNELS or opcode.endswith("-done") else 1


def count_hlo(text: str) -> Operations | None:
    """Operations in one run of the module, in HLO's text format; None for no module, and where only the run tells."""
    return _counted(text, Module.count)


def count_kernels(text: str) -> int | None:
    """Instructions that run by themselves in one run of the optimised module: a fusion is one, whatever is in it.

    None for no module, or a loop of unknown length.
    """
    return _counted(text, Module.kernels)


def _counted(text: str, count: Callable[[Module, str], Number]) -> Number | None:
    module = Module(text)
    if not module.entry:
        return None
    try:
        return count(module, module.entry)
    except UncountableError:
        return None


def count_stablehlo(operation: Any) -> int:
    """Operations of an MLIR module, in each function and each body once: the size of what XLA is given."""
    inside = (each for region in operation.regions for block in region for each in block.operations)
    itself = operation.name not in FRAME
    return itself + sum(count_stablehlo(each.operation) for each in inside)


def _custom(line: str) -> Operations:
    """A library's: oneDNN's and cuBLAS's products, cuDNN's convolutions and attention."""
    found = TARGET.search(line)
    target = found[1].lower() if found else ""
    if "fmha" in target:
        return PRODUCT * 2
    if is_convolution_call(line):
        return CONVOLUTION
    return PRODUCT if is_product_call(line) else Operations()


def is_product_call(line: str) -> bool:
    """Whether a custom call is a library's matrix product."""
    found = TARGET.search(line)
    return found is not None and any(word in found[1].lower() for word in ("matmul", "gemm", "dot"))


def is_convolution_call(line: str) -> bool:
    """Whether a custom call is a library's convolution, or a gradient of one."""
    found = TARGET.search(line)
    return found is not None and "conv" in found[1].lower() and "fmha" not in found[1].lower()


def trips(line: str) -> int:
    """How often a loop's body runs; raises UncountableError."""
    known = TRIPS.search(line)
    if known is None:
        raise UncountableError
    return int(known[1])


def alike(branches: Sequence[Amount]) -> Amount:
    """What each of the branches does; raises UncountableError where only the run tells which it is."""
    if any(branch != branches[0] for branch in branches):
        raise UncountableError
    return branches[0]


def count_jaxpr(jaxpr: Any) -> Operations | None:
    """Operations in one run of a jaxpr; None where only the run tells."""
    try:
        return _of_jaxpr(jaxpr)
    except UncountableError:
        return None


def _of_jaxpr(jaxpr: Any) -> Operations:
    total = Operations()
    for equation in jaxpr.eqns:
        inside = [_of_jaxpr(inner) for inner in inner_jaxprs(equation.params)]
        match equation.primitive.name:
            case "dot_general":
                total += PRODUCT
            case "conv_general_dilated":
                total += CONVOLUTION
            case "scan":
                total += sum(inside, Operations()) * int(equation.params["length"])
            case "while" if sum(inside, Operations()) != Operations():
                raise UncountableError
            case "cond":
                total += alike(inside)
            case _:
                total += sum(inside, Operations())
    return total


def inner_jaxprs(parameters: Any) -> Iterator[Any]:
    """The jaxprs among an equation's parameters."""
    for value in parameters.values():
        for each in value if isinstance(value, tuple | list) else (value,):
            inner = getattr(each, "jaxpr", each)
            if hasattr(inner, "eqns"):
                yield inner
