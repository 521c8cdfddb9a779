# make demo | test | lint | docs | bench | papers | clean. Everything happens in .venv; PYTHON picks the interpreter.
PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# one thread per test worker, so that the workers do not spin against each other
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 BLIS_NUM_THREADS=1 \
              VECLIB_MAXIMUM_THREADS=1 NUMBA_NUM_THREADS=1 MPLBACKEND=Agg
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test lint docs bench papers clean

help:
	@echo "make demo     learn a mix of kernels on a bundled data set"
	@echo "make test     the whole suite, the documentation's examples and the coverage bar"
	@echo "make lint     ruff and mypy"
	@echo "make docs     HTML documentation in site/"
	@echo "make bench    speed and memory, as multiples of one pass over the kernels"
	@echo "make papers   the experiments of the papers"
	@echo "make clean    remove what the others made"

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# $(VENV)/.EXTRA is the stamp of an installed extra; .package that of the package alone
$(VENV)/.package: pyproject.toml | $(BIN)/python
	$(PIP) -e .
	@touch $@

$(VENV)/.%: $(VENV)/.package
	$(PIP) -e ".[$*]"
	@touch $@

.PHONY: $(VENV)
$(VENV): $(VENV)/.test

demo: $(VENV)/.package
	$(BIN)/multikernel demo

test: $(VENV)/.test
	@if [ -x $(BIN)/ruff ]; then $(BIN)/ruff check; fi
	rm -f .coverage .coverage.*
	$(PYTEST) -n $(WORKERS) --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m loops tests --cov --cov-report= --cov-append
	$(BIN)/python -m coverage report --fail-under=95

lint: $(VENV)/.dev
	$(BIN)/ruff check
	$(BIN)/mypy

docs: $(VENV)/.docs
	$(BIN)/mkdocs build

bench: $(VENV)/.package
	$(BIN)/python benchmarks/run.py

papers: $(VENV)/.package
	@set -e; for script in papers/*/run.py; do \
	    if [ -f "$$script" ]; then echo "== $$script"; $(BIN)/python "$$script"; \
	    else echo "papers/ holds no experiment: each is a folder with a run.py."; fi; \
	done

clean:
	rm -rf $(VENV) build dist site .coverage .coverage.* htmlcov .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
