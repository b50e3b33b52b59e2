"""accelbench settles JAX-against-PyTorch questions with paired, checked experiments."""

__version__ = "0.1.0"
