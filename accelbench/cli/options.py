"""Option types that several commands share."""

from enum import StrEnum


class Output(StrEnum):
    """Text for people, or JSON for scripts."""

    TABLE = "table"
    JSON = "json"
