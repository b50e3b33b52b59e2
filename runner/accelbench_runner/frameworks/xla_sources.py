"""Describe the instructions of a compiled XLA program: their operations in JAX, and the lines that these come from.

HLO's text has tables of files, locations and stack frames, and each instruction may name a frame. A fusion has the
frame of its root alone, so its lines are those of all instructions inside it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from accelbench.document import shorten
from accelbench.launch.facts import MAXIMUM_OPERATION_CHARACTERS
from accelbench_runner.frameworks.source_lines import Line, format_lines
from accelbench_runner.frameworks.trace import Operation
from accelbench_runner.frameworks.xla_operations import Instruction, Module
from accelbench_runner.frameworks.xla_programs import UNNAMED_OPCODES

MODULE = re.compile(r"^HloModule ([^\s,]+)")
NAME = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = ")
OPERATION = re.compile(r'op_name="([^"]*)"')
FRAME = re.compile(r"stack_frame_id=(\d+)")
FILE_NAME = re.compile(r'^(\d+) "(.*)"$')
LOCATION = re.compile(r"^(\d+) \{file_name_id=(\d+) .*?\bline=(\d+)")
STACK_FRAME = re.compile(r"^(\d+) \{file_location_id=(\d+)(?: parent_frame_id=(\d+))?")
CONTAINERS = {"fusion", "call"}
"""Opcodes of instructions that run the instructions of another computation as one kernel."""
NAMED_OPERATIONS = 5
"""Number of operations that a fusion's name lists."""


@dataclass
class Frames:
    """Hold the tables of HLO's text by which a stack frame is found; their keys are numbers, as text."""

    files: dict[str, str] = field(default_factory=dict)
    locations: dict[str, Line] = field(default_factory=dict)
    frames: dict[str, tuple[str, str]] = field(default_factory=dict)
    """A frame's location, and its parent frame; the latter is empty for an outermost frame."""

    @classmethod
    def parse(cls, text: str) -> "Frames":
        """Read the tables, which precede the computations."""
        tables = cls()
        section = ""
        for line in text.splitlines():
            if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
                section = line  # the names of functions are skipped
            elif section == "FileNames" and (match := FILE_NAME.match(line)):
                tables.files[match[1]] = match[2]
            elif section == "FileLocations" and (match := LOCATION.match(line)):
                tables.locations[match[1]] = (tables.files.get(match[2], ""), int(match[3]))
            elif section == "StackFrames" and (match := STACK_FRAME.match(line)):
                # The text adds 1 to the number of the parent: 1, which becomes 0 here, means that there is no parent.
                parent = str(int(match[3]) - 1) if match[3] else ""
                tables.frames[match[1]] = (match[2], parent)
            elif line.startswith(("%", "ENTRY")):
                break
        return tables

    def line(self, frame: str, is_user_file: Callable[[str], bool]) -> Line | None:
        """Return the innermost line of the user's program in the stack of a frame; None if there is none."""
        visited: set[str] = set()
        while frame in self.frames and frame not in visited:
            visited.add(frame)
            location, parent = self.frames[frame]
            line = self.locations.get(location)
            if line is not None and is_user_file(line[0]):
                return line
            frame = parent
        return None


@dataclass(frozen=True)
class ProgramDescription:
    """Describe the instructions of an HLO module."""

    module: str = ""
    """The module's name; empty if there is none."""
    operations: Mapping[str, Operation] = field(default_factory=dict)
    """What each instruction computes, by the instruction's name."""
    looped: frozenset[str] = frozenset()
    """Names of the instructions that a loop may run several times."""


def describe_program(text: str, is_user_file: Callable[[str], bool]) -> ProgramDescription:
    """Describe the instructions of a module in XLA's text format.

    `is_user_file` returns True for a file of the user's program: only its lines are named.
    """
    module, frames = Module(text), Frames.parse(text)
    operations: dict[str, Operation] = {}
    looped_computations = _looped_computations(module)
    looped_instructions = set()
    for computation in module.computations:
        for instruction in module.instructions(computation):
            if name := NAME.match(instruction.line):
                operations[name[1]] = _describe(module, frames, instruction, is_user_file)
                if computation in looped_computations:
                    looped_instructions.add(name[1])
    module_name = MODULE.match(text)
    return ProgramDescription(module_name[1] if module_name else "", operations, frozenset(looped_instructions))


def _looped_computations(module: Module) -> set[str]:
    """Return the names of the computations that loops run, and of those that these call."""
    unvisited: list[str] = []
    for computation in module.computations:
        for instruction in module.instructions(computation):
            if instruction.opcode == "while":
                unvisited += instruction.called
    looped: set[str] = set()
    while unvisited:
        computation = unvisited.pop()
        if computation not in looped:
            looped.add(computation)
            for instruction in module.instructions(computation):
                unvisited += instruction.called
    return looped


def _describe(
    module: Module, frames: Frames, instruction: Instruction, is_user_file: Callable[[str], bool]
) -> Operation:
    """Return the operations that an instruction performs, such as those inside a fusion, and their lines."""
    contained = list(_contained(module, instruction))
    frame_matches = (FRAME.search(inner.line) for inner in contained)
    lines = (frames.line(match[1], is_user_file) for match in frame_matches if match)
    source = format_lines(line for line in lines if line is not None)
    names = [_operation(inner) for inner in contained if inner.opcode not in UNNAMED_OPCODES]
    if not names:  # it only moves numbers
        names = [_operation(instruction)]
    if len(names) == 1:
        return Operation(_clip(names[0]), source)
    distinct_names = list(dict.fromkeys(names))
    listed = ", ".join(distinct_names[:NAMED_OPERATIONS])
    more_count = len(distinct_names) - NAMED_OPERATIONS
    more = f" and {more_count} more" if more_count > 0 else ""
    return Operation(_clip(f"fusion of {listed}{more}"), source, merged=True)


def _contained(module: Module, instruction: Instruction) -> Iterator[Instruction]:
    """Yield the instructions that a fusion or a call contains; of any other instruction, itself."""
    called = instruction.called if instruction.opcode in CONTAINERS else []
    if not called:
        yield instruction
    for computation in called:
        for inner in module.instructions(computation):
            yield from _contained(module, inner)


def _operation(instruction: Instruction) -> str:
    """Return the name of an instruction's operation in JAX, such as `dot_general`; without one, its opcode."""
    match = OPERATION.search(instruction.line)
    name = match[1].rpartition("/")[2] if match else ""  # without scopes, as of `jit(step)/dot_general`
    return name or instruction.opcode


def _clip(name: str) -> str:
    """Shorten a name to the length that a fact may have."""
    return shorten(name, MAXIMUM_OPERATION_CHARACTERS)
