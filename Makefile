# `make help` lists the commands. Every one of them sets up what it needs in .venv first, and pip
# shows how far it is: the first time Spark alone is 450 MB, for which `make demo` does not wait.
.DEFAULT_GOAL := help
.PHONY: help setup demo wheel docs test test-changed test-containers api-server slowest check lint format style types contracts quick fix sim connect-sim disk-damage chaos round-trips mirror-faults streams-smoke fuzz least-rights bench lock clean

# Tests start our programs hundreds of times: each would compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := backup broker common connect console demo explain lag mirror millstream rest_proxy schemas services spark_analytics stack streams tests bench
SEEDS ?= 1000
SEED ?= 1
BASE ?= main
# The pipeline's chaos places its 5,000 orders in three minutes.
MINUTES ?= $(if $(PIPELINE),3,10)
# Processes in which tests run side by side, and one more for those that only compute. With more of
# them on two slow processors those tests fail whose limits are not ours: Spark gives a Python worker
# ten seconds to start.
WORKERS ?= 3
PYTEST = $(BIN)/python -m pytest -q -n
# What tests write is gone when they end: where there is room for it in memory (it is some 200 MB at a
# time) it is never written to a disk, which takes a twentieth of the run's processor time.
IN_MEMORY = $(shell test -w /dev/shm && test "$$(df -k /dev/shm | awk 'END {print $$4}')" -gt 2000000 && echo /dev/shm)
TESTS_FOLDER := $(or $(TMPDIR),$(IN_MEMORY),/tmp)
REPORTS := build/tests
TEST_FILES := 'test_*.py'
MARKED := 'mark\.(slow|interop|e2e)'

help: ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Millstream needs Python 3.11 or newer: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: requirements/core.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --require-hashes --requirement requirements/core.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --require-hashes --requirement requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/.core

# Spark and Faust: large, so an environment that does not need them does not get them.
$(VENV)/.demo: requirements/demo.txt | $(VENV)/.core
	$(BIN)/python -m pip install --require-hashes --requirement requirements/demo.txt
	@touch $@

# What connectors need to reach a registry, PostgreSQL, Elasticsearch and object stores.
$(VENV)/.connectors: requirements/image.txt | $(VENV)/.core
	$(BIN)/python -m pip install --require-hashes --requirement requirements/image.txt
	@touch $@

setup: $(VENV)/.dev ## make .venv with everything for work on the project

ifneq ($(CONNECT)$(SHOP)$(ELASTICSEARCH)$(SECURE),)
demo: $(VENV)/.connectors
endif
ifeq ($(LITE),1)
demo: $(VENV)/.core
else ifneq ($(wildcard $(VENV)/.demo),)
demo: $(VENV)/.demo
else
# The first time: the pipeline runs while Spark and Faust are installed, and they join it.
demo: $(VENV)/.core
demo: export INSTALL_COMMAND = $(MAKE) $(VENV)/.demo
endif
demo: ## run the whole pipeline, Spark and dashboard too (LITE=1 without; MIRROR=1 with a second cluster; CONNECT=1 with connectors though LITE; SECURE=1 with TLS, passwords and least rights; ONCE=1, ORDERS=, LIMIT=, BOOTSTRAP=, SHOP=, ELASTICSEARCH=)
	@$(BIN)/python -m millstream demo

wheel: $(VENV)/.dev ## the distribution as one file in dist/, to be installed by pip
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

test: $(VENV)/.dev $(VENV)/.demo ## every test: fast, simulated, real clients, end to end
	@$(call side_by_side,programs plain)

# What starts programs mostly waits for them. The other files only compute: one more process, with
# what the first leave it of the processors.
programs plain quick-0 quick-1: export TMPDIR := $(TESTS_FOLDER)
programs:
	@$(PYTEST) $(WORKERS) -m "" -rs --junitxml=$(REPORTS)/$@.xml \
	    $$(grep -rlE $(MARKED) tests --include=$(TEST_FILES)) || { \
	    echo "tests of programs FAILED"; exit 1; }

plain:
	@said=$$(nice -n 12 $(PYTEST) 0 -m "" -rs --junitxml=$(REPORTS)/$@.xml \
	    $$(grep -rLE $(MARKED) tests --include=$(TEST_FILES)) 2>&1) || { \
	    printf '%s\n' "$$said" "plain tests FAILED"; exit 1; }; printf '%s\n' "$$said" | tail -n 1

test-changed: export TMPDIR := $(TESTS_FOLDER)
test-changed: $(VENV)/.dev $(VENV)/.demo ## the tests that a change can reach by imports, and which are left out: BASE=main
	@$(BIN)/python -m tests.lib.changed --base $(BASE)

test-containers: $(VENV)/.dev ## the image and the containers at work, where Docker is or can be started
	MILLSTREAM_TEST_CONTAINERS=1 TESTCONTAINERS_RYUK_DISABLED=true $(PYTEST) 0 -m "" -rs tests/deploy

api-server: ## Kubernetes' API server, built from Go's modules, so that tests give it the manifests: once, ten minutes
	tests/deploy/build-api-server build/api-server

