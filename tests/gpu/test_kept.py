"""What is kept of checks on a GPU: the outcomes and the programs' numbers of all that said something."""

import json
from pathlib import Path

from gpu.__main__ import condensed

FOUND = [
    {
        "case": "all",
        "variants": [
            {
                "name": "jax/jit",
                "failure": None,
                "checks": [{"name": "parity", "outcome": "passed", "reading": "0.1"}],
                "compiled": {"kernels_per_call": 3},
            }
        ],
    }
]


def test_a_check_that_said_something_is_kept_by_its_name(tmp_path: Path) -> None:
    said = {"asked": "layer-norm jax/jit float32", "said": "", "status": 0, "found": json.dumps(FOUND)}
    silent = {"asked": "layer-norm jax/jit float16", "said": "killed", "status": 137, "found": ""}
    for number, each in enumerate((said, silent)):
        (tmp_path / f"{number}.json").write_text(json.dumps(each))
    assert condensed(tmp_path) == {
        "layer-norm jax/jit float32": {"checks": {"parity": "passed"}, "compiled": {"kernels_per_call": 3}}
    }
