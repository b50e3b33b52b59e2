"""Move many boards of the game 2048 to the left: tiles slide, equal neighbours merge once, and merges give points.

A board holds exponents of two, and 0 where it is empty. Two programs of JAX: all rows at once, and a scan over the
tiles of a row under vmap. Outputs are integers.
"""


def arrays(rng, boards: int = 2000):
    """Draw boards; small exponents, so that there are merges."""
    return {"board": rng.integers(0, 4, (boards, 4, 4))}


def jax(board):
    """Treat all rows at once."""
    import jax.numpy as jnp

    def slide(rows):
        order = jnp.argsort(rows == 0, axis=-1, stable=True)
        return jnp.take_along_axis(rows, order, axis=-1)

    rows = slide(board)
    points = jnp.zeros(board.shape[:-1], board.dtype)
    for i in range(3):
        left, right = rows[..., i], rows[..., i + 1]
        merge = (left == right) & (left != 0)
        rows = rows.at[..., i].set(jnp.where(merge, left + 1, left))
        rows = rows.at[..., i + 1].set(jnp.where(merge, 0, right))
        points = points + jnp.where(merge, 2 ** (left + 1), 0)
    return {"board": slide(rows), "points": points.sum(axis=-1)}


def jax_scan(board):
    """Push the tiles of a row one after the other."""
    import jax
    import jax.numpy as jnp

    def push(carry, tile):
        row, filled, can_merge, points = carry
        merge = (tile != 0) & can_merge & (row[filled - 1] == tile)
        place = (tile != 0) & ~merge
        row = jnp.where(merge, row.at[filled - 1].add(1), row)
        row = jnp.where(place, row.at[filled].set(tile), row)
        can_merge = jnp.where(tile == 0, can_merge, ~merge)
        points = points + jnp.where(merge, 2 ** (tile + 1), 0)
        return (row, filled + place, can_merge, points), None

    def move(row):
        start = (jnp.zeros_like(row), jnp.array(0), jnp.array(False), jnp.zeros((), row.dtype))
        (row, _, _, points), _ = jax.lax.scan(push, start, row)
        return row, points

    rows, points = jax.vmap(jax.vmap(move))(board)
    return {"board": rows, "points": points.sum(axis=-1)}


def pytorch(board):
    """Treat all rows at once."""
    import torch

    def slide(rows):
        order = torch.argsort((rows == 0).int(), dim=-1, stable=True)
        return rows.gather(-1, order)

    rows = slide(board)
    points = torch.zeros_like(board[..., 0])
    for i in range(3):
        left, right = rows[..., i].clone(), rows[..., i + 1].clone()
        merge = (left == right) & (left != 0)
        rows[..., i] = torch.where(merge, left + 1, left)
        rows[..., i + 1] = torch.where(merge, 0, right)
        points = points + torch.where(merge, 2 ** (left + 1), 0)
    return {"board": slide(rows), "points": points.sum(-1)}
