"""Everything that the tests start and Python does not bring, fetched and built before the first of them.

`make prepare` calls it. What this machine cannot have is named: the tests that need it are skipped, with CI set they
fail.
"""

from __future__ import annotations

import functools
import os
import sys

from cluster.build import build
from cluster.errors import ClusterError
from report.browser import install

STEPS = {"programs": build, "browser": install}


def main() -> int:
    """Take every step, also after one that failed; return the exit status."""
    failed = 0
    for name, step in STEPS.items():
        say = functools.partial(print, f"{name}:", file=sys.stderr, flush=True)
        try:
            step(say)
        except ClusterError as error:
            failed += 1
            say(error)
    return int(failed > 0 and bool(os.environ.get("CI")))


if __name__ == "__main__":
    sys.exit(main())
