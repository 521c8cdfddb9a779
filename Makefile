# make demo | test | test-oldest | lint | docs | bench | bench-quick | survey | papers | papers-full | walk | knobs | alternate | mutate | drill | clean.
# Everything happens in .venv; PYTHON picks the interpreter.
PYTHON ?= python3
VENV ?= .venv
# the oldest Python that pyproject.toml names
OLDEST ?= python3.11
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# one thread per test worker, so that the workers do not spin against each other
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 BLIS_NUM_THREADS=1 \
              VECLIB_MAXIMUM_THREADS=1 NUMBA_NUM_THREADS=1 MPLBACKEND=Agg
# where PyTorch is not installed the lines of these files are not counted
ON_TORCH := */gram/cuda_loops.py,*/gram/device.py,*/gram/device_array.py,*/gram/tensors.py,*/gram/torch.py,*/kernels/on_device.py,*/machines/joint/device_systems.py,*/training/on_torch.py
# the same where Dask is not
ON_DASK := */estimators/partitioned.py,*/gram/dask.py,*/gram/dask_blocks.py,*/gram/dask_stack.py,*/gram/partitions.py,*/machines/partition.py,*/training/on_dask.py,*/training/on_partitions.py,*/training/partition_point.py,*/training/partition_rounds.py
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help demo test test-oldest lint docs bench bench-quick survey papers papers-full walk knobs alternate mutate drill clean

help:
	@echo "make demo     learn a mix of kernels on a bundled data set"
	@echo "make test     lint, the whole suite, the documentation's examples and the coverage bar (TORCH=torch: with PyTorch)"
	@echo "make test-oldest   the suite with the lowest versions that pyproject.toml allows, on the oldest Python it names"
	@echo "make lint     ruff and mypy"
	@echo "make docs     HTML documentation with the gallery in site/"
	@echo "make bench    all solvers and other packages in one run: writes docs/benchmarks.md (bench-quick: prints a small one)"
	@echo "make survey   thousands of fits on many data sets against scikit-learn (QUICK=--quick: two minutes, CHECK=--check)"
	@echo "make papers   the tables and figures of the papers: writes docs/papers.md (papers-full: with a million samples)"
	@echo "make walk     files and functions that a fit, a prediction and a search cross (CHECK=--check: fail above the bars)"
	@echo "make knobs    numbers in the source that no user can set (MAX=100: fail above so many)"
	@echo "make alternate OLD=path   speed of this version as a ratio to that of another checkout, run in turn"
	@echo "make mutate FILE=path TESTS=paths   changes of one file, one at a time, that these tests do not notice"
	@echo "make drill    attack the library (BUDGET=30m SEED=1 JOBS=16 RESUME=file ONLY=kind CHECK=--check): writes docs/reliability.md"
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

test: lint
	rm -f .coverage .coverage.*
	$(PYTEST) -n $(WORKERS) --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m loops tests --cov --cov-report= --cov-append
	$(BIN)/python -m coverage report --fail-under=98 --omit=none$$($(BIN)/python -c "import torch" 2>/dev/null || echo ,$(ON_TORCH))$$($(BIN)/python -c "import distributed" 2>/dev/null || echo ,$(ON_DASK))

# TORCH=torch (or torch==2.13.0 and the like) installs PyTorch as well; without it tests of kernels on a device are skipped
$(VENV)/.torch: $(VENV)/.test
	$(PIP) $(TORCH)
	@touch $@

# an environment and Numba caches of its own
test-oldest:
	$(OLDEST) -m venv $(VENV)-oldest
	mkdir -p build
	$(VENV)-oldest/bin/python tools/lowest.py test > build/lowest.txt
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c build/lowest.txt -e ".[test]"
	NUMBA_CACHE_DIR=$(CURDIR)/build/numba-oldest $(ONE_THREAD) $(VENV)-oldest/bin/python -m pytest -n $(WORKERS)

lint: $(VENV)/.test $(if $(TORCH),$(VENV)/.torch)
	$(BIN)/ruff check
	$(BIN)/mypy

docs: $(VENV)/.docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -b html -W --keep-going -q -d build/doctrees docs site

bench: $(VENV)/.package
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/peers/bench.py --page docs/benchmarks.md

bench-quick: $(VENV)/.package
	$(BIN)/python benchmarks/peers/bench.py --quick --out build/peers-quick.jsonl

survey: $(VENV)/.package
	$(BIN)/python benchmarks/survey.py $(QUICK) $(CHECK)

walk: $(VENV)/.package
	$(ONE_THREAD) $(BIN)/python tools/walk.py $(CHECK)

knobs: $(BIN)/python
	$(BIN)/python tools/knobs.py $(if $(MAX),--max $(MAX))

# OLD is another checkout; ONLY picks workloads by parts of their names
alternate: $(VENV)/.package
	@if [ -z "$(OLD)" ]; then echo "make alternate OLD=path: the path of another checkout is missing"; exit 2; fi
	$(BIN)/python tools/alternate.py "$(OLD)/src" src $(if $(ONLY),--only "$(ONLY)")

# for example FILE=src/multikernel/certificate.py TESTS="tests/frame/test_certify.py tests/frame/test_solve.py"
mutate: $(VENV)/.test
	@if [ -z "$(FILE)" ] || [ -z "$(TESTS)" ]; then \
	    echo "make mutate FILE=path TESTS=paths: the path of a file or those of its tests are missing"; exit 2; fi
	$(BIN)/python tools/mutate.py $(FILE) --tests $(TESTS) --jobs $(WORKERS)

drill: $(VENV)/.test
	$(BIN)/python -m tests.drill --page docs/reliability.md $(if $(BUDGET),--budget $(BUDGET)) $(if $(SEED),--seed $(SEED)) \
	    $(if $(RESUME),--resume $(RESUME)) $(if $(ONLY),--only $(ONLY)) $(if $(JOBS),--jobs $(JOBS)) $(CHECK)

# a run that was stopped goes on where it was; papers-full adds the fit of a million samples
papers: $(VENV)/.package
	$(BIN)/python papers/run.py run all --jobs $(WORKERS)

papers-full: $(VENV)/.package
	$(BIN)/python papers/run.py run all --long --jobs $(WORKERS)

clean:
	rm -rf $(VENV) $(VENV)-oldest build dist site docs/gallery docs/generated .coverage .coverage.* htmlcov .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
