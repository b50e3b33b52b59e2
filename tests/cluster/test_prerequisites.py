"""What a machine lacks is named for what it is needed for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent / "prerequisites.sh"
NODE = ["containerd", "runc", "iproute2", "util-linux"]
IMAGES = ["buildah", "debootstrap"]


def refusal(tmp_path: Path, *purposes: str) -> str:
    """On a machine that has next to nothing, and no apt-get either."""
    for name in ("id", "uname"):
        (tmp_path / name).symlink_to(shutil.which(name) or name)
    shell = shutil.which("sh") or "/bin/sh"
    done = subprocess.run(
        [shell, PROGRAM, *purposes], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize(
    ("purposes", "said", "wants", "spares"),
    [
        (["images"], "building the images: ", IMAGES, NODE),
        (["node"], "a Kubernetes node on this machine: ", NODE, IMAGES),
        (["node", "images"], "a Kubernetes node on this machine, and building the images: ", [*NODE, *IMAGES], []),
    ],
)
def test_a_refusal_names_the_purpose_and_only_what_that_takes(
    tmp_path: Path, purposes: list[str], said: str, wants: list[str], spares: list[str]
) -> None:
    text = refusal(tmp_path, *purposes)
    assert text.startswith(said)
    words = text.removeprefix(said).split()
    assert set(wants) <= set(words)
    assert not set(spares) & set(words)
