"""Define programs of neural networks: layers, losses and steps of training."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn import functional

from benchmarks.parity.program import Fault, Program, integers, normal, uniform

EPSILON = 1e-5
STEPS = 5
CLASSES = 50
SMOOTHING = 0.1
NETWORK = {
    "x": normal(64, 16),
    "y": normal(64, 4),
    "a": normal(16, 32, scale=0.3),
    "b": normal(32, 4, scale=0.2),
}
CELL = {"x": normal(20, 16, 8), "w": normal(4 * 24, 8, scale=0.3), "u": normal(4 * 24, 24, scale=0.2)}
ATTENTION = {"q": normal(3, 48, 32), "k": normal(3, 48, 32), "v": normal(3, 48, 32)}


def _layer_norm_numpy(x):
    deviation = x - np.mean(x, -1, keepdims=True)
    return deviation / np.sqrt(np.mean(deviation * deviation, -1, keepdims=True) + EPSILON)


def _layer_norm_jax(x, epsilon=EPSILON, ddof=0):
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True, ddof=ddof) + epsilon)


def _rms_norm_numpy(x, w):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + EPSILON) * w


def _rms_norm_jax(x, w, epsilon=EPSILON):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + epsilon) * w


def _softmax_numpy(x):
    powers = np.exp(x - np.max(x, -1, keepdims=True))
    return powers / np.sum(powers, -1, keepdims=True)


def _attention_numpy(q, k, v):
    scores = q @ np.swapaxes(k, -1, -2) * q.shape[-1] ** -0.5
    return _softmax_numpy(np.where(np.tri(q.shape[1], dtype=bool), scores, -1e4)) @ v


def _attention_jax(q, k, v, shift=0, scale=1.0):
    scores = jnp.einsum("bid,bjd->bij", q, k) * (scale * q.shape[-1] ** -0.5)
    allowed = jnp.tri(q.shape[1], k=shift, dtype=bool)
    return jax.nn.softmax(jnp.where(allowed, scores, -jnp.inf), -1) @ v


def _attention_torch(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def _sigmoid_numpy(x):
    return 1 / (1 + np.exp(-x))


def _lstm_numpy(x, w, u):
    hidden = cell = 0 * (x[0] @ w[: u.shape[1]].T)
    for step in x:
        gates = step @ w.T + hidden @ u.T
        into, forget, new, out = np.split(gates, 4, -1)
        cell = _sigmoid_numpy(forget) * cell + _sigmoid_numpy(into) * np.tanh(new)
        hidden = _sigmoid_numpy(out) * np.tanh(cell)
    return hidden


def _lstm_jax(x, w, u, forget_bias=0.0):
    def step(state, x):
        hidden, cell = state
        into, forget, new, out = jnp.split(x @ w.T + hidden @ u.T, 4, -1)
        cell = jax.nn.sigmoid(forget + forget_bias) * cell + jax.nn.sigmoid(into) * jnp.tanh(new)
        return (jax.nn.sigmoid(out) * jnp.tanh(cell), cell), None

    start = jnp.zeros((x.shape[1], u.shape[1]), x.dtype)
    return jax.lax.scan(step, (start, start), x)[0][0]


def _lstm_torch(x, w, u):
    start = torch.zeros(1, x.shape[1], u.shape[1], dtype=x.dtype)
    return torch.lstm(x, (start, start), [w, u], False, 1, 0.0, False, False, False)[1][0]


def _rnn_numpy(x, w, u):
    hidden = 0 * (x[0] @ w.T)
    for step in x:
        hidden = np.tanh(step @ w.T + hidden @ u.T)
    return hidden


def _rnn_jax(x, w, u, steps=None):
    def step(hidden, x):
        return jnp.tanh(x @ w.T + hidden @ u.T), None

    return jax.lax.scan(step, jnp.zeros((x.shape[1], u.shape[1]), x.dtype), x[:steps])[0]


def _rnn_torch(x, w, u):
    start = torch.zeros(1, x.shape[1], u.shape[1], dtype=x.dtype)
    return torch.rnn_tanh(x, start, [w, u], False, 1, 0.0, False, False, False)[1][0]


def _cross_entropy_numpy(x, label):
    largest = np.max(x, -1, keepdims=True)
    logarithms = x - largest - np.log(np.sum(np.exp(x - largest), -1, keepdims=True))
    chosen = np.take_along_axis(logarithms, label[:, None], -1)[:, 0]
    return -(1 - SMOOTHING) * chosen - SMOOTHING * np.mean(logarithms, -1)


def _cross_entropy_jax(x, label, smoothing=SMOOTHING):
    logarithms = jax.nn.log_softmax(x)
    target = (1 - smoothing) * jax.nn.one_hot(label, CLASSES, dtype=x.dtype) + smoothing / CLASSES
    return -jnp.sum(target * logarithms, -1)


def _bags_numpy(table, index):
    return np.mean(table[index], 1)


def _training_numpy(x, y, a, b):
    for _ in range(STEPS):
        hidden = np.tanh(x @ a)
        gradient = 2 * (hidden @ b - y) / y.size
        gradient_of_a = x.T @ ((gradient @ b.T) * (1 - hidden * hidden))
        a, b = a - 0.05 * gradient_of_a, b - 0.05 * (hidden.T @ gradient)
    return a


def _loss_jax(weights, x, y):
    return jnp.mean(jnp.square(jnp.tanh(x @ weights[0]) @ weights[1] - y))


def _training_jax(x, y, a, b, steps=STEPS, rate=0.05):
    def step(_, weights):
        gradients = jax.grad(_loss_jax)(weights, x, y)
        return tuple(weight - rate * gradient for weight, gradient in zip(weights, gradients, strict=True))

    return jax.lax.fori_loop(0, steps, step, (a, b))[0]


def _training_torch(x, y, a, b):
    weights = [a.requires_grad_(), b.requires_grad_()]
    optimiser = torch.optim.SGD(weights, lr=0.05)
    for _ in range(STEPS):
        optimiser.zero_grad()
        functional.mse_loss(torch.tanh(x @ weights[0]) @ weights[1], y).backward()
        optimiser.step()
    return weights[0]


def _adam_numpy(x, y, a, b):
    mean = square = 0 * a
    for step in range(1, STEPS + 1):
        hidden = np.tanh(x @ a)
        gradient = x.T @ ((2 * (hidden @ b - y) / y.size @ b.T) * (1 - hidden * hidden))
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient * gradient
        a = a - 0.01 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return a


def _adam_jax(x, y, a, b, epsilon=1e-8, inner=0.0):
    mean = square = jnp.zeros_like(a)
    for step in range(1, STEPS + 1):
        gradient = jax.grad(lambda weights: _loss_jax((weights, b), x, y))(a)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        a = a - 0.01 * (mean / (1 - 0.9**step)) / (jnp.sqrt(square / (1 - 0.999**step) + inner) + epsilon)
    return a


def _adam_torch(x, y, a, b):
    a.requires_grad_()
    optimiser = torch.optim.Adam([a], lr=0.01)
    for _ in range(STEPS):
        optimiser.zero_grad()
        functional.mse_loss(torch.tanh(x @ a) @ b, y).backward()
        optimiser.step()
    return a


def _relu_gradient_numpy(x, a, b):
    hidden = x @ a
    return x.T @ ((hidden > 0) * b)


def _relu_gradient_jax(x, a, b):
    return jax.grad(lambda a: jnp.sum(jax.nn.relu(x @ a) @ b))(a)


def _relu_gradient_torch(x, a, b):
    a.requires_grad_()
    return torch.autograd.grad((torch.relu(x @ a) @ b).sum(), a)[0]


PROGRAMS = (
    Program(
        "layer normalisation",
        {"x": normal(40, 128, mean=0.5)},
        _layer_norm_numpy,
        _layer_norm_jax,
        lambda x: functional.layer_norm(x, x.shape[-1:]),
        (
            Fault("epsilon 1e-3 for 1e-5", "all", lambda x: _layer_norm_jax(x, 1e-3)),
            Fault("epsilon 1e-6 for 1e-5", "all", lambda x: _layer_norm_jax(x, 1e-6)),
            Fault("divisor n - 1", "all", lambda x: _layer_norm_jax(x, ddof=1)),
        ),
    ),
    Program(
        "RMS normalisation",
        {"x": normal(40, 128, scale=0.1), "w": uniform(0.5, 1.5, 128)},
        _rms_norm_numpy,
        _rms_norm_jax,
        lambda x, w: functional.rms_norm(x, w.shape, w, EPSILON),
        (Fault("no epsilon", "all", lambda x, w: _rms_norm_jax(x, w, 0.0)),),
    ),
    Program(
        "causal attention",
        ATTENTION,
        _attention_numpy,
        _attention_jax,
        _attention_torch,
        (
            Fault("mask off by one", "all", lambda q, k, v: _attention_jax(q, k, v, 1)),
            Fault("scale 1 % too large", "all", lambda q, k, v: _attention_jax(q, k, v, scale=1.01)),
            Fault("last key left out", "few", lambda q, k, v: _attention_jax(q, k.at[:, -1].set(k[:, -2]), v)),
        ),
    ),
    Program(
        "LSTM",
        CELL,
        _lstm_numpy,
        _lstm_jax,
        _lstm_torch,
        (Fault("1 added to the forget gate", "all", lambda x, w, u: _lstm_jax(x, w, u, 1.0)),),
    ),
    Program(
        "RNN of 60 steps",
        {"x": normal(60, 16, 8), "w": normal(24, 8, scale=0.3), "u": normal(24, 24, scale=0.2)},
        _rnn_numpy,
        _rnn_jax,
        _rnn_torch,
        (Fault("last step left out", "all", lambda x, w, u: _rnn_jax(x, w, u, -1)),),
    ),
    Program(
        "cross-entropy",
        {"x": normal(1000, CLASSES, scale=2), "label": integers(CLASSES, 1000)},
        _cross_entropy_numpy,
        _cross_entropy_jax,
        lambda x, label: functional.cross_entropy(x, label, reduction="none", label_smoothing=SMOOTHING),
        (Fault("smoothing 0.11 for 0.1", "all", lambda x, label: _cross_entropy_jax(x, label, 0.11)),),
    ),
    Program(
        "mean embeddings",
        {"table": normal(500, 32), "index": integers(500, 150, 20)},
        _bags_numpy,
        lambda table, index: table[index].mean(1),
        lambda table, index: functional.embedding_bag(index, table, mode="mean"),
        (
            Fault(
                "last word of the last bag left out", "few", lambda table, index: table[index].at[-1, -1].set(0).mean(1)
            ),
        ),
    ),
    Program(
        "5 steps of gradient descent",
        NETWORK,
        _training_numpy,
        _training_jax,
        _training_torch,
        (
            Fault("4 steps", "all", lambda x, y, a, b: _training_jax(x, y, a, b, STEPS - 1)),
            Fault("learning rate 0.051 for 0.05", "all", lambda x, y, a, b: _training_jax(x, y, a, b, rate=0.051)),
        ),
    ),
    Program(
        "5 steps of Adam",
        NETWORK,
        _adam_numpy,
        _adam_jax,
        _adam_torch,
        (
            Fault("epsilon 1e-6 for 1e-8", "all", lambda x, y, a, b: _adam_jax(x, y, a, b, 1e-6)),
            Fault("epsilon 1e-8 inside the root", "all", lambda x, y, a, b: _adam_jax(x, y, a, b, 0.0, 1e-8)),
            Fault("epsilon 1e-16 inside the root", "all", lambda x, y, a, b: _adam_jax(x, y, a, b, 0.0, 1e-16)),
        ),
        precisions=("float32", "bfloat16"),
    ),
    Program(
        "gradient through relu",
        {"x": normal(400, 32), "a": normal(32, 64, scale=0.2), "b": normal(64)},
        _relu_gradient_numpy,
        _relu_gradient_jax,
        _relu_gradient_torch,
    ),
)
