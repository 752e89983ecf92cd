# Every target installs everything that it needs in .venv. It needs python3 (3.10 or later), a C++20 compiler and a package index.
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
# Choose tests and options: make test K=screen, make quick TESTS=tests/kdtree PYTEST='-x -n 0'
TESTS ?= tests
PYTEST ?= -n 2
INSTALLED := $(addprefix $(VENV)/.,installed quick tests lint native docs)
# The tools that build native/, which an import of an editable install must find again, and a pip that supports -C.
BUILD := 'pip>=23.1' 'scikit-build-core>=0.10' 'nanobind>=2.4' 'cmake>=3.25' ninja
PYTEST_OPTIONS = $(PYTEST) --dist worksteal $(if $(K),-k '$(K)')
PYTEST_RUN = $(BIN)/python -m pytest $(PYTEST_OPTIONS)

.PHONY: help demo quick test test-all test-rest exhaustive interop kills mutants lint clang tidy sanitize docs bench report wheel develop clean

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

demo: $(VENV)/.installed ## build the exact k-NN graph of 10,000 real descriptors, and check it
	$(BIN)/python examples/demo.py

quick: $(VENV)/.quick ## one case of each of the core's tests, without torch and Triton
	$(PYTEST_RUN) --brief -m 'not (full or bench or interop or interpreter or process)' $(TESTS)

test: $(VENV)/.tests ## the tests: every two values of different parameters are tested together
	$(PYTEST_RUN) -m 'not (full or bench or interop)' $(TESTS)
	$(BIN)/python -m pytest --pyargs tonari --doctest-modules

test-all: test test-rest ## the tests, then all other tests

test-rest: $(VENV)/.tests ## the tests of every three values together, and the tests of the benchmarks
	$(PYTEST_RUN) -m '(full or bench) and not (exhaustive or interop)' $(TESTS)

exhaustive: $(VENV)/.tests ## all combinations of compiled code that test-all does not test
	$(PYTEST_RUN) -m 'exhaustive and not (interpreter or interop)' $(TESTS)

interop: $(VENV)-interop/.installed ## tests with libraries that take graphs or have lookalikes, in a separate environment: .venv-interop
	$(INTEROP) pytest $(PYTEST_OPTIONS) -m interop -rs $(TESTS)

kills: $(VENV)/.tests ## kill builds of graphs at every call that writes, and resume them: about ten minutes
	TONARI_KILLS=all $(PYTEST_RUN) -m full tests/shards/test_kills.py

mutants: $(VENV)/.tests $(VENV)/.native ## insert the faults of tests/mutants, one at a time, and check that tests find each: two hours; only one room: ROOM=api
	$(BIN)/python -m tests.mutants $(if $(ROOM),--room $(ROOM))

lint: $(VENV)/.lint ## ruff, mypy, the allowed imports between rooms, the format of native/, spelling, and phrases to avoid
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src:. $(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)
	$(BIN)/codespell $(PROSE)
	$(BIN)/python .ci/words

# A build folder by one of CMakePresets.json, with the virtual environment's tools.
CONFIGURE = cmake -DPython_EXECUTABLE="$(abspath $(BIN))/python" --preset

clang: $(VENV)/.native ## compile native/ with clang++; warnings are errors
	$(CONFIGURE) clang
	$(BIN)/python .ci/clang_warnings build/clang

tidy: $(VENV)/.native ## check native/ with clang-tidy, which takes minutes; needs clang++
	$(CONFIGURE) clang
	$(BIN)/python $(BIN)/run-clang-tidy.py -quiet -clang-tidy-binary $(BIN)/clang-tidy -p build/clang '^$(CURDIR)/native/'

sanitize: $(VENV)/.tests $(VENV)/.native ## tests of native code with GCC's address, undefined-behaviour and thread sanitizers
	for preset in asan tsan; do \
	  $(CONFIGURE) $$preset && $(BIN)/cmake --build --preset $$preset && $(BIN)/ctest --preset $$preset || exit 1; \
	done

docs: $(VENV)/.docs ## build the site with the reference in build/site; warnings are errors; needs Python 3.11
	$(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs build/site

bench: $(VENV)/.bench ## measure the CPU's tables of docs/benchmarks.md, with the peers
	$(BIN)/python -m benchmarks run exact_cpu
	$(BIN)/python -m benchmarks run select
	$(BIN)/python -m benchmarks run kdtree --case 'sift-d[!2]*' --case magnitudes-d10 --case build-d10
	$(BIN)/python -m benchmarks run nn_descent --case sift-100k

wheel: ## build a wheel in dist/, and test it without a compiler; PYTHON: 3.12 or later for abi3; ARCH=aarch64: cross-compiled, tested under QEMU
	.ci/wheel $(PYTHON) dist $(ARCH)

report: $(BIN)/python ## write the tables of README.md and docs from the rows in benchmarks/results
	$(BIN)/python -m benchmarks report

develop: $(BIN)/python ## make an editable install, which rebuilds native/ when it is imported, with the tools of other targets
	$(PIP) $(BUILD)
	$(PIP) --no-build-isolation -C build-dir=build/editable -C editable.rebuild=true -C editable.verbose=false \
	  --editable '.[test,lint,native,docs]'
	touch $(VENV)/.editable $(INSTALLED)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# An editable install is kept: imports use the edited files, and `make develop` installs it again.
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

# Separate from .venv, since these libraries install many others, in versions that they choose.
$(VENV)-interop/.installed: $(WHEELS)/.built
	$(PYTHON) -m venv $(VENV)-interop
	$(INTEROP) pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(WHEELS)/*.whl
	$(INTEROP) pip install --quiet --disable-pip-version-check 'tonari[interop]'
	touch $@

# The installed package names its extras, so nothing is compiled again for them.
$(VENV)/.quick $(VENV)/.tests $(VENV)/.lint $(VENV)/.native $(VENV)/.docs $(VENV)/.bench: $(VENV)/.installed
	$(PIP) 'tonari[$(EXTRA)]'
	touch $@
$(VENV)/.quick: EXTRA := test-core
$(VENV)/.tests: EXTRA := test
$(VENV)/.lint: EXTRA := lint
$(VENV)/.native: EXTRA := native
$(VENV)/.docs: EXTRA := docs
$(VENV)/.bench: EXTRA := bench

clean: ## remove everything that was built and installed here
	rm -rf build $(VENV) $(VENV)-interop $(VENV)-quick demo-output
