"""`python -m accelbench_runner.launch`: a `LaunchRequest` on standard input, messages on its descriptor.

When everything has been told, the process ends at once: taking frameworks apart takes time, and tells nothing more.
"""

import os
import sys

from accelbench_runner.launch.machine import Machine
from accelbench_runner.launch.stages import carry_out
from accelbench_runner.protocol import LaunchRequest


def main() -> int:
    """Exit status 0 after `Done`, 1 after `Failed`."""
    return carry_out(LaunchRequest.model_validate_json(sys.stdin.buffer.read()), Machine())


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
