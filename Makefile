# Every target can be called at any time: it does what is missing, and nothing when nothing is.
# ARGS are passed on: make test ARGS="-k wheel". PYTHON chooses the interpreter that .venv is made with.

VENV := .venv
BIN := $(VENV)/bin
PINS := pyproject.toml constraints.txt

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Foliot's processes are started again and again, and compiled ones start in half the time.
unexport PYTHONDONTWRITEBYTECODE

MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run test check bench dist chaos screenshots kafka constraints clean

help: ## Show the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

run: $(VENV)/.run ## Start everything on SQLite, with a few live demo schedules
	@(scripts/build-web &); exec $(BIN)/foliot up --demo $(ARGS)

test: $(VENV)/.develop ## Run all tests, or those that ARGS select
	@scripts/test-servers
	@scripts/kafka
	@scripts/build-web
	@BIN=$(BIN) scripts/test $(ARGS)

check: $(VENV)/.develop ## Check format, lint, types, import rules and names
	@$(BIN)/ruff format --check
	@$(BIN)/ruff check
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/check_names.py
	@scripts/check-web

bench: $(VENV)/.bench ## Run the benchmarks, with the peers that they compare with
	@scripts/test-servers
	@$(BIN)/python -m bench $(ARGS)

dist: $(VENV)/.dist ## Build the UI, then the source distribution and the wheel, into dist
	@scripts/build-web
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation

chaos: $(VENV)/.develop ## Put real clusters under random faults, with each lease provider, and simulated ones
	@scripts/test-servers
	@for provider in database etcd redis; do $(BIN)/python -m tests.chaos --provider $$provider $(ARGS) || exit $$?; done
	@$(BIN)/python -m tests.simulation --histories 500

screenshots: $(VENV)/.develop ## Take the pictures in docs/images anew
	@scripts/test-servers
	@$(BIN)/python scripts/screenshots

kafka: ## Fetch Apache Kafka for the tests, where Maven can
	@scripts/kafka

constraints: ## Resolve all dependencies anew and rewrite constraints.txt
	@scripts/constraints

clean: ## Remove what the other targets made; databases stay
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis web/node_modules web/build.log src/foliot/web_dist* .kafka
	@find . -name .git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

# A link to an interpreter that is gone counts as missing, so an upgrade of the system's Python heals itself.
$(BIN)/python:
	@scripts/make-venv $(VENV)

$(VENV)/.run: $(PINS) | $(BIN)/python
	@echo "Installing Foliot into $(VENV)" >&2
	@$(BIN)/python -m pip install -q -c constraints.txt -e .
	@touch $@

# Holds all that .run needs as well, so `make run` after `make test` installs nothing.
$(VENV)/.develop: $(PINS) | $(BIN)/python
	@echo "Installing Foliot and its tools for tests and checks into $(VENV)" >&2
	@$(BIN)/python -m pip install -q -c constraints.txt -e . --group test --group check
	@touch $(VENV)/.run $(VENV)/.dist $@

$(VENV)/.dist: $(PINS) | $(BIN)/python
	@echo "Installing what builds distributions into $(VENV)" >&2
	@$(BIN)/python -m pip install -q -c constraints.txt --group dist
	@touch $@

$(VENV)/.bench: $(VENV)/.develop
	@echo "Installing the peers of the benchmarks into $(VENV)" >&2
	@$(BIN)/python -m pip install -q -c constraints.txt -e . --group bench
	@touch $@
