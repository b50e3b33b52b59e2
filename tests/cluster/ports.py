"""Free ports, for servers that cannot be asked to choose one themselves."""

from __future__ import annotations

import random
import socket

__all__ = ["free_port"]

# Below the range from which Linux takes the ports of outgoing connections: none can slip in before the server listens.
LOWEST, HIGHEST = 20_000, 32_000


def free_port() -> int:
    """Return a port on 127.0.0.1 that nobody listens on."""
    # Test workers seed the shared generator alike, and would all try the same ports at the same moment.
    generator = random.SystemRandom()
    while True:
        port = generator.randint(LOWEST, HIGHEST)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
