"""Turn points by a small angle, many times in a row: each step rounds the result of the one before."""

STEPS, COS, SIN = 200, 0.9999500004166653, 0.009999833334166664


def arrays(rng, points: int = 8):
    return {"x": rng.standard_normal(points), "y": rng.standard_normal(points)}


def jax(x, y):
    from jax import lax

    def turn(point, _):
        x, y = point
        point = (COS * x - SIN * y, SIN * x + COS * y)
        return point, point

    return lax.scan(turn, (x, y), length=STEPS)[1]


def pytorch(x, y):
    import torch

    xs, ys = [], []
    for _ in range(STEPS):
        x, y = COS * x - SIN * y, SIN * x + COS * y
        xs.append(x)
        ys.append(y)
    return torch.stack(xs), torch.stack(ys)
