"""Which replica acts and exports results: the only place that a Lease will have to come to."""


def leading() -> bool:
    """Whether this process may write; a single replica always may."""
    return True
