"""Print when it is loaded, when arrays are drawn, and in both programs, of which one is the reference."""

print("loaded")


def arrays(rng, n: int = 32):
    print("drawn")
    return {"x": rng.standard_normal((n, n))}


def jax(x):
    print("traced", x.shape)
    return x @ x.T


def pytorch(x):
    y = x @ x.T
    print("norm", float(y.norm()))
    return y
