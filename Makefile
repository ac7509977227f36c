PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DOCS_STAMP := $(VENV)/.docs-installed

.PHONY: install demo test check format bench bench-service docs docs-serve release clean

install: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[text,dev]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/rankpolicy demo

test: $(STAMP)
	$(BIN)/python -m pytest -n auto

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP)
	$(BIN)/python -m benchmarks

bench-service: $(STAMP)
	$(BIN)/python -m benchmarks.service

docs: $(DOCS_STAMP)
	rm -rf site
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --jobs auto --doctree-dir build/doctrees docs site
	$(BIN)/python -m docs.building.site_links site

docs-serve: $(DOCS_STAMP)
	$(BIN)/python -m sphinx --quiet --doctree-dir build/doctrees docs site
	$(BIN)/python -m http.server --directory site 8000

release: $(STAMP)
	@test -n "$(VERSION)" || { echo "Say which version: make release VERSION=0.3.0"; exit 2; }
	$(BIN)/python scripts/release.py $(VERSION)

$(DOCS_STAMP): $(STAMP)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $(DOCS_STAMP)

clean:
	rm -rf $(VENV) build dist runs site
