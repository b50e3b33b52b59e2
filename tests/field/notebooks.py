"""Execute a program that calls `accelbench.compare`, and keep what would be measured in place of measuring it.

`python -m field.notebooks FILE DIRECTORY` leaves the script that `compare` writes, and `run.json`, in the directory.
"""

import runpy
import shutil
import sys
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

from accelbench import notebook
from accelbench.api.run import BenchmarkRun


def main(file: str, directory: Path) -> None:
    """Execute the file up to where `compare` would start to measure."""

    def keep(run: BenchmarkRun, *_: Any, script: Path, **_options: Any) -> NoReturn:
        shutil.copy(script, directory)
        (directory / "run.json").write_text(run.model_dump_json(by_alias=True, exclude_unset=True))
        raise SystemExit

    with patch.object(notebook, "measure_run", keep):
        runpy.run_path(file, run_name="__main__")
    raise RuntimeError(f"{file} does not call accelbench.compare")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
