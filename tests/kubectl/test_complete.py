"""Completion: the plugin's answers, and the terminal after Tab in bash, zsh and fish."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.build import binaries
from cluster.cluster import Cluster
from cluster.errors import ToolMissingError
from cluster.wait import HANG_SECONDS
from kubectl.plugin import User
from operator_world.steps import apply

ANSWER = [sys.executable, "-c", "from accelbench.kubectl.main import main_complete; main_complete()"]
BASH_COMPLETION = Path("/usr/share/bash-completion/bash_completion")
SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], f". {BASH_COMPLETION}; . <(kubectl completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u; . <(kubectl completion zsh)"),
}


def answer(*words: str, kubeconfig: Path | None = None) -> list[str]:
    done = subprocess.run(
        [*ANSWER, *words],
        env={**os.environ, "KUBECONFIG": str(kubeconfig or "/nowhere")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def names(*words: str, kubeconfig: Path | None = None) -> tuple[list[str], str]:
    *lines, directive = answer(*words, kubeconfig=kubeconfig)
    return [line.partition("\t")[0] for line in lines], directive


def test_commands_options_and_values_are_completed_with_descriptions() -> None:
    assert answer("can") == ["cancel\tCancel runs, for good.", ":4"]
    assert {"run", "rerun", "ls", "logs", "cancel", "report", "compare", "profiles"} == set(names("")[0])
    assert "--output" in names("report", "--")[0]
    assert names("report", "chain", "-o", "m") == (["markdown"], ":4")
    assert names("report", "--output=h") == (["--output=html"], ":4")
    assert names("run", "-f", "")[1] == ":0"
    assert names("run", "--wait=") == (["--wait=true", "--wait=false"], ":4")


@pytest.mark.parametrize("words", [("logs", ""), ("frobnicate", ""), ("run", "--frob=x", ""), ("ls", "--context", "")])
def test_without_a_cluster_nothing_is_completed_and_nothing_printed(words: tuple[str, ...]) -> None:
    assert answer(*words) == [":4"]


def test_runs_cases_and_contexts_are_those_of_the_cluster(jane: User, cluster: Cluster) -> None:
    apply(cluster, sizes=(64, 128))
    apply(cluster, name="other")
    assert names("report", "c", kubeconfig=jane.kubeconfig) == (["chain"], ":4")
    assert names("cancel", "chain", "", kubeconfig=jane.kubeconfig)[0] == ["other"]
    cases = names("logs", "chain", "--case", "size-1", kubeconfig=jane.kubeconfig)[0]
    assert [case.rpartition("-")[0] for case in cases] == ["size-128"]
    assert names("ls", "--context", "", kubeconfig=jane.kubeconfig)[0] == ["accelbench-tests"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A directory with kubectl, and the plugin's two programs as an installation has them."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "kubectl").symlink_to(binaries().kubectl)
    for name, function in (("kubectl-accelbench", "main"), ("kubectl_complete-accelbench", "main_complete")):
        program = directory / name
        program.write_text(f"#!{sys.executable}\nfrom accelbench.kubectl.main import {function}\n{function}()\n")
        program.chmod(0o755)
    return directory


def read(terminal: int, words: str) -> str:
    """Return the terminal's text when it has these words."""
    shown, deadline = "", time.monotonic() + HANG_SECONDS
    while words not in shown:
        ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
        assert ready, f"waited in vain for {words!r}: {shown!r}"
        shown += os.read(terminal, 65536).decode(errors="replace")
    return shown


@pytest.fixture
def terminal(request: pytest.FixtureRequest, jane: User, path: Path, tmp_path: Path) -> Iterator[int]:
    """Yield an interactive shell with kubectl's completion, like a user's."""
    command, prepare = SHELLS[request.param]
    if shutil.which(command[0]) is None or (request.param == "bash" and not BASH_COMPLETION.exists()):
        raise ToolMissingError(f"completion in {request.param} needs it (Debian: {request.param} bash-completion)")
    home = tmp_path / "home"
    home.mkdir()
    ours, theirs = pty.openpty()
    environment = jane.environment(
        PATH=f"{path}:/usr/bin:/bin", HOME=str(home), TERM="dumb", PS1="> ", KUBECACHEDIR=str(home), COLUMNS="200"
    )
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as shell:
        os.close(theirs)
        os.write(ours, f"{prepare}; echo rea''dy\n".encode())
        read(ours, "ready")
        yield ours
        shell.kill()
    os.close(ours)


@pytest.mark.slow
@pytest.mark.parametrize("terminal", SHELLS, indirect=True)
def test_tab_completes_a_command_and_then_a_run_of_the_cluster(terminal: int, cluster: Cluster) -> None:
    apply(cluster, name="a-chain-of-products")
    os.write(terminal, b"echo kubectl; kubectl accelbench can\t")
    read(terminal, "cancel ")
    os.write(terminal, b"a-ch\t")
    read(terminal, "a-chain-of-products")


@pytest.mark.slow
def test_fish_completes_a_command_and_then_a_run_of_the_cluster(
    jane: User, path: Path, tmp_path: Path, cluster: Cluster
) -> None:
    if shutil.which("fish") is None:
        raise ToolMissingError("completion in fish needs it (Debian: fish)")
    apply(cluster, name="a-chain-of-products")
    environment = jane.environment(PATH=f"{path}:/usr/bin:/bin", HOME=str(tmp_path), KUBECACHEDIR=str(tmp_path))
    for begun, whole in (("can", "cancel"), ("cancel a-ch", "a-chain-of-products")):
        asked = f"kubectl completion fish | source; complete --do-complete 'kubectl accelbench {begun}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", asked], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.partition("\t")[0].strip() == whole, done.stderr


def test_kubectl_finds_the_plugin_in_path(path: Path) -> None:
    done = subprocess.run(
        ["kubectl", "accelbench", "--version"],
        env={**os.environ, "PATH": f"{path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("kubectl accelbench ")
