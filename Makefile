# Everything that a newcomer, a contributor and CI do. `make` alone lists the targets.
#
#   PYTHON=python3.12 make test      another interpreter for .venv (3.11 or newer)
#   JOBS=8 make test                 more test processes at a time
#   make test ARGS="-k saga -x"      more options for pytest
#   make demo DB=postgres            the demo on PostgreSQL instead of SQLite

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
PY = $(VENV)/bin/python
# More than the two cores could run at once: many tests wait for processes, leases and timers.
JOBS ?= 6
ARGS ?=
DB ?= sqlite
DJANGO ?= Django~=5.2.0

# Tools are run as modules: a script's first line names the folder that it was installed in.
PYTEST = $(PY) -m pytest -n $(JOBS) --dist worksteal -q $(ARGS)
POSTGRES = $(PY) -m testproject.services.postgres
POOLER = $(PY) -m testproject.services.pooler
BROKER = $(PY) -m testproject.services.valkey

# A tier without database runs once; the others run on both backends.
PLAIN_TIERS = $(wildcard tests/unit tests/typing)
# The slow ones first: what is left for the end is quick, and every process has some of it.
DATABASE_TIERS = $(wildcard tests/processes tests/celery tests/crash tests/docs tests/composition tests/flow tests/field tests/services \
	tests/properties tests/planes tests/admin tests/db tests/rest)

POOLED_TIERS = tests/db tests/crash tests/field tests/composition tests/flow tests/properties

# The other end of what is supported: the newest Python and Django.
PYTHON_313 = $(shell .ci/find-python 3.13)
WITH_313 = VENV=.venv-313 PYTHON=$(PYTHON_313) DJANGO='Django~=6.1.0'

.PHONY: help venv venv-313 test test-plain test-sqlite test-apart test-postgres test-pooled test-browser bench-admin test-313 test-313-tiers evidence check lint \
	types migrations docs demo demo-celery demo-planes serve clean

help:
	@echo 'make demo          a workflow that is killed and goes on (DB=postgres for PostgreSQL)'
	@echo 'make demo-celery   the same with Celery workers, PostgreSQL and a broker of its own'
	@echo 'make demo-planes   tenants on data planes of their own, one of which goes away (DB=sqlite for SQLite)'
	@echo 'make serve         the admin and a worker on some executions, until Ctrl-C (ARGS="--port 8001")'
	@echo 'make test          every test, on SQLite and on PostgreSQL'
	@echo 'make test-apart    what can do without any table on the database "default"'
	@echo 'make test-313      the same with Python 3.13 and Django 6.1'
	@echo 'make test-pooled   the database tiers through a transaction-pooling proxy'
	@echo 'make test-browser  the admin in Chromium, on PostgreSQL; pictures in build/browser'
	@echo 'make bench-admin   the admin over a million executions; figures in benchmarks/results/admin.json'
	@echo 'make evidence      the crash sweep at every boundary, on both databases (the tests leave some out; half an hour)'
	@echo 'make check         lint, types, migrations, documentation'
	@echo 'make docs          the documentation, in docs/_build'
	@echo 'make venv          the virtual environment that the others use, in $(VENV)'
	@echo 'make clean         remove all of that'

venv: $(VENV)/installed

$(VENV)/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "$(PYTHON) is older than Python 3.11 or does not run; say which to use: make PYTHON=python3.12 …" >&2; \
		exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --editable '.[dev]' '$(DJANGO)'
	@touch $@

test: test-plain test-sqlite test-apart test-postgres

test-plain: venv
	$(PYTEST) $(PLAIN_TIERS)

test-sqlite: venv
	TEST_DB=sqlite $(PYTEST) $(DATABASE_TIERS)

# Every table on a database of its own, and none on `default`: what forgets to name its database fails here.
test-apart: venv
	TEST_LAYOUT=apart TEST_DB=sqlite $(PYTEST) tests/db tests/planes

test-postgres: venv
	TEST_DB=postgres $(PYTEST) $(DATABASE_TIERS)

# Another size: make bench-admin ARGS="--executions 100000". On a server of its own, or that of DATABASE_URL.
bench-admin: venv
	$(POSTGRES) --not-durable -- $(PY) -m benchmarks.admin $(ARGS)

# A live project, and Chromium in front of it. Pictures of the pages are left in build/browser.
test-browser: venv
	TEST_DB=postgres $(PY) -m pytest -q $(ARGS) tests/browser

# The same through a proxy that hands out a server session for each transaction.
test-pooled: venv
	TEST_DB=postgres $(POSTGRES) --not-durable -- $(POOLER) --size=6 -- $(PYTEST) $(POOLED_TIERS)

venv-313:
	@if [ -z '$(PYTHON_313)' ]; then \
		echo 'No Python 3.13 that runs is on PATH or below ~/.pyenv: the tests with Django 6.1 did NOT run.' >&2; \
		exit 1; fi
	$(MAKE) --no-print-directory venv $(WITH_313)

test-313: venv-313
	$(MAKE) --no-print-directory test $(WITH_313)

# The tiers that meet Django and the database, for CI's time.
test-313-tiers: venv-313
	$(MAKE) --no-print-directory test-plain $(WITH_313)
	$(MAKE) --no-print-directory test-postgres $(WITH_313) DATABASE_TIERS='tests/db tests/planes'

WHOLE_SWEEPS = tests/crash tests/composition/test_an_outage_of_a_key_service_costs_only_time.py

# The tests strike every commit, and one in so many of the other boundaries; this strikes them all.
evidence: venv
	CRASH_SWEEP_EVERY=1 TEST_DB=sqlite $(PYTEST) $(WHOLE_SWEEPS)
	CRASH_SWEEP_EVERY=1 TEST_DB=postgres ORDERS=300 SCHEDULE_DAYS=200 $(PYTEST) $(WHOLE_SWEEPS) \
		tests/composition/test_any_order_of_ends_gives_one_history.py tests/flow/test_two_beats_fire_each_time_once.py

check: lint types migrations docs

lint: venv
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

types: venv
	$(PY) -m mypy --strict

migrations: venv
	SQLITE_PATH=$(VENV)/migrations.sqlite3 $(PY) -W error manage.py makemigrations --check --dry-run

docs: venv
	$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build

demo: venv
ifeq ($(DB),postgres)
	$(POSTGRES) -- $(PY) -m testproject.demo $(ARGS)
else
	$(PY) -m testproject.demo $(ARGS)
endif

demo-celery: venv
	$(POSTGRES) -- $(BROKER) -- $(PY) -m testproject.demo --celery $(ARGS)

# A plane that is stopped is a server: PostgreSQL, unless DB was given.
demo-planes: venv
ifeq ($(origin DB)$(DB),filesqlite)
	$(POSTGRES) -- $(PY) -m testproject.demo --planes $(ARGS)
else ifeq ($(DB),sqlite)
	$(PY) -m testproject.demo --planes $(ARGS)
else
	$(POSTGRES) -- $(PY) -m testproject.demo --planes $(ARGS)
endif

serve: venv
ifeq ($(DB),postgres)
	$(POSTGRES) -- $(PY) -m testproject.serve $(ARGS)
else
	$(PY) -m testproject.serve $(ARGS)
endif

clean:
	rm -rf .venv .venv-313 build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis db.sqlite3*
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
