"""Define what all API objects share: group, version and metadata, with the API server's checks, in its words.

Wording: k8s.io/apimachinery `pkg/api/validate/content` (1.37).
"""

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from accelbench.document import Document
from accelbench.problem import Problem

GROUP = "accelbench.dev"
VERSION = "v1alpha1"
API_VERSION: Literal["accelbench.dev/v1alpha1"] = "accelbench.dev/v1alpha1"

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=63)]
"""DNS label."""

FIELDS = (
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
)
"""All fields of Kubernetes' metadata; accelbench reads those of `ObjectMeta`."""

MAXIMUM_NAME_CHARACTERS = 253
MAXIMUM_LABEL_CHARACTERS = 63
NAME_PATTERN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
LABEL_KEY_PATTERN = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
LABEL_VALUE_PATTERN = rf"({LABEL_KEY_PATTERN})?"
_KEY_REQUIREMENT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{LABEL_KEY_PATTERN}')"
)


class ObjectMeta(Document):
    """Hold the part of Kubernetes' metadata that accelbench reads; other fields are kept unchanged."""

    model_config = ConfigDict(frozen=True, extra="allow", alias_generator=to_camel, populate_by_name=True)

    name: str = Field(default="", max_length=253)
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


def metadata_refusals(metadata: Any) -> Iterator[Problem]:
    """Yield the problems with the name and the labels in `metadata`, which can be any value that a manifest has."""
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        return  # the schema refuses it
    name = metadata.get("name")
    if name:
        yield from _to_problems("metadata.name", name, _check_subdomain(str(name)))
    elif not metadata.get("generateName"):
        yield Problem("metadata.name", "Required value: name or generateName is required")
    labels = metadata.get("labels", {})
    if not isinstance(labels, dict):
        yield Problem("metadata.labels", "Invalid value: a map of strings is expected")
        return
    for key, value in labels.items():
        yield from _to_problems("metadata.labels", key, _check_label_key(key))
        if isinstance(value, str):
            yield from _to_problems("metadata.labels", value, _check_label_value(value))
        else:
            yield Problem("metadata.labels", f"Invalid value: {json.dumps(value)}: a string is expected; quote it")


def _to_problems(path: str, value: str, mistakes: Iterator[str]) -> Iterator[Problem]:
    """Yield a `Problem` at `path` for each mistake in `value`."""
    for mistake in mistakes:
        yield Problem(path, f"Invalid value: {json.dumps(value)}: {mistake}")


def _check_subdomain(text: str) -> Iterator[str]:
    """Yield each reason why `text` is not a DNS subdomain."""
    if len(text) > MAXIMUM_NAME_CHARACTERS:
        yield f"must be no more than {MAXIMUM_NAME_CHARACTERS} characters"
    if not re.fullmatch(NAME_PATTERN, text):
        yield (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
            f"'{NAME_PATTERN}')"
        )


def _check_label_key(key: str) -> Iterator[str]:
    """Yield each reason why `key` is not a valid key of a label."""
    if key.count("/") > 1:
        with_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        yield f"a valid label key {_KEY_REQUIREMENT} {with_prefix}"
        return
    prefix, slash, name = key.rpartition("/")
    if slash and not prefix:
        yield "prefix part must be non-empty"
    elif slash:
        for mistake in _check_subdomain(prefix):
            yield f"prefix part {mistake}"
    if not name:
        yield "name part must be non-empty"
    elif len(name) > MAXIMUM_LABEL_CHARACTERS:
        yield f"name part must be no more than {MAXIMUM_LABEL_CHARACTERS} bytes"
    if not re.fullmatch(LABEL_KEY_PATTERN, name):
        yield f"name part {_KEY_REQUIREMENT}"


def _check_label_value(value: str) -> Iterator[str]:
    """Yield each reason why `value` is not a valid value of a label."""
    if len(value) > MAXIMUM_LABEL_CHARACTERS:
        yield f"must be no more than {MAXIMUM_LABEL_CHARACTERS} bytes"
    if not re.fullmatch(LABEL_VALUE_PATTERN, value):
        yield (
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
            "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
            f"validation is '{LABEL_VALUE_PATTERN}')"
        )
