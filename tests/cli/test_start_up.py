import subprocess
import sys

import pytest

import accelbench

HEAVY = ("numpy", "scipy", "jax", "torch", "kubernetes", "kopf", "pydantic", "yaml", "accelbench.api")


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_imports_no_framework_no_numpy_no_pydantic_and_nothing_of_kubernetes(argument: str) -> None:
    program = f"""
import sys
from accelbench.cli.main import main
sys.argv = ["accelbench", "{argument}"]
try:
    main()
except SystemExit as end:
    assert end.code == 0
sys.stderr.write("\\n".join(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout
    loaded = set(done.stderr.splitlines())
    assert "accelbench.cli.run" in loaded
    assert [name for name in HEAVY if name in loaded] == []


def test_validating_and_listing_import_no_framework_either() -> None:
    program = """
import sys
from accelbench.local import device, manifests, run
from accelbench.report import live
from accelbench.report import terminal, markdown
sys.stderr.write("\\n".join(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"numpy", "scipy", "jax", "torch", "kubernetes"} & set(done.stderr.splitlines()) == set()


def test_the_version_is_the_packages() -> None:
    program = "import sys; from accelbench.cli.main import main; sys.argv = ['accelbench', '--version']; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"accelbench {accelbench.__version__}\n"


def test_the_help_is_shown_without_arguments() -> None:
    program = "import sys; from accelbench.cli.main import main; sys.argv = ['accelbench']; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "Usage: accelbench" in done.stdout + done.stderr
