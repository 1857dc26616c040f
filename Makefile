# Each target works as the first command on a fresh clone: it creates the
# virtual environment it needs. `make help` lists the targets.

PYTHON ?= python3
PYTHONS ?= 3.10 3.11 3.12 3.13 3.14 3.15
ARGS ?=

PYTHON_PATH := $(shell tools/find-python "$(PYTHON)")
PYTHON_VERSION := $(if $(PYTHON_PATH),$(shell "$(PYTHON_PATH)" -c 'import sys; print("%d.%d" % sys.version_info[:2])'))
# One environment per interpreter, so that changing PYTHON needs no clean-up.
VENV ?= .venv/$(PYTHON_VERSION)$(if $(LOCKED),-locked)
BIN := $(VENV)/bin
# What a run needs, and with it what the tests need.
STAMP := $(VENV)/.installed
DEV := $(VENV)/.dev
SITE := $(VENV)/.site
OLDEST := .venv/oldest
RATIO := .venv/ratio
EMPTY := .venv/empty
# What the extra `gpu` brings; another CUDA needs another of CuPy's packages.
CUPY ?= cupy-cuda12x>=12.3,<15
BENCH := .venv/bench
AUDIT := .venv/audit
RELEASE := .venv/release
RUNS ?= 1000

# pip up to 26.0 reads the first in isolated builds, later ones the second.
PIP_INSTALL = PIP_CONSTRAINT=requirements/build-constraints.txt \
	PIP_BUILD_CONSTRAINT=requirements/build-constraints.txt \
	PIP_DISABLE_PIP_VERSION_CHECK=1 $(1)/bin/python -m pip install --quiet $(2)

# The tests that read datasets, and those of the half that works without Chainer.
USE_DATA := tests/data tests/paper tests/report tests/experiments tests/examples \
	tests/cli/test_main.py tests/test_fetch_script.py tests/test_paper_tables.py tests/test_reference.py
RATIO_TESTS := tests/ratios tests/estimation tests/estimators/test_base.py tests/estimators/test_density_ratio.py \
	tests/evaluation tests/files tests/cli tests/test_bigdata.py \
	tests/test_device.py tests/test_explorer.py tests/test_losses.py tests/test_plots.py tests/test_priors.py \
	tests/test_without_chainer.py

.DEFAULT_GOAL := help
STUDIES := asymmetric robustness estimated_prior class_prior networks
TABLES := table1 table2 table3 table4 table5 table6 table7

.PHONY: help install data $(TABLES) $(STUDIES) tables verify verify-full verify-mutants report test coverage test-bare test-ratio lint format docs site figures test-all \
	test-oldest test-gpu test-gpu-compile types bench load scale dist wheel wheel-all install-table chaos fuzz audit clean

help: ## list the targets
	@grep -hE '^[a-z0-9_-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

install: $(STAMP) ## create the virtual environment and install pu-shift into it (LOCKED=1: as in the reference run)
	@echo "activate it: source $(BIN)/activate"
	@echo "then try: pu-shift --help, or: python experiments/table1.py --trials 1 --datasets banana"

$(STAMP): setup.py pyproject.toml requirements/build-constraints.txt $(if $(LOCKED),requirements/reference.txt)
	@test -n "$(PYTHON_PATH)"
	@"$(PYTHON_PATH)" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 15) and \
		"pu-shift needs Python 3.10 to 3.15, this is %d.%d: choose with PYTHON=python3.12 make ..." % sys.version_info[:2])'
	@"$(PYTHON_PATH)" -c 'import ensurepip' 2>/dev/null || \
		{ echo "$(PYTHON_PATH) has no venv module: install it (Debian: apt install python3-venv)" >&2; exit 1; }
	@test -z "$(LOCKED)" -o "$(PYTHON_VERSION)" = 3.11 || \
		{ echo "LOCKED=1 needs Python 3.11, this is $(PYTHON_VERSION): PYTHON=python3.11 make install LOCKED=1" >&2; exit 1; }
	@echo "environment: $(VENV), with Python $(PYTHON_VERSION) of $(PYTHON_PATH)"
	@"$(PYTHON_PATH)" -m venv --clear $(VENV)
	@echo "packages: installing pu-shift and what it needs from the package index, a minute or two"
	@$(if $(LOCKED),$(call PIP_INSTALL,$(VENV),--require-hashes -r requirements/reference.txt))
	@$(call PIP_INSTALL,$(VENV),-e '.[chainer]')
	@touch $@

$(DEV): $(STAMP)
	@echo "packages: installing what the tests need"
	@$(call PIP_INSTALL,$(VENV),-e '.[dev]')
	@touch $@

data: $(STAMP) ## get the six datasets
	$(BIN)/python datasets/fetch.py --all $(ARGS)

table1: $(STAMP) ## Table 1 of the paper (table2 ... table7: the others)
$(TABLES): $(STAMP)
	$(BIN)/python experiments/$@.py $(ARGS)

