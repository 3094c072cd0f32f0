# Two commands do everything on a machine that has only Python (>= 3.11) and make:
#   make quickstart     set up .venv and run the main job
#   make test           set up .venv with the development tools and run the whole suite
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
STAMPS := pyproject.toml constraints.txt
EXTRAS ?= serve ray hf
SLOW   ?= not slow

.PHONY: install quickstart test test-slow check format clean

install: $(VENV)/.installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kglm needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# torch goes first and alone, so that no other package can pull another build of it.
$(VENV)/.installed: $(STAMPS) | $(BIN)/python
	@echo "installing kglm into $(VENV) (a few minutes; 2.1 GB on disk, most of it torch and the extras)"
	$(PIP) "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(PIP) -e .
	@for extra in $(EXTRAS); do \
	  $(PIP) -e ".[$$extra]" || echo "the extra $$extra does not install on this machine; kglm works without it"; \
	done
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) -e '.[dev]'
	@touch $@

quickstart: install
	$(BIN)/kglm quickstart

test: $(VENV)/.installed-dev check
	$(BIN)/python -m pytest -n 2 -m "$(SLOW)"

test-slow: SLOW := slow
test-slow: test

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
