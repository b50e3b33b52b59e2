"""Hold a function of a notebook in the script that `accelbench.compare` writes.

Unpickling a function imports the modules that the function uses. Therefore a function is unpickled only when it is
called: a launch must not import the other framework.
"""

import base64
import inspect
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any


class Pickled:
    """Hold a function's name and signature, and its cloudpickle bytes in Base64."""

    def __init__(self, name: str, parameters: str, content: str) -> None:
        """Store the function without unpickling it.

        `parameters` is written as in `x, axis=...`; `content` is in Base64.
        """
        self.__name__ = self.__qualname__ = name
        self.__signature__ = _signature(parameters)
        self._content = content

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Unpickle the function, which imports the modules that it uses."""
        function: Callable[..., Any] = pickle.loads(base64.b64decode(self._content))  # noqa: S301 - the user's own code
        return function

    def __call__(self, *arguments: Any, **keyword_arguments: Any) -> Any:
        """Call the function. The first call unpickles it."""
        return self.function(*arguments, **keyword_arguments)


def _signature(parameters: str) -> inspect.Signature:
    """Parse a function's parameters, written as in `x, axis=...`."""
    texts = [text.strip() for text in parameters.split(",") if text.strip()]
    signature_parameters = []
    for text in texts:
        name, equals, _ = text.partition("=")
        default = None if equals else inspect.Parameter.empty  # the default's value is not used
        signature_parameters.append(inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    return inspect.Signature(signature_parameters)


def unpickle(function: Callable[..., Any]) -> Callable[..., Any]:
    """Unpickle a `Pickled`; return any other function unchanged."""
    return function.function if isinstance(function, Pickled) else function
