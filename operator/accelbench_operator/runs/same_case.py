"""Decide whether a Job's pod template, a pod or a result is of the case that the operator wrote, without requests.

Users who may patch Jobs can change the template of a suspended Job, and users who may patch pods can change a pod.
Queues and admission webhooks change them too: they add labels, node selectors, tolerations, gates, volumes, containers
and variables, which do not change what is measured. These must stay as the operator wrote them: the case document, what
the runner's container runs, what it may use, and which nodes may run it.

In this module, `ours` is what the operator wrote, and `theirs` is what the cluster or the result has.
"""

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kubernetes.utils import parse_quantity
from pydantic import ValidationError

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.api.environment import CaseEnvironment
from accelbench.document import on_one_line, shorten
from accelbench_operator.runs.pod_template import CONTAINER, Manifest

NAMED_CHANGES = 3
"""Maximum number of changes that a message names."""
MAXIMUM_VALUE = 80
"""Maximum number of characters of a value in a message."""
PROGRAM = ("image", "command", "args", "workingDir", "envFrom", "lifecycle")
"""Fields of the runner's container that choose what runs in it."""
CODE_VARIABLES = ("ACCELBENCH_", "LD_", "PYTHON")
"""Beginnings of the names of variables that choose which code runs. Others may be added, as webhooks do."""
RAISED_BY_WEBHOOKS = frozenset({"cpu", "memory", "ephemeral-storage"})
"""Resources of which a container may get more than ours: GKE Autopilot rounds amounts up, and a vertical autoscaler
raises them. The result records how many processors and how much memory the runner had."""
EXAMINED_FIELDS = frozenset(CaseEnvironment.model_fields) - {"name", "requirements", "python", "interpreter"}
"""Fields of a case's environments that the runner fills in, so that they differ between a case and its result."""


def document_of(template: Mapping[str, Any]) -> str:
    """Return the case document in the annotations of a pod or of a pod template; empty if there is none."""
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(labels.CASE_ANNOTATION, ""))


def digest_document(document: str) -> str:
    """Return a short hash of a case document, by which the store remembers it."""
    return hashlib.sha256(document.encode(errors="replace")).hexdigest()[:16]


