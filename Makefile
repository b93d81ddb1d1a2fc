PYTHON ?= python

.PHONY: check format rules test samples eval screenshots

# CI has just run the quick tests, the cases of all rules among them, by the README's command: `make check TESTED=quick`
# goes on with the slow ones.
check:            ## format, lint, types, imports, rules, quick tests
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	$(PYTHON) -m rca rules check
	$(if $(TESTED),,$(PYTHON) -m rca rules test)
	$(PYTHON) -m pytest -q -m "$(if $(TESTED),slow,not slow)"

format:           ## format and fix what can be fixed
	ruff format .
	ruff check --fix .

rules:            ## check the knowledge base and run its cases
	$(PYTHON) -m rca rules check
	$(PYTHON) -m rca rules test

test:             ## all tests, the slow ones too
	$(PYTHON) -m pytest -q

samples:          ## make sample_logs/ again by really running the faulty jobs
	$(PYTHON) -m rca.lab.samples sample_logs

eval:             ## score the labelled incidents beside the checkout, rules only
	$(PYTHON) -m rca eval ../shared/cases --experiments none

screenshots:      ## make reports/sample and docs/screenshots.md again from real reports (needs Chromium)
	$(PYTHON) docs/screenshots.py
