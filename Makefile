# understudy: `make demo` and `make test` work on a fresh machine with Python 3.11 or newer.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DEMO   ?= demo
# Tests start hundreds of processes and workers; each would compile every module again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo java quick test test-all lint bench site docs clean browser

help:
	@echo "make demo      install, release a synthetic copy of a sample table, verify it"
	@echo "make quick     at every save: ruff and the quick tests of every room (under a minute on two cores)"
	@echo "make test      install, lint, run the tests (under five minutes on two cores)"
	@echo "make test-all  the slow tests and all examples too, and the type checker"
	@echo "make lint      ruff and pyright"
	@echo "make bench     benchmarks; see docs/benchmarks.md"
	@echo "make docs      build the documentation into site/, without a warning"
	@echo "make clean     remove the environment and everything built"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "understudy needs Python 3.11 or newer; this is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python's venv module is missing; on Debian or Ubuntu: apt-get install python3-venv"; rm -rf $(VENV); exit 2; }

# The stamps say what is installed; they are older than pyproject.toml when that has changed.
$(VENV)/.base: pyproject.toml | $(BIN)/python
	@echo "Installing understudy into $(VENV) (about a minute, once) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@echo "Installing understudy and its development tools into $(VENV) (about a minute, once) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/.base

demo: $(VENV)/.base
	@rm -rf $(DEMO)
	@$(BIN)/understudy demo $(DEMO)

quick: $(VENV)/.dev
	$(BIN)/ruff check src tests bench tools
	$(BIN)/python -m pytest -n auto --dist worksteal --quick -m "not slow"

test: $(VENV)/.dev browser
	$(BIN)/ruff check src tests bench tools
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

# The page's tests drive Debian's Chromium; where it is not and cannot be installed, they are skipped.
browser:
	@command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && \
	    { timeout 300 apt-get install -y -qq chromium >/dev/null 2>&1 || \
	      { timeout 120 apt-get update -qq >/dev/null 2>&1 && \
	        timeout 300 apt-get install -y -qq chromium >/dev/null 2>&1; }; }; } || \
	  echo "There is no Chromium: the tests of the page in a browser are skipped. On Debian: apt-get install chromium"

# Spark's tests need Java; where it is not and cannot be installed, they are skipped and say so.
java:
	@command -v java >/dev/null 2>&1 || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && \
	    timeout 300 apt-get install -y -qq default-jre-headless >/dev/null 2>&1; } || \
	  echo "There is no Java: the tests of Spark are skipped. On Debian: apt-get install default-jre-headless"

test-all: lint java browser
	$(BIN)/python -m pytest -n auto --dist worksteal --thorough

lint: $(VENV)/.dev
	$(BIN)/ruff check src tests bench tools
	$(BIN)/ruff format --check src tests bench tools
	$(BIN)/pyright

bench: $(VENV)/.dev
	$(BIN)/python -m bench

site: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

docs: site
	$(BIN)/python -m pytest tests/docs -m "not slow"
	@echo "The pages are in site/index.html. Their search needs a server: $(BIN)/mkdocs serve, or"
	@echo "$(BIN)/python -m http.server --directory site. make test-all runs their code."

clean:
	rm -rf $(VENV) $(DEMO) build dist site .pytest_cache .ruff_cache .hypothesis bench/out
