"""Give the modules and tensors that a function captures the policy's type, and restore them before each block.

A module has weights of its own, in the type and on the device that its author gave them. A training step changes them,
and batch normalisation changes its statistics. Such objects are the state of a function: each block starts from what
they were at first, as the state of a program does.

Everything changes in place, because other objects refer to the same tensors: an optimizer, tied weights, a view.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch.nn.parameter import is_lazy

from accelbench.catalogue.workload_checks import InvalidWorkloadError, location
from accelbench.workload import Program
from accelbench_runner.frameworks.captured import Place, find_arguments, find_places

WIDE = {torch.float32, torch.float64}
"""Types that are converted; a narrower type was chosen on purpose."""
Convert = Callable[[torch.Tensor], torch.Tensor]
_originals: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
"""Tensors that were converted in this process, by `id`, each with its original: another adapter converts that again."""


@runtime_checkable
class Stateful(Protocol):
    """Define what schedulers, gradient scalers and others have."""

    def state_dict(self) -> Any:
        """Return the state."""
        ...

    def load_state_dict(self, state: Any) -> Any:
        """Restore the state."""
        ...


@dataclass
class _Tensor:
    """Hold a captured tensor, and its initial numbers."""

    name: str
    tensor: torch.Tensor
    version: int
    """PyTorch increases a tensor's version at each change in place."""
    initial: torch.Tensor | None
    """Copy on the host; None if the first call did not change the tensor."""

    @property
    def has_changed(self) -> bool:
        """Return True if the tensor may differ from its initial numbers.

        Batch normalisation changes its statistics without another version, so the numbers are compared too.
        """
        if self.tensor._version != self.version:  # noqa: SLF001 - PyTorch documents it, but has no other name
            return True
        return self.initial is not None and not torch.equal(self.tensor.detach().cpu(), self.initial)


