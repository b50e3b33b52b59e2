"""Implement the network of `_resnet` with torch.nn."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from accelbench.workload import NamedArrays
from accelbench.workloads import _resnet as resnet


class Unit(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Apply a convolution and batch normalisation."""

    def __init__(self, conv: resnet.Convolution) -> None:
        """Create both layers; the function `build` sets their weights."""
        super().__init__()
        self.convolution = nn.Conv2d(
            conv.inputs, conv.outputs, conv.taps, stride=conv.stride, padding=conv.padding, bias=False
        )
        # PyTorch's momentum is the share of the new statistics.
        self.normalisation = nn.BatchNorm2d(conv.outputs, eps=resnet.EPSILON, momentum=1 - resnet.MOMENTUM)

    def forward(self, x: Any) -> Any:
        """Apply the unit to x (batch, channels, rows, columns), and update the running statistics."""
        return self.normalisation(self.convolution(x))


class Block(nn.Module):  # type: ignore[misc]
    """Apply three units, and add the block's input."""

    def __init__(self, block: resnet.Block) -> None:
        """Create the units, with a shortcut where the shape changes."""
        super().__init__()
        self.reduce, self.spatial, self.expand = (Unit(block[name]) for name in ("reduce", "spatial", "expand"))
        self.shortcut = Unit(block["shortcut"]) if "shortcut" in block else nn.Identity()

    def forward(self, x: Any) -> Any:
        """Apply the block to x (batch, channels, rows, columns)."""
        y = self.expand(functional.relu(self.spatial(functional.relu(self.reduce(x)))))
        return functional.relu(y + self.shortcut(x))


class ResNet(nn.Module):  # type: ignore[misc]
    """Map images (batch, 3, rows, columns) to logits (batch, classes)."""

    def __init__(self, sizes: resnet.Sizes) -> None:
        """Create the layers; the function `build` sets their weights."""
        super().__init__()
        self.stem = Unit(resnet.stem(sizes))
        self.blocks = nn.ModuleList(Block(block) for block in resnet.blocks(sizes))
        self.head = nn.Linear(resnet.features(sizes), sizes.classes)

    def forward(self, images: Any) -> Any:
        """Return the logits of the images."""
        x = functional.relu(self.stem(images))
        x = functional.max_pool2d(x, resnet.POOL, resnet.POOL_STRIDE, padding=1)
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((2, 3)))


def build(sizes: resnet.Sizes, arrays: NamedArrays, put: Callable[[Any], Any]) -> ResNet:
    """Build the network with `arrays` as weights, named as in `draw_weights`; `put` places them on the device."""
    weights = put(dict(arrays))
    # The device `meta` draws no random weights: they would be overwritten.
    with torch.device("meta"):
        model = ResNet(sizes)
    model.to_empty(device=weights["head"].device).to(weights["head"].dtype)
    with torch.no_grad():
        for unit, name in _units(model):
            unit.convolution.weight.copy_(weights[name].permute(3, 2, 0, 1))  # PyTorch: (out, in, rows, columns)
            unit.normalisation.weight.copy_(weights[f"{name}.gain"])
            unit.normalisation.bias.copy_(weights[f"{name}.bias"])
            unit.normalisation.reset_running_stats()
        model.head.weight.copy_(weights["head"].T)
        model.head.bias.copy_(weights["head.bias"])
    return model


def loss_of(model: Any, batch: Any) -> Any:
    """Return the mean cross-entropy of the labels (batch,)."""
    return functional.cross_entropy(model(batch["images"]), batch["labels"])


def weights_by_name(model: ResNet) -> dict[str, Any]:
    """Return the model's weights by the names of `draw_weights`."""
    by_name = {"head": model.head.weight.detach().T, "head.bias": model.head.bias.detach()}
    for unit, name in _units(model):
        by_name[name] = unit.convolution.weight.detach().permute(2, 3, 1, 0)
        by_name[f"{name}.gain"] = unit.normalisation.weight.detach()
        by_name[f"{name}.bias"] = unit.normalisation.bias.detach()
    return by_name


def _units(model: ResNet) -> list[tuple[Unit, str]]:
    """Return the network's units, each with the name of its weights."""
    named = [(module, name) for name, module in model.named_modules() if isinstance(module, Unit)]
    # The weights of the module `blocks.3.reduce` are called `block3.reduce`.
    return [(module, name.replace("blocks.", "block")) for module, name in named]
