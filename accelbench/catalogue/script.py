"""Load a script: a user's file that defines one workload by functions or by a class.

In a cluster the file is a key of a ConfigMap that is mounted into the runner's pod; on a laptop it is next to the
manifest. The environment variable `ACCELBENCH_SCRIPT` has the file's path; launches and the judge inherit it. Only
measuring processes load a script: the operator never runs its users' code.

On a laptop a copy of the script is measured, and the copy stays with the results. `ACCELBENCH_SCRIPT_ORIGIN` has the
path of the original: tracebacks, `inspect` and `__file__` refer to the original, with the lines of the copy.
"""

import ast
import linecache
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache
from pathlib import Path
from types import ModuleType

from accelbench import frameworks
from accelbench.api.case import workload_name_from_file
from accelbench.catalogue import workload_checks
from accelbench.catalogue.functions import workload_class
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Workload

SCRIPT_VARIABLE = "ACCELBENCH_SCRIPT"
ORIGIN_VARIABLE = "ACCELBENCH_SCRIPT_ORIGIN"


def path(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the path of the script that this process measures; None if it measures none."""
    value = environment.get(SCRIPT_VARIABLE)
    return Path(value) if value else None


def origin(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the path of the original script, for error messages; None if this process measures no script.

    The script that is measured may be a copy.
    """
    value = environment.get(ORIGIN_VARIABLE)
    return Path(value) if value else path(environment)


@contextmanager
def use(file: Path) -> Iterator[None]:
    """Make `file` the script of this process and its children within the `with` block."""
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
    """Return the script's workload; raises InvalidWorkloadError.

    The first call for a file runs the script, and later calls return the same workload.
    """
    return load_anew(file)


def load_anew(file: Path) -> Workload:
    """Run a script again and return its workload, which shares no global variable with earlier ones.

    Raises InvalidWorkloadError.
    """
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text, file.name)
    except OSError as error:
        raise InvalidWorkloadError(f"{file}: the script cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidWorkloadError(f"{file.name} is not UTF-8 text") from error
    except SyntaxError as error:
        raise InvalidWorkloadError(f"{file.name}, line {error.lineno}: {error.msg}") from error
    first_import = next(_framework_imports(tree.body), None)
    if first_import is not None:
        line, package = first_import
        raise InvalidWorkloadError(
            f"{file.name}, line {line}: imports {package} at the top. The launches of the other framework run this "
            f"code too and would load it; import it inside the methods that use it"
        )
    module = _run_module(file, text)
    workload_type = workload_class(module, file.name)
    workload_type.name = workload_name_from_file(file.name)
    return workload_checks.instantiate(workload_type)


def _framework_imports(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield (line, package) for each import of a framework in `body` that runs when the script is loaded.

    Imports inside other statements, such as `with`, are left to `_run_module`, which sees what was imported.
    """
    for statement in body:
        match statement:
            case ast.Import(names=names):
                yield from _framework_packages(statement.lineno, [alias.name for alias in names])
            case ast.ImportFrom(module=str(module), level=0):
                yield from _framework_packages(statement.lineno, [module])
            # Only the `else` of `if TYPE_CHECKING` runs, and nothing of `if __name__ == "__main__"`.
            case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), orelse=orelse):
                yield from _framework_imports(orelse)
            case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
                pass
            case ast.If(body=if_body, orelse=orelse):
                yield from _framework_imports([*if_body, *orelse])
            case ast.Try(body=try_body, handlers=handlers, orelse=orelse, finalbody=finalbody):
                handler_bodies = [inner for handler in handlers for inner in handler.body]
                yield from _framework_imports([*try_body, *handler_bodies, *orelse, *finalbody])


def _framework_packages(line: int, modules: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield (line, package) for each of the modules, imported on this line, that belongs to a framework."""
    for module in modules:
        package = module.partition(".")[0]
        if package in frameworks.packages():
            yield line, package


def _run_module(file: Path, text: str) -> ModuleType:
    """Run `text`, the content of `file`, as a module, and return it.

    Raises InvalidWorkloadError if that fails, or if it imports a framework.
    """
    original = file
    if file == path():  # the script that this process measures may be a copy
        original = origin() or file
    module = ModuleType(f"accelbench_script_{file.stem}")
    module.__file__ = str(original)
    sys.modules[module.__name__] = module
    # The author may save another version meanwhile. Without a modification time, linecache keeps the lines of `text`.
    modification_time = None
    linecache.cache[str(original)] = (len(text), modification_time, text.splitlines(keepends=True), str(original))
    # `load` has refused imports of a framework in the script itself; a module that it imports may import one too.
    imported_before = frameworks.packages() & sys.modules.keys()
    try:
        code = compile(text, str(original), "exec", dont_inherit=True)
        # In a copy of the context: if the script calls `numpy.seterr`, that does not change how accelbench computes.
        copy_context().run(exec, code, vars(module))
    except workload_checks.ERRORS as error:
        raise workload_checks.to_invalid_workload_error(error, original) from error
    imported = sorted((frameworks.packages() & sys.modules.keys()) - imported_before)
    if imported:
        raise InvalidWorkloadError(
            f"{file.name}: a module that it imports at the top imports {', '.join(imported)}. The launches of the "
            f"other framework run this code too and would load it; import the module inside the methods that use it"
        )
    return module


def format_error(error: BaseException) -> str:
    """Describe the exception in one line, with the line of the script that raised it, if one did."""
    file = origin()
    line = workload_checks.line_of(error, file) if file else ""
    text = str(error) if isinstance(error, InvalidWorkloadError) else workload_checks.describe(error)
    return f"{text} ({line})" if line else text
