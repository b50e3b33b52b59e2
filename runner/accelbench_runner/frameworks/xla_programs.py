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
"""All kinds of collectives. Each of `COLLECTIVES` is reported by itself; the others count only in the total."""
NO_KERNEL_CALLS = {"AllocateBuffer", "ConcatBitcast"}
"""Custom calls of TPUs for which no kernel runs."""
MAXIMUM_FUSIONS = 8
MAXIMUM_CHARACTERS = 120
RESULT = re.compile(r" = (.*?)(?<=\s)[a-z][a-z0-9\-]*\(")
"""Matches an instruction's result type, between ` = ` and the opcode."""
SHAPE = re.compile(r"\b(pred|[a-z]+[0-9]+[a-z0-9]*)\[([0-9,]*)\]")
"""Matches the type and the dimensions of an array, such as `bf16[2,3]`."""
LAYOUT_OR_NOTE = re.compile(r"\{[^{}]*\}|/\*.*?\*/")
"""Matches a layout such as `{1,0}`, and a comment such as `/*index=5*/`."""
CHANNEL = re.compile(r"\bchannel_id=(\d+)")
WIDTH = re.compile(r"[0-9]+")
"""Matches the bits in a type's name, such as the 16 of `bf16`."""
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
"""Opcodes that are left out of a fusion's name, because they compute nothing."""


