"""Ports for the servers of the tests."""

import subprocess
import sys
from pathlib import Path

import pytest

from cluster import ports

ANOTHER = "from cluster import ports; ports.LOWEST, ports.HIGHEST = map(int, {!r}); print(ports.free_port())"


def test_two_processes_never_get_the_same_port_though_nobody_listens_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    first = ports.free_port()
    monkeypatch.setattr(ports, "LOWEST", first)
    monkeypatch.setattr(ports, "HIGHEST", first + 20)
    mine = {first, *(ports.free_port() for _ in range(5))}
    code = ANOTHER.format((first, first + 20))
    path = str(Path(__file__).parents[1])
    theirs = {
        int(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, check=True, text=True, env={"PYTHONPATH": path}
            ).stdout
        )
        for _ in range(8)
    }
    assert len(mine) == 6
    assert not mine & theirs
