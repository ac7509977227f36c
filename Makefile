PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One stamp per installation: what the demo and the examples need, the manual, and everything that tests and checks need.
USER := $(VENV)/.installed
DOCS := $(VENV)/.docs-installed
DEV := $(VENV)/.dev-installed
# Modules are compiled when they are first imported: compiling all of torch takes longer than the demo. What was compiled is kept also
# where the environment says otherwise: without it every process compiles torch anew, for five seconds.
unexport PYTHONDONTWRITEBYTECODE
QUIETLY := --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
INSTALL := $(BIN)/python -m pip install $(QUIETLY) --editable
LIGHT := build/light/env/bin/python -m pip
LIGHT_TESTS ?= tests

.PHONY: install lock demo test test-light check format bench bench-service docs docs-serve release clean

install: $(DEV)

$(USER): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[torch,frames,plot]'
	touch $@

$(DOCS): $(USER)
	$(INSTALL) '.[docs]'
	touch $@

$(DEV): $(USER)
	$(INSTALL) '.[dev]'
	touch $@ $(DOCS)

# The versions of this environment become those that everybody gets.
lock: $(DEV)
	sed -n '1,/^torch/p' constraints.txt > build/constraints.txt
	$(BIN)/python -m pip freeze --exclude-editable --exclude torch >> build/constraints.txt
	mv build/constraints.txt constraints.txt

demo: $(USER)
	$(BIN)/rankpolicy demo

test: $(DEV)
	$(BIN)/python -m pytest -n auto --dist worksteal

# The wheel without extras, in an environment of its own: what it must do there, then the tests that need no more.
test-light:
	rm -rf build/light
	mkdir -p build/light
	$(PYTHON) -m venv build/light/env
	$(LIGHT) wheel --quiet --no-deps --wheel-dir build/light .
	$(LIGHT) install $(QUIETLY) build/light/*.whl
	cd build/light && env/bin/python ../../scripts/wheel_trial.py
	$(LIGHT) install $(QUIETLY) "$$(echo build/light/*.whl)[serve]" pytest pytest-xdist pytest-timeout hypothesis
	cd build/light && env/bin/python ../../scripts/wheel_trial.py
	build/light/env/bin/python -m pytest -n auto --dist worksteal $(LIGHT_TESTS)

check: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/house.py

format: $(DEV)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(DEV)
	$(BIN)/python -m benchmarks

bench-service: $(DEV)
	$(BIN)/python -m benchmarks.service

docs: $(DOCS)
	rm -rf site
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs auto --doctree-dir build/doctrees docs site
	$(BIN)/python -m docs.building.site_links site

docs-serve: $(DOCS)
	$(BIN)/python -m sphinx --quiet --doctree-dir build/doctrees docs site
	$(BIN)/python -m http.server --directory site 8000

release: $(DEV)
	@test -n "$(VERSION)" || { echo "Say which version: make release VERSION=0.3.0"; exit 2; }
	$(BIN)/python scripts/release.py $(VERSION)

clean:
	rm -rf $(VENV) build dist runs site
