# Everything a newcomer needs: `make demo`, `make test`. `make help` lists the rest.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all fuzz lint bench experiments lock clean

VENV  := .venv
BIN   := $(VENV)/bin
STAMP := $(VENV)/.headway-setup
# Set PYTHON to choose the interpreter; otherwise the first one of these that is 3.11 or later.
PYTHON ?=

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Without Java everything but the engine 'spark' works, so its absence is said and does not stop anybody.
setup: $(STAMP)  ## create .venv with the locked dependencies, Java 17 where it can, and what makes Spark start sooner
	@sh scripts/java.sh && $(BIN)/headway prepare --quiet || true

$(STAMP): requirements.lock pyproject.toml experiments/pyproject.toml
	@set -e; if [ ! -x $(BIN)/python ]; then \
	  for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	    if "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	  done; \
	  if [ -z "$$found" ]; then echo "make: Python 3.11 or later is needed; name one with PYTHON=..." >&2; exit 1; fi; \
	  echo "creating $(VENV) with $$found"; "$$found" -m venv $(VENV) || { \
	    rm -rf $(VENV); echo "make: '$$found -m venv' failed; on Debian: apt-get install python3-venv" >&2; exit 1; }; \
	fi
	@echo "installing the locked dependencies with all extras; PySpark alone is 450 MB, so the first time takes a while"
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable . --editable ./experiments
	@touch $(STAMP)

demo: setup  ## watch a border for twelve seconds on Spark: a network with five outputs on generated data
	@$(BIN)/headway check examples/border-watch/network.yaml --engine spark
	@echo
	@$(BIN)/headway run examples/border-watch/network.yaml

lint: setup  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: setup  ## all checks: ruff, mypy strict, pytest; long searches in their quick form
	$(BIN)/python -m scripts.run_tests

test-all: test  ## the same, then the long forms: deep searches, 200 kills on Spark, 100,000 fuzz cases; takes hours
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m "not slow and not session and not alone"
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m "slow or not slow" tests/behaviour/test_on_spark.py
	$(BIN)/python -m pytest -m slow -v --ignore tests/behaviour/test_on_spark.py

fuzz: setup  ## 100,000 fuzz cases; SEED=n for others
	$(BIN)/python -m tests.fuzz --cases 100000 --seed $(or $(SEED),15)

bench: setup  ## the benchmarks, as ratios to plain pyarrow
	$(BIN)/python -m benchmarks

experiments: setup  ## the papers' experiments in full, and docs/experiments.md from their results
	$(BIN)/headway experiment all --out out/experiments --page docs/experiments.md

lock: setup  ## write the versions that are installed now to requirements.lock
	@head -2 requirements.lock > requirements.lock.new
	@$(BIN)/python -m pip list --format=freeze --exclude-editable --exclude pip --exclude setuptools --exclude wheel \
	  >> requirements.lock.new
	@mv requirements.lock.new requirements.lock

clean:  ## remove .venv, caches and build results
	rm -rf $(VENV) build dist experiments/dist out .mypy_cache .ruff_cache .pytest_cache .hypothesis headway.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
