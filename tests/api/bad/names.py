"""Names and labels."""

from api.bad.table import axis, bad, body, unmatched
from api.manifests import ABSENT

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
LABEL_KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
NAME_PATTERN = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
VARIANT_PATTERN = "^[A-Za-z0-9]([-A-Za-z0-9._/]*[A-Za-z0-9])?$"

NAMES = (
    bad("no name", {"metadata.name": ABSENT}, "metadata.name: Required value: name or generateName is required"),
    bad("a name in capitals", {"metadata.name": "Matmul"}, f'metadata.name: Invalid value: "Matmul": {SUBDOMAIN}'),
    bad("a name too long", {"metadata.name": "m" * 64}, "metadata.name: Too long: may not be more than 63 bytes"),
    bad(
        "a script that is no Python file",
        {"spec.workload": {"script": {"configMapKeyRef": {"name": "mine", "key": "mine.txt"}}}},
        unmatched("spec.workload.script.configMapKeyRef.key", "mine.txt", r"^[A-Za-z0-9][-A-Za-z0-9._]*\.py$"),
    ),
    bad(
        "a label with a space", {"metadata.labels": {"team": "a b"}}, f'metadata.labels: Invalid value: "a b": {LABEL}'
    ),
    bad(
        "a label too long",
        {"metadata.labels": {"team": "a" * 64}},
        f'metadata.labels: Invalid value: "{"a" * 64}": must be no more than 63 bytes',
    ),
    bad(
        "a label's name with a space",
        {"metadata.labels": {"the team": "a"}},
        f'metadata.labels: Invalid value: "the team": name part {LABEL_KEY}',
    ),
    bad(
        "a label without a name",
        {"metadata.labels": {"example.com/": "a"}},
        'metadata.labels: Invalid value: "example.com/": name part must be non-empty',
        f'metadata.labels: Invalid value: "example.com/": name part {LABEL_KEY}',
    ),
    bad(
        "a label's name too long",
        {"metadata.labels": {"a" * 64: ""}},
        f'metadata.labels: Invalid value: "{"a" * 64}": name part must be no more than 63 bytes',
    ),
    bad(
        "a label with an empty prefix",
        {"metadata.labels": {"/team": "a"}},
        'metadata.labels: Invalid value: "/team": prefix part must be non-empty',
    ),
    bad(
        "a label with a prefix in capitals",
        {"metadata.labels": {"Example.com/team": "a"}},
        f'metadata.labels: Invalid value: "Example.com/team": prefix part {SUBDOMAIN}',
    ),
    bad(
        "a label with two slashes",
        {"metadata.labels": {"a/b/c": "d"}},
        'metadata.labels: Invalid value: "a/b/c": a valid label key '
        f"{LABEL_KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
    ),
    bad(
        "a name longer than any may be",
        {"metadata.name": "m" * 254},
        f'metadata.name: Invalid value: "{"m" * 254}": must be no more than 253 characters',
        "metadata.name: Too long: may not be more than 63 bytes",
    ),
    bad(
        "a workload in capitals",
        {"spec.workload.name": "Xor"},
        unmatched("spec.workload.name", "Xor", NAME_PATTERN),
    ),
    bad(
        "a workload with the end of its line",
        {"spec.workload.name": "xor\n"},
        unmatched("spec.workload.name", r"xor\n", NAME_PATTERN),
    ),
    bad(
        "an empty workload name",
        {"spec.workload.name": ""},
        body("spec.workload.name", '""', "should be at least 1 chars long"),
    ),
    bad(
        "a workload name too long",
        {"spec.workload.name": "m" * 64},
        "spec.workload.name: Too long: may not be more than 63 bytes",
    ),
    bad("a series with a dot", {"spec.series": "a.b"}, unmatched("spec.series", "a.b", NAME_PATTERN)),
    bad(
        "a variant with a space",
        {"spec.variants[1].use": "jax jit"},
        unmatched("spec.variants[1].use", "jax jit", VARIANT_PATTERN),
    ),
    bad(
        "a variant's name too long",
        {"spec.variants[1].name": "v" * 64},
        "spec.variants[1].name: Too long: may not be more than 63 bytes",
    ),
    bad(
        "an axis that begins with a digit",
        {"spec.sweep": [axis("2nd", 1)]},
        unmatched("spec.sweep[0].name", "2nd", r"^[A-Za-z][A-Za-z0-9_]*$"),
    ),
    bad(
        "a profile with an underscore",
        {"spec.accelerator.profile": "nvidia_h100"},
        unmatched("spec.accelerator.profile", "nvidia_h100", NAME_PATTERN),
    ),
)
