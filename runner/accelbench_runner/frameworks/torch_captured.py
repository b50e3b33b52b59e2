"""Convert the modules and tensors that a function captures to the policy's type, and restore them before each block.

A module has weights of its own, in the type and on the device that its author gave them. A training step changes them,
and batch normalisation changes its statistics. Such objects are the state of a function: each block starts from their
initial numbers, as it starts from the initial state of a program.

Everything changes in place, because other objects refer to the same tensors: an optimizer, tied weights, a view.

A user's script may have a setup function, which makes further arguments of the step, such as a module. They are in
every batch, by name.
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
"""Converted tensors of this process, by `id`, each with its original, which another adapter converts again."""


@runtime_checkable
class Stateful(Protocol):
    """Define how objects such as schedulers and gradient scalers return and restore their state."""

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
    """Copy on the host; None after the first call if this call did not change the tensor."""

    @property
    def has_changed(self) -> bool:
        """Return True if the tensor may differ from its initial numbers.

        Batch normalisation changes its statistics without increasing their version, so the numbers are compared too.
        """
        if self.tensor._version != self.version:  # noqa: SLF001 - PyTorch documents it, but has no other name
            return True
        return self.initial is not None and not torch.equal(self.tensor.detach().cpu(), self.initial)


class TorchCaptured:
    """Convert and restore what functions capture."""

    def __init__(self, device: torch.device, dtype: torch.dtype, rounded: torch.dtype) -> None:
        """Prepare to convert captured floats: round each to the type `rounded`, then store it as `dtype`.

        The types differ only for a run in float64 that is compared with launches in a narrower type.
        """
        self._device, self._dtype, self._rounded = device, dtype, rounded
        self._converted: dict[int, Any] = {}
        """Everything that was converted, by `id`; while it is kept, no other object can get the same `id`."""
        self._tensors: dict[int, _Tensor] = {}
        self._optimizers: dict[int, tuple[torch.optim.Optimizer, Any]] = {}
        """Optimizers, each with a copy of its state."""
        self._others: dict[int, tuple[Stateful, Any]] = {}
        """Other objects that have a state, each with a copy of its state."""
        self._where = ""
        """Where the program's step is defined, for error messages."""

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def convert_captured(self, program: Program) -> None:
        """Convert, in place, the tensors and modules that a program's step captures or gets from its setup.

        Their initial numbers are copied for `restore`.
        """
        self._where = location(program.step)
        # Modules first, because an optimizer has no names for their parameters.
        for place in sorted(find_places(program.step, _is_wanted), key=_modules_first):
            self._convert_value(place, self._in_policy_type)
        for place in sorted(find_arguments(program.batches, _is_wanted), key=_modules_first):
            # `put` has converted the inputs. A tensor of the setup that requires no gradient counts as one of them.
            if not is_input(place.value):
                self._convert_value(place, self._in_policy_type_unless_done)

    def _convert_value(self, place: Place, convert: Convert) -> None:
        """Convert the tensor, module or optimizer in a place, and copy its initial state for `restore`.

        Of other objects, such as schedulers, the state is only copied.
        """
        value = place.value
        if id(value) in self._converted:
            return
        self._converted[id(value)] = value
        if isinstance(value, torch.nn.Module):
            self._convert_module(place.name, value, convert)
        elif isinstance(value, torch.Tensor):
            self._convert_tensor(place.name, value, convert)
        elif isinstance(value, torch.optim.Optimizer):
            self._convert_optimizer(place.name, value, convert)
        else:
            self._others[id(value)] = (value, copy.deepcopy(value.state_dict()))

    def _convert_module(self, name: str, module: torch.nn.Module, convert: Convert) -> None:
        """Convert a module's parameters and buffers in place, and copy their initial numbers for `restore`."""
        tensors = [*module.parameters(), *module.buffers()]
        # `convert` returns the same tensor if nothing has to change.
        if any(convert(tensor) is not tensor for tensor in tensors):
            module._apply(convert)  # noqa: SLF001 - `Module.to` calls it too, but would convert every float
        for key, tensor in [*module.named_parameters(), *module.named_buffers()]:
            self._remember(f"{name}.{key}", tensor)

    def _convert_tensor(self, name: str, tensor: torch.Tensor, convert: Convert) -> None:
        """Convert a tensor in place, and copy its initial numbers for `restore`."""
        converted = convert(tensor)
        if converted is not tensor:
            tensor.data = converted.data
        self._remember(name, tensor)

    def _convert_optimizer(self, name: str, optimizer: torch.optim.Optimizer, convert: Convert) -> None:
        """Convert an optimizer's parameters and state in place, and copy both, and its options, for `restore`."""
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        for index, parameter in enumerate(parameters):
            self._convert_tensor(f"{name}.params[{index}]", parameter, convert)
            for key, value in optimizer.state.get(parameter, {}).items():
                # A state of another shape, such as a number of steps, keeps its type.
                if isinstance(value, torch.Tensor) and value.shape == parameter.shape:
                    optimizer.state[parameter][key] = convert(value)
        options = [{**group, "params": None} for group in optimizer.param_groups]  # parameters are copied above
        state = {parameter: copy.deepcopy(values) for parameter, values in optimizer.state.items()}
        self._optimizers[id(optimizer)] = (optimizer, (copy.deepcopy(options), state))

    def _in_policy_type(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor on the device, in the policy's type if it is float32, float64 or complex.

        The result is the same object if nothing has to change, or if the tensor is sparse or has no numbers yet.
        """
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
        # The caller either stores the new numbers in `tensor` (a parameter) or replaces `tensor` by `converted` (a
        # buffer), so find the original by both.
        _originals[id(tensor)] = (tensor, original)
        _originals[id(converted)] = (converted, original)
        return converted

    def _in_policy_type_unless_done(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor that the workload's setup has made, on the device and in the policy's type."""
        if tensor.dtype == self._dtype:  # the setup may have computed it in that type: keep its numbers
            return tensor.to(self._device)
        return self._in_policy_type(tensor)

    def _remember(self, name: str, tensor: torch.Tensor) -> None:
        """Copy a tensor's initial numbers to the host for `restore`; do nothing if that was done before."""
        if id(tensor) not in self._tensors and _is_plain(tensor):
            initial = tensor.detach().to("cpu", copy=True)
            version = tensor._version  # noqa: SLF001 - has no other name
            self._tensors[id(tensor)] = _Tensor(name, tensor, version, initial)

    def forget_unchanged(self) -> None:
        """Free the copies of the tensors that calls have not changed; for use after the first call.

        `restore` raises an exception if a later call increases the version of one of these tensors. Without the copy, a
        change that leaves the version, as by batch normalisation, is not detected.
        """
        for captured in self._tensors.values():
            if not captured.has_changed:
                captured.initial = None

    def changed(self) -> list[str]:
        """Return the names of the captured tensors that calls have changed."""
        return [captured.name for captured in self._tensors.values() if captured.has_changed]

    def restore(self) -> None:
        """Restore, in place, captured tensors, optimizers and other objects as they were before the first call.

        Raises InvalidWorkloadError for a tensor that the first call did not change and a later call did.
        """
        for captured in self._tensors.values():
            if captured.has_changed:
                self._restore_tensor(captured)
            if _gradient(captured) is not None:
                captured.tensor.grad = None  # a gradient would accumulate over the calls of several blocks
        for optimizer, (options, state) in self._optimizers.values():
            for group, initial_options in zip(optimizer.param_groups, options, strict=False):
                parameters = group["params"]
                group.update(copy.deepcopy(initial_options))
                group["params"] = parameters  # they are captured tensors, and restored above
            optimizer.state.clear()
            optimizer.state.update({parameter: copy.deepcopy(values) for parameter, values in state.items()})
        for other, state in self._others.values():
            other.load_state_dict(copy.deepcopy(state))

    def _restore_tensor(self, captured: _Tensor) -> None:
        """Copy a tensor's initial numbers back into the tensor.

        Raises InvalidWorkloadError if `forget_unchanged` has freed them.
        """
        if captured.initial is None:  # the first call did not change the tensor
            raise InvalidWorkloadError(
                f"{self._where} captures {captured.name} and changes it, but not in its first call; all calls have to "
                "do the same work: return the change, or make every call change it"
            )
        with torch.no_grad():
            captured.tensor.copy_(captured.initial)
        captured.version = captured.tensor._version  # noqa: SLF001 - has no other name


def _is_wanted(value: Any) -> bool:
    """Return True for tensors, modules, and other objects with a state, such as optimizers and schedulers."""
    return isinstance(value, torch.Tensor | torch.nn.Module | Stateful)


def _modules_first(place: Place) -> bool:
    """Return a key that sorts modules before other values: False is before True."""
    return not isinstance(place.value, torch.nn.Module)


def is_input(value: Any) -> bool:
    """Return True for an input: a tensor that requires no gradient, unlike a parameter."""
    return isinstance(value, torch.Tensor) and not value.requires_grad


def _is_plain(tensor: torch.Tensor) -> bool:
    """Return True for a dense tensor that has numbers, unlike a sparse one or a parameter of a lazy module."""
    return not is_lazy(tensor) and bool(tensor.layout == torch.strided)


def _gradient(captured: _Tensor) -> torch.Tensor | None:
    """Return a captured tensor's gradient; None for a non-leaf tensor, because PyTorch warns if that is read."""
    gradient: torch.Tensor | None = captured.tensor.grad if captured.tensor.is_leaf else None
    return gradient
