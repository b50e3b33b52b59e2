"""Judge launches in a short-lived process that imports numpy and scipy.special."""
