"""Before the first round it is known which environments cannot be used, and why; the others are measured."""

import errno
import json
import platform
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from accelbench.api.case import Case
from accelbench.api.environment import CaseEnvironment
from accelbench.delivery.log import LaunchFinished
from accelbench_runner.supervisor.examination import describe_start_error
from runner.supervision import Ended, case_of

Run = Callable[..., Ended]

ANSWERS: dict[str, tuple[dict[str, Any], str]] = {
    "old-python": ({"python": "3.10.13"}, "Python 3.10.13, and accelbench measures in Python 3.11 to 3.13"),
    "new-python": ({"python": "3.99.0"}, "Python 3.99.0"),
    "no-pydantic": ({"missing": "pydantic"}, "python -m pip install pydantic"),
    "no-yaml": ({"missing": "yaml"}, "python -m pip install pyyaml"),
    "no-jax": ({"packages": {}, "missing": "jax"}, "jax is not installed"),
    "no-library": ({"missing": "flax.nnx"}, "flax is not installed"),
    "old-jax": ({"packages": {"jax": "0.6.2"}}, "JAX 0.6.2, and accelbench measures JAX from 0.7"),
    "another-accelbench": ({"accelbench": "/theirs/accelbench/__init__.py"}, "/theirs/accelbench/__init__.py"),
    "broken-jax": ({"importing": "jax", "problem": "ImportError: libX.so"}, "importing jax in it raised ImportError"),
}
"""What an environment's Python reports, in place of what a good one does, and what the failure says."""

SCRIPTS: dict[str, tuple[str, str]] = {
    "silent": ("exit 0", "reported nothing: is it a Python?"),
    "loud": ("echo cannot load libpython >&2; exit 3", "status 3 and reported nothing: cannot load libpython"),
    "ancient": ("echo SyntaxError: invalid syntax >&2; exit 1", "too old: accelbench measures in Python 3.11 to 3.13"),
    "killed": ("kill -SEGV $$", "SIGSEGV ended its Python"),
    "nonsense": ("cat >/dev/null; exit 0", "reported nothing"),
}
"""Programs that report nothing, and what the failure says."""

STUB = """#!{python}
import json, pathlib, sys
request = json.load(sys.stdin)
code = pathlib.Path([entry for entry in sys.path if entry.endswith("code")][0], "accelbench", "__init__.py")
good = {{"python": "3.11.7", "directories": ["/site"], "packages": {{"jax": "0.9.2"}}, "accelbench": str(code)}}
pathlib.Path(request["answer"]).write_text(json.dumps(good | {answer}))
"""


def in_environments(case: Case, interpreters: dict[str, str], **more: Any) -> Case:
    """Return the case with one more variant in each of these environments, with the environment's name."""
    variants = [case.variants[0].model_copy(update={"name": name, "environment": name}) for name in interpreters]
    environments = [CaseEnvironment(name=name, interpreter=path, **more) for name, path in interpreters.items()]
    return case.model_copy(update={"variants": (*case.variants, *variants), "environments": tuple(environments)})


