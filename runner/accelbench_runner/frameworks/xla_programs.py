"""What a program of XLA's is made of, each instruction once: kernels, what fused, and how devices exchange data.

Loops are not multiplied out: not every backend says how often its loops run. `xla_operations` counts what a call runs.
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
"""Those that have a number of their own, and the rest."""
NAMES_OF_MEMORY = {"AllocateBuffer", "ConcatBitcast"}
"""Custom calls of TPUs that run nothing."""
FUSED = 8
"""Different fusions that are named at most."""
MAXIMUM_CHARACTERS = 120
RESULT = re.compile(r" = (.*?)(?<=\s)[a-z][a-z0-9\-]*\(")
SHAPE = re.compile(r"\b(pred|[a-z]+[0-9]+[a-z0-9]*)\[([0-9,]*)\]")
LAYOUT_OR_NOTE = re.compile(r"\{[^{}]*\}|/\*.*?\*/")
CHANNEL = re.compile(r"\bchannel_id=(\d+)")
WIDTH = re.compile(r"[0-9]+")
PLAIN = {"parameter", "constant", "tuple", "get-tuple-element", "bitcast", "broadcast", "copy", "iota", "fusion"}
"""What says nothing of a fusion: it moves or names."""


@dataclass(frozen=True)
class Made:
    """A compiled program, each instruction once."""

    kernels: int
    fusions: int
    fused: tuple[str, ...] = ()
    """The fusions of most operations: `add, dot, tanh (4 kernels)`."""
    collectives: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By kind, how many and how many bytes they leave on a device."""

    def numbers(self) -> dict[str, int]:
        """By the fields of `ExecutableSize`."""
        found = {
            "kernels": self.kernels,
            "fusions": self.fusions,
            "collectives": sum(count for count, _ in self.collectives.values()),
            "collective_bytes": sum(size for _, size in self.collectives.values()),
        }
        for kind in COLLECTIVES:
            name = kind.replace("-", "_")
            found[f"{name}s"], found[f"{name}_bytes"] = self.collectives.get(kind, (0, 0))
        return found


def look_at(text: str) -> Made | None:
    """What is in the optimised module, in HLO's text format; None for no module."""
    module = Module(text)
    if not module.entry:
        return None
    kernels = list(_kernels(module, module.entry))
    fusions = [each for each in kernels if each.opcode == "fusion"]
    found: dict[str, tuple[int, int]] = {}
    for instruction in _exchanges(module):
        kind = instruction.opcode.removesuffix("-start")
        count, size = found.get(kind, (0, 0))
        found[kind] = (count + 1, size + bytes_left(instruction))
    return Made(len(kernels), len(fusions), tuple(_named(module, fusions)), found)


def _exchanges(module: Module) -> Iterator[Instruction]:
    """Collectives. A TPU's program names one up to three times, where it begins, goes on and ends: by one channel."""
    channels = set()
    for instruction in _everything(module, module.entry):
        if instruction.opcode.removesuffix("-start") not in ALL_KINDS:
            continue
        channel = CHANNEL.search(instruction.line)
        if channel is None or channel[1] not in channels:
            yield instruction
        if channel is not None:
            channels.add(channel[1])


def _kernels(module: Module, computation: str) -> Iterator[Instruction]:
    """What runs by itself, where it is called; what a fusion, a reduction or a sort calls runs inside it."""
    for instruction in module.instructions(computation):
        match instruction.opcode:
            case "while":
                inner = BODY.findall(instruction.line)
            case "call" if SMALL_CALL not in instruction.line:
                inner = instruction.called
            case "call-start" | "async-start" | "conditional":
                inner = instruction.called
            case "custom-call" if (named := TARGET.search(instruction.line)) and named[1] in NAMES_OF_MEMORY:
                continue
            case opcode:
                if opcode not in NO_KERNELS and not opcode.endswith("-done"):
                    yield instruction
                continue
        for name in inner:
            yield from _kernels(module, name)


def _everything(module: Module, computation: str) -> Iterator[Instruction]:
    """Every instruction, inside fusions too, where it is called."""
    for instruction in module.instructions(computation):
        yield instruction
        for name in instruction.called:
            yield from _everything(module, name)


def _named(module: Module, fusions: Sequence[Instruction]) -> Iterator[str]:
    """The fusions of most operations first; alike ones together, with how many kernels they are."""
    kinds: Counter[tuple[str, ...]] = Counter()
    for fusion in fusions:
        inside = (each.opcode for name in fusion.called for each in _everything(module, name))
        counts = sorted(Counter(opcode for opcode in inside if opcode not in PLAIN).items())
        if counts:
            kinds[tuple(f"{name} x{count}" if count > 1 else name for name, count in counts)] += 1
    for operations, count in sorted(kinds.items(), key=lambda each: (-len(each[0]), each[0]))[:FUSED]:
        said = ", ".join(operations)
        often = f" ({count} kernels)" if count > 1 else ""
        yield said[: MAXIMUM_CHARACTERS - len(often)] + often


def bytes_left(instruction: Instruction) -> int:
    """Bytes of what a collective leaves on a device: of its result, without what it was given and any context."""
    found = RESULT.search(instruction.line)
    shape = LAYOUT_OR_NOTE.sub("", LAYOUT_OR_NOTE.sub("", found[1])) if found else ""
    if instruction.opcode.endswith("-start") and instruction.opcode != "all-reduce-start":
        parts = _parts(shape)
        shape = parts[1] if len(parts) > 1 else shape
    return sum(_bytes(kind, dimensions) for kind, dimensions in SHAPE.findall(shape))


def _parts(shape: str) -> list[str]:
    """The elements of a tuple's type."""
    depth, parts = 0, [""]
    for character in shape.strip()[1:-1]:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _bytes(kind: str, dimensions: str) -> int:
    width = 8 if kind == "pred" else int(WIDTH.search(kind)[0])  # type: ignore[index]  # the pattern asks for digits
    elements = math.prod(int(each) for each in dimensions.split(",") if each)
    return math.ceil(elements * width / 8)
