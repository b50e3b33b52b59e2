"""Hold a function of a notebook in the script that `accelbench.compare` writes.

Unpickling a function imports the modules that the function uses. Therefore a function is unpickled only when it is
called: a launch must not import the other framework.
"""

import base64
import copyreg
import inspect
import io
import pickle
from collections.abc import Callable
from functools import cached_property
from typing import Any


class Pickled:
    """Hold a function's name and signature, and its cloudpickle bytes in Base64."""

    def __init__(self, name: str, parameters: str, content: str, *, names_its_arrays: bool = True) -> None:
        """Store the function without unpickling it.

        `parameters` is written as in `x, axis=...`; `content` is in Base64. `names_its_arrays` is False if the
        parameters need not have the names of arrays, as those of `torch.sin`.
        """
        self.__name__ = self.__qualname__ = name
        self.__signature__ = _signature(parameters)
        self.names_its_arrays = names_its_arrays
        self._content = content

    @cached_property
    def function(self) -> Callable[..., Any]:
        """Unpickle the function, which imports the modules that it uses."""
        function: Callable[..., Any] = pickle.loads(base64.b64decode(self._content))  # noqa: S301 - the user's own code
        return function

    def __call__(self, *arguments: Any, **keyword_arguments: Any) -> Any:
        """Call the function. The first call unpickles it."""
        return self.function(*arguments, **keyword_arguments)


def dumps(function: Callable[..., Any]) -> bytes:
    """Return the function's bytes from cloudpickle.

    An object that the function uses may have a class whose `__new__` requires arguments, such as `jax.custom_vjp`. By
    default, unpickling calls `__new__` without arguments, which fails; here it calls `object.__new__` instead.
    """
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc]
        """Pickle an object whose class has a `__new__` in Python so that `object.__new__` makes it again."""

        def reducer_override(self, value: Any) -> Any:
            """Return how unpickling makes the object again: by `_reduce_without_new`, or else as in cloudpickle."""
            reduction = _reduce_without_new(value)
            return super().reducer_override(value) if reduction is None else reduction

    buffer = io.BytesIO()
    Pickler(buffer).dump(function)
    return buffer.getvalue()


def _reduce_without_new(value: Any) -> tuple[Any, ...] | None:
    """Return a reduction by which unpickling calls `object.__new__` in place of the class's own `__new__`.

    Pickle's default calls a `__new__` written in Python without arguments, which fails if it requires some. Return None
    if pickle makes the object in another way.
    """
    value_type = type(value)
    is_class = isinstance(value, type)  # cloudpickle pickles classes in its own way
    has_new_in_python = inspect.isfunction(value_type.__new__)
    if is_class or not has_new_in_python:
        return None
    # A reduction is a tuple: a function that makes the object, its arguments, and the attributes to restore.
    reduction = value.__reduce_ex__(pickle.DEFAULT_PROTOCOL)
    call_without_arguments = (copyreg.__newobj__, (value_type,))  # type: ignore[attr-defined]
    return (object.__new__, *reduction[1:]) if reduction[:2] == call_without_arguments else None


def format_parameters(signature: inspect.Signature) -> str:
    """Return the text of a function's parameters that `Pickled` takes: `x, axis=...` for `f(x, axis=0)`."""
    parameters = [
        parameter.replace(
            annotation=parameter.empty,
            # Any default is written as `None`, and below as `...`: neither its value nor its text is used.
            default=parameter.empty if parameter.default is parameter.empty else None,
        )
        for parameter in signature.parameters.values()
    ]
    signature_text = str(inspect.Signature(parameters))  # (x, axis=None)
    return signature_text.removeprefix("(").removesuffix(")").replace("=None", "=...")


def _signature(parameters: str) -> inspect.Signature:
    """Return the signature of a function whose parameters are written as in `x, axis=...`."""
    namespace: dict[str, Any] = {}
    exec(f"def function({parameters}): pass", namespace)  # noqa: S102 - accelbench wrote the parameters
    return inspect.signature(namespace["function"])


def unpickle(function: Callable[..., Any]) -> Callable[..., Any]:
    """Unpickle a `Pickled`; return any other function unchanged."""
    return function.function if isinstance(function, Pickled) else function
