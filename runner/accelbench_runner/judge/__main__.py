"""Read a `JudgeRequest` from standard input, and write an `Assessment` to standard output."""

import sys

from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import JudgeRequest


def main() -> None:
    """Read a judge request from standard input, and write its assessment to standard output."""
    request = JudgeRequest.model_validate_json(sys.stdin.buffer.read())
    sys.stdout.write(judge(request).to_json())


if __name__ == "__main__":
    main()
