# Two commands do everything on a machine that has Python, git and make:
#   make run    set up and serve REST and MCP on the embedded store, and say how to connect (PORT=8080)
#   make test   set up, start the real servers the tests need, check everything
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

PORT   ?= 8080

.PHONY: run example test check lint types contracts tests bench bench-latency lock clean

run: $(VENV)/.installed-server
	@exec $(BIN)/python -m alma.rest --port $(PORT)

example: $(VENV)/.installed
	$(BIN)/python examples/quickstart.py

test: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory check

check: lint types contracts tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.installed-dev
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev
	$(BIN)/lint-imports

tests: $(VENV)/.installed-dev
	# Each process starts servers of its own; a file stays with one.
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile

bench: $(VENV)/.installed-dev
	$(BIN)/python bench/storage.py

bench-latency: $(VENV)/.installed-dev
	$(BIN)/python bench/latency.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "ALMA needs Python 3.11 or newer; name one with  make PYTHON=python3.12 ..."; exit 1; }
	@# Debian ships venv apart from Python.
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv $(VENV); }

# Everything is installed by the hashes in requirements/, and the project itself without looking for anything else.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
PROJECT = $(INSTALL) --no-deps --no-build-isolation -e .

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml requirements/default.txt
	$(INSTALL) --require-hashes -r requirements/default.txt && $(PROJECT)
	@touch $@

$(VENV)/.installed-server: $(VENV)/bin/python pyproject.toml requirements/server.txt
	$(INSTALL) --require-hashes -r requirements/server.txt && $(PROJECT)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml requirements/dev.txt
	$(INSTALL) --require-hashes -r requirements/dev.txt && $(PROJECT)
	@touch $@

# Pins everything anew after pyproject.toml was changed; LOCK=--upgrade takes the newest versions.
lock: $(VENV)/bin/python
	$(INSTALL) uv==0.13.8
	$(BIN)/python requirements/lock.py $(LOCK)

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
