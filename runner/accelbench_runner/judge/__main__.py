"""Read a `JudgeRequest` from standard input, and write an `Assessment` to standard output."""

import sys

from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import JudgeRequest


def main() -> None:
    """Judge the launches of one request."""
    request = JudgeRequest.model_validate_json(sys.stdin.buffer.read())
    sys.stdout.write(judge(request).to_json())


if __name__ == "__main__":
    main()
