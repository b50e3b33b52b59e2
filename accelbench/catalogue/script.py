"""Load a user's own workload: one file with functions or one class, no package; errors point at its lines.

In a cluster the file is a key of a ConfigMap that is mounted into the runner's pod; on a laptop it is next to the
manifest. The environment variable `ACCELBENCH_SCRIPT` has its path; launches and the judge inherit it. Only measuring
processes load it: the operator never runs its users' code.

A laptop measures a copy, which is kept with the results. `ACCELBENCH_SCRIPT_ORIGIN` names the file that its author
edits: tracebacks, `inspect` and `__file__` refer to it, with the lines of the copy.
"""

import ast
import linecache
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType

from accelbench import frameworks
from accelbench.api.case import name_of_file
from accelbench.catalogue import workload_checks
from accelbench.catalogue.functions import workload_class
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Workload

SCRIPT_VARIABLE = "ACCELBENCH_SCRIPT"
ORIGIN_VARIABLE = "ACCELBENCH_SCRIPT_ORIGIN"


def path(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the path of this process's script; None if it has none."""
    value = environment.get(SCRIPT_VARIABLE)
    return Path(value) if value else None


def origin(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file that errors name, which the author of this process's script edits; None if it has none."""
    value = environment.get(ORIGIN_VARIABLE)
    return Path(value) if value else path(environment)


@contextmanager
def use(file: Path) -> Iterator[None]:
    """Make `file` the script that this process and its children load, within the `with` block."""
    previous = os.environ.get(SCRIPT_VARIABLE)
    os.environ[SCRIPT_VARIABLE] = str(file)
    try:
        yield
    finally:
        os.environ.pop(SCRIPT_VARIABLE)
        if previous is not None:
            os.environ[SCRIPT_VARIABLE] = previous


@cache
def load(file: Path) -> Workload:
    """Return the workload of the script in `file`; raises InvalidWorkloadError."""
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text, file.name)
    except OSError as error:
        raise InvalidWorkloadError(f"{file}: the script cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidWorkloadError(f"{file.name} is not UTF-8 text") from error
    except SyntaxError as error:
        raise InvalidWorkloadError(f"{file.name}, line {error.lineno}: {error.msg}") from error
    for line, package in _framework_imports(tree.body):
        raise InvalidWorkloadError(
            f"{file.name}, line {line}: imports {package} at the top. The launches of the other framework run this "
            f"code too and would load it; import it inside the methods that use it"
        )
    module = _run_module(file, text)
    kind = workload_class(module, file.name)
    kind.name = name_of_file(file.name)
    return workload_checks.instantiate(kind)


def _framework_imports(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield line and package of each framework import at the module's top level, also within `if` and `try`.

    Imports under `if TYPE_CHECKING` and `if __name__ == ...` do not run, and are left out.
    """
    for statement in body:
        match statement:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(module=str(module), level=0):
                modules = [module]
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=orelse):
                yield from _framework_imports(orelse)
                continue
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                continue
            case ast.If(body=inner, orelse=more):
                yield from _framework_imports([*inner, *more])
                continue
            case ast.Try(body=inner, handlers=handlers, orelse=more, finalbody=last):
                caught = (inside for handler in handlers for inside in handler.body)
                yield from _framework_imports([*inner, *caught, *more, *last])
                continue
            case _:
                continue
        for module in modules:
            if (package := module.partition(".")[0]) in frameworks.packages():
                yield statement.lineno, package


def _run_module(file: Path, text: str) -> ModuleType:
    """Run `text`, the content of `file`, as a module; errors refer to the file that its author edits.

    Raises:
        InvalidWorkloadError: The code raised, or it imported a framework.
    """
    where = (origin() if file == path() else None) or file
    module = ModuleType(f"accelbench_script_{file.stem}")
    module.__file__ = str(where)
    sys.modules[module.__name__] = module
    # Without a modification time linecache does not read the file again: its author may save another version meanwhile.
    linecache.cache[str(where)] = (len(text), None, text.splitlines(keepends=True), str(where))
    imported_before = frameworks.packages() & sys.modules.keys()
    try:
        exec(compile(text, str(where), "exec", dont_inherit=True), vars(module))  # noqa: S102 - the user's own script
    except workload_checks.ERRORS as error:
        raise workload_checks.invalid(error, where) from error
    if imported := sorted((frameworks.packages() & sys.modules.keys()) - imported_before):
        raise InvalidWorkloadError(
            f"{file.name}: a module that it imports at the top imports {', '.join(imported)}. The launches of the "
            f"other framework run this code too and would load it; import the module inside the methods that use it"
        )
    return module


def format_error(error: BaseException) -> str:
    """Describe the exception in one line, with the last line of this process's script in its traceback."""
    file = origin()
    line = workload_checks.line_of(error, file) if file else ""
    kind = "" if isinstance(error, InvalidWorkloadError) else f"{type(error).__name__}: "
    return f"{kind}{error}" + (f" ({line})" if line else "")
