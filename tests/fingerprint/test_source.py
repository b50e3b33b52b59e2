"""The digest of a workload's source changes with its code, and not with its words."""

import ast
from pathlib import Path

import pytest

from accelbench import workloads
from accelbench.machine.source import code_of

PROGRAM = '''"""What it is."""

import numpy  # arrays

SIZE = 3
"""How many."""


class Program:
    """A program."""

    def run(self, x):
        """Return twice x."""
        text = """first

  last"""  # two lines and a blank one
        return 2 * x, f"{text} # no comment", 'é"""', 1  # done
'''


def test_comments_and_docstrings_do_not_change_the_source_digest() -> None:
    reworded = (
        PROGRAM.replace('"""What it is."""', '"""What it\n\nreally is: é."""')
        .replace("  # arrays", "")
        .replace('    """A program."""\n\n', '    """A program\n    of ours."""\n')
        .replace('"""Return twice x."""', "'x, doubled'  # no unit\n        # twice")
        .replace("\n\n\nclass", "\n# A class.\nclass")
        .replace("# done", "# finished")
    )
    assert reworded != PROGRAM
    assert code_of(reworded) == code_of(PROGRAM)
    assert code_of(PROGRAM.replace("\n", "\r\n")) == code_of(PROGRAM)


@pytest.mark.parametrize(
    ("code", "other"),
    [
        ("2 * x", "3 * x"),
        ("SIZE = 3", "SIZE = 4"),
        ("first\n\n  last", "first\n  last"),
        ("first\n", "first \n"),
        ("# no comment", "# a comment"),
        ("        return", "    return"),
        ('\'é"""\'', '\'e"""\''),
        ("run(self", "walk(self"),
    ],
)
def test_all_code_changes_the_source_digest(code: str, other: str) -> None:
    changed = PROGRAM.replace(code, other)
    assert changed != PROGRAM
    assert code_of(changed) != code_of(PROGRAM)


@pytest.mark.parametrize("text", ["no program (", "\0", "def f():\n\tx\n        y\n", "x = '''"])
def test_other_files_than_python_are_digested_as_they_are(text: str) -> None:
    assert code_of(text) == text


def test_the_code_of_a_workload_is_its_program() -> None:
    """Its tree is the workload's, with the docstrings taken out."""
    source = (Path(workloads.__path__[0]) / "matmul_chain.py").read_text()
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [
                one for one in node.body if not isinstance(one, ast.Expr) or not isinstance(one.value, ast.Constant)
            ]
    assert ast.dump(ast.parse(code_of(source))) == ast.dump(tree)
