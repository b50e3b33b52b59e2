"""Examine the Python environment of this process: its version, its packages, and whether accelbench's code runs in it.

`python -m accelbench_runner.environment` reads a request from standard input, JSON with these fields:

- `answer`: the file for the answer
- `oldest`, `newest`: the first and the last minor of Python in which accelbench runs, such as [3, 11]
- `modules`: what a launch imports, in this order
- `workload`: the workload's name

The answer is JSON with the fields of `accelbench_runner.supervisor.examination.Examination`. The code runs in old
Pythons too, and imports nothing outside of the standard library before it knows the version. Importing everything once
also compiles it to bytecode, and brings its files into memory, so that no timed launch has to.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import re
import site
import sys
import sysconfig
from pathlib import Path


def main() -> None:
    """Read a request from standard input, examine the environment, and write the answer to the requested file.

    A Python outside of the supported versions only reports its version.
    """
    request = json.load(sys.stdin)
    answer: dict[str, object] = {"python": platform.python_version()}
    if tuple(request["oldest"]) <= sys.version_info[:2] <= tuple(request["newest"]):
        directories = _package_directories()
        answer.update(directories=directories, packages=_installed_packages(directories))
        answer.update(_import_all(request["modules"], request["workload"]))
    file = Path(request["answer"])
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(answer), encoding="utf-8")
    partial.replace(file)


def _package_directories() -> list[str]:
    """Return the directories in which this Python installs packages, without others on its path."""
    directories = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()]
    return [directory for directory in dict.fromkeys(directories) if Path(directory).is_dir()]


def _installed_packages(directories: list[str]) -> dict[str, str]:
    """Return the versions of the packages in these directories, by normalized name."""
    from importlib import metadata

    versions: dict[str, str] = {}
    for distribution in metadata.distributions(path=directories):
        name = distribution.metadata["Name"]
        if name:  # a package whose files were deleted by hand leaves metadata without a name
            versions.setdefault(re.sub("[-_.]+", "-", name).lower(), distribution.version)
    return versions


def _import_all(modules: list[str], workload: str) -> dict[str, str]:
    """Import the modules of a launch, load the workload, and return the outcome as fields of the answer.

    `accelbench` is the file of the imported accelbench, and `importing` the last import that was tried. If that import
    failed, `missing` is the name of the module that is not installed, or `problem` describes another exception.
    """
    outcome = {"importing": "accelbench"}
    try:
        outcome["accelbench"] = str(importlib.import_module("accelbench").__file__)
        for module in modules:
            outcome["importing"] = module
            importlib.import_module(module)
        outcome["importing"] = "the workload"
        importlib.import_module("accelbench.catalogue").find(workload)
    except ModuleNotFoundError as error:
        outcome["missing"] = error.name or str(error)
    except Exception as error:  # noqa: BLE001 - a package may raise anything
        outcome["problem"] = f"{type(error).__name__}: {error}"
    return outcome


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a framework takes time to shut down, and its threads might never end
