.DEFAULT_GOAL := help
.PHONY: help run test test-search lint format bench bench-poll bench-search bench-dedup bench-events bench-reddit bench-pages bench-serve chaos week fuzz constraints services-down clean

FEEDS ?= 2000
PEERS ?= yarr,miniflux
# Much of a test is waiting: twice as many test processes as a small machine has cores. scripts/services has as many databases.
TEST_PROCESSES ?= 4
ARGS ?=

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

run:  ## set up, then serve on http://127.0.0.1:8080 until Ctrl-C
	@scripts/venv
	@exec .venv/bin/headwater up $(ARGS)

test: lint  ## set up, then check and test everything (ARGS="-k words" picks tests)
	@.venv/bin/python -c "from headwater.dedup import warm; warm.make()" & \
	    scripts/services up || echo "Tests that need what is missing will be skipped."; wait
	@eval "$$(scripts/services env)" && unset PYTHONDONTWRITEBYTECODE && exec .venv/bin/python -m pytest -n $(TEST_PROCESSES) --dist worksteal $(ARGS)

test-search:  ## the same with new and far more random examples, for a night
	@$(MAKE) test ARGS="--hypothesis-profile=search $(ARGS)"

lint:  ## check style and types
	@scripts/venv dev
	@.venv/bin/ruff check . scripts/services
	@.venv/bin/ruff format --check . scripts/services
	@.venv/bin/mypy
	@.venv/bin/mypy scripts/services bench

format:  ## put the code into the common form
	@scripts/venv dev
	@.venv/bin/ruff check --fix . scripts/services
	@.venv/bin/ruff format . scripts/services

bench: bench-poll bench-search bench-dedup bench-events bench-reddit bench-pages bench-serve  ## run all benchmarks

fuzz:  ## read a million damaged feeds and a million pieces of HTML and look at what comes out (a quarter of an hour)
	@scripts/venv dev
	@.venv/bin/python bench/fuzz_tidy.py --inputs 1000000
	@exec .venv/bin/python bench/fuzz_feeds.py --inputs 1000000

chaos:  ## 60,000 events on each log under kill -9 and worse (a few minutes on a quiet machine)
	@scripts/venv dev
	@exec .venv/bin/python bench/chaos.py $(ARGS)

week:  ## twenty simulated weeks of 200 Reddit communities that have to come out exact (three quarters of an hour)
	@scripts/venv dev
	@exec .venv/bin/python -m headwater.sim.week --seeds 20 $(ARGS)

bench-reddit:  ## what a visit of a community costs, and choosing who is due among 100,000 sources
	@scripts/venv dev
	@exec .venv/bin/python bench/reddit.py $(ARGS)

bench-pages:  ## how well and how fast articles are found, and what crawling paged sites costs
	@scripts/venv dev
	@.venv/bin/python bench/pages.py; exec .venv/bin/python bench/paged.py $(ARGS)

bench-serve:  ## what the server spends on one answer: the newest 40 stories, posts, sources
	@scripts/venv dev
	@exec .venv/bin/python bench/serve.py $(ARGS)

bench-events:  ## what an event costs, and how soon it has its effect
	@scripts/venv dev
	@exec .venv/bin/python bench/events.py $(ARGS)

bench-dedup:  ## fold labelled and made-up posts, beside other libraries
	@scripts/venv dev
	@exec .venv/bin/python bench/dedup.py

bench-search:  ## search in stores of 10 thousand to 1 million posts
	@scripts/venv dev
	@exec .venv/bin/python bench/search.py

bench-poll:  ## poll FEEDS feeds with Headwater and PEERS, and compare (make bench-poll FEEDS=2000 PEERS=yarr,miniflux)
	@scripts/venv dev
	@exec .venv/bin/python bench/poll.py --feeds $(FEEDS) --peers "$(PEERS)" $(ARGS)

constraints:  ## renew the pinned versions in constraints.txt
	@scripts/constraints

services-down:  ## stop the servers that `make test` started
	@scripts/services down

clean: services-down  ## remove what the other targets made; your data in ./data stays
	@scripts/services clean
	@rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
