"""Read a `JudgeRequest` from standard input, and write an `Assessment` to the file that it names."""

import sys
from pathlib import Path

from accelbench_runner.answers import end_process, write_answer
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import JudgeRequest


def main() -> None:
    """Judge the launches that standard input describes, and write the assessment."""
    request = JudgeRequest.model_validate_json(sys.stdin.buffer.read())
    write_answer(Path(request.answer), judge(request).to_json())


if __name__ == "__main__":
    main()
    end_process(0)
