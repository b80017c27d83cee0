# Needs make and Python 3.11, 3.12 or 3.13; everything else goes into .venv.

ifndef PYTHON
PYTHON := $(shell for python in python3.13 python3.12 python3.11 python3; do \
	"$$python" -c 'import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	2>/dev/null && echo "$$python" && break; done)
endif

BIN := .venv/bin

.PHONY: demo test lint docs bench clean

demo: .venv/installed-demo
	$(BIN)/sidelight demo

test: .venv/installed-dev
	$(BIN)/pytest

lint: .venv/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: .venv/installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Hours: every model on every real set, in the folder that SIDELIGHT_DATA names.
bench: .venv/installed-dev
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.options
	$(BIN)/python -m benchmarks.uncertainty
	$(BIN)/python -m benchmarks.postdata
	$(BIN)/python -m benchmarks.models --out benchmarks/models.jsonl

# One stamp for each extra: installed anew when what it was made from has changed.
.venv/installed-%: pyproject.toml constraints.txt | $(BIN)/pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--constraint constraints.txt --editable '.[$*]'
	@touch $@

$(BIN)/pip:
	@test -n "$(PYTHON)" || { \
		echo "No Python 3.11, 3.12 or 3.13 with venv was found; install one, or name it:" \
		"make PYTHON=/path/to/python" >&2; exit 1; }
	$(PYTHON) -m venv .venv

clean:
	rm -rf .venv site dist build sidelight-demo \
		.pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
