"""Hold a function that a notebook sends, in a script that `accelbench.compare` writes.

It is unpickled only when it is called, because that imports what it uses, and a launch must not import another
framework than its own.
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
        """Create it from its parts.

        Args:
            name: The function's name.
            parameters: Its parameters, as in `x, axis=...`; only the presence of a default matters.
            content: Its cloudpickle bytes, in Base64.
        """
        self.__name__ = self.__qualname__ = name
        self.__signature__ = _signature(parameters)
        self._content = content

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Return the function; raises what importing its modules raises."""
        function: Callable[..., Any] = pickle.loads(base64.b64decode(self._content))  # noqa: S301 - the user's own code
        return function

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function."""
        return self.function(*arguments, **named)


def _signature(parameters: str) -> inspect.Signature:
    """Return the signature for parameters as in `x, axis=...`."""
    texts = [text.strip() for text in parameters.split(",") if text.strip()]
    return inspect.Signature(
        [
            inspect.Parameter(
                text.partition("=")[0],
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=None if "=" in text else inspect.Parameter.empty,
            )
            for text in texts
        ]
    )


def unpickle(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that a `Pickled` holds, or `function` itself if it is none."""
    return function.function if isinstance(function, Pickled) else function