def program(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def for_another_processor() -> bytes:
    """Return the header of a program for a processor that no machine of ours has."""
    unused_machine = 0xFFFE
    return b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHI", 2, unused_machine, 1) + bytes(100)


def unusable(directory: Path) -> dict[str, tuple[str, str]]:
    """Return unusable interpreters by name, each with the message of its failure."""
    rows = {}
    for name, (answer, message) in ANSWERS.items():
        rows[name] = (program(directory / name / "python", STUB.format(python=sys.executable, answer=answer)), message)
    for name, (script, message) in SCRIPTS.items():
        rows[name] = (program(directory / name / "python", f"#!/bin/sh\n{script}\n"), message)
    plain = directory / "plain"
    plain.write_text("not executable")
    foreign = program(directory / "foreign", "")
    Path(foreign).write_bytes(for_another_processor())
    link = directory / "link"
    link.symlink_to(directory / "removed" / "python")
    return rows | {
        "absent": (str(directory / "absent"), "does not exist"),
        "directory": (str(directory), "is a directory: name the interpreter in it"),
        "not-executable": (str(plain), "is not executable: chmod +x"),
        "no-program": (program(directory / "text", "print()"), "is no program"),
        "other-processor": (foreign, f"another processor than this machine's, {platform.machine()}"),
        "dangling": (str(link), "is a link to"),
        "no-interpreter": (program(directory / "bang", "#!/no/such/shell\n"), "needs a loader that is not here"),
    }


def test_unusable_environments_are_named_with_their_reasons_and_do_not_affect_the_others(
    run: Run, tmp_path: Path
) -> None:
    rows = unusable(tmp_path)
    interpreters = {name: interpreter for name, (interpreter, _) in rows.items()}
    ended = run(in_environments(case_of("fine", "fine_2", limit=600), interpreters))
    for name, (_, message) in rows.items():
        failure = ended.variant(name).failure
        assert failure is not None, name
        assert (failure.reason, failure.round, failure.phase) == ("Environment", 0, None), failure
        assert message in failure.message
        assert f"environment {name} cannot be used" in failure.message
    assert ended.status == 0
    assert (ended.result.complete, ended.result.rounds) == (True, 2)
    for other in ("fine", "fine_2"):
        assert ended.variant(other).failure is None
        assert [launch.round for launch in ended.variant(other).launches] == [1, 2]
    finished = [event for event in ended.events if isinstance(event, LaunchFinished) and event.failure]
    assert {event.variant for event in finished} == set(rows)


def test_a_case_whose_environments_are_all_broken_ends_before_the_first_launch(run: Run, tmp_path: Path) -> None:
    case = in_environments(case_of("fine"), {"gone": str(tmp_path / "gone")})
    ended = run(case.model_copy(update={"variants": case.variants[1:], "baseline": "gone"}))
    assert (ended.status, ended.result.stopped) == (0, "NothingToCompare")
    assert ended.result.rounds == 0


def test_an_environment_that_was_changed_after_its_installation_is_not_used(run: Run, tmp_path: Path) -> None:
    interpreter = program(tmp_path / "venv" / "python", STUB.format(python=sys.executable, answer={}))
    locked = {"requirements": ("jax==0.9.1",), "packages": {"jax": "0.9.1", "jaxlib": "0.9.1"}}
    ended = run(in_environments(case_of("fine"), {"changed": interpreter}, **locked))
    failure = ended.variant("changed").failure
    assert failure is not None
    assert "jax 0.9.2 in place of 0.9.1, no jaxlib" in failure.message


def test_a_missing_package_of_an_environment_has_to_be_added_to_its_requirements(run: Run, tmp_path: Path) -> None:
    stub = STUB.format(python=sys.executable, answer={"missing": "flax"})
    interpreter = program(tmp_path / "venv" / "python", stub)
    ended = run(
        in_environments(case_of("fine"), {"lean": interpreter}, requirements=("jax",), packages={"jax": "0.9.2"})
    )
    failure = ended.variant("lean").failure
    assert failure is not None
    assert "flax is not installed in it: add it to the requirements of environment lean" in failure.message


def test_the_result_holds_versions_and_digest_of_an_environment(run: Run, tmp_path: Path) -> None:
    interpreter = program(tmp_path / "venv" / "python", STUB.format(python=sys.executable, answer={}))
    ended = run(in_environments(case_of("fine"), {"good": interpreter}))
    (environment,) = ended.result.case.environments
    assert (environment.python_version, environment.packages) == ("3.11.7", {"jax": "0.9.2"})
    assert ended.result.fingerprint["variant.good.lock"] == environment.lock_digest != ""


def test_a_variant_in_an_unknown_environment_is_refused(run: Run) -> None:
    case = case_of("fine")
    stray = case.variants[0].model_copy(update={"name": "stray", "environment": "nowhere"})
    ended = run(case.model_copy(update={"variants": (*case.variants, stray)}))
    assert ended.status == 2
    assert "nowhere" in ended.headline.message


def test_a_file_system_without_execution_is_named(tmp_path: Path) -> None:
    path = Path(program(tmp_path / "python", "#!/bin/sh\n"))
    error = PermissionError(errno.EACCES, "Permission denied")
    assert "noexec" in describe_start_error(str(path), error)


def test_the_request_to_an_environment_asks_for_what_a_launch_imports(run: Run, tmp_path: Path) -> None:
    kept = tmp_path / "request.json"
    text = f"#!/bin/sh\ncat > {kept}\n"
    run(in_environments(case_of("fine"), {"asked": program(tmp_path / "venv" / "python", text)}))
    request = json.loads(kept.read_text())
    assert {"accelbench_runner.launch.__main__", "jax", "accelbench_runner.frameworks.jax"} <= set(request["modules"])
    assert request["workload"] == "matmul-chain"