def find_changes(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what differs between the operator's pod template and a pod or a Job's template, as short sentences.

    Additions that cannot change what is measured are ignored.
    """
    our_spec, their_spec = ours["spec"], theirs.get("spec") or {}
    (our_container,) = our_spec["containers"]
    their_container = _find_runner(their_spec.get("containers"))
    document_changes = _document_changes(document_of(ours), document_of(theirs))
    if their_container is None:
        return (*document_changes, f"it has no container {CONTAINER}")
    return (
        *document_changes,
        *_program_changes(our_container, their_container),
        *_variable_changes(our_container.get("env") or (), their_container.get("env") or ()),
        *_resource_changes(our_container.get("resources") or {}, their_container.get("resources") or {}),
        *_item_changes("volumeMounts", "mountPath", our_container, their_container),
        *_item_changes("volumes", "name", our_spec, their_spec),
        *_selector_changes(our_spec.get("nodeSelector") or {}, their_spec.get("nodeSelector") or {}),
    )


def find_case_changes(ours: Case, theirs: Case) -> tuple[str, ...]:
    """Return the fields in which another case differs from ours, with both values."""
    our_fields, their_fields = _fields(ours), _fields(theirs)
    return tuple(
        f"{name} is {_show(their_fields.get(name))} instead of {_show(our_fields.get(name))}"
        for name in our_fields | their_fields
        if our_fields.get(name) != their_fields.get(name)
    )


def describe_changes(changes: Sequence[str]) -> str:
    """Return the first changes as one sentence, and the number of the others."""
    named = "; ".join(changes[:NAMED_CHANGES])
    others = len(changes) - NAMED_CHANGES
    return f"{named}; and {others} more" if others > 0 else named


def _document_changes(our_document: str, their_document: str) -> Iterable[str]:
    """Return the fields in which another case document differs from ours, or that it cannot be read."""
    if our_document == their_document:
        return ()
    try:
        their_case = Case.model_validate_json(their_document)
    except ValidationError:
        return ("its case document cannot be read",)
    # The document of another release may lack fields: the model fills in their defaults.
    return find_case_changes(Case.model_validate_json(our_document), their_case)


def _fields(case: Case) -> dict[str, Any]:
    """Return the values of a case by the path of their field, without what the runner fills in."""
    environments = [
        environment.model_dump(mode="json", by_alias=True, exclude=set(EXAMINED_FIELDS))
        for environment in case.environments
    ]
    values = case.model_dump(mode="json", by_alias=True) | {"environments": environments}
    return dict(_flatten(values, ""))


def _flatten(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of each leaf; None, an empty object and an empty list have none."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flatten(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flatten(item, f"{path}[{index}]")
    elif value is not None:
        yield path, value


def _program_changes(ours: Manifest, theirs: Manifest) -> Iterator[str]:
    """Yield a sentence for each field of `PROGRAM` that differs from ours."""
    for field in PROGRAM:
        our_value, their_value = ours.get(field), theirs.get(field)
        if field == "image" and _is_same_image(str(our_value), str(their_value)):
            continue
        # `_contains` accepts any value where ours has none.
        was_added_or_removed = bool(their_value) != bool(our_value)
        if was_added_or_removed or not _contains(their_value, our_value):
            yield f"{field} of container {CONTAINER} is {_show(their_value)} instead of {_show(our_value)}"


def _is_same_image(ours: str, theirs: str) -> bool:
    """Return True if both references have the same digest: a webhook may take the image from another registry."""
    _, _, our_digest = ours.partition("@")
    _, _, their_digest = theirs.partition("@")
    return bool(our_digest) and our_digest == their_digest


def _variable_changes(ours: Iterable[Manifest], theirs: Iterable[Manifest]) -> Iterator[str]:
    """Yield a sentence for each variable that is missing or was changed, and for each added one that chooses code."""
    # Of two variables with the same name, the last counts.
    our_variables = {variable["name"]: variable for variable in ours}
    their_variables = {variable["name"]: variable for variable in theirs}
    for name, variable in our_variables.items():
        if name not in their_variables:
            yield f"variable {name} is missing"
        elif not _contains(their_variables[name], variable):
            yield f"variable {name} has another value"
    for name in their_variables.keys() - our_variables.keys():
        if name.startswith(CODE_VARIABLES):
            yield f"variable {name} was added"


def _resource_changes(ours: Manifest, theirs: Manifest) -> Iterator[str]:
    """Yield a sentence for each limit or request that differs from ours, unless a webhook may have raised it.

    Also yield one if the container's claim on a device differs.
    """
    for kind in ("limits", "requests"):
        their_amounts = theirs.get(kind) or {}
        for resource, our_amount in (ours.get(kind) or {}).items():
            their_amount = their_amounts.get(resource)
            accepts = _is_at_least if resource in RAISED_BY_WEBHOOKS else _is_same_quantity
            if our_amount is not None and not accepts(our_amount, their_amount):
                yield f"{kind} of {resource} are {_show(their_amount)} instead of {_show(our_amount)}"
    if not _contains(theirs.get("claims"), ours.get("claims")):
        yield "its claim on a device differs"


def _item_changes(field: str, key: str, ours: Manifest, theirs: Manifest) -> Iterator[str]:
    """Yield a sentence for each of our items in the list `field` that is missing or was changed.

    `key` is the name of the field that identifies an item.
    """
    their_items = {item.get(key): item for item in theirs.get(field) or ()}
    for item in ours.get(field) or ():
        name = item[key]
        if name not in their_items:
            yield f"{field} lacks {name}"
        elif not _contains(their_items[name], item):
            yield f"{field} has another {name}"


def _selector_changes(ours: Mapping[str, str], theirs: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each label of our node selector that is missing or has another value."""
    for label, value in ours.items():
        if theirs.get(label) != value:
            yield f"nodeSelector has {label} {_show(theirs.get(label))} instead of {_show(value)}"


def _contains(theirs: Any, ours: Any) -> bool:
    """Return True if `theirs` has every field of `ours` with its value; theirs may have more fields.

    A list must have as many items as ours, in the same order; each item may have more fields. The API server adds
    defaults to our manifest, and drops empty values.
    """
    is_empty_container = isinstance(ours, Mapping | list | tuple) and not ours
    if ours is None or is_empty_container:
        return True  # ours has no field that theirs could lack
    if not ours:
        return not theirs  # an empty text, False or 0, which the API server may have dropped
    if isinstance(ours, Mapping):
        return isinstance(theirs, Mapping) and all(
            _contains_field(theirs.get(key), key, value) for key, value in ours.items()
        )
    if isinstance(ours, list | tuple):
        has_same_length = isinstance(theirs, list | tuple) and len(theirs) == len(ours)
        return has_same_length and all(itertools.starmap(_contains, zip(theirs, ours, strict=True)))
    return bool(theirs == ours)


def _contains_field(their_value: Any, name: str, our_value: Any) -> bool:
    """Return True if `their_value` of the field contains all of `our_value`; compare `sizeLimit` as an amount."""
    if name == "sizeLimit":
        return _is_same_quantity(our_value, their_value)
    return _contains(their_value, our_value)


def _is_same_quantity(ours: Any, theirs: Any) -> bool:
    """Return True if both are the same amount; the API server writes `1024Mi` as `1Gi`.

    Amounts that cannot be parsed are compared as texts.
    """
    if theirs is None:
        return False
    try:
        return bool(parse_quantity(ours) == parse_quantity(theirs))
    except ValueError:
        return bool(ours == theirs)


def _is_at_least(ours: Any, theirs: Any) -> bool:
    """Return True if their amount is ours or a larger one; amounts that cannot be parsed must be equal texts."""
    if theirs is None:
        return False
    try:
        return bool(parse_quantity(theirs) >= parse_quantity(ours))
    except ValueError:
        return bool(ours == theirs)


def _find_runner(containers: Iterable[Manifest] | None) -> Manifest | None:
    """Return the runner's container; None if there is none."""
    return next((container for container in containers or () if container.get("name") == CONTAINER), None)


def _show(value: Any) -> str:
    """Return a value for a message, shortened: a user may have made it long."""
    if value is None:
        return "missing"
    text = value if isinstance(value, str) else json.dumps(value)
    return shorten(on_one_line(text), MAXIMUM_VALUE) or '""'
