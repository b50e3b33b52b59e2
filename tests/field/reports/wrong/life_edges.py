"""Compute twenty generations of Conway's Life on a torus: a convolution in PyTorch, rolled copies in JAX.

A notebook cell. Wrong on PyTorch's side: the convolution pads with zeros, so cells at the edges miss neighbours; with
NumPy's reference, it is PyTorch that is wrong.
"""

import jax
import jax.numpy as jnp
import numpy as np
import torch
import torch.nn.functional as F

import accelbench

GENERATIONS = 20


def numpy_life(board):
    for _ in range(GENERATIONS):
        around = sum(np.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - board
        board = ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)
    return board


def jax_life(board):
    def generation(_, board):
        around = sum(jnp.roll(board, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)) - board
        return ((around == 3) | ((board == 1) & (around == 2))).astype(board.dtype)

    return jax.lax.fori_loop(0, GENERATIONS, generation, board)


def torch_life(board):
    kernel = torch.ones(1, 1, 3, 3)
    kernel[0, 0, 1, 1] = 0
    cells = board.float()[None, None]
    for _ in range(GENERATIONS):
        around = F.conv2d(cells, kernel, padding=1)
        cells = ((around == 3) | ((cells == 1) & (around == 2))).float()
    return cells[0, 0].to(board.dtype)


if __name__ == "__main__":
    found = accelbench.compare(
        pytorch=torch_life,
        jax=jax_life,
        reference=numpy_life,
        arrays=lambda rng: {"board": (rng.random((96, 96)) < 0.3).astype(np.int64)},
    )
    print(found)
