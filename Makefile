# Everything sets up what it needs in .venv: python3 (3.10 or later), a C++20 compiler and a package index are enough.
# `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INTEROP := $(VENV)-interop/bin/python -m
WHEELS := build/wheels
PROSE := README.md CONTRIBUTING.md CHANGELOG.md docs src benchmarks native examples
NATIVE := $(shell find native -name '*.cpp' -o -name '*.hpp')
SOURCES := pyproject.toml CMakeLists.txt $(NATIVE) $(shell find src -name '*.py' -o -name '*.pyi')
# Tests to run, and how: make test K=screen, make quick TESTS=tests/kdtree PYTEST='-x -n 0'
TESTS ?= tests
PYTEST ?= -n 2
INSTALLED := $(addprefix $(VENV)/.,installed quick tests lint native docs)
# What builds native/, which an import of an editable install has to find again, by a pip that knows -C.
BUILD := 'pip>=23.1' 'scikit-build-core>=0.10' 'nanobind>=2.4' 'cmake>=3.25' ninja
PYTEST_OPTIONS = $(PYTEST) --dist worksteal $(if $(K),-k '$(K)')
PYTEST_RUN = $(BIN)/python -m pytest $(PYTEST_OPTIONS)

.PHONY: help demo quick test test-all test-rest exhaustive interop kills mutants lint clang tidy sanitize docs bench report wheel develop clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/.installed ## make the exact k-NN graph of 10,000 real descriptors, and check it
	$(BIN)/python examples/demo.py

quick: $(VENV)/.quick ## one case of each of the core's tests, without torch and Triton
	$(PYTEST_RUN) --brief -m 'not (full or bench or interop or interpreter or process)' $(TESTS)

test: $(VENV)/.tests ## the tests: each value of each parameter meets each value of each other one
	$(PYTEST_RUN) -m 'not (full or bench or interop)' $(TESTS)
	$(BIN)/python -m pytest --pyargs tonari --doctest-modules

test-all: test test-rest ## the tests, then the rest of them

test-rest: $(VENV)/.tests ## the tests in which every three values meet, and those of the benchmarks
	$(PYTEST_RUN) -m '(full or bench) and not (exhaustive or interop)' $(TESTS)

exhaustive: $(VENV)/.tests ## all combinations of compiled code that test-all leaves out
	$(PYTEST_RUN) -m 'exhaustive and not (interpreter or interop)' $(TESTS)

interop: $(VENV)-interop/.installed ## the libraries that take graphs, and those that tonari looks like, in an environment of their own: .venv-interop
	$(INTEROP) pytest $(PYTEST_OPTIONS) -m interop -rs $(TESTS)

kills: $(VENV)/.tests ## end builds of graphs at every call that writes, and resume them: about ten minutes
	TONARI_KILLS=all $(PYTEST_RUN) -m full tests/shards/test_kills.py

mutants: $(VENV)/.tests $(VENV)/.native ## put the faults of tests/mutants in, one at a time, and see that the tests find each: two hours; ROOM=api, say: those of a room
	$(BIN)/python -m tests.mutants $(if $(ROOM),--room $(ROOM))

lint: $(VENV)/.lint ## ruff, mypy, the rooms' contract of imports, the format of native/, spelling and phrases
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src:. $(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/codespell $(PROSE)
	$(BIN)/python .ci/words

# A build folder by one of CMakePresets.json, with the virtual environment's tools.
CONFIGURE = cmake -DPython_EXECUTABLE="$(abspath $(BIN))/python" --preset

clang: $(VENV)/.native ## native/ read by clang++, warnings as errors
	$(CONFIGURE) clang
	$(BIN)/python .ci/clang_warnings build/clang

tidy: $(VENV)/.native ## clang-tidy over native/, which takes minutes; needs clang++
	$(CONFIGURE) clang
	$(BIN)/python $(BIN)/run-clang-tidy.py -quiet -clang-tidy-binary $(BIN)/clang-tidy -p build/clang '^$(CURDIR)/native/'

sanitize: $(VENV)/.tests $(VENV)/.native ## native code's tests under GCC's address, undefined-behaviour and thread sanitizers
	for preset in asan tsan; do \
	  $(CONFIGURE) $$preset && $(BIN)/cmake --build --preset $$preset && $(BIN)/ctest --preset $$preset || exit 1; \
	done

docs: $(VENV)/.docs ## the site with the reference, into build/site; warnings are errors; needs Python 3.11
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/site

bench: $(VENV)/.bench ## the CPU's tables of docs/benchmarks.md, against the peers
	$(BIN)/python -m benchmarks run exact_cpu
	$(BIN)/python -m benchmarks run select
	$(BIN)/python -m benchmarks run kdtree --case 'sift-d[!2]*' --case magnitudes-d10 --case build-d10
	$(BIN)/python -m benchmarks run nn_descent --case sift-100k

wheel: ## a wheel in dist/, tried without a compiler; PYTHON: 3.12 or later for abi3; ARCH=aarch64: cross-compiled, tried under QEMU
	.ci/wheel $(PYTHON) dist $(ARCH)

report: $(BIN)/python ## the tables of README.md and docs, written from the rows in benchmarks/results
	$(BIN)/python -m benchmarks report

develop: $(BIN)/python ## an editable install that rebuilds native/ when it is imported, and what all other targets need
	$(PIP) $(BUILD)
	$(PIP) --no-build-isolation -C build-dir=build/editable -C editable.rebuild=true -C editable.verbose=false \
	  --editable '.[test,lint,native,docs]'
	touch $(VENV)/.editable $(INSTALLED)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# An editable install stays: what is edited is imported, and `make develop` repeats it.
ifeq ($(wildcard $(VENV)/.editable),)
$(VENV)/.installed: $(WHEELS)/.built
	$(PIP) --force-reinstall --no-deps $(WHEELS)/*.whl
	$(PIP) tonari
	touch $@
endif

# native/ is compiled once for all environments.
$(WHEELS)/.built: $(SOURCES) | $(BIN)/python
	rm -rf $(WHEELS)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir $(WHEELS) .
	touch $@

# Away from .venv, since these libraries bring many others, of versions that they choose.
$(VENV)-interop/.installed: $(WHEELS)/.built
	$(PYTHON) -m venv $(VENV)-interop
	$(INTEROP) pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(WHEELS)/*.whl
	$(INTEROP) pip install --quiet --disable-pip-version-check 'tonari[interop]'
	touch $@

# What is installed tells its extras: nothing is compiled again for them.
$(VENV)/.quick $(VENV)/.tests $(VENV)/.lint $(VENV)/.native $(VENV)/.docs $(VENV)/.bench: $(VENV)/.installed
	$(PIP) 'tonari[$(EXTRA)]'
	touch $@
$(VENV)/.quick: EXTRA := test-core
$(VENV)/.tests: EXTRA := test
$(VENV)/.lint: EXTRA := lint
$(VENV)/.native: EXTRA := native
$(VENV)/.docs: EXTRA := docs
$(VENV)/.bench: EXTRA := bench

clean: ## remove what was built and installed here
	rm -rf build $(VENV) $(VENV)-interop $(VENV)-quick demo-output
