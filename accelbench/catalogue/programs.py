"""Find the programs of a module: functions with the name of a framework, alone or with a suffix: `jax`, `jax_scan`.

The name of a helper may begin with that of a framework too. So a function such as `jax_scan` is a program only if no
other code of the module uses it.
"""

import ast
import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from accelbench import frameworks
from accelbench.catalogue import arguments, declarations, workload_checks
from accelbench.catalogue.workload_checks import InvalidWorkloadError, location
from accelbench.problem import find_similar
from accelbench.workload import Measure

SETUP_PREFIX = "setup_"
"""Beginning of the name of a function that makes further arguments of a program."""
OTHER_NAMES = ("arrays", "reference", "canonical")
"""Names of the functions of a script that accelbench calls but that are not programs."""
EXAMPLES = {
    "arrays": 'def arrays(rng): return {"x": rng.standard_normal(1000)}',
    "reference": "def reference(x): return numpy.tanh(x)",
    "canonical": "def canonical(y): return numpy.sort(y)",
}
"""An example of each of these functions, for error messages."""


@dataclass(frozen=True)
class Members:
    """Hold the members of a module that accelbench uses, by name."""

    programs: Mapping[str, Callable[..., Any]]
    others: Mapping[str, Callable[..., Any]]
    """Functions of `OTHER_NAMES`."""
    declared: Mapping[str, Any]
    """What the module declares under `declarations.NAMES`."""
    setups: Mapping[str, Callable[..., Any]]
    """The setup of each program that has one; `setup_jax` is that of all programs of JAX without one of their own."""


def find_members(module: ModuleType) -> Members:
    """Return the members of a module that accelbench uses.

    Members are only checked if there are programs: without any, the module may define its workload by a class.

    Raises:
        InvalidWorkloadError: A member such as `reference` is not a function, or the name of an unknown member looks
            like a misspelling.
    """
    used_names = _used_names(module)  # a member that other code uses is a helper
    unused = {name: member for name, member in vars(module).items() if name not in used_names}
    callables = {name: member for name, member in vars(module).items() if _is_function(name, member)}
    programs = {name: function for name, function in callables.items() if _is_program(name, used_names)}
    setups = {}
    for program in programs:
        known_names = [name for name in setup_names(program) if name in callables and name in unused]
        if known_names:
            setups[program] = callables[known_names[0]]  # `setup_names` begins with the program's own setup
    members = Members(
        programs=programs,
        others={name: callables[name] for name in OTHER_NAMES if name in callables},
        declared={name: unused[name] for name in declarations.NAMES if name in unused},
        setups=setups,
    )
    if programs:
        _require_functions(unused, callables)
        _refuse_misspellings(members, callables, unused)
    return members


def setup_names(program: str) -> tuple[str, str]:
    """Return the names that a program's setup may have, its own first."""
    return f"{SETUP_PREFIX}{program}", f"{SETUP_PREFIX}{frameworks.name_of(program)}"


def _require_functions(unused: Mapping[str, Any], callables: Mapping[str, Callable[..., Any]]) -> None:
    """Raise InvalidWorkloadError if a member with a name in `OTHER_NAMES`, such as `reference`, is not a function.

    Without the error, such a member would be ignored, and its author would not learn why. `unused` has the members that
    no code of the module uses.
    """
    for name in OTHER_NAMES:
        if name in unused and name not in callables:
            kind = "class" if inspect.isclass(unused[name]) else type(unused[name]).__name__
            raise InvalidWorkloadError(f"{name} is a {kind}; it has to be a function, such as {EXAMPLES[name]}")


