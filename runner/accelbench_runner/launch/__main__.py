"""Run a launch: read a `LaunchRequest` from standard input, and write messages to its descriptor.

The process exits as soon as it has sent its last message: frameworks take time to shut down, which yields nothing.
"""

import os
import sys

from accelbench_runner.launch.stages import run_launch
from accelbench_runner.launch.task import Machine
from accelbench_runner.protocol import LaunchRequest


def main() -> int:
    """Run the launch that standard input requests, and return its exit status."""
    return run_launch(LaunchRequest.model_validate_json(sys.stdin.buffer.read()), Machine())


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
