"""Hand a child's answer to its parent in a file, because standard output belongs to the code that the child runs.

A user's code may print, write to a descriptor, or close one: none of this reaches the file.
"""

import os
from pathlib import Path
from typing import NoReturn

from accelbench.machine.output import flush_output, occupy_standard_descriptors


def write_answer(path: Path, text: str) -> None:
    """Write a child process's answer to `path`, so that the file exists only once the answer is complete."""
    # If a user's code has closed standard output, the file would get its number, and later prints would go there.
    occupy_standard_descriptors()
    partial = path.with_name(f"{path.name}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def read_answer(path: Path, maximum_bytes: int) -> bytes | None:
    """Return the answer that a child process wrote to `path`; None if it wrote none.

    Raises ValueError if the answer is longer than `maximum_bytes`.
    """
    try:
        with path.open("rb") as file:
            answer = file.read(maximum_bytes + 1)
    except OSError:
        return None
    if len(answer) > maximum_bytes:
        raise ValueError(f"it is longer than {maximum_bytes} bytes")
    return answer


def end_process(status: int) -> NoReturn:
    """Flush what was printed, and end this process at once, without exit handlers.

    Frameworks take time to shut down, and a user's threads and exit handlers might never end.
    """
    flush_output()
    os._exit(status)