def _refuse_misspellings(
    members: Members, callables: Mapping[str, Callable[..., Any]], unused: Mapping[str, Any]
) -> None:
    """Raise InvalidWorkloadError if the name of an unknown member looks like a misspelling.

    `unused` has the members that no code of the module uses. All other members are helpers, which may have any name.
    """
    # A declaration, such as `cots = {...}` for `cost`.
    dictionaries = {name for name, member in unused.items() if isinstance(member, dict | Measure)}
    for name in declarations.NAMES:
        misspelling = workload_checks.find_misspelling(name, dictionaries)
        if misspelling and name not in members.declared:
            raise InvalidWorkloadError(f"{misspelling}: did you mean {name}?")
    # A setup, such as `setup_jaxx` for `setup_jax`.
    known_setups = {name for program in members.programs for name in setup_names(program)}
    unknown_setups = [name for name in unused if name.startswith(SETUP_PREFIX) and name not in known_setups]
    for name in unknown_setups:
        if name in callables and (meant := find_similar(name, known_setups)):
            raise InvalidWorkloadError(f"{location(callables[name])}: did you mean {meant}()?")
    # A program or another function, such as `pytroch` for `pytorch`.
    found_frameworks = {frameworks.name_of(name) for name in members.programs}
    known_names = members.programs.keys() | members.others.keys() | members.declared.keys() | known_setups
    unknown_names = callables.keys() - known_names
    for name in (*frameworks.names(), *OTHER_NAMES):
        if name in found_frameworks or name in members.others:  # the module has this name, so it is not misspelt
            continue
        if misspelling := workload_checks.find_misspelling(name, unknown_names):
            raise InvalidWorkloadError(f"{location(callables[misspelling])}: did you mean {name}()?")


def _is_function(name: str, member: object) -> bool:
    """Return True for a function; also for another callable, but no class, if accelbench looks for its name."""
    if inspect.isfunction(member):
        return True
    program = name.removeprefix(SETUP_PREFIX)
    is_sought = name in OTHER_NAMES or frameworks.name_of(program) in frameworks.names()
    return is_sought and callable(member) and not inspect.isclass(member)  # such as `jax = partial(f, 2)`


def _is_program(name: str, used_names: set[str]) -> bool:
    """Return True for the name of a framework, and for a longer one such as `jax_scan` unless other code uses it."""
    framework = frameworks.name_of(name)
    is_helper = name != framework and name in used_names
    return framework in frameworks.names() and not is_helper


def _used_names(module: ModuleType) -> set[str]:
    """Return the names that the module's code uses; an empty set if its source cannot be read.

    A function's use of itself does not count, and neither does a block `if __name__ == "__main__"`, which may call a
    program without making it a helper.
    """
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return set()
    return {name for statement in tree.body for name in _names_used_by(statement)}


def _names_used_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a module's top-level statement uses, without a function's use of its own name.

    Yield none for `if __name__ == "__main__"`, which may call a program without making it a helper.
    """
    match statement:
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return
    own_name = statement.name if isinstance(statement, ast.FunctionDef) else ""
    for node in ast.walk(statement):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id != own_name:
            yield node.id


def modes_of(program: str, excluded: frozenset[str]) -> tuple[str, ...]:
    """Return the modes of a program's framework without the excluded ones."""
    framework = frameworks.find(frameworks.name_of(program))
    return tuple(mode for mode in framework.modes if mode not in excluded)


def require_same_arrays(functions: Mapping[str, Callable[..., Any]], parameters: Collection[str]) -> None:
    """Raise InvalidWorkloadError if the functions require arrays of different names; their order may differ.

    `parameters` are those of `arrays()`, which functions may take too.
    """
    required_names = {name: arguments.required_names(function, parameters) for name, function in functions.items()}
    # None: the function can take arrays of any name.
    known_names = {name: names for name, names in required_names.items() if names is not None}
    if not known_names:
        return
    (first_name, first_names), *others = known_names.items()
    for name, names in others:
        if sorted(names) != sorted(first_names):
            raise InvalidWorkloadError(
                f"{location(functions[name])} takes ({', '.join(names)}), and {location(functions[first_name])} takes "
                f"({', '.join(first_names)}); both are given the same arrays by name"
                f"{_explain_prefixed_name(first_name, name)}"
            )


def _explain_prefixed_name(*names: str) -> str:
    """Explain, at the end of an error message, why a function with a name such as `jax_scan` is a program.

    Explain the first such function of `names`; return an empty string if there is none.
    """
    for name in names:
        framework = frameworks.name_of(name)
        if framework in frameworks.names() and name != framework:
            return (
                f". {name}() is another program of {framework}, because its name begins with {framework} and no other "
                f"code of the file uses it; if it is a helper, rename it to _{name}"
            )
    return ""
