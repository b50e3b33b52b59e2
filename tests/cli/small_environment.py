"""Make a Python environment in which NumPy variants run, without a download: links to packages that are installed."""

import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path

PACKAGES = (
    *("numpy", "scipy", "psutil", "pyyaml", "nvidia-ml-py"),
    *("pydantic", "pydantic-core", "annotated-types", "typing-extensions", "typing-inspection"),
)


def make_environment(directory: Path) -> Path:
    """Return the path of a new environment's interpreter, which has `PACKAGES` and nothing else."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory)], check=True)
    site = site_packages(directory)
    for origin in installed_files():
        (site / origin.name).symlink_to(origin)
    return directory / "bin" / "python"


def site_packages(directory: Path) -> Path:
    """Return the directory of the packages of an environment."""
    return next(directory.glob("lib/python3*/site-packages"))


def installed_files() -> Iterator[Path]:
    """Yield what `PACKAGES` have put into this process's site-packages: directories, modules and metadata."""
    for name in PACKAGES:
        package = distribution(name)
        names = {file.parts[0] for file in package.files or () if not file.parts[0].startswith("..")}
        yield from (Path(str(package.locate_file(each))) for each in sorted(names - {"__pycache__"}))
