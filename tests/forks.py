"""Launches forked from a process that has imported the frameworks and done nothing else.

To import them anew would take most of a short launch's time. What is found must not hang on that: some tests start a
launch as the supervisor does.
"""

import faulthandler
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any

from accelbench import frameworks

TESTS = Path(__file__).parent
FRAMEWORKS = tuple(each.adapter.partition(":")[0] for each in frameworks.every())
PRELOADED = ("accelbench_runner.launch.stages", "torch._dynamo", *FRAMEWORKS, "forks_frozen")

Child = Callable[[Any, Connection], None]
"""What the process does with what it is given, and with the end of the pipe that it writes to."""


@cache
def server() -> ForkServerContext:
    """Of this process; it finds tests' modules by PYTHONPATH, for it does not get its parent's path."""
    context = get_context("forkserver")
    context.set_forkserver_preload(list(PRELOADED))
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(TESTS), before]))
    try:
        forkserver.ensure_running()
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
    return context


def start(child: Child, given: Any) -> tuple[ForkServerProcess, Connection]:
    """The process, and the end of the pipe from which to read until it ends."""
    receiving, sending = server().Pipe(duplex=False)
    process = server().Process(target=child, args=(given, sending))
    process.start()
    sending.close()
    return process, receiving


def become(environment: Mapping[str, str], *, output: Path | None, errors: Path) -> None:
    """In the child: what a new process has from its environment, and frameworks have read already when imported."""
    for descriptor, file in ((1, output), (2, errors)):
        os.dup2(os.open(file or os.devnull, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    faulthandler.enable()
    os.environ |= environment
    places = environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:0] = [place for place in places if place and place not in sys.path]
    tempfile.tempdir = None
    import jax

    jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
