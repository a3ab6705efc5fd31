# Needs GNU make and Python 3.11 or newer; everything else is installed into .venv from the pins in constraints.txt.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
GAMES := $(VENV)/.procgen
DOCS := $(VENV)/.docs
RUNTIME := $(VENV)/.browser-runtime
PIP := $(BIN)/python -m pip --quiet --no-input --disable-pip-version-check
export PIP_ROOT_USER_ACTION := ignore
# As `srwm` has it: threads that wait soon leave their core to others. An example cannot say so before it imports torch.
export GOMP_SPINCOUNT ?= 1000

# `make PYTHON=/path/to/python run` takes another interpreter. By default: the first of these that is new enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)

# $(call step,NAME,COMMAND) says what runs, and which step failed.
step = echo "== $(1)"; $(2) || { echo "make $@: $(1) failed" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help setup run demo test portable mutants docs package lint types format bench clean

help: ## Show the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(STAMP) ## Create .venv and install the pinned packages

run: $(STAMP) ## Train an SRWM on parity beside a DeltaNet, then one to learn new characters (a few minutes)
	@$(BIN)/python examples/quickstart.py

demo: $(STAMP) ## Teach a network your own drawings in the browser, and watch it rewrite itself
	@$(BIN)/srwm demo

test: $(STAMP) $(GAMES) $(DOCS) $(RUNTIME) ## Run lint, types and all tests, some of them twice: see portable
	@$(call step,ruff check,$(BIN)/ruff check .)
	@$(call step,ruff format --check,$(BIN)/ruff format --check .)
	@$(call step,mypy,$(BIN)/mypy)
	@$(call step,pytest,$(BIN)/python -m pytest -q -n 2)
	@$(MAKE) --no-print-directory portable

# Every library that picks its code by the CPU is told of an old one: oneDNN, PyTorch's own loops, and numba, which keeps
# the kernels on disk by the name of the CPU. In Triton's interpreter nothing would change.
portable: export ATEN_CPU_CAPABILITY := default
portable: export NUMBA_CPU_NAME := generic
portable: $(STAMP) ## Run the tests of kernels and layers as on a CPU without AVX-512, and autocast as on one without AVX
	@$(call step,pytest without AVX-512,ONEDNN_MAX_CPU_ISA=AVX2 $(BIN)/python -m pytest -q -n 2 -k "not triton" tests/ops tests/nn tests/vision)
	@$(call step,pytest without AVX,ONEDNN_MAX_CPU_ISA=SSE41 $(BIN)/python -m pytest -q -k autocast tests/nn)

mutants: $(STAMP) ## Put small faults into the code and see whether its tests find them (hours)
	@$(BIN)/python -m tools.mutants --jobs 2

docs: $(DOCS) ## Build the site of the documentation into site/
	@$(call step,npm pack onnxruntime-web,$(BIN)/python docs/tools/browser_runtime.py)
	@$(call step,mkdocs build --strict,NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict)
	@echo "The site is there: open site/index.html. Its page that needs no installation wants a file server: $(BIN)/python -m http.server --directory site"

package: $(STAMP) ## Build wheel and sdist into dist/, install the wheel in a fresh environment, and ask its model
	@$(call step,the package,$(BIN)/python tools/check_package.py $(if $(TAG),--tag $(TAG)))

lint: $(STAMP) ## Check style and format
	@$(call step,ruff check,$(BIN)/ruff check .)
	@$(call step,ruff format --check,$(BIN)/ruff format --check .)

types: $(STAMP) ## Check types
	@$(call step,mypy,$(BIN)/mypy)

format: $(STAMP) ## Format the code and fix what can be fixed
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(STAMP) ## Time the operators on this machine
	@$(BIN)/srwm bench ops

clean: ## Remove caches, builds and outputs; keeps .venv and runs/
	@rm -rf build dist out site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests tools examples -name __pycache__ -type d -prune -exec rm -rf {} +

# torch goes first and alone: its exact pin also admits a local CPU build (2.13.0+cpu) where pip is set up with one.
# hatchling comes next, so that the package itself is built with the pinned version.
$(STAMP): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "srwm needs Python 3.11 or newer, and none was found; install it, or name one: make PYTHON=/path/to/python $(MAKECMDGOALS)" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "srwm needs Python 3.11 or newer; $(PYTHON) is older or does not run" >&2; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks the venv module; install it (on Debian and Ubuntu: the python3-venv package)" >&2; exit 1; }
	@echo "Setting up $(VENV) with pinned packages; this takes a minute or more, by your connection."
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || "$(PYTHON)" -m venv --clear $(VENV)
	@$(PIP) install -c constraints.txt torch==2.13.0
	@$(PIP) install -c constraints.txt hatchling
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev,plot]'
	@touch $@
	@echo "Ready: $$($(BIN)/python --version), torch $$($(BIN)/python -c 'import importlib.metadata as m; print(m.version("torch"))')."

# What builds the site; the tests of the documentation build it, too.
$(DOCS): $(STAMP)
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[docs]'
	@touch $@

# The games of ProcGen, which the tests of reinforcement learning play; tried once.
$(GAMES): $(STAMP)
	@$(BIN)/srwm data fetch procgen >/dev/null || echo "The games of ProcGen could not be had, so their tests will be skipped; later, try: $(BIN)/srwm data fetch procgen"
	@touch $@

# ONNX Runtime for browsers, which the page of the site that needs no installation runs on; tried once.
$(RUNTIME): $(STAMP) docs/tools/browser_runtime.py
	@$(BIN)/python docs/tools/browser_runtime.py || echo "So the tests of the page that needs no installation will be skipped; later, try: $(BIN)/python docs/tools/browser_runtime.py"
	@touch $@