@dataclass(frozen=True)
class ProgramContents:
    """Summarise a compiled program; each instruction counts once."""

    kernels: int
    fusions: int
    fused: tuple[str, ...] = ()
    """The largest fusions: `add, dot, tanh (4 kernels)`."""
    collectives: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Count and result bytes on a device, by kind."""

    def size_fields(self) -> dict[str, int]:
        """Return the counts, and the bytes of collectives, as fields of `ExecutableSize`, such as `all_reduces`."""
        fields = {
            "kernels": self.kernels,
            "fusions": self.fusions,
            # The total includes kinds outside `COLLECTIVES`.
            "collectives": sum(count for count, _ in self.collectives.values()),
            "collective_bytes": sum(result_bytes for _, result_bytes in self.collectives.values()),
        }
        for kind in COLLECTIVES:
            name = kind.replace("-", "_")
            count, total_bytes = self.collectives.get(kind, (0, 0))
            fields[f"{name}s"] = count
            fields[f"{name}_bytes"] = total_bytes
        return fields


def inspect_program(text: str) -> ProgramContents | None:
    """Return the kernels, fusions and collectives of an optimised HLO module; None if the text has no module."""
    module = Module(text)
    if not module.entry:
        return None
    kernels = list(_kernels(module, module.entry))
    fusions = [kernel for kernel in kernels if kernel.opcode == "fusion"]
    collectives: dict[str, tuple[int, int]] = {}
    for instruction in _collectives(module):
        kind = instruction.opcode.removesuffix("-start")
        count, total_bytes = collectives.get(kind, (0, 0))
        collectives[kind] = (count + 1, total_bytes + result_bytes(instruction))
    return ProgramContents(
        kernels=len(kernels),
        fusions=len(fusions),
        fused=tuple(_name_fusions(module, fusions)),
        collectives=collectives,
    )


def count_distinct_kernels(text: str) -> int | None:
    """Count the kernels of an optimised HLO module, each once; None if the text has no module."""
    module = Module(text)
    return sum(1 for _ in _kernels(module, module.entry)) if module.entry else None


def _collectives(module: Module) -> Iterator[Instruction]:
    """Yield one instruction for each operation by which devices exchange data, such as `all-reduce`."""
    # A TPU's program lists a collective up to three times (start, update, done), with the same channel.
    yielded_channels = set()
    for instruction in _walk_instructions(module, module.entry):
        if instruction.opcode.removesuffix("-start") not in ALL_KINDS:
            continue
        channel = CHANNEL.search(instruction.line)
        if channel is None:
            yield instruction
        elif channel[1] not in yielded_channels:
            yielded_channels.add(channel[1])
            yield instruction


def _kernels(module: Module, computation: str) -> Iterator[Instruction]:
    """Yield each instruction that runs a kernel, in a computation and in the computations that it calls."""
    for instruction in module.instructions(computation):
        match instruction.opcode:
            case "while":
                called = BODY.findall(instruction.line)
            case "call" if SMALL_CALL not in instruction.line:  # a small call is one kernel, by the last case
                called = instruction.called
            case "call-start" | "async-start" | "conditional":
                called = instruction.called
            case opcode:  # at most one kernel, also if a fusion, a reduction or a sort calls computations
                called = []
                if not _runs_no_kernel(opcode, instruction.line):
                    yield instruction
        for name in called:
            yield from _kernels(module, name)


def _runs_no_kernel(opcode: str, line: str) -> bool:
    """Return True if an HLO instruction runs no kernel."""
    if opcode == "custom-call":
        target = TARGET.search(line)
        return target is not None and target[1] in NO_KERNEL_CALLS
    return opcode in NO_KERNELS or opcode.endswith("-done")


def _walk_instructions(module: Module, computation: str) -> Iterator[Instruction]:
    """Yield all instructions of a computation and of the computations that it calls."""
    for instruction in module.instructions(computation):
        yield instruction
        for name in instruction.called:
            yield from _walk_instructions(module, name)


def _name_fusions(module: Module, fusions: Sequence[Instruction]) -> Iterator[str]:
    """Yield a name for each group of fusions that have the same operations, such as `add, dot x2 (4 kernels)`."""
    kernel_counts: Counter[tuple[str, ...]] = Counter()
    for fusion in fusions:
        fused: list[Instruction] = []
        for computation in fusion.called:
            fused += _walk_instructions(module, computation)
        opcodes = [instruction.opcode for instruction in fused if instruction.opcode not in UNNAMED_OPCODES]
        counts = sorted(Counter(opcodes).items())
        if counts:  # otherwise the fusion only moves numbers
            operations = tuple(f"{opcode} x{count}" if count > 1 else opcode for opcode, count in counts)
            kernel_counts[operations] += 1
    largest_first = sorted(kernel_counts, key=lambda operations: (-len(operations), operations))
    for operations in largest_first[:MAXIMUM_FUSIONS]:
        kernels = kernel_counts[operations]
        suffix = f" ({kernels} kernels)" if kernels > 1 else ""
        yield ", ".join(operations)[: MAXIMUM_CHARACTERS - len(suffix)] + suffix


def result_bytes(instruction: Instruction) -> int:
    """Return the bytes that a collective operation, such as `all-reduce`, returns on one device."""
    match = RESULT.search(instruction.line)
    if match is None:
        return 0
    # A layout may contain inner braces: the first pass removes those, the second pass the rest of the layout.
    result_type = LAYOUT_OR_NOTE.sub("", LAYOUT_OR_NOTE.sub("", match[1]))
    # An instruction that starts a collective returns a tuple of operand, result and perhaps more; only
    # `all-reduce-start` returns the result itself.
    if instruction.opcode.endswith("-start") and instruction.opcode != "all-reduce-start":
        elements = _tuple_elements(result_type)
        result_type = elements[1] if len(elements) > 1 else result_type
    return sum(_array_bytes(dtype, dimensions) for dtype, dimensions in SHAPE.findall(result_type))


def _tuple_elements(tuple_type: str) -> list[str]:
    """Split a tuple type such as `(f32[2,3], (f32[4], u32[]))` at its outermost commas."""
    depth, elements = 0, [""]
    for character in tuple_type.strip()[1:-1]:
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        if character == "," and depth == 0:
            elements.append("")
        else:
            elements[-1] += character
    return elements


def _array_bytes(dtype: str, dimensions: str) -> int:
    """Return the bytes of an array from HLO's text for its type, such as `bf16`, and dimensions, such as `2,3`."""
    # Types come from `SHAPE`, which matches only `pred` and names with digits, so `search` finds a width.
    bits = 8 if dtype == "pred" else int(WIDTH.search(dtype)[0])  # type: ignore[index]
    elements = math.prod(int(dimension) for dimension in dimensions.split(",") if dimension)
    return math.ceil(elements * bits / 8)
