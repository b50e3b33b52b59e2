"""Run a residual block with GroupNorm and a strided projection, ported from flax to PyTorch.

Images and kernels are in flax's layout (NHWC, HWIO). The PyTorch module is made once from the same weights, by
setup_pytorch. Padding is explicit, as SAME pads a strided convolution on one side only; both use the same epsilon. In
bfloat16.
"""

EPSILON = 1e-5


def arrays(rng, batch: int = 4, size: int = 16, channels: int = 16, features: int = 32):
    """Draw images, and kernels, scales and shifts of three convolutions."""

    def kernel(side, inputs):
        return rng.standard_normal((side, side, inputs, features)) * (2 / (side * side * inputs)) ** 0.5

    drawn = {
        "x": rng.standard_normal((batch, size, size, channels)),
        "k1": kernel(3, channels),
        "k2": kernel(3, features),
        "k3": kernel(1, channels),
    }
    for i in (1, 2, 3):
        drawn[f"scale{i}"] = 1 + 0.1 * rng.standard_normal(features)
        drawn[f"bias{i}"] = 0.1 * rng.standard_normal(features)
    return drawn


def setup_jax(k1, k2, k3, scale1, bias1, scale2, bias2, scale3, bias3):
    """Put the weights into flax's tree."""
    norms = [(scale1, bias1), (scale2, bias2), (scale3, bias3)]
    params = {f"Conv_{i}": {"kernel": k} for i, k in enumerate((k1, k2, k3))}
    params |= {f"GroupNorm_{i}": {"scale": s, "bias": b} for i, (s, b) in enumerate(norms)}
    return {"variables": {"params": params}}


def jax(variables, x):
    """Apply a module of flax.linen."""
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x):
            features = 2 * x.shape[-1]
            h = nn.Conv(features, (3, 3), (2, 2), padding=((1, 1), (1, 1)), use_bias=False)(x)
            h = nn.relu(nn.GroupNorm(4, epsilon=EPSILON)(h))
            h = nn.Conv(features, (3, 3), padding=((1, 1), (1, 1)), use_bias=False)(h)
            h = nn.GroupNorm(4, epsilon=EPSILON)(h)
            skip = nn.Conv(features, (1, 1), (2, 2), padding="VALID", use_bias=False)(x)
            return nn.relu(h + nn.GroupNorm(4, epsilon=EPSILON)(skip))

    return Block().apply(variables, x)


def setup_pytorch(k1, k2, k3, scale1, bias1, scale2, bias2, scale3, bias3):
    """Make the module, and copy the weights."""
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self, channels, features):
            super().__init__()
            self.conv1 = nn.Conv2d(channels, features, 3, stride=2, padding=1, bias=False)
            self.norm1 = nn.GroupNorm(4, features, eps=EPSILON)
            self.conv2 = nn.Conv2d(features, features, 3, padding=1, bias=False)
            self.norm2 = nn.GroupNorm(4, features, eps=EPSILON)
            self.conv3 = nn.Conv2d(channels, features, 1, stride=2, bias=False)
            self.norm3 = nn.GroupNorm(4, features, eps=EPSILON)

        def forward(self, x):
            h = torch.relu(self.norm1(self.conv1(x)))
            h = self.norm2(self.conv2(h))
            return torch.relu(h + self.norm3(self.conv3(x)))

    block = Block(k1.shape[2], k1.shape[3]).to(k1)
    with torch.no_grad():
        for i, (k, s, b) in enumerate([(k1, scale1, bias1), (k2, scale2, bias2), (k3, scale3, bias3)], 1):
            getattr(block, f"conv{i}").weight.copy_(k.permute(3, 2, 0, 1))
            getattr(block, f"norm{i}").weight.copy_(s)
            getattr(block, f"norm{i}").bias.copy_(b)
    return {"block": block.eval()}


def pytorch(block, x):
    """Go to NCHW and back."""
    return block(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
