import json

import pytest

from accelbench.api.manifest import InvalidManifestError, load_manifests, parse_run
from accelbench.api.yaml_reader import read_documents
from api.manifests import GOOD, changed
from cluster.cluster import Cluster

TEXT = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: matmul-chain}
spec:
  workload: {name: matmul-chain}
  variants:
    - use: pytorch/eager
    - use: jax/jit
"""
SCALARS = """\
    - [1, -1, +1, 1_000, 0x1F, 010, 0o17, 08, 0b101, 5.0, 1e3, 1E3, -1e-2, .5, 1., 1_0.5, 9007199254740993, 1e400x]
    - [yes, No, ON, off, y, N, true, FALSE, "yes", 'on', ye, nope]
    - [null, ~, Null, "null", "", 1:30, 12:30:45, 2024-01-01, "2024-01-01", 1.2.3, =, a=b, 5s, 1e, 0x, "0x10", _1]
    - {2: a, yes: b, 1.5: c, x: 2024-01-01}
    - {base: &base {a: 1, b: 2}, over: {<<: *base, b: 3}}
    - |
      a block
      of text
"""


def problems(text: str) -> list[str]:
    with pytest.raises(InvalidManifestError) as refused:
        load_manifests(text, "bad.yaml")
    return [str(problem) for problem in refused.value.problems]


def test_yaml_is_read_as_kubectl_reads_it(crds: Cluster) -> None:
    text = f"{TEXT}  scalars:\n{SCALARS}"
    printed = crds.kubectl(
        "create", "--dry-run=client", "--validate=false", "--output=json", "--filename=-", input=text
    )
    (document,) = read_documents(text, "scalars.yaml")
    assert document.content["spec"] == json.loads(printed.stdout)["spec"]


@pytest.mark.parametrize(
    ("wrong", "line", "says"),
    [
        ("  series: a: b\n", 9, "mapping values are not allowed here"),
        ("\tseries: a\n", 9, "cannot start any token"),
        ("  sweep: [{name: size, values: [1, 2]}\n  series: a\n", 10, "expected ',' or ']'"),
        ("  series: &a {b: *c}\n", 9, "undefined alias"),
        ("  series: a\n  series: b\n", 10, '"series" is given twice'),
        ("  series: !!python/name:os.system\n", 9, "could not determine a constructor"),
    ],
)
def test_malformed_yaml_is_refused_with_its_line(wrong: str, line: int, says: str) -> None:
    (problem,) = problems(TEXT + wrong)
    assert problem.startswith(f"line {line}: malformed YAML: ")
    assert says in problem


@pytest.mark.parametrize("endless", ["  series: &a [*a]\n", "  series: !!int abc\n", "  series: !!binary aGk=\n"])
def test_yaml_that_json_cannot_hold_is_refused(endless: str) -> None:
    (problem,) = problems(TEXT + endless)
    assert "malformed YAML" in problem


def test_kubectl_too_refuses_malformed_yaml(crds: Cluster) -> None:
    done = crds.kubectl("apply", "--filename=-", input=f"{TEXT}  series: a: b\n", check=False)
    assert "yaml: line 9: mapping values are not allowed" in done.stderr


@pytest.mark.parametrize(
    ("wrong", "refusal"),
    [
        (
            "  baseline: jax/jt\n",
            'line 9: spec.baseline: Invalid value: no variant is called "jax/jt"; correct it here or in spec.variants',
        ),
        ("  measurement:\n    seed: -1\n", "line 10: spec.measurement.seed: Invalid value: -1"),
        ("  measurement:\n    rounds:\n      min: 30\n", "line 10: spec.measurement.rounds: Invalid value: min 30"),
        ("    - {}\n", "line 9: spec.variants[2].use: Required value"),
        (
            "    - {use: jax/scan,\n       opts: {}}\n",
            'line 10: unknown field "spec.variants[2].opts"; did you mean options?',
        ),
        ("  basline: jax/jit\n", 'line 9: unknown field "spec.basline"; did you mean baseline?'),
        ("  variant: []\n", 'line 9: unknown field "spec.variant"; did you mean variants?'),
        (
            "  qqq: 1\n",
            'line 9: unknown field "spec.qqq"; one of: accelerator, baseline, className, environments',
        ),
        ("  sweep: {size: [1]}\n", 'line 9: unknown field "spec.sweep.size"; spec.sweep must be of type array'),
    ],
)
def test_a_refusal_names_the_line_and_the_remedy(wrong: str, refusal: str) -> None:
    (problem,) = problems(TEXT + wrong)
    assert problem.startswith(refusal)


def test_the_error_names_the_file_in_every_line() -> None:
    with pytest.raises(InvalidManifestError) as refused:
        load_manifests(f"{TEXT}  baseline: a\n  measurement: {{seed: -1}}\n", "bad.yaml")
    first, second = str(refused.value).splitlines()
    assert first.startswith("bad.yaml: line 10: spec.measurement.seed: ")
    assert second.startswith("bad.yaml: line 9: spec.baseline: ")


def test_several_documents_are_several_runs() -> None:
    runs = load_manifests(f"---\n{TEXT}---\n# nothing\n---\n{TEXT.replace('matmul-chain', 'xor')}...\n", "two.yaml")
    assert [run.metadata.name for run in runs] == ["matmul-chain", "xor"]


def test_problems_of_all_documents_are_reported_at_once() -> None:
    first, second = problems(f"{TEXT}  baseline: a\n---\n{TEXT}  baseline: b\n")
    assert first.startswith('line 9: spec.baseline: Invalid value: no variant is called "a"')
    assert second.startswith('line 19: spec.baseline: Invalid value: no variant is called "b"')


@pytest.mark.parametrize("empty", ["", "---\n", "# a comment\n"])
def test_a_file_without_a_run_is_refused(empty: str) -> None:
    assert problems(empty) == ["holds no BenchmarkRun"]


def test_a_document_that_is_no_mapping_is_refused() -> None:
    assert problems("\n- use: jax/jit\n") == ["line 2: a manifest is a map that starts with apiVersion"]


@pytest.mark.parametrize("missing", ["apiVersion", "kind"])
def test_a_manifest_without_kind_or_version_is_refused(missing: str) -> None:
    (problem,) = problems(json.dumps({key: value for key, value in GOOD.items() if key != missing}))
    assert problem.startswith(f"line 1: {missing}: Required value: ")


def test_a_misspelt_kind_is_refused_with_the_right_one() -> None:
    (problem,) = problems(TEXT.replace("kind: BenchmarkRun", "kind: BenchmarkRuns"))
    assert problem == (
        'line 2: no matches for kind "BenchmarkRuns" in version "accelbench.dev/v1alpha1"; '
        "did you mean BenchmarkRun in accelbench.dev/v1alpha1?"
    )


@pytest.mark.parametrize(
    ("metadata", "refusal"),
    [
        ("{}", "metadata.name: Required value: name or generateName is required"),
        (
            "[]",
            'metadata: Invalid value: "array": metadata in body must be of type object: "array"',
        ),
        ("{name: a, labels: [b]}", "metadata.labels: Invalid value: a map of strings is expected"),
        ("{name: a, labels: {b: 5}}", "metadata.labels: Invalid value: 5: a string is expected; quote it"),
        ("{name: a, annotations: {b: 5}}", "metadata.annotations.b: Input should be a valid string"),
    ],
)
def test_unknown_metadata_is_refused(metadata: str, refusal: str) -> None:
    (problem,) = problems(TEXT.replace("{name: matmul-chain}", metadata, 1))
    assert problem.removeprefix("line 3: ") == refusal


def test_a_manifests_content_is_checked_like_its_text() -> None:
    assert parse_run(GOOD, "good").metadata.name == "matmul-chain"
    with pytest.raises(InvalidManifestError, match=r"^set: spec\.baseline: Invalid value: no variant"):
        parse_run(changed({"spec.baseline": "jax/jt"}), "set")


def test_json_is_yaml() -> None:
    (run,) = load_manifests(json.dumps(GOOD, indent=1), "good.json")
    assert run.metadata.name == "matmul-chain"
