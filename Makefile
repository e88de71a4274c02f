# Two commands do everything on a machine that has Python, git and make: `make run` and `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

PORT    ?= 8080
SECONDS ?= 180
FAST    = $(addprefix tests/,contracts extraction operations readme/test_public_api.py relations text unit workspace)
# Each process starts its own servers, and takes over tests from the others when it is done; one process more than
# there are cores uses the time in which tests wait.
WORKERS ?= $(shell echo $$(($$(nproc 2>/dev/null || echo 2) + 1)))
PYTEST = $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

.PHONY: help run demo screenshots example test check test-fast lint types contracts tests test-integrations test-neo4j chaos coverage api walks vendor bench bench-latency docs lock audit clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.installed-server ## set up and serve REST and MCP on the embedded store, and say how to connect (PORT=8080)
	@echo 'Starting the service …'
	@exec $(BIN)/python -m alma.rest --port $(PORT)

demo: $(VENV)/.installed-server ## serve the dashboard on a month of three agents' work (PORT=8080)
	@exec $(BIN)/alma demo --port $(PORT)

example: $(VENV)/.installed ## run the first example of the README
	$(BIN)/python examples/quickstart.py

test: $(VENV)/.installed-dev ## set up, start the servers that the tests need, and check everything
	$(MAKE) --no-print-directory check

check: lint types contracts tests ## what `make test` runs, without setting up

test-fast: lint types ## check style, types and what needs neither a server nor a model, in about a minute
	$(PYTEST) -m "not slow" $(FAST)

lint: $(VENV)/.installed-dev ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(VENV)/.installed-dev ## check types
	$(BIN)/mypy

contracts: $(VENV)/.installed-dev ## check which package may import which
	$(BIN)/lint-imports

tests: $(VENV)/.installed-dev ## run all tests; what fails is run once more, and the summary names it as RERUN
	$(PYTEST) --reruns 1 -r aR

test-integrations: $(VENV)/bin/python ## test what plugs into large frameworks, each in its own environment (ONLY="crewai strands" chooses)
	$(BIN)/python tests/frameworks/run.py $(ONLY)

NEO4J = $(VENV)/neo4j
NEO4J_TESTS = tests/graph tests/contracts/test_graphs.py

test-neo4j: $(VENV)/.installed-dev ## run the tests of graphs on a real Neo4j: of Maven's, or that of NEO4J_URI, whose data they delete
	@[ -n "$$NEO4J_URI" ] || [ -d $(NEO4J)/jars ] || $(MAKE) --no-print-directory $(NEO4J)/jars
	NEO4J_JARS=$$([ -n "$$NEO4J_URI" ] || echo $(NEO4J)/jars) $(BIN)/python -m pytest $(NEO4J_TESTS)

$(NEO4J)/jars:
	@command -v mvn >/dev/null || { echo "A Neo4j is fetched by Maven, which is missing: install it (apt-get install maven), or set NEO4J_URI."; exit 1; }
	@rm -rf $(NEO4J)
	@mvn --batch-mode --quiet --file tests/support/neo4j/pom.xml dependency:copy-dependencies -DoutputDirectory=$(abspath $(NEO4J))/part \
		|| { rm -rf $(NEO4J); echo "Maven cannot fetch Neo4j: reach its repository, or set NEO4J_URI."; exit 1; }
	@mv $(NEO4J)/part $@

chaos: $(VENV)/.installed-dev ## kill relays, writers and engines at random, then compare every engine with the store (SECONDS=180)
	ALMA_CHAOS_SECONDS=$(SECONDS) $(BIN)/python -m pytest -o timeout=0 --capture=no tests/faults/test_chaos.py

coverage: $(VENV)/.installed-dev ## run all tests, measure which lines they run, and fail below 90 %
	$(PYTEST) --cov --cov-report=term:skip-covered

api: $(VENV)/.installed-dev ## accept the public API as it is now; commit what changes
	$(BIN)/python -m tests.readme.public_api
	$(BIN)/python clients/typescript/generate.py

walks: $(VENV)/.installed-dev ## print every function that one retrieve and one learn call
	$(BIN)/python -m pytest -q --capture=no tests/walks

bench: $(VENV)/.installed-dev ## measure the stores
	$(BIN)/python bench/storage.py

bench-latency: $(VENV)/.installed-dev ## measure searches over many memories
	$(BIN)/python bench/latency.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "ALMA needs Python 3.11 or newer; name one with  make PYTHON=python3.12 ..."; exit 1; }
	@# Debian ships venv apart from Python.
	@echo 'Making a virtual environment in $(VENV) …'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv $(VENV); }

# Everything is installed by the hashes in requirements/, and the project itself without looking for anything else.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check
PROJECT = $(INSTALL) --no-deps --no-build-isolation -e .

# The number of packages that a file of requirements installs.
SAY = @printf 'Installing ALMA and %s packages into $(VENV), once; this takes a minute or two …\n' "$$(grep -c '^[a-z]' $(1))"

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml requirements/default.txt
	$(call SAY,requirements/default.txt)
	@$(INSTALL) --require-hashes -r requirements/default.txt && $(PROJECT)
	@touch $@

$(VENV)/.installed-server: $(VENV)/bin/python pyproject.toml requirements/server.txt
	$(call SAY,requirements/server.txt)
	@$(INSTALL) --require-hashes -r requirements/server.txt && $(PROJECT)
	@touch $@

$(VENV)/.installed-dev: $(VENV)/bin/python pyproject.toml requirements/dev.txt
	$(call SAY,requirements/dev.txt)
	@$(INSTALL) --require-hashes -r requirements/dev.txt && $(PROJECT)
	@# The tests of the dashboard drive Debian's Chromium.
	@[ -x /usr/bin/chromium ] || { apt-get update && apt-get install -y chromium; } \
		|| echo "Chromium is missing: the tests of the dashboard will fail until it is installed (apt-get install chromium)."
	@touch $@

docs: $(VENV)/.installed-dev ## build the site of the documentation into build/site, with strict links
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo 'The site is in build/site: open build/site/index.html, or  $(BIN)/mkdocs serve'

screenshots: $(VENV)/.installed-dev ## take the screenshots of the documentation anew, from the demonstration
	$(BIN)/python docs/take_screenshots.py

vendor: $(VENV)/.installed-dev ## fetch the libraries of the dashboard from npm anew
	$(BIN)/python requirements/vendor.py

lock: $(VENV)/bin/python ## pin the dependencies anew after pyproject.toml changed (LOCK=--upgrade takes the newest versions)
	$(INSTALL) uv==0.13.8
	$(BIN)/python requirements/lock.py $(LOCK)

audit: $(VENV)/bin/python ## look up the pinned packages in PyPI's list of known vulnerabilities (needs pypi.org)
	$(INSTALL) pip-audit==2.10.1
	@for file in $(sort $(wildcard requirements/*.txt)); do \
		echo "$$file"; $(BIN)/pip-audit --disable-pip --require-hashes --strict --progress-spinner off -r $$file || exit 1; done

clean: ## delete what was installed, built and cached
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage* build dist
