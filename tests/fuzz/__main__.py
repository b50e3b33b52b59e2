"""Give targets inputs for a while: `PYTHONPATH=tests python -m fuzz --seconds 60 [TARGET ...]`.

What inputs reached is kept in .fuzz/, beside the checkout's own corpus. An input that breaks something is left there:
mend it, and add it to tests/fuzz/corpus/TARGET/, where the tests replay it.
"""

# ruff: noqa: T201 - a command line prints

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
SECONDS_FOR_ONE_INPUT = 30
"""On a machine that is busy with more; a thousand brackets in a row are what takes YAML longest, a second or two."""
MEBIBYTES = 2048
LONGEST_INPUT = 20000


def fuzz(target: str, length: tuple[str, ...], work: Path) -> int:
    """The exit status of one target under libFuzzer: not 0 where an input broke something."""
    grown = work / target
    grown.mkdir(parents=True, exist_ok=True)
    bounds = (
        *length,
        f"-timeout={SECONDS_FOR_ONE_INPUT}",
        f"-rss_limit_mb={MEBIBYTES}",
        f"-max_len={LONGEST_INPUT}",
        f"-artifact_prefix={work}/{target}-",
        "-print_final_stats=1",
        "-verbosity=0",
    )
    command = [sys.executable, "-m", "fuzz.guided", target, *bounds, str(grown), str(CORPUS / target)]
    return subprocess.run(
        command, env=os.environ | {"PYTHONPATH": str(CORPUS.parents[1]), "PYTHONHASHSEED": "0"}, check=False
    ).returncode


def main() -> int:
    """Fuzz every target that was asked for; return 1 where one of them broke."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: %(default)s)")
    parser.add_argument(
        "--inputs",
        type=int,
        help="so many for each target in place of seconds, the same every time from an empty --work",
    )
    parser.add_argument("--work", type=Path, default=Path(".fuzz"), help="what is found (default: %(default)s)")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: {' '.join(TARGETS)}")
    asked = parser.parse_args()
    if unknown := set(asked.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    length = (f"-runs={asked.inputs}", "-seed=1") if asked.inputs else (f"-max_total_time={asked.seconds}",)
    broken = []
    for target in asked.targets or TARGETS:
        print(f"== {target}", flush=True)
        if fuzz(target, length, asked.work.absolute()):
            broken.append(target)
    if broken:
        print(f"broken: {', '.join(broken)}; the inputs are in {asked.work}")
    return bool(broken)


if __name__ == "__main__":
    sys.exit(main())
