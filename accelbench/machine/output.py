"""Keep this process's standard output apart from what a user's code prints in it."""

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

STANDARD_DESCRIPTORS = (0, 1, 2)
STANDARD_OUTPUT, STANDARD_ERROR = 1, 2


@contextmanager
def print_to(descriptor: int) -> Iterator[None]:
    """Send everything to `descriptor` that this process and its children print while the context is open.

    Afterwards standard output and standard error are as before, even if they were closed or replaced meanwhile.
    """
    occupy_standard_descriptors()
    streams = sys.stdout, sys.stderr
    flush_output()
    saved = [os.dup(STANDARD_OUTPUT), os.dup(STANDARD_ERROR)]
    os.dup2(descriptor, STANDARD_OUTPUT)
    os.dup2(descriptor, STANDARD_ERROR)
    # A user's code may close these, but not the streams that are restored.
    sys.stdout, sys.stderr = _open_stream(STANDARD_OUTPUT), _open_stream(STANDARD_ERROR)
    try:
        yield
    finally:
        flush_output()
        for copy, standard in zip(saved, (STANDARD_OUTPUT, STANDARD_ERROR), strict=True):
            os.dup2(copy, standard)
            os.close(copy)
        sys.stdout, sys.stderr = streams


def _open_stream(descriptor: int) -> TextIO:
    """Return a stream that leaves the descriptor open when it is closed."""
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", closefd=False)


def flush_output() -> None:
    """Write what was printed and is still in a buffer, of Python or of C."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a user may have closed or replaced it
            stream.flush()
    ctypes.CDLL(None).fflush(None)


def occupy_standard_descriptors() -> None:
    """Open the standard descriptors that are closed.

    Otherwise the next file that is opened would get one of them, and what is printed later would be written to it.
    """
    for descriptor in STANDARD_DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
