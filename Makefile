# make demo   builds tonari in .venv and makes the exact k-NN graph of 10,000 real descriptors
# make test   builds tonari in .venv and passes the tests
# make lint   ruff, mypy, the rooms' contract of imports and the format of native/
# make clang  native/ compiled by clang++, where a warning is an error; not optimized, which is enough to warn
# make tidy   clang-tidy over native/, which takes minutes; needs clang++
# make sanitize  the tests of native code with GCC's address, undefined-behaviour and thread sanitizers
# make bench  the speed tables of README, against faiss, scikit-learn, pykdtree, pynndescent, NumPy and PyTorch
# Each sets up what it needs: python3 (3.10 or later), a C++20 compiler and a package index are enough.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(shell find native -name '*.cpp' -o -name '*.hpp')
SOURCES := pyproject.toml CMakeLists.txt $(NATIVE) $(shell find src -name '*.py' -o -name '*.pyi')

.PHONY: demo test lint clang tidy sanitize bench clean

demo: $(VENV)/.installed
	$(BIN)/python examples/demo.py

test: $(VENV)/.installed $(VENV)/.tests
	$(BIN)/python -m pytest -n 2 --dist worksteal tests
	$(BIN)/python -m pytest --pyargs tonari --doctest-modules

lint: $(VENV)/.installed $(VENV)/.lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	$(BIN)/clang-format --dry-run --Werror $(NATIVE)

# A build folder by one of CMakePresets.json, with the virtual environment's tools.
CONFIGURE = PATH="$(abspath $(BIN)):$$PATH" cmake -DPython_EXECUTABLE="$(abspath $(BIN))/python" --preset

clang: $(VENV)/.native
	$(CONFIGURE) clang
	$(BIN)/cmake --build --preset clang

tidy: $(VENV)/.native
	$(CONFIGURE) clang
	$(BIN)/python $(BIN)/run-clang-tidy.py -quiet -clang-tidy-binary $(BIN)/clang-tidy -p build/clang '^$(CURDIR)/native/'

sanitize: $(VENV)/.tests $(VENV)/.native
	for preset in asan tsan; do \
	  $(CONFIGURE) $$preset && $(BIN)/cmake --build --preset $$preset && $(BIN)/ctest --preset $$preset || exit 1; \
	done

bench: $(VENV)/.installed $(VENV)/.bench
	$(BIN)/python -m benchmarks run
	$(BIN)/python -m benchmarks.select --bars --device cpu
	$(BIN)/python -m benchmarks.kdtree --cases 'sift-d3,sift-d5,sift-d10,sift-d15,magnitudes-d10,build-d10'
	$(BIN)/python -m benchmarks.descent --cases sift-100k

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check .
	touch $@

$(VENV)/.tests: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[test]'
	touch $@

$(VENV)/.lint: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[lint]'
	touch $@

$(VENV)/.native: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'cmake>=3.25' ninja 'nanobind>=2.4' clang-tidy==22.1.8
	touch $@

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	touch $@

clean:
	rm -rf build $(VENV) demo-output
