"""Prepare the wheels that a visit needs on a machine without a network: `make gpu-visit-wheels`.

Versions and hashes are those of `constraints.txt`. JAX and PyTorch, gigabytes, are left out unless they are asked for.
"""

import argparse
import ensurepip
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
FRAMEWORK_EXTRAS = ("jax", "torch", "cuda")
ALWAYS = ("nvidia-ml-py", "psutil", "threadpoolctl")
"""Small packages of the runner, which an installation of the frameworks does not bring."""
OLDEST_GLIBC, NEWEST_GLIBC = 17, 39
"""Minor versions of glibc 2 that wheels may be built for: pip compares these tags for equality."""


def prepare(wheels: Path, accelbench: Path, *, python: str, machine: str, frameworks: bool) -> None:
    """Fill the directory with wheels, and nothing else.

    Args:
        wheels: The directory; what it holds is removed.
        accelbench: accelbench's own wheel.
        python: Version of the Python there, such as `3.12`.
        machine: Its processors' architecture, such as `x86_64`.
        frameworks: True to include the frameworks, for a machine that has none.
    """
    shutil.rmtree(wheels, ignore_errors=True)
    wheels.mkdir(parents=True)
    requirements = wheels / "requirements.txt"
    extras = [part for extra in FRAMEWORK_EXTRAS if frameworks for part in ("--extra", extra)]
    # Two files are resolved together: the project, and the runner's packages by name.
    names = wheels / "names.in"
    names.write_text("".join(f"{name}\n" for name in ALWAYS))
    resolve = ["-m", "uv", "pip", "compile", "--quiet", "--generate-hashes", "--no-header", "--no-emit-index-url"]
    resolve += ["--constraint", str(ROOT / "constraints.txt"), "--python-version", python]
    resolve += ["--python-platform", f"{machine}-manylinux_2_28", "--output-file", str(requirements)]
    _call(*resolve, *extras, str(ROOT / "pyproject.toml"), str(names))
    platforms = [f"manylinux_2_{minor}_{machine}" for minor in range(OLDEST_GLIBC, NEWEST_GLIBC + 1)]
    platforms.append(f"manylinux2014_{machine}")
    download = ["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]
    download += ["--implementation", "cp", "--python-version", python, "--dest", str(wheels)]
    download += [part for platform in platforms for part in ("--platform", platform)]
    _call(*download, "--requirement", str(requirements))
    names.unlink()
    requirements.unlink()
    shutil.copy(accelbench, wheels)
    # pip itself: it installs the others where there may be none. Python brings its wheel.
    [pip] = Path(ensurepip.__file__).parent.glob("_bundled/pip-*.whl")
    shutil.copy(pip, wheels)


def _call(*arguments: str) -> None:
    """Run a module of this Python; exits with its status if it fails, after it has said why."""
    done = subprocess.run([sys.executable, *arguments], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Prepare the wheels, and print their size."""
    parser = argparse.ArgumentParser(prog="python -m gpu_visit.wheels", description=__doc__)
    parser.add_argument("wheels", type=Path, help="the directory to fill")
    parser.add_argument("--accelbench", type=Path, required=True, help="accelbench's own wheel")
    parser.add_argument("--python", default="3.12", help="the version of the Python there")
    parser.add_argument("--machine", default="x86_64", help="its architecture")
    parser.add_argument("--frameworks", action="store_true", help="JAX and PyTorch too, several GB")
    options = parser.parse_args()
    prepare(
        options.wheels,
        options.accelbench,
        python=options.python,
        machine=options.machine,
        frameworks=options.frameworks,
    )
    found = sorted(options.wheels.glob("*.whl"))
    size = sum(path.stat().st_size for path in found) / 1024**2
    print(f"{len(found)} wheels, {size:.1f} MiB, in {options.wheels}: they travel with the checkout")


if __name__ == "__main__":
    main()
