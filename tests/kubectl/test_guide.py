"""The commands and manifests of docs/kubectl.md work unchanged."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import yaml

from accelbench.kubectl.main import app
from accelbench.kubectl.manifests import read_manifests
from accelbench.local.exits import Exit

GUIDE = Path(__file__).parents[2] / "docs" / "kubectl.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", GUIDE.read_text(), re.DOTALL)


def command_lines() -> Iterator[list[str]]:
    workflow = yaml.safe_load(blocks("yaml")[1])
    for step in workflow["jobs"]["gate"]["steps"]:
        for line in step.get("run", "").splitlines():
            yield shlex.split(line, comments=True)
    for block in blocks("console"):
        yield from (shlex.split(line.removeprefix("$ "), comments=True) for line in block.splitlines())


def test_the_manifest_of_the_gate_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "gate.yaml"
    file.write_text(blocks("yaml")[0])
    (written,) = read_manifests(str(file))
    assert written.run.spec.expectations


def test_every_command_and_option_of_the_guide_exists() -> None:
    shown = 0
    for words in command_lines():
        if "kubectl-accelbench" in words or words[:2] == ["kubectl", "accelbench"]:
            began = words.index("kubectl-accelbench") if "kubectl-accelbench" in words else 1
            name, *rest = words[began + 1 :]
            options = [word.partition("=")[0] for word in rest if word.startswith("-")]
            known = {option for parameter in app.commands[name].params for option in parameter.opts}
            assert set(options) <= known, words
            shown += 1
    assert shown >= 4


def test_the_exit_codes_of_the_guide_are_those_of_the_command() -> None:
    table = GUIDE.read_text().partition("| code | meaning |")[2].partition("\n\n")[0]
    documented = {int(code) for row in re.findall(r"^\| ([\d, ]+) \|", table, re.MULTILINE) for code in row.split(",")}
    assert documented == {int(code) for code in Exit} - {Exit.INTERNAL, Exit.INTERRUPTED, Exit.TERMINATED}


def test_the_guide_names_every_command() -> None:
    table = GUIDE.read_text().partition("| command | what it does |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)", table, re.MULTILINE) == [
        "run",
        "rerun",
        "ls",
        "logs",
        "report",
        "compare",
        "cancel",
        "profiles",
    ]
