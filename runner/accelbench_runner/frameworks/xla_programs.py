"""Inspect a compiled XLA program: its kernels, its fusions, and the collectives by which devices exchange data.

Each instruction counts once, because not every backend records how often a loop runs. `xla_operations` counts what a
call runs.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from accelbench_runner.frameworks.xla_operations import (
    BODY,
    NO_KERNELS,
    SMALL_CALL,
    TARGET,
    Instruction,
    Module,
)

COLLECTIVES = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")
ALL_KINDS = (*COLLECTIVES, "ragged-all-to-all", "collective-broadcast")
"""`COLLECTIVES` are reported one by one, the others only in the sum."""
NO_KERNEL_CALLS = {"AllocateBuffer", "ConcatBitcast"}
"""Custom calls of TPUs for which no kernel runs."""
MAXIMUM_FUSIONS = 8
MAXIMUM_CHARACTERS = 120
RESULT = re.compile(r" = (.*?)(?<=\s)[a-z][a-z0-9\-]*\(")
SHAPE = re.compile(r"\b(pred|[a-z]+[0-9]+[a-z0-9]*)\[([0-9,]*)\]")
LAYOUT_OR_NOTE = re.compile(r"\{[^{}]*\}|/\*.*?\*/")
CHANNEL = re.compile(r"\bchannel_id=(\d+)")
WIDTH = re.compile(r"[0-9]+")
UNNAMED_OPCODES = {
    "parameter",
    "constant",
    "tuple",
    "get-tuple-element",
    "bitcast",
    "broadcast",
    "copy",
    "iota",
    "fusion",
}
"""Opcodes that are left out of a fusion's name: they move or name data."""


@dataclass(frozen=True)
class ProgramContents:
    """Summarise a compiled program, each instruction once."""

    kernels: int
    fusions: int
    fused: tuple[str, ...] = ()
    """The largest fusions: `add, dot, tanh (4 kernels)`."""
    collectives: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Count and result bytes on a device, by kind."""

    def numbers(self) -> dict[str, int]:
        """Return the numbers by the fields of `ExecutableSize`."""
        numbers = {
            "kernels": self.kernels,
            "fusions": self.fusions,
            "collectives": sum(count for count, _ in self.collectives.values()),
            "collective_bytes": sum(size for _, size in self.collectives.values()),
        }
        for kind in COLLECTIVES:
            name = kind.replace("-", "_")
            numbers[f"{name}s"], numbers[f"{name}_bytes"] = self.collectives.get(kind, (0, 0))
        return numbers


def inspect(text: str) -> ProgramContents | None:
    """Inspect an optimised module in HLO's text format; None without a module."""
    module = Module(text)
    if not module.entry:
        return None
    kernels = list(_kernels(module, module.entry))
    fusions = [kernel for kernel in kernels if kernel.opcode == "fusion"]
    collectives: dict[str, tuple[int, int]] = {}
    for instruction in _collectives(module):
        kind = instruction.opcode.removesuffix("-start")
        count, size = collectives.get(kind, (0, 0))
        collectives[kind] = (count + 1, size + result_bytes(instruction))
    return ProgramContents(len(kernels), len(fusions), tuple(_name_fusions(module, fusions)), collectives)


def _collectives(module: Module) -> Iterator[Instruction]:
    """Yield each collective once: a TPU's program lists one up to three times (start, update, done), by one channel."""
    channels = set()
    for instruction in _walk(module, module.entry):
        if instruction.opcode.removesuffix("-start") not in ALL_KINDS:
            continue
        channel = CHANNEL.search(instruction.line)
        if channel is None or channel[1] not in channels:
            yield instruction
        if channel is not None:
            channels.add(channel[1])


def _kernels(module: Module, computation: str) -> Iterator[Instruction]:
    """Yield each kernel once for each place that calls it; a fusion, reduction or sort is one kernel."""
    for instruction in module.instructions(computation):
        match instruction.opcode:
            case "while":
                inner = BODY.findall(instruction.line)
            case "call" if SMALL_CALL not in instruction.line:
                inner = instruction.called
            case "call-start" | "async-start" | "conditional":
                inner = instruction.called
            case "custom-call" if (named := TARGET.search(instruction.line)) and named[1] in NO_KERNEL_CALLS:
                continue
            case opcode:
                if opcode not in NO_KERNELS and not opcode.endswith("-done"):
                    yield instruction
                continue
        for name in inner:
            yield from _kernels(module, name)


def _walk(module: Module, computation: str) -> Iterator[Instruction]:
    """Yield every instruction once for each place that calls its computation, also inside fusions."""
    for instruction in module.instructions(computation):
        yield instruction
        for name in instruction.called:
            yield from _walk(module, name)


def _name_fusions(module: Module, fusions: Sequence[Instruction]) -> Iterator[str]:
    """Yield the operations and the number of kernels of each kind of fusion, at most `MAXIMUM_FUSIONS` kinds.

    Kinds of most different operations come first.
    """
    kinds: Counter[tuple[str, ...]] = Counter()
    for fusion in fusions:
        opcodes = (instruction.opcode for name in fusion.called for instruction in _walk(module, name))
        counts = sorted(Counter(opcode for opcode in opcodes if opcode not in UNNAMED_OPCODES).items())
        if counts:
            kinds[tuple(f"{name} x{count}" if count > 1 else name for name, count in counts)] += 1
    for operations, count in sorted(kinds.items(), key=lambda kind: (-len(kind[0]), kind[0]))[:MAXIMUM_FUSIONS]:
        suffix = f" ({count} kernels)" if count > 1 else ""
        yield ", ".join(operations)[: MAXIMUM_CHARACTERS - len(suffix)] + suffix


def result_bytes(instruction: Instruction) -> int:
    """Return the bytes of a collective's result on a device, without its operands and context."""
    match = RESULT.search(instruction.line)
    shape = LAYOUT_OR_NOTE.sub("", LAYOUT_OR_NOTE.sub("", match[1])) if match else ""
    if instruction.opcode.endswith("-start") and instruction.opcode != "all-reduce-start":
        parts = _parts(shape)
        shape = parts[1] if len(parts) > 1 else shape
    return sum(_bytes(kind, dimensions) for kind, dimensions in SHAPE.findall(shape))


def _parts(shape: str) -> list[str]:
    """Split a tuple type into its elements."""
    depth, parts = 0, [""]
    for character in shape.strip()[1:-1]:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _bytes(kind: str, dimensions: str) -> int:
    """Return the bytes of an array of type `kind`, such as `bf16`, with dimensions such as `2,3`."""
    width = 8 if kind == "pred" else int(WIDTH.search(kind)[0])  # type: ignore[index]  # the pattern asks for digits
    elements = math.prod(int(dimension) for dimension in dimensions.split(",") if dimension)
    return math.ceil(elements * width / 8)
