# What you can do here; `make help` lists it. Needs Python 3.11 or newer, git and make; everything else goes to .venv.

# The system's own Python first: distributions optimise theirs for speed, version managers mostly do not.
PYTHON ?= $(or $(shell /usr/bin/python3 -c 'import ensurepip' 2> /dev/null && echo /usr/bin/python3),python3)
WORKERS ?= 3
BIN := .venv/bin

.PHONY: help run test lint types suite coverage bench chaos gallery format lock ready-for-run ready-for-test
.NOTPARALLEL:
.DEFAULT_GOAL := help

help: ## list what there is
	@echo "Broadsheet. make …"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' Makefile

run: ready-for-run ## set up, start on http://127.0.0.1:8000 with two sample issues, stop with Ctrl-C (ARGS="--port 8001")
	@exec $(BIN)/broadsheet run --demo $(ARGS)

test: lint types suite ## everything the CI runs

lint: ready-for-test ## style, formatting, and who may import whom
	@echo "— ruff check: style and likely mistakes"
	@$(BIN)/ruff check --quiet
	@echo "— ruff format: layout"
	@$(BIN)/ruff format --check --quiet || { $(BIN)/ruff format --check; echo "make format repairs this."; exit 1; }
	@echo "— lint-imports: the floors of the house"
	@$(BIN)/lint-imports --no-logo > .venv/floors.txt || { cat .venv/floors.txt; exit 1; }

types: ready-for-test ## mypy --strict
	@echo "— mypy: types"
	@$(BIN)/mypy --no-error-summary

suite: ready-for-test ## the tests (ARGS="tests/house -k words" runs some)
	@echo "— pytest: behaviour"
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(ARGS),$(ARGS),--durations=5)

coverage: ready-for-test ## how much of app/ the tests reach (90 % at least; counting takes as long again)
	@$(BIN)/pytest -q -n $(WORKERS) --dist loadfile --cov

gallery: ready-for-test ## take the pictures of docs/gallery: every mail and page (needs Chromium)
	@$(BIN)/python -m tests.gallery $(ARGS)

bench: ready-for-test ## how fast it is here (ARGS="sending" measures one of startup, rendering, imports, api, signups, sending, distance, pace, subscribe, memory, million)
	@$(BIN)/python -m bench $(ARGS)

chaos: ready-for-test ## every fault that must lose nobody, with a table (ARGS="F3 F11 --seed 7"; takes an hour or so)
	@$(BIN)/python -m chaos $(ARGS)

format: ready-for-test ## let ruff lay out and repair what it can
	@$(BIN)/ruff check --fix --quiet; $(BIN)/ruff format --quiet

# Run by hand after a change to the dependencies in pyproject.toml; `make lock UPGRADE=--upgrade` takes the newest.
COMPILE = uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-header $(UPGRADE)

lock: ## pin the dependencies anew, with hashes (needs uv in PATH)
	@command -v uv > /dev/null || { echo "make lock needs uv: https://docs.astral.sh/uv/"; exit 1; }
	@$(COMPILE) --extra postgres --group dev pyproject.toml -o requirements-dev.lock
	@$(COMPILE) --extra postgres -c requirements-dev.lock pyproject.toml -o requirements.lock
	@echo hatchling | $(COMPILE) -c requirements-dev.lock - -o requirements-build.lock

# The first of these that is new enough makes .venv; when .venv is there and current, this takes a tenth of a second.
ready-for-run ready-for-test:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	    if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; then \
	        exec $$python .ci/bootstrap.py $(@:ready-for-%=%); \
	    fi; \
	done; \
	echo "Broadsheet needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1 || echo missing)." >&2; \
	echo "Name another one like this: make PYTHON=/path/to/python3.12 …" >&2; exit 1
