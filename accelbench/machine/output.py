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
    """Send to `descriptor` everything that this process and its children print within the `with` block.

    Afterwards standard output and standard error are as before, even if they were closed or replaced meanwhile.
    """
    occupy_standard_descriptors()
    streams = sys.stdout, sys.stderr
    flush_output()
    saved = [os.dup(STANDARD_OUTPUT), os.dup(STANDARD_ERROR)]
    os.dup2(descriptor, STANDARD_OUTPUT)
    os.dup2(descriptor, STANDARD_ERROR)
    # A user's code may close the new streams; the old ones are out of its reach and are restored below.
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
    """Flush the buffers of Python's standard streams and of C's."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a user's code may have closed or replaced the stream
            stream.flush()
    ctypes.CDLL(None).fflush(None)  # flushes all streams of C


def occupy_standard_descriptors() -> None:
    """Open each of the file descriptors 0, 1 and 2 that is closed, on /dev/null.

    Otherwise the next file that this process opens would get the free number, and with it all later output.
    """
    for descriptor in STANDARD_DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
