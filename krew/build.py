"""Build what krew installs: an archive for each platform, and the manifest with their digests.

python krew/build.py --out DIR [--uri https://HOST/PATH] [--wheel FILE] [--platform linux-amd64 ...]

An archive holds the launcher next to this file, the licence and the libraries: pure ones in `lib/any`, compiled ones in
`lib/cp311` and so on. Versions are those of constraints.txt; the plugin's is the package's. `--uri` is the address of
the archives. Without it the manifest has their names alone, and `kubectl krew install` needs `--archive`.
"""

import argparse
import filecmp
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LAUNCHER = "kubectl-accelbench"
PLATFORMS = {
    "linux-amd64": "x86_64-manylinux_2_28",
    "linux-arm64": "aarch64-manylinux_2_28",
    "darwin-amd64": "x86_64-apple-darwin",
    "darwin-arm64": "aarch64-apple-darwin",
}
"""Platforms by krew's names, with uv's."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ASYNCHRONOUS = (
    "kubernetes/aio",
    "aiohttp",
    "aiohappyeyeballs",
    "aiosignal",
    "frozenlist",
    "multidict",
    "propcache",
    "yarl",
)
LEFT_OUT = ("bin", "accelbench_operator", "accelbench_runner", *ASYNCHRONOUS, ".lock", ".gitignore")
"""Installed files that the plugin does not use."""
DESCRIPTION = """\
Creates BenchmarkRuns, follows them with live progress, and ends with a verdict
and its exit code, as a gate in CI wants one: which is faster, JAX or PyTorch,
by how much, and how certain is that? Lists, compares, cancels and repeats
runs, and writes their reports.

The cluster needs accelbench's operator and its CustomResourceDefinitions.
"""
CAVEATS = """\
Needs Python 3.11 or later as python3.
`report -o html` and `compare` need more than this archive has. accelbench is
not on PyPI yet; in a checkout of its repository:
  pip install '.[kubectl,report]'
To have kubectl complete its words, put a file kubectl_complete-accelbench
into your PATH:
  #!/bin/sh
  exec kubectl accelbench __complete "$@"
"""


class Readable(yaml.SafeDumper):
    """Dump texts of several lines as YAML blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Readable.add_representer(str, _text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Build; return the exit status."""
    parser = argparse.ArgumentParser(description="Build the archives and the manifest for krew.")
    parser.add_argument("--uri", default="", help="the address of the archives")
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--wheel", type=Path, help="accelbench's; default: built from this checkout")
    parser.add_argument("--platform", action="append", choices=PLATFORMS, help="default: all")
    parser.add_argument("--python", action="append", choices=PYTHONS, help="default: all")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        wheel = (options.wheel or _wheel(Path(temporary))).resolve()
        version = wheel.name.split("-")[1]
        if not re.fullmatch(r"\d+\.\d+\.\d+", version):
            parser.error(f"krew takes versions such as 1.2.3, and this is {version}")
        archives = {
            platform: _archive(
                options.out / f"kubectl-accelbench-v{version}-{platform}.tar.gz",
                platform,
                wheel,
                options.python or PYTHONS,
            )
            for platform in options.platform or PLATFORMS
        }
    manifest = plugin(version, options.uri.rstrip("/"), archives)
    (options.out / "accelbench.yaml").write_text(yaml.dump(manifest, Dumper=Readable, sort_keys=False, width=1000))
    return 0


def plugin(version: str, uri: str, archives: dict[str, Path]) -> dict[str, Any]:
    """Return the manifest, with an entry for each archive."""
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": "accelbench"},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Run JAX-against-PyTorch benchmarks in a cluster",
            "description": DESCRIPTION,
            "caveats": CAVEATS,
            "platforms": [
                {
                    "selector": {"matchLabels": dict(zip(("os", "arch"), platform.split("-"), strict=True))},
                    "uri": f"{uri}/{archive.name}" if uri else archive.name,
                    "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
                    "bin": LAUNCHER,
                }
                for platform, archive in archives.items()
            ],
        },
    }


def _wheel(directory: Path) -> Path:
    _uv("build", "--wheel", "--quiet", "--out-dir", directory, ROOT)
    return next(directory.glob("*.whl"))


def _archive(archive: Path, platform: str, wheel: Path, pythons: Sequence[str]) -> Path:
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        installed = {f"cp{python.replace('.', '')}": python for python in pythons}
        for name, python in installed.items():
            _install(root / "lib" / name, platform, python, wheel)
        _move_shared(root / "lib", list(installed))
        shutil.copy(HERE / LAUNCHER, root)
        shutil.copy(ROOT / "LICENSE", root)
        # gzip would record the time, too.
        with gzip.GzipFile(archive, "wb", mtime=0) as file, tarfile.open(fileobj=file, mode="w") as packed:
            for each in sorted(root.iterdir()):
                packed.add(each, each.name, filter=_anonymous)
    return archive


def _install(target: Path, platform: str, python: str, wheel: Path) -> None:
    place = ("--target", target, "--python-platform", PLATFORMS[platform], "--python-version", python)
    limits = ("--constraint", ROOT / "constraints.txt", "--only-binary", ":all:", "--link-mode", "copy", "--quiet")
    _uv("pip", "install", "--python", sys.executable, *place, *limits, f"{wheel}[kubectl]")
    for name in LEFT_OUT:
        path = target / name
        for each in (path, *target.glob(f"{name}-*.dist-info")):
            shutil.rmtree(each) if each.is_dir() else each.unlink(missing_ok=True)


def _move_shared(libraries: Path, installed: Sequence[str]) -> None:
    """Move packages that are equal for every Python to `any`."""
    (libraries / "any").mkdir()
    first, *others = (libraries / name for name in installed)
    for package in sorted(first.iterdir()):
        if all(_same(package, other / package.name) for other in others):
            package.rename(libraries / "any" / package.name)
            for other in others:
                twin = other / package.name
                shutil.rmtree(twin) if twin.is_dir() else twin.unlink()


def _same(one: Path, other: Path) -> bool:
    if one.name.endswith(".dist-info"):
        return (
            other.is_dir() and filecmp.cmp(one / "METADATA", other / "METADATA", shallow=False) and not _compiled(one)
        )
    if not one.is_dir():
        return other.is_file() and filecmp.cmp(one, other, shallow=False)
    files = {each.relative_to(one) for each in one.rglob("*") if each.is_file()}
    if files != {each.relative_to(other) for each in other.rglob("*") if each.is_file()}:
        return False
    return all(filecmp.cmp(one / each, other / each, shallow=False) for each in files)


def _compiled(information: Path) -> bool:
    return "Root-Is-Purelib: false" in (information / "WHEEL").read_text()


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Return the member without owner and time, so that archives are reproducible."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    return entry


def _uv(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "uv", *arguments], check=True)


if __name__ == "__main__":
    sys.exit(main())
