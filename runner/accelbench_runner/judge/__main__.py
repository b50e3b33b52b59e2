"""`python -m accelbench_runner.judge`: a `JudgeRequest` on standard input, an `Assessment` on standard output."""

import sys

from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import JudgeRequest


def main() -> None:
    """Standard input to standard output."""
    request = JudgeRequest.model_validate_json(sys.stdin.buffer.read())
    sys.stdout.write(judge(request).to_json())


if __name__ == "__main__":
    main()
