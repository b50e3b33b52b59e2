"""Free ports, for servers that cannot be asked to choose one themselves."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

__all__ = ["free_port"]

# Below the range from which Linux takes the ports of outgoing connections: none can slip in before the server listens.
LOWEST, HIGHEST = 20_000, 32_000


def free_port() -> int:
    """Return a port on 127.0.0.1 that nobody listens on, and that no other process has been given that still runs.

    A server may take seconds until it listens: the lock on the port's file is held until this process ends.
    """
    directory = Path(tempfile.gettempdir(), f"accelbench-ports-{os.getuid()}")  # another user's may not be opened
    directory.mkdir(exist_ok=True)
    # Test workers seed the shared generator alike, and would all try the same ports at the same moment.
    generator = random.SystemRandom()
    while True:
        port = generator.randint(LOWEST, HIGHEST)
        claim = os.open(directory / str(port), os.O_CREAT | os.O_RDWR)
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            os.close(claim)
            continue
        return port