slowest: $(VENV)/.dev ## where the last `make test` spent its time: the slowest twenty tests and files
	@$(BIN)/python -m tests.lib.slowest $(REPORTS)

check: $(VENV)/.dev $(VENV)/.demo ## format, lint, types, import contracts, fast tests: under a minute
	@$(call side_by_side,format style types contracts quick)

lint: $(VENV)/.dev $(VENV)/.demo ## `make check` without the tests
	@$(call side_by_side,format style types contracts)

side_by_side = $(MAKE) --no-print-directory --jobs --keep-going $(1) || { \
    echo "make $@ failed: look for FAILED above"; exit 1; }

# Each says one line, or, when it fails, all it has to say in one piece.
in_one_piece = said=$$($(1) 2>&1) && echo "$@: good" || { printf '%s\n%s\n' "$@ FAILED: $(1)" "$$said"; exit 1; }

format:
	@$(call in_one_piece,$(BIN)/ruff format --check $(SOURCES))

style:
	@$(call in_one_piece,$(BIN)/ruff check $(SOURCES))

types:
	@$(call in_one_piece,$(BIN)/mypy)

contracts:
	@$(call in_one_piece,$(BIN)/lint-imports)

# In two processes that know nothing of each other: each reads half the files and reports to nobody.
# Of files in the order of their sizes the first and the fourth of each four are about half of the work.
quick: quick-0 quick-1

quick-%:
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-few} $(PYTEST) 0 $(half_of_the_test_files) || { \
	    echo "quick tests FAILED"; exit 1; }

half_of_the_test_files = $$(find tests -name $(TEST_FILES) | xargs ls -S | awk '(NR % 4 < 2) == $*')

fix: $(VENV)/.dev ## format and mend what can be mended by itself
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

sim: $(VENV)/.dev ## many seeded simulations: make sim SEEDS=10000 (PLANTED=1: which find planted bugs)
	$(BIN)/python -m tests.sim $(if $(PLANTED),--planted,--seeds $(SEEDS))

connect-sim: $(VENV)/.dev ## simulated Connect workers, killed, frozen, given up: make connect-sim SEEDS=1000
	$(BIN)/python -m tests.connect.simulation --seeds $(SEEDS)

disk-damage: $(VENV)/.dev ## damage every file a node reads, in every way: make disk-damage SEEDS=2000
	MILLSTREAM_DAMAGE_SEEDS=$(SEEDS) $(PYTEST) 2 -m "" tests/broker/log/test_damage.py tests/interop/log/test_disk_damage.py

chaos: $(VENV)/.dev ## break a real cluster under load and judge it: make chaos MINUTES=10 SEED=1 TRANSACTIONS=1 (or SHARE=1, QUORUM=1, PIPELINE=1, SPARK=1)
	$(BIN)/python -m tests.chaos$(if $(TRANSACTIONS),.transactions)$(if $(SHARE),.share)$(if $(QUORUM),.quorum)$(if $(PIPELINE),.pipeline) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(SPARK),--spark)

round-trips: $(VENV)/.dev ## random tables through connectors that are killed: make round-trips SEEDS=500
	ROUND_TRIPS=$(SEEDS) $(BIN)/python -m pytest -q -n 0 -m '' tests/connect/connectors/round_trips/test_round_trips*.py

mirror-faults: $(VENV)/.dev ## break a mirror in every way it should stand, and judge its copies: SEED=1
	$(BIN)/python -m tests.mirror.faults $(if $(SEED),--seed $(SEED))

streams-smoke: $(VENV)/.dev ## Kafka Streams' own smoke test, exactly once, while brokers and instances are killed: PROTOCOL=streams for tasks assigned by the brokers
	$(BIN)/python -m tests.interop.groups.streams_smoke$(if $(PROTOCOL), --protocol $(PROTOCOL))

fuzz: $(VENV)/.dev ## wrong frames for all listeners: make fuzz MINUTES=10 SEED=2, or REPLAY=broker:0003...; wrong requests: HTTP=1
	$(BIN)/python -m tests.fuzz$(if $(HTTP),.http) $(if $(REPLAY),--replay $(REPLAY),--minutes $(MINUTES) --seed $(SEED))

least-rights: $(VENV)/.dev ## take every right from a program, one at a time: each has to fail (PROGRAMS=streams,orders ABOUT=dead-letter)
	LEAST_RIGHTS_OF=$(or $(PROGRAMS),all) LEAST_RIGHTS_ABOUT="$(ABOUT)" $(BIN)/python -m pytest -q -n 0 -m '' --timeout 3600 tests/interop/security/test_least_rights.py tests/mirror/test_secured_mirror.py

bench: $(VENV)/.dev ## measure; see bench/README.md
	$(BIN)/python -m bench

docs: $(VENV)/.dev ## the documentation as a site in build/docs; a warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going -c docs -b html . build/docs
	@echo "open build/docs/docs/index.html"

lock: $(VENV)/.dev ## make requirements/*.txt anew from pyproject.toml: versions and hashes, never a URL
	UV_PYTHON_DOWNLOADS=never $(BIN)/python requirements/lock.py

clean: ## remove .venv and everything that was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/bin
