"""The workload that a module defines: one class, or functions called like frameworks."""

import inspect
from types import ModuleType

from accelbench.catalogue import functions
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.workload import Workload


def kind_in(module: ModuleType, name: str) -> type[Workload]:
    """Its class, not yet looked at; raises InvalidWorkloadError, which calls the module `name`."""
    kinds = [
        member
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, Workload) and member.__module__ == module.__name__
    ]
    if not kinds and (made := functions.in_module(module)):
        return made
    if len(kinds) != 1:
        found = ", ".join(kind.__name__ for kind in kinds) or "none"
        raise InvalidWorkloadError(
            f"{name}: a script has functions, such as jax(x) and pytorch(x), and arrays(rng), which draws what "
            f"they are given; or one class that inherits accelbench.workload.Workload. Classes found: {found}"
        )
    return kinds[0]
