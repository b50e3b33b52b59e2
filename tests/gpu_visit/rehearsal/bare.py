"""Make a bare machine: a Python that has the frameworks and nothing of what wheels bring."""

import subprocess
import sys
from collections.abc import Collection
from importlib.metadata import Distribution, distributions
from pathlib import Path


def make_bare_machine(directory: Path, wheels: Path) -> Path:
    """Return a Python with the packages of this one, except accelbench and those of which there is a wheel.

    Packages are linked and not copied: the frameworks take gigabytes.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    [packages] = directory.glob("lib/python3*/site-packages")
    brought = {_normalize(path.name.partition("-")[0]) for path in wheels.glob("*.whl")}
    for distribution in distributions():
        if _normalize(distribution.name) not in brought:
            _link(distribution, packages, brought)
    return directory / "bin" / "python"


def _link(distribution: Distribution, packages: Path, brought: Collection[str]) -> None:
    """Link the top of each of a distribution's files into the directory of packages."""
    for name in {file.parts[0] for file in distribution.files or ()}:
        source = Path(str(distribution.locate_file(name)))
        link = packages / name
        if name not in {"..", "__pycache__"} and _normalize(name) not in brought and not link.exists():
            link.symlink_to(source)


def _normalize(name: str) -> str:
    return name.lower().replace("_", "-")
