# make demo and make test need Python 3.11 or newer and make, nothing else; both set up .venv themselves.

BIN := .venv/bin
CODE := $(wildcard src tests benchmarks examples docs)

# Where it is set, each of the hundreds of processes that the tests start would compile all modules again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-long fuzz hostile docs bench bench-peers bench-network clean .venv

help:  ## this list
	@awk -F ':.*## ' '/^[a-z.-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

demo: .venv/installed  ## learn one game, play the next ones better: about two minutes, ends with a report
	@$(BIN)/gamelore demo

test: .venv/installed  ## format, lint, types and the whole suite
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy --strict
	$(BIN)/pytest -n 2 --dist loadgroup --timeout 900

test-fast: .venv/installed  ## the inner loop: the quick tests, in under a minute
	$(BIN)/pytest -n 2 --dist loadgroup -q -m "not slow and not long"

test-long: .venv/installed  ## about an hour: the claims of both papers reproduced, the largest sheets
	$(BIN)/pytest -q -m long

fuzz: .venv/installed  ## look for bugs with random examples: MINUTES=10 for each fuzzer, FUZZERS="programs parser", SEED=1
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZERS) --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

hostile: .venv/installed  ## floods, poisoned imports, hostile messages and pages, kills ..: MINUTES=10 for each, FUZZERS=kills, SEED=1
	PYTHONPATH=tests $(BIN)/python -m fuzz $(FUZZERS) --hostile --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

docs: .venv/installed-docs  ## the documentation site in site/, with links and references checked; open site/index.html
	rm -rf docs/tutorials/knowledge.db docs/tutorials/series
	$(BIN)/jupytext --quiet --to ipynb docs/tutorials/*.py
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/jupyter nbconvert --log-level=ERROR --execute --to markdown docs/tutorials/*.ipynb
	$(BIN)/zensical build --strict --clean

bench: .venv/installed-bench  ## speed, side by side with OpenSpiel
	$(BIN)/python benchmarks/speed.py

bench-peers: .venv/installed-bench  ## playouts of eleven public games beside OpenSpiel; ARGS="--sheets FOLDER", see peers.py
	$(BIN)/python benchmarks/peers.py $(ARGS)

bench-network: .venv/installed  ## what a turn over the network costs; ARGS="--matches 300 --repeats 1"
	$(BIN)/python benchmarks/network.py $(ARGS)

clean:  ## remove .venv and everything else that was built
	rm -rf .venv build dist site docs/tutorials/*.ipynb docs/tutorials/*.md docs/tutorials/*_files docs/tutorials/knowledge.db docs/tutorials/series .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

.venv: .venv/installed  ## the virtual environment with gamelore and its tools

# The stamps say that everything in pyproject.toml is installed; a changed one installs again.
.venv/installed: pyproject.toml
	@PYTHON="$(PYTHON)" sh .ci/setup dev
	@touch $@

.venv/installed-bench: .venv/installed
	@PYTHON="$(PYTHON)" sh .ci/setup dev,bench
	@touch $@

.venv/installed-docs: .venv/installed
	@PYTHON="$(PYTHON)" sh .ci/setup dev,docs
	@touch $@
