"""Offer small packages to uv in place of a registry: each is a wheel with one module."""

import zipfile
from pathlib import Path

import pytest

PROVIDED = ("pydantic", "pyyaml", "numpy", "scipy", "psutil", "nvidia_ml_py", "setuptools")


def wheel(directory: Path, name: str, version: str) -> None:
    """Write a wheel with one module, which holds its version."""
    metadata = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(directory / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"__version__ = {version!r}\n")
        archive.writestr(f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{metadata}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{metadata}/RECORD", f"{name}.py,,\n{metadata}/METADATA,,\n{metadata}/WHEEL,,\n")


def offer_wheels(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make uv install from a directory alone, which it returns: what accelbench needs, and three releases of JAX."""
    wheels = directory / "wheels"
    wheels.mkdir()
    for name in PROVIDED:
        wheel(wheels, name, "999.0")
    for version in ("0.6.2", "0.9.1", "0.9.2"):
        wheel(wheels, "jax", version)
    for name, value in {
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(wheels),
        "UV_CACHE_DIR": str(directory / "uv"),
        "XDG_CACHE_HOME": str(directory / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    return wheels
