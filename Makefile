PYTHON ?= python

.PHONY: check format test
check:
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	$(PYTHON) -m pytest -q

format:
	ruff format .
	ruff check --fix .

test:
	$(PYTHON) -m pytest -q
