"""The plugin starts fast: kubectl calls it for every word that it completes."""

import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

HEAVY = ("numpy", "scipy", "jax", "torch", "kubernetes", "kopf", "pydantic", "yaml", "rich", "accelbench.api")
PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def loaded(program: str) -> set[str]:
    ending = "\nsys.stderr.write('\\n'.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program + ending], capture_output=True, text=True, check=True)
    assert done.stdout
    return set(done.stderr.splitlines())


def test_help_and_the_completion_of_commands_import_no_client_and_no_framework() -> None:
    asked = "import sys; from accelbench.kubectl.main import main; sys.argv = ['kubectl-accelbench', {!r}]\n"
    for word in ("--help", "__complete"):
        there = loaded(asked.format(word) + "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0")
        assert "accelbench.kubectl.run" in there
        assert [name for name in HEAVY if name in there] == []


def test_commands_that_use_the_cluster_import_no_framework() -> None:
    modules = ("runs", "follow", "apply", "follow_runs", "clone_run")
    there = loaded(f"import sys; print(1)\nfrom accelbench.kubectl import {', '.join(modules)}")
    assert {"numpy", "scipy", "jax", "torch", "kopf", "matplotlib"} & there == set()


def test_the_names_that_kubectl_looks_for_are_console_scripts_of_the_package() -> None:
    scripts = tomllib.loads(PYPROJECT.read_text())["project"]["scripts"]
    for name in ("kubectl-accelbench", "kubectl_complete-accelbench"):
        module, _, function = scripts[name].partition(":")
        assert callable(getattr(importlib.import_module(module), function))
