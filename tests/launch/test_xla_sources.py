"""A compiled program's instructions have the names and lines of the operations that they compute."""

from pathlib import Path

import pytest

from accelbench_runner.frameworks.source_lines import format_lines, is_user_file
from accelbench_runner.frameworks.trace import Operation
from accelbench_runner.frameworks.xla_sources import describe_program

HLO = Path(__file__).with_name("program.hlo").read_text()
PROGRAM = describe_program(HLO, lambda file: file.startswith("/their/"))


@pytest.mark.parametrize(
    ("instruction", "operation"),
    [
        pytest.param("sort.1", Operation("sort", "step.py:14"), id="the user's line below a library's"),
        pytest.param(
            "fusion.1",
            Operation("fusion of sub, integer_pow, reduce_sum", "step.py:9-10,14", merged=True),
            id="a fusion has all its lines, not only its root's",
        ),
        pytest.param("ynn_fusion", Operation("dot_general", "step.py:9"), id="a fusion of one operation is that one"),
        pytest.param("copy.1", Operation("copy"), id="no line is known of what XLA adds"),
    ],
)
def test_instructions_are_described(instruction: str, operation: Operation) -> None:
    assert PROGRAM.operations[instruction] == operation


def test_only_what_a_loop_runs_can_run_several_times() -> None:
    assert PROGRAM.module == "jit_f"
    assert "ynn_fusion" in PROGRAM.looped
    assert not {"sort.1", "fusion.1", "while.1"} & PROGRAM.looped


def test_a_text_without_tables_has_names_but_no_lines() -> None:
    plain = HLO[: HLO.index("FileNames")] + HLO[HLO.index("%region") :]
    assert describe_program(plain, is_user_file).operations["sort.1"] == Operation("sort")
    assert describe_program("no module", is_user_file).operations == {}


def test_the_name_of_a_large_fusion_is_cut() -> None:
    many = "\n".join(
        f'  %op.{number} = f32[] add(%a, %b), metadata={{op_name="jit(f)/op{number}"}}' for number in range(8)
    )
    text = HLO.replace("  ROOT %sum.1", f"{many}\n  ROOT %sum.1")
    name = describe_program(text, is_user_file).operations["fusion.1"].name
    assert name == "fusion of sub, integer_pow, op0, op1, op2 and 6 more"


def test_lines_are_listed_by_file_and_as_ranges() -> None:
    lines = [("/a/step.py", 9), ("/a/step.py", 11), ("/a/step.py", 10), ("/a/step.py", 10), ("/b/loss.py", 3)]
    assert format_lines(lines) == "step.py:9-11, loss.py:3"
    assert format_lines([]) == ""


@pytest.mark.parametrize(
    ("file", "theirs"),
    [
        ("/home/her/step.py", True),
        ("/usr/lib/python3/dist-packages/flax/linen.py", False),
        ("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", False),
        ("<frozen importlib._bootstrap>", False),
    ],
)
def test_lines_of_libraries_do_not_count_as_the_users(file: str, theirs: bool) -> None:
    assert is_user_file(file) is theirs


def test_workloads_of_accelbench_are_shown_like_the_users_and_the_rest_of_it_is_not() -> None:
    import accelbench.workloads.layer_norm as workload
    from accelbench import figures
    from accelbench_runner import clock

    assert is_user_file(workload.__file__)
    assert not is_user_file(figures.__file__)
    assert not is_user_file(clock.__file__)