asymmetric: $(STAMP) ## a study beyond the paper (also: robustness, estimated_prior, class_prior, networks)
$(STUDIES): $(STAMP)
	$(BIN)/python experiments/$@.py $(ARGS)

tables: $(STAMP) ## all seven tables, sharing work
	$(BIN)/python experiments/all_tables.py $(ARGS)

verify: $(STAMP) ## check that this machine gives the published results: trials run again, headlines, theory (a minute)
	@mkdir -p results/verify
	$(BIN)/pu-shift verify --report results/verify/quick.json $(ARGS)

verify-full: $(STAMP) ## the same with all seven tables, ten trials, and against the paper (about 10 minutes)
	@mkdir -p results/verify
	$(BIN)/pu-shift verify --full --out results/verify --report results/verify/full.json $(ARGS)

verify-mutants: $(STAMP) ## make mistakes on purpose, one at a time: which line of `make verify` sees each
	$(BIN)/python tools/mutants.py $(ARGS)

report: $(STAMP) ## a page and figures of the reference results (ARGS="results/all --out DIR": of others)
	$(BIN)/python experiments/report.py $(or $(ARGS),results/reference)
	$(if $(ARGS),,mv results/report/report.html docs/)

# Beside pu-shift, so that the site documents what is tested.
$(SITE): $(STAMP)
	@echo "packages: installing what the site needs from the package index"
	@$(call PIP_INSTALL,$(VENV),-e '.[docs]')
	@touch $@

site: $(SITE) ## build the documentation site in docs/_build/html (ARGS="-D plot_gallery=0": examples not run)
	$(BIN)/python -m sphinx -W --keep-going -q docs docs/_build/html $(ARGS)
	@echo "open docs/_build/html/index.html"

figures: $(STAMP) ## draw the figures of the documents that come from the examples
	$(BIN)/python tools/draw_figures.py

docs: $(DEV) ## write the parts of the documents that come from code and results
	$(BIN)/python tools/write_docs.py

$(BENCH)/.installed: setup.py requirements/bench.txt
	"$(PYTHON_PATH)" -m venv --clear $(BENCH)
	$(call PIP_INSTALL,$(BENCH),-e '.[chainer]' -r requirements/bench.txt)
	@touch $@

bench: $(BENCH)/.installed ## measure the speed side by side with peers, in an environment with them
	$(BENCH)/bin/python benchmarks/speed.py $(ARGS)

lint: $(DEV) ## check the code with ruff (lint and format)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(DEV) ## check the types with mypy
	$(BIN)/mypy

load: $(DEV) ## classify files of 10⁵ to 10⁷ rows: time and peak memory
	$(BIN)/python benchmarks/load.py $(ARGS)

scale: $(DEV) ## fit and predict up to 10⁸ rows on a Dask cluster of this machine (about 20 minutes)
	$(BIN)/python benchmarks/scale.py $(ARGS)

