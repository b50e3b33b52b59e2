"""Where a process was when it crashed or hung: faulthandler's account of it, in a user's words."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from accelbench.catalogue import script

MAXIMUM_FRAMES = 3
_HEAD = re.compile(r"^(?:Current thread|Thread|Stack) .*\(most recent call first\):$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


class Frame(NamedTuple):
    """A call under way."""

    file: str
    line: str
    function: str

    def __str__(self) -> str:
        """`my_filter.py, line 12 in step`."""
        return f"{self.file.rpartition('/')[2]}, line {self.line} in {self.function}"


def where(errors: bytes, verb: str = "") -> str:
    """`VERB at my_filter.py, line 12 in step, called from ...` by the end of standard error; empty where it is silent.

    Of the thread that crashed; a script's own calls where it was in any, because its author can change those.
    """
    found = _current(errors.decode(errors="replace"))
    file = str(script.origin())
    own = [frame for frame in found if frame.file == file]
    return f"{verb} at " + ", called from ".join(map(str, (own or found)[:MAXIMUM_FRAMES])) if found else ""


def _current(errors: str) -> Sequence[Frame]:
    """The innermost calls of the current thread, or of the last one told of."""
    heads = list(_HEAD.finditer(errors))
    if not heads:
        return ()
    head = next((each for each in reversed(heads) if each[0].startswith("Current")), heads[-1])
    frames = []
    for line in errors[head.end() + 1 :].splitlines():
        if not (frame := _FRAME.match(line)):
            break
        frames.append(Frame(*frame.groups()))
    return frames
