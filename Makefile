# make demo   builds tonari in .venv and makes the exact k-NN graph of 10,000 real descriptors
# make test   builds tonari in .venv and passes the tests
# make lint   ruff, mypy and the rooms' contract of imports
# make bench  the speed tables of README, against faiss, scikit-learn, pykdtree, pynndescent, NumPy and PyTorch
# Each sets up what it needs: python3 (3.10 or later), a C++20 compiler and a package index are enough.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find native src -name '*.cpp' -o -name '*.hpp' -o -name '*.py' -o -name '*.pyi')

.PHONY: demo test lint bench clean

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

$(VENV)/.bench: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '.[bench]'
	touch $@

clean:
	rm -rf build $(VENV) demo-output
