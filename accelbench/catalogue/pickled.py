"""A function that a notebook has sent, in a script that `accelbench.compare` writes.

It is unpickled where it is needed and not before: doing so imports what it uses, and no launch may import another's
framework.
"""

import base64
import inspect
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any


class Pickled:
    """A function with the name and the signature that it had, and cloudpickle's bytes of it in Base64."""

    def __init__(self, name: str, parameters: str, content: str) -> None:
        """`parameters` as in `x, axis=-1`; a default's value does not matter, only that there is one."""
        self.__name__ = self.__qualname__ = name
        self.__signature__ = _signature(parameters)
        self._content = content

    @cached_property
    def function(self) -> Callable[..., Any]:
        """The function; raises what importing its modules raises."""
        found: Callable[..., Any] = pickle.loads(base64.b64decode(self._content))  # noqa: S301 - it is the user's own
        return found

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the function returns."""
        return self.function(*arguments, **named)


def _signature(parameters: str) -> inspect.Signature:
    named = [each.strip() for each in parameters.split(",") if each.strip()]
    return inspect.Signature(
        [
            inspect.Parameter(
                each.partition("=")[0],
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=None if "=" in each else inspect.Parameter.empty,
            )
            for each in named
        ]
    )


def unpickled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself, where it was sent."""
    return function.function if isinstance(function, Pickled) else function
