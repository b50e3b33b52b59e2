"""Run a launch: read a `LaunchRequest` from standard input, and write messages to its descriptor."""

import sys

from accelbench_runner.answers import end_process
from accelbench_runner.launch.stages import run_launch
from accelbench_runner.launch.task import Machine
from accelbench_runner.protocol import LaunchRequest


def main() -> int:
    """Run the launch that standard input requests, and return its exit status."""
    return run_launch(LaunchRequest.model_validate_json(sys.stdin.buffer.read()), Machine())


if __name__ == "__main__":
    end_process(main())
