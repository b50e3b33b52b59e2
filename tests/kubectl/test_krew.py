"""The krew archives are built, validated and installed by krew, and run on a real API server."""

import functools
import http.server
import os
import platform
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import accelbench
from cluster.build import binaries
from cluster.cluster import Cluster
from kubectl.krew import krew
from kubectl.plugin import User, manifest
from pages.machine import wheel as wheels

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
HERE = f"linux-{ {'x86_64': 'amd64', 'aarch64': 'arm64'}[platform.machine()] }"
PYTHON = "{}.{}".format(*sys.version_info[:2])


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a release's directory, served at the address in its manifest."""
    directory = tmp_path_factory.mktemp("release")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=directory))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    uri = f"http://127.0.0.1:{server.server_address[1]}"
    built = ["krew/build.py", "--uri", uri, "--out", directory, "--platform", HERE, "--python", PYTHON]
    subprocess.run([sys.executable, *built], cwd=ROOT, check=True)
    yield directory
    server.shutdown()
    server.server_close()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """PATH with kubectl, krew, and what krew installs; nothing of the checkout is importable."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl").symlink_to(binaries().kubectl)
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    path = f"{tmp_path / 'bin'}:{krew()}:{tmp_path / 'krew' / 'bin'}:/usr/bin:/bin"
    return {"PATH": path, "KREW_ROOT": str(tmp_path / "krew"), "HOME": str(tmp_path), "PYTHONNOUSERSITE": "1"}


def run(*command: str | Path, environment: dict[str, str], given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environment, input=given, capture_output=True, text=True, check=False, cwd=environment["HOME"]
    )


def test_krews_validator_accepts_the_manifest_and_installs_every_archive(
    released: Path, environment: dict[str, str]
) -> None:
    done = run("validate-krew-manifest", "-manifest", released / "accelbench.yaml", environment=environment)
    assert done.returncode == 0, done.stderr
    assert "structural validation OK" in done.stderr
    assert yaml.safe_load((released / "accelbench.yaml").read_text())["spec"]["version"] == f"v{accelbench.__version__}"


def test_a_manifest_without_a_location_installs_the_archive_next_to_it(
    released: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    """As `make release` leaves them, without PLUGIN_URI."""
    (archive,) = released.glob("*.tar.gz")
    (wheel,) = wheels(tmp_path / "dist").glob("*.whl")
    options = ["--out", tmp_path / "dist", "--wheel", wheel, "--platform", HERE, "--python", PYTHON]
    subprocess.run([sys.executable, "krew/build.py", *options], cwd=ROOT, check=True)
    [offered] = yaml.safe_load((tmp_path / "dist" / "accelbench.yaml").read_text())["spec"]["platforms"]
    assert offered["uri"] == archive.name
    asked = (f"--manifest={tmp_path / 'dist' / 'accelbench.yaml'}", f"--archive={tmp_path / 'dist' / archive.name}")
    done = run("kubectl", "krew", "install", *asked, environment=environment)
    assert done.returncode == 0, done.stderr
    assert "pip install '.[kubectl,report]'" in done.stderr
    shown = run("kubectl", "accelbench", "--version", environment=environment)
    assert shown.stdout == f"kubectl accelbench {accelbench.__version__}\n", shown.stderr


def test_the_plugin_that_krew_installed_creates_a_run_and_completes_its_name(
    released: Path, environment: dict[str, str], jane: User, cluster: Cluster
) -> None:
    installed = run("kubectl", "krew", "install", f"--manifest={released / 'accelbench.yaml'}", environment=environment)
    assert installed.returncode == 0, installed.stderr
    environment |= {"KUBECONFIG": str(jane.kubeconfig)}
    shown = run("kubectl", "accelbench", "--version", environment=environment)
    assert shown.stdout == f"kubectl accelbench {accelbench.__version__}\n", shown.stderr
    made = run("kubectl", "accelbench", "run", "-f", "-", "--wait=false", environment=environment, given=manifest())
    assert made.stdout == "benchmarkrun.accelbench.dev/chain created\n", made.stderr
    assert cluster.get("bmr", "chain")["spec"]["workload"]["name"] == "matmul-chain"
    assert run("kubectl-accelbench", "__complete", "report", "ch", environment=environment).stdout == "chain\n:4\n"
    page = run("kubectl", "accelbench", "report", "chain", "-o", "html", environment=environment)
    assert (page.returncode, "pip install 'accelbench[report]'" in page.stderr) == (2, True)


def test_equal_sources_give_equal_archives_and_another_python_is_refused_with_the_required_one(
    released: Path, tmp_path: Path
) -> None:
    (archive,) = released.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        names = packed.getnames()
        assert {entry.mtime for entry in packed} == {0}
        packed.extraction_filter = getattr(tarfile, "data_filter", None)  # since 3.11.4
        packed.extractall(tmp_path)  # noqa: S202 - it was made here
    assert {"LICENSE", "kubectl-accelbench"} <= set(names)
    (there,) = (tmp_path / "lib").glob("cp3*")
    there.rename(tmp_path / "lib" / "cp399")
    done = subprocess.run(
        [sys.executable, tmp_path / "kubectl-accelbench"],
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"is for Python 3.99, and python3 in your PATH is {PYTHON}" in done.stderr
