"""Which commands of which page are run where. A command that is nowhere here fails a test."""

from __future__ import annotations

from typing import Literal

Where = Literal["laptop", "control plane", "node", "registry"]

RUN: dict[str, dict[Where, tuple[str, ...]]] = {
    "docs/start.md": {"laptop": ("On a laptop",), "node": ("In a cluster",)},
    "docs/operations/backup.md": {"control plane": ("Copy them", "Bring them back")},
    "docs/operations/install.md": {
        "control plane": ("Pull secrets", "Values", "Release", "Which nodes measure", "Who may use it", "Remove")
    },
    "docs/operations/security.md": {"control plane": ("Pod Security",), "registry": ("Signatures",)},
    "docs/operations/troubleshooting.md": {"control plane": ("Troubleshooting",)},
    "docs/operations/upgrade.md": {"control plane": ("Do it", "Take it back")},
    "docs/tutorials/ci-gate.md": {"laptop": ("What to expect", "The workflow")},
    "docs/tutorials/cluster.md": {"node": ("Ask", "Read", "Your own code", "As a gate", "Stop and clean up")},
    "docs/tutorials/laptop.md": {
        "laptop": ("Install", "What can be measured", "Ask", "Keep the question", "Look again")
    },
    "docs/tutorials/notebook.md": {"laptop": ("From a notebook", "Modules and their gradients")},
}
"""By page: the headings whose commands are run together and in order, by a module of this folder or of tests/e2e."""

ELSEWHERE: dict[str, str] = {
    "CONTRIBUTING.md": ".ci/run makes what each push is judged by; make fuzz is tests/fuzz, make cluster tests/cluster",
    "README.md": "docs/start.md and docs/tutorials/ have them one by one, tests/claims its claims, .ci/run make",
    "docs/kubectl.md": "tests/kubectl, on a real control plane behind a node that is played",
    "docs/operations/gitops.md": "tests/gitops/test_page.py",
    "docs/operations/pools.md": "tests/cli/test_profiles.py, on these very nodes",
    "docs/tutorials/targets.md": "tests/targets/test_page.py; pip install as in docs/tutorials/laptop.md",
    "docs/tutorials/environments.md": "tests/cli/test_environments.py; nightly, with JAX's releases, test_versions.py",
    "docs/tutorials/versions.md": "tests/cli/test_versions.py, with a fake runner; nightly with JAX's releases",
    "docs/tutorials/functions.md": "tests/tutorials",
    "docs/tutorials/suites.md": "tests/cli/test_suite.py, with a fake runner; the suites that ship are planned there",
    "docs/tutorials/add-a-workload.md": "tests/tutorials; in a cluster tests/e2e/test_own_script.py",
}
"""Pages whose commands other tests run, and which."""

SHELL: dict[str, str] = {
    "charts/accelbench/README.md": "install is tests/e2e/test_pages.py, --take-ownership tests/chart/test_upgrade.py, "
    "apply -k tests/chart/test_kustomize.py",
    "docs/kubectl.md": "tests/kubectl/test_krew.py, the archive of the tests' own machine",
    "docs/operations/install.md": "nobody: there is no Docker here; tests/image builds the same targets with buildah",
}
"""Pages with blocks of commands that have no `$`, and who runs what stands in them."""

FOR_BREVITY: dict[str, str] = {
    "make demo": "examples/demo.sh",
    "accelbench validate examples/01-matmul-chain.yaml": "tests/examples, every example",
    "accelbench run matmul-chain --variant pytorch/eager --variant jax/jit --set size=256": "docs/tutorials/laptop.md "
    "with less to measure",
    "accelbench report results/matmul-chain-...": "docs/tutorials/laptop.md: the folder's name ends in the time",
    "accelbench report results/matmul-chain-... --baseline jax/jit": "docs/tutorials/laptop.md, likewise",
    "accelbench compare results/before results/after": "tests/cli/test_compare.py",
    "accelbench run my_filter.yaml": "docs/tutorials/add-a-workload.md, with softmax_rows.py",
    "accelbench run examples/04-your-own-script.yaml": "docs/tutorials/add-a-workload.md has the same script",
    "accelbench run examples/05-training-curve.yaml": "tests/observe: its workload, every variant",
    "accelbench run FILE --target h100,v5e-16": "tests/targets/test_compiling.py, with a smaller file",
    "accelbench claims run --rows 17,33": "tests/claims/, and docs/results/claims holds what it wrote",
}
"""Commands that README alone shows, and what is run instead of each. It shows none beside these that no page runs."""