dist: ## build the sdist and the wheel, and check what they say and hold
	@python=$$(tools/find-python "$(PYTHON)") && $$python -m venv --clear $(RELEASE)
	$(call PIP_INSTALL,$(RELEASE),'build>=1.0' 'check-wheel-contents>=0.6' 'twine>=6.1')
	rm -rf dist build
	$(RELEASE)/bin/python -m build --outdir dist
	$(RELEASE)/bin/twine check --strict dist/*
	$(RELEASE)/bin/check-wheel-contents dist/*.whl

# In an environment that has nothing else, with nothing set, by a script that does not see the tree.
USE_WHEEL = python=$$(tools/find-python $(1)) && $$python -m venv --clear $(EMPTY) && \
	$(EMPTY)/bin/python -m pip install --quiet dist/*.whl && $(EMPTY)/bin/python -I -W error tools/use_installed.py

wheel: dist ## build the wheel, and install it and the tree into empty environments as the pages say
	$(call PIP_INSTALL,$(RELEASE),'uv>=0.8')
	$(RELEASE)/bin/python tools/run_blocks.py dist

wheel-all: dist ## install the wheel into an empty environment on every supported interpreter (PYTHONS=...)
	@failed=; absent=; for version in $(PYTHONS); do \
		tools/find-python $$version >/dev/null 2>&1 || { absent="$$absent $$version"; continue; }; \
		{ $(call USE_WHEEL,$$version); } || failed="$$failed $$version"; \
	done; \
	test -z "$$absent" || echo "not tried, no such interpreter here:$$absent"; \
	test -z "$$failed" || { echo "failed on:$$failed" >&2; exit 1; }

install-table: dist ## install the wheel by several versions of pip: the table of docs/install.md
	@python=$$(tools/find-python "$(PYTHON)") && $$python benchmarks/installing.py $(ARGS)

format: $(DEV) ## rewrite the code in the project's format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

test: lint ## run every test (the first call sets everything up; COVERAGE=1: ask for 95 % of the lines)
	$(BIN)/python -m pytest $(if $(COVERAGE),--cov=pu_shift --cov-report=term:skip-covered --cov-fail-under=95) $(ARGS)

coverage: ## run every test and ask for 95 % line coverage (slower)
	@$(MAKE) --no-print-directory test COVERAGE=1

test-bare: lint ## run the tests that use data, as on a machine without any of it and without a network
	@cache=$$(mktemp -d) && trap 'rm -rf "$$cache"' EXIT && \
		PU_SHIFT_DATA= PU_SHIFT_CACHE="$$cache" PU_SHIFT_FETCH=off \
		$(BIN)/python -m pytest $(USE_DATA) $(ARGS)

# What must work without Chainer.
$(RATIO)/.installed: setup.py pyproject.toml
	@"$(PYTHON_PATH)" -m venv --clear $(RATIO)
	@$(call PIP_INSTALL,$(RATIO),-e '.[test]')
	@touch $@

test-ratio: $(RATIO)/.installed ## run the tests of density ratios, files and the command without Chainer
	@! $(RATIO)/bin/python -c 'import chainer' 2>/dev/null || { echo "Chainer is installed in $(RATIO)" >&2; exit 1; }
	$(RATIO)/bin/python -m pytest $(RATIO_TESTS) --ignore=tests/ratios/test_deep.py $(ARGS)

test-gpu: $(DEV) ## check that CPU and GPU agree, on a machine with a CUDA card (CUPY=cupy-cuda13x)
	$(BIN)/python -c 'import cupy' 2>/dev/null || $(call PIP_INSTALL,$(VENV),'$(CUPY)')
	$(BIN)/python -m pytest -m gpu -n 0 -W default tests/gpu $(ARGS)

# CuPy's headers and NVIDIA's compiler, without the libraries that only a card needs.
GPU_COMPILE := .venv/gpu-compile
$(GPU_COMPILE)/.installed: setup.py pyproject.toml
	@"$(PYTHON_PATH)" -m venv --clear $(GPU_COMPILE)
	@echo "packages: CuPy and NVIDIA's compiler, about 1.4 GB on disk in all"
	@$(call PIP_INSTALL,$(GPU_COMPILE),-e '.[dev]' '$(CUPY)' nvidia-cuda-nvrtc-cu12 nvidia-cuda-runtime-cu12)
	@touch $@

test-gpu-compile: $(GPU_COMPILE)/.installed ## compile the kernels of training for four generations of cards; needs no card
	$(GPU_COMPILE)/bin/python -m pytest -n 0 -q -s -rs -W default tests/test_gpu_compile.py $(ARGS)

test-all: ## run the tests on every supported interpreter (PYTHONS=...) and with the oldest versions
	@failed=; absent=; for version in $(PYTHONS); do \
		echo "== Python $$version"; \
		tools/find-python $$version >/dev/null 2>&1 || { absent="$$absent $$version"; continue; }; \
		$(MAKE) --no-print-directory test PYTHON=$$version || failed="$$failed $$version"; \
	done; \
	echo "== oldest versions"; \
	$(MAKE) --no-print-directory test-oldest || failed="$$failed oldest"; \
	test -z "$$absent" || echo "not tested, no such interpreter here:$$absent"; \
	test -z "$$failed" || { echo "failed on:$$failed" >&2; exit 1; }

test-oldest: ## run the tests with the oldest supported versions of everything
	@oldest=$$(tools/find-python 3.10) && $$oldest -m venv --clear $(OLDEST)
	$(call PIP_INSTALL,$(OLDEST),-c requirements/oldest.txt -e '.[dev]')
	$(OLDEST)/bin/python -m pytest $(ARGS)

chaos: $(DEV) ## hurt runs on purpose and count what they survive (about 20 minutes)
	$(BIN)/python tools/chaos.py $(ARGS)

fuzz: $(DEV) ## feed the readers of files made-up contents (RUNS=... for each)
	PU_SHIFT_FUZZ=$(RUNS) $(BIN)/python -m pytest --timeout=0 tests/test_fuzz.py $(ARGS)

# Harmless here: chainermn, which is never imported, has CVE-2024-48206.
audit: $(DEV) ## look for unsafe code (bandit) and for known holes in the packages (pip-audit)
	@python=$$(tools/find-python "$(PYTHON)") && $$python -m venv --clear $(AUDIT)
	$(call PIP_INSTALL,$(AUDIT),'bandit[toml]>=1.7' 'pip-audit>=2.6')
	$(AUDIT)/bin/bandit -q -c pyproject.toml -r pu_shift tools experiments datasets examples benchmarks setup.py
	$(AUDIT)/bin/pip-audit --ignore-vuln CVE-2024-48206 \
		--path $$($(BIN)/python -c 'import site; print(site.getsitepackages()[0])')

clean: ## remove the virtual environments and every cache
	rm -rf .venv build dist docs/_build docs/gallery docs/generated *.egg-info .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage
	find . -name __pycache__ -prune -exec rm -rf {} +
