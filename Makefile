.DEFAULT_GOAL := help
.PHONY: help run test test-failed test-search lint format docs messages packages bench bench-poll bench-search bench-dedup bench-events bench-reddit bench-pages bench-serve bench-fleet bench-memory bench-tenants bench-cluster bench-lateness attack chaos chaos-cluster week fuzz constraints services-down clean

FEEDS ?= 2000
PEERS ?= yarr,miniflux
# Tests mostly wait: there are twice as many test processes as a small machine has cores, and scripts/services has as many databases.
TEST_PROCESSES ?= 4
ARGS ?=
# Coverage is measured when all tests run. Slipcover costs a few seconds; coverage.py would cost half of the CPU again.
# What is compiled cannot be measured.
COVERAGE_OMIT ?= src/headwater/dedup/*
COVERAGE ?= $(if $(ARGS),,-m slipcover --source src/headwater --omit '$(COVERAGE_OMIT)' --json --out build/coverage.json)

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run:  ## set up, then serve on http://127.0.0.1:8080 until Ctrl-C
	@scripts/venv
	@exec .venv/bin/headwater up $(ARGS)

test: packages lint  ## set up, then check and test everything (ARGS="-k words" selects tests)
	@scripts/services up; mkdir -p build
	@eval "$$(scripts/services env)" && unset PYTHONDONTWRITEBYTECODE && \
	    .venv/bin/python $(COVERAGE) -m pytest -n $(TEST_PROCESSES) --dist worksteal $(ARGS)
	@$(if $(COVERAGE),.venv/bin/python scripts/coverage.py build/coverage.json,true)

test-failed:  ## run the tests that failed last once more, one after the other, if they are few
	@scripts/services up
	@eval "$$(scripts/services env)" && exec .venv/bin/python scripts/failed.py

messages:  ## look for new messages on the pages, and put them into the catalogues of the other languages
	@scripts/venv dev
	@.venv/bin/python scripts/messages.py

packages:
	@scripts/services install || true
	@scripts/spectral install || true
	@scripts/openid-provider install || true
	@scripts/deploy-tools install || true

test-search:  ## the same with new and far more random examples; takes a night
	@$(MAKE) test ARGS="--hypothesis-profile=search $(ARGS)"

lint:  ## check style and types
	@scripts/venv dev
	@.venv/bin/ruff check . scripts/services
	@.venv/bin/ruff format --check . scripts/services
	@.venv/bin/mypy
	@.venv/bin/mypy scripts/services scripts/promises.py scripts/coverage.py scripts/failed.py bench

format:  ## format the code
	@scripts/venv dev
	@.venv/bin/ruff check --fix . scripts/services
	@.venv/bin/ruff format . scripts/services

docs:  ## write the generated pages and build docs/ as a site in build/site
	@scripts/venv dev
	@.venv/bin/python scripts/reference.py
	@.venv/bin/python -m mkdocs build --strict
	@echo "build/site/index.html"

bench: bench-poll bench-search bench-dedup bench-events bench-reddit bench-pages bench-serve bench-fleet bench-memory  ## run all benchmarks

fuzz:  ## parse a million damaged feeds and a million pieces of HTML, and check the results (a quarter of an hour)
	@scripts/venv dev
	@.venv/bin/python bench/fuzz_tidy.py --inputs 1000000
	@exec .venv/bin/python bench/fuzz_feeds.py --inputs 1000000

attack:  ## attack a running Headwater on loopback, and count what got through (a few minutes)
	@scripts/venv dev
	@exec .venv/bin/python bench/attack.py $(ARGS)

chaos:  ## send 60,000 events through each log under kill -9 and worse (a few minutes on a quiet machine)
	@scripts/venv dev
	@exec .venv/bin/python bench/chaos.py $(ARGS)

chaos-cluster:  ## kill, stop and restart everything in a Celery deployment 1,000 times, and count what was lost (an hour)
	@scripts/venv dev
	@exec .venv/bin/python bench/chaos_cluster.py $(ARGS)

week:  ## simulate twenty weeks of 200 Reddit communities and compare the store with the truth (three quarters of an hour)
	@scripts/venv dev
	@exec .venv/bin/python -m headwater.sim.week --seeds 20 $(ARGS)

bench-reddit:  ## measure a visit of a community, and finding what is due among 100,000 sources
	@scripts/venv dev
	@exec .venv/bin/python bench/reddit.py $(ARGS)

bench-cluster:  ## measure visits by Celery workers, beside `headwater up` and a plain Celery loop
	@scripts/venv dev
	@exec .venv/bin/python bench/cluster.py $(ARGS)

bench-lateness:  ## have 100,000 sources come due over an hour on two Celery workers, and print how late visits were
	@scripts/venv dev
	@exec .venv/bin/python bench/cluster.py --feeds 0 --due 100000 $(ARGS)

bench-pages:  ## measure how well and how fast articles are found, and what crawling sites with pages costs
	@scripts/venv dev
	@.venv/bin/python bench/pages.py; exec .venv/bin/python bench/paged.py $(ARGS)

bench-serve:  ## measure what the server spends on one answer: the newest 40 stories, posts, sources
	@scripts/venv dev
	@exec .venv/bin/python bench/serve.py $(ARGS)

bench-fleet:  ## measure what a portfolio of 10,000 machines costs, and how soon a change is visible in it
	@scripts/venv dev
	@exec .venv/bin/python bench/fleet.py $(ARGS)

bench-tenants:  ## measure what row level security costs on PostgreSQL: 200 tenants, 1 million posts
	@scripts/venv dev
	@scripts/services up postgres
	@eval "$$(scripts/services env)"; exec .venv/bin/python bench/tenant_cost.py $(ARGS)

bench-memory:  ## measure the memory with nothing followed and with 2,000 sources, and the size when installed
	@scripts/venv dev
	@exec .venv/bin/python bench/memory.py $(ARGS)

bench-events:  ## measure what an event costs, and how soon it has its effect
	@scripts/venv dev
	@exec .venv/bin/python bench/events.py $(ARGS)

bench-dedup:  ## fold labelled and made-up posts, next to other libraries
	@scripts/venv dev
	@exec .venv/bin/python bench/dedup.py

bench-search:  ## measure search in stores of 10 thousand to 1 million posts
	@scripts/venv dev
	@exec .venv/bin/python bench/search.py

bench-poll:  ## poll FEEDS feeds with Headwater and PEERS, and compare (make bench-poll FEEDS=2000 PEERS=yarr,miniflux)
	@scripts/venv dev
	@exec .venv/bin/python bench/poll.py --feeds $(FEEDS) --peers "$(PEERS)" $(ARGS)

constraints:  ## update the pinned versions in constraints.txt
	@scripts/constraints

services-down:  ## stop the servers that `make test` started
	@scripts/services down

clean: services-down  ## remove what the other targets made; your data in ./data is kept
	@scripts/services clean
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
