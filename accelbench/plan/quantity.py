"""Kubernetes' quantities as numbers: `500m`, `64Gi`, `1e3`."""

from decimal import Decimal

SUFFIXES = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3")}
SUFFIXES |= {letter: Decimal(1000) ** power for power, letter in enumerate(("k", "M", "G", "T", "P", "E"), start=1)}
SUFFIXES |= {f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}


def parse(text: str | int) -> Decimal:
    """The number of cores, bytes or devices; raises ValueError for what is none."""
    written = str(text)
    suffix = next((each for each in sorted(SUFFIXES, key=len, reverse=True) if written.endswith(each)), "")
    try:
        return Decimal(written.removesuffix(suffix)) * SUFFIXES.get(suffix, Decimal(1))
    except ArithmeticError as error:
        raise ValueError(f'"{text}" is no quantity, as 2, 500m or 64Gi') from error
