"""Operators forked from a process that has imported what they need, which costs each of them a second or two.

For those that are killed and started hundreds of times. What is found must not hang on how they are started: the other
tests start theirs as a container does.
"""

import atexit
import contextlib
import gc
import json
import os
import random
import signal
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path
from select import select
from typing import Any

from operator_world.process import OperatorProcess


class ForkedOperator(OperatorProcess):
    """Run an operator that can only be killed: as it is no child of this process, its exit code is unknown."""

    _handle = -1
    """Of the process that runs, until it is killed."""

    def start(self, clock: str = "") -> None:
        """Start an operator with this machine's clock."""
        assert not clock
        asked = {"environment": self._surroundings(), "log": str(self._log)}
        self._handle = os.pidfd_open(_parent().fork(asked))

    def kill(self) -> None:
        """End it as a node that loses power does."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        select([self._handle], [], [])  # until it has ended
        os.close(self._handle)


class _Parent:
    """Run the process that forks operators; it ends with this one."""

    def __init__(self) -> None:
        pipe, places = subprocess.PIPE, {"PYTHONPATH": str(Path(__file__).parents[1])}
        self._asking = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "operator_world.forked"], stdin=pipe, stdout=pipe, text=True, env=os.environ | places
        )
        atexit.register(self._process.communicate)

    def fork(self, asked: dict[str, Any]) -> int:
        """Fork an operator, and return its process ID."""
        assert self._process.stdin
        assert self._process.stdout
        with self._asking:
            print(json.dumps(asked), file=self._process.stdin, flush=True)
            return int(self._process.stdout.readline())


@cache
def _parent() -> _Parent:
    """Return the only parent process."""
    return _Parent()


def main() -> int:
    """Fork an operator for each line of the input, and print its process ID; in the fork, be it."""
    from kubernetes import config as kopfs
    from kubernetes.aio import config as ours

    from accelbench_operator.__main__ import main as operate

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        if pid := os.fork():
            sys.stdout.write(f"{pid}\n")
            sys.stdout.flush()
            continue
        asked = json.loads(line)
        os.environ.clear()
        os.environ.update(asked["environment"])
        for config in (ours.kube_config, kopfs.kube_config):  # which read it when they were imported
            config.KUBE_CONFIG_DEFAULT_LOCATION = os.environ["KUBECONFIG"]
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        random.seed()
        log = os.open(asked["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        for descriptor, file in ((0, os.open(os.devnull, os.O_RDONLY)), (1, log), (2, log)):
            os.dup2(file, descriptor)
        return operate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