class TorchCaptured:
    """Convert and restore what functions capture."""

    def __init__(self, device: torch.device, dtype: torch.dtype, rounded: torch.dtype) -> None:
        """Prepare to convert captured floats: each is rounded to the type `rounded`, then stored as `dtype`."""
        self._device, self._dtype, self._rounded = device, dtype, rounded
        self._adopted: dict[int, Any] = {}
        """Everything that was adopted, by `id`."""
        self._tensors: dict[int, _Tensor] = {}
        self._optimizers: dict[int, tuple[torch.optim.Optimizer, Any]] = {}
        """Optimizers, each with a copy of its state."""
        self._others: dict[int, tuple[Stateful, Any]] = {}
        """Other objects that have a state, each with a copy of it."""
        self._where = ""
        """Where the function is defined, for error messages."""

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def adopt(self, program: Program) -> None:
        """Convert what a program's step captures or gets from its setup, in place, and remember its initial numbers."""
        self._where = location(program.step)
        # Modules first, because an optimizer has no names for their parameters.
        for place in sorted(find_places(program.step, _is_wanted), key=_is_no_module):
            self._adopt(place, self._in_policy)
        for place in sorted(find_arguments(program.batches, _is_wanted), key=_is_no_module):
            if not is_input(place.value):
                self._adopt(place, self._of_setup)

    def _adopt(self, place: Place, convert: Convert) -> None:
        """Convert the value in a place, and remember it."""
        value = place.value
        if id(value) in self._adopted:
            return
        self._adopted[id(value)] = value
        if isinstance(value, torch.nn.Module):
            self._adopt_module(place.name, value, convert)
        elif isinstance(value, torch.Tensor):
            self._adopt_tensor(place.name, value, convert)
        elif isinstance(value, torch.optim.Optimizer):
            self._adopt_optimizer(place.name, value, convert)
        else:
            self._others[id(value)] = (value, copy.deepcopy(value.state_dict()))

    def _adopt_module(self, name: str, module: torch.nn.Module, convert: Convert) -> None:
        """Convert a module, and remember its parameters and buffers."""
        tensors = [*module.parameters(), *module.buffers()]
        if any(convert(tensor) is not tensor for tensor in tensors):
            module._apply(convert)  # noqa: SLF001 - what `Module.to` calls, which converts every float
        for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
            self._remember(f"{name}.{key}", tensor)

    def _adopt_tensor(self, name: str, tensor: torch.Tensor, convert: Convert) -> None:
        """Convert a tensor, and remember it."""
        converted = convert(tensor)
        if converted is not tensor:
            tensor.data = converted.data
        self._remember(name, tensor)

    def _adopt_optimizer(self, name: str, optimizer: torch.optim.Optimizer, convert: Convert) -> None:
        """Convert an optimizer's parameters and state, and remember both."""
        for index, parameter in enumerate(p for group in optimizer.param_groups for p in group["params"]):
            self._adopt_tensor(f"{name}.params[{index}]", parameter, convert)
            for key, value in optimizer.state.get(parameter, {}).items():
                if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                    optimizer.state[parameter][key] = convert(value)
        options = [{**group, "params": None} for group in optimizer.param_groups]  # no copies of the parameters
        state = {parameter: copy.deepcopy(state) for parameter, state in optimizer.state.items()}
        self._optimizers[id(optimizer)] = (optimizer, (copy.deepcopy(options), state))

    def _in_policy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the tensor on the device and in the policy's type; the same one if nothing has to change."""
        if not _is_plain(tensor):
            return tensor
        if tensor.is_complex():
            return tensor.to(self._device, torch.complex128 if self._dtype == torch.float64 else torch.complex64)
        # A tensor that was converted before is converted from its original, so that it is not rounded twice.
        _, original = _originals.get(id(tensor), (tensor, tensor.data))
        if original.dtype not in WIDE:
            return tensor.to(self._device)
        converted = original.to(self._rounded).to(self._device, self._dtype)
        if converted.dtype == tensor.dtype and converted.device == tensor.device and torch.equal(converted, tensor):
            return tensor
        # The caller stores the numbers in the same object (a parameter), or puts the new one in its place (a buffer).
        _originals[id(tensor)] = (tensor, original)
        _originals[id(converted)] = (converted, original)
        return converted

    def _of_setup(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor that the workload's setup has made, on the device and in the policy's type."""
        if tensor.dtype == self._dtype:  # the setup may have computed it from inputs in that type: it has no original
            return tensor.to(self._device)
        return self._in_policy(tensor)

    def _remember(self, name: str, tensor: torch.Tensor) -> None:
        """Copy the tensor's initial numbers to the host, unless that was done already."""
        if id(tensor) not in self._tensors and _is_plain(tensor):
            initial = tensor.detach().to("cpu", copy=True)
            self._tensors[id(tensor)] = _Tensor(name, tensor, tensor._version, initial)  # noqa: SLF001 - as above

    def forget_unchanged(self) -> None:
        """Free the copies of tensors that the first call has not changed."""
        for captured in self._tensors.values():
            if not captured.has_changed:
                captured.initial = None

    def changed(self) -> list[str]:
        """Return the names of the tensors that calls have changed."""
        return [captured.name for captured in self._tensors.values() if captured.has_changed]

    def restore(self) -> None:
        """Restore everything in place.

        Raises InvalidWorkloadError for a tensor that the first call did not change and a later one did.
        """
        for captured in self._tensors.values():
            if captured.has_changed:
                self._restore_tensor(captured)
            if _gradient(captured) is not None:
                captured.tensor.grad = None
        for optimizer, (options, state) in self._optimizers.values():
            for group, initial_options in zip(optimizer.param_groups, options, strict=False):
                parameters = group["params"]
                group.update(copy.deepcopy(initial_options))
                group["params"] = parameters  # which are restored above, as tensors
            optimizer.state.clear()
            optimizer.state.update({parameter: copy.deepcopy(values) for parameter, values in state.items()})
        for other, state in self._others.values():
            other.load_state_dict(copy.deepcopy(state))

    def _restore_tensor(self, captured: _Tensor) -> None:
        """Copy its initial numbers back into a tensor; raise InvalidWorkloadError if they were not kept."""
        if captured.initial is None:
            raise InvalidWorkloadError(
                f"{self._where} captures {captured.name} and changes it, but not in its first call; all calls have to "
                "do the same work: return the change, or make every call change it"
            )
        with torch.no_grad():
            captured.tensor.copy_(captured.initial)
        captured.version = captured.tensor._version  # noqa: SLF001 - as above


def _is_wanted(value: Any) -> bool:
    """Return True for tensors, modules, and what else has a state."""
    return isinstance(value, torch.Tensor | torch.nn.Module | Stateful)


def _is_no_module(place: Place) -> bool:
    """Return False for a module, so that modules are sorted before anything else."""
    return not isinstance(place.value, torch.nn.Module)


def is_input(value: Any) -> bool:
    """Return True for a tensor that is no parameter: calls may not change it."""
    return isinstance(value, torch.Tensor) and not value.requires_grad


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return True for a tensor that has numbers, in the layout of most tensors."""
    return not is_lazy(tensor) and bool(tensor.layout == torch.strided)


def _gradient(captured: _Tensor) -> torch.Tensor | None:
    """Return the gradient of a leaf; None for another tensor, because PyTorch warns if its gradient is read."""
    gradient: torch.Tensor | None = captured.tensor.grad if captured.tensor.is_leaf else None
    return gradient
