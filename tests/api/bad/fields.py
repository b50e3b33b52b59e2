"""Fields that are missing, unknown, or of a wrong type."""

from api.bad.table import bad, wrong_type
from api.manifests import ABSENT

FIELDS = (
    bad("no spec", {"spec": ABSENT}, "spec: Required value"),
    bad("no workload", {"spec.workload": ABSENT}, "spec.workload: Required value"),
    bad(
        "a workload without a name",
        {"spec.workload": {}},
        "spec.workload: Invalid value: give exactly one of name, script",
    ),
    bad(
        "a name and a script",
        {"spec.workload.script": {"configMapKeyRef": {"name": "mine", "key": "mine.py"}}},
        "spec.workload: Invalid value: give exactly one of name, script",
    ),
    bad(
        "a script without a key",
        {"spec.workload": {"script": {"configMapKeyRef": {"name": "mine"}}}},
        "spec.workload.script.configMapKeyRef.key: Required value",
    ),
    bad("no variants", {"spec.variants": ABSENT}, "spec.variants: Required value"),
    bad("a variant without use", {"spec.variants": [{"name": "a"}]}, "spec.variants[0].use: Required value"),
    bad("an axis without values", {"spec.sweep": [{"name": "size"}]}, "spec.sweep[0].values: Required value"),
    bad("an axis without a name", {"spec.sweep": [{"values": [1]}]}, "spec.sweep[0].name: Required value"),
    bad(
        "an expectation without anything",
        {"spec.expectations": [{}]},
        "spec.expectations[0].variant: Required value",
    ),
    bad("a misspelt field of the spec", {"spec.varaints": []}, 'unknown field "spec.varaints"'),
    bad("a misspelt field of a variant", {"spec.variants[1].opts": {}}, 'unknown field "spec.variants[1].opts"'),
    bad(
        "two misspelt fields",
        {"spec.measurement": {"round": {}, "precison": "tf32"}},
        'unknown field "spec.measurement.round"',
        'unknown field "spec.measurement.precison"',
    ),
    bad("a misspelt field of the metadata", {"metadata.label": {}}, 'unknown field "metadata.label"'),
    bad("a field beside the spec", {"specs": {}}, 'unknown field "specs"'),
    bad(
        "an unknown field beside a bound that does not hold",
        {"spec.baselin": "jax/jit", "spec.variants": []},
        'unknown field "spec.baselin"',
    ),
    bad("variants as a map", {"spec.variants": {"a": "jax/jit"}}, 'unknown field "spec.variants.a"'),
    bad("a map where a list belongs", {"spec.sweep": {}}, wrong_type("spec.sweep", "array", "object")),
    bad("a map where a name belongs", {"spec.baseline": {"use": "jax/jit"}}, 'unknown field "spec.baseline.use"'),
    bad("a variant as a string", {"spec.variants[1]": "jax/jit"}, wrong_type("spec.variants[1]", "object", "string")),
    bad("a variant that is null", {"spec.variants[1]": None}, wrong_type("spec.variants[1]", "object", "null")),
    bad("a number as a name", {"spec.workload.name": 5}, wrong_type("spec.workload.name", "string", "integer")),
    bad(
        "a switch as a string",
        {"spec.runPolicy.suspend": "no"},
        wrong_type("spec.runPolicy.suspend", "boolean", "string"),
    ),
    bad("a seed as a string", {"spec.measurement.seed": "0"}, wrong_type("spec.measurement.seed", "integer", "string")),
    bad(
        "a parameter that is a fraction",
        {"spec.workload.parameters": {"rate": 0.5}},
        wrong_type("spec.workload.parameters.rate", "integer,string", "number"),
    ),
    bad(
        "a parameter that is a switch",
        {"spec.workload.parameters": {"fast": True}},
        wrong_type("spec.workload.parameters.fast", "integer,string", "boolean"),
    ),
    bad(
        "an option that is a list",
        {"spec.variants[1].options": {"mode": []}},
        wrong_type("spec.variants[1].options.mode", "integer,string", "array"),
    ),
    bad(
        "a percentage as a number",
        {"spec.measurement.confidence": 95},
        wrong_type("spec.measurement.confidence", "string", "integer"),
    ),
)
