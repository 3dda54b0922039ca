PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What running needs, which the demo shows; then what developing and proving need.
READY := $(VENV)/.ready
TOOLS := $(VENV)/.tools

# Half of the suite's time is waiting, so that more processes than cores are of use.
SIDE_BY_SIDE := -n 4 --dist worksteal
# Where no bytecode is written, each of these processes compiles every test, and each command that a
# test runs compiles Sheaf: a minute of two processors.
unexport PYTHONDONTWRITEBYTECODE
# Processes that start together would each compile every test as well.
COMPILED := $(VENV)/.compiled

.PHONY: demo test prove-all prove-aws prove-account emulator prove-engines prove-hosts prove-pages prove-places prove-tables prove-protocol soak clients release check bench house format clean

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	# Python writes a short file of bytecode where a disk is full, and cannot read it later.
	$(BIN)/python -m compileall -q functions builder
	touch $@

$(TOOLS): requirements-dev.lock $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-dev.lock
	touch $@

$(COMPILED): $(TOOLS)
	$(BIN)/python -m pytest --collect-only -qq tests/builder >/dev/null & \
	$(BIN)/python -m pytest --collect-only -qq --ignore=tests/builder >/dev/null; wait
	touch $@

# The main job, from a crawl to a harvest. INPUT="PATH..." takes your own files; ONCE=1 ends after it.
demo: $(READY)
	$(BIN)/sheaf demo $(if $(ONCE),--once) $(if $(PORT),--port $(PORT)) $(INPUT)

# Takes a sample of the cases of long tests; ALL=1 takes all (see tests/extent.py).
test: $(COMPILED)
	$(if $(ALL),TEST_ALL=1 )$(BIN)/python -m pytest $(SIDE_BY_SIDE)

# What `make test` leaves out of long tests, and all random cases.
prove-all: $(COMPILED)
	TEST_REST=1 $(BIN)/python -m pytest $(SIDE_BY_SIDE)

# What is deployed to AWS, proved without an account; installs into .venv-aws what it takes, and says
# what it has to skip. PROOF="tests/aws/test_deploy.py" proves a part, PYTHON313=... names a Python.
prove-aws:
	infra/prove.sh $(PROOF)

# The same in an account of yours, for some cents: a throw-away stack, which it deletes again.
prove-account:
	infra/prove-account.sh $(PROOF)

# An emulator of AWS at GATEWAY_PORT (4566), to deploy to by `sam deploy --config-env local`.
emulator:
	infra/prove.sh --collect-only -q tests/aws/test_deploy.py >/dev/null
	.venv-aws/ministack/bin/python infra/emulator.py $(CURDIR)/.venv-aws/runtime/bin/python

# The engines of `sheaf ingest` for real, of which processes are killed: Dask, and Spark with two
# executors, for which a missing Java is installed where that can be done.
prove-engines: $(TOOLS)
	command -v java >/dev/null || (apt-get update -qq && apt-get install -y -qq \
		default-jre-headless) >/dev/null 2>&1 || echo "no Java: Spark is not proved" >&2
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade \
		--target .engines -r infra/requirements-engines.txt
	PYTHONPATH=.engines $(BIN)/python -m pytest tests/builder/sources/webarchives/ingest/test_engines.py \
		tests/builder/sources/webarchives/ingest/test_clusters.py

# The pages in Chromium: their HTML, their look, the keyboard, and the way to archived copies. Installs
# into .pages; SCREENSHOTS=FOLDER takes pictures, PROOF="-k keyboard" proves a part.
prove-pages: $(TOOLS)
	infra/prove-pages.sh $(PROOF)

# The routers of a site: nginx, Apache, Caddy, a Cloudflare Worker in its simulator, and a CloudFront
# function in Node; REQUESTS=10000 takes so many random requests of each, PROOF="-k nginx" proves one.
prove-hosts: $(TOOLS)
	infra/prove-hosts.sh $(PROOF)

# Stores at other places that speak S3: Ceph, SeaweedFS, ministack, R2's refusals, and rclone, which
# must be refused; they are installed into .places, Ceph by apt-get. PROOF="-k ceph" proves one.
prove-places: $(TOOLS)
	infra/prove-places.sh $(PROOF)

# The tables, read by DuckDB, PyIceberg, Polars, ClickHouse and Spark, which are installed into
# .tables; PROOF="-k spark" proves a part.
prove-tables: $(TOOLS)
	infra/prove-tables.sh $(PROOF)

# The protocol of a store (docs/reference/protocol.md), specified in Quint, which is installed into
# .npm-quint where node is; PROOF="--steps 10000000 --runs 10000" proves more of it.
prove-protocol: $(TOOLS)
	infra/prove-protocol.sh $(PROOF)

# Random runs of publishers, expiries, readers and harvesters with wrong clocks over a folder and a
# bucket, others each time, and a kill at each change of a store: far more than the tests try.
soak: $(TOOLS)
	TEST_ALL=1 HYPOTHESIS_PROFILE=long KILL_ALL=1 $(BIN)/python -m pytest -s tests/interleaving

# Harvests with other people's clients, and validates and replays what is exported with their tools.
# Those in Perl are installed first where that can be done, py-wacz into .venv-wacz, ro-crate-py into
# .venv-crate, pywb into .venv-pywb, and wabac.js into .npm-wabac where node is installed.
clients: $(TOOLS)
	tests/e2e/clients/install.sh
	PYTHON=$(PYTHON) tests/builder/exports/install.sh
	PYTHON=$(PYTHON) tests/builder/exports/wacz/install.sh
	PYTHON=$(PYTHON) tests/builder/exports/wacz/replay/install.sh
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/e2e/test_clients.py \
		tests/e2e/test_harvesters.py tests/builder/exports/test_datasets.py \
		tests/builder/exports/wacz \
		tests/functions/content/test_pywb.py tests/builder/sources/datasets/test_replay.py

check: $(COMPILED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

# The files of a release of the commit, built twice and compared; see CONTRIBUTING.md.
release:
	PYTHON=$(PYTHON) infra/release.sh

# Prints its tables; CAPTURES=N sets the size of generated snapshots, INPUT="FILE..." archives to read.
bench: $(TOOLS)
	$(BIN)/python -m bench.ingest $(INPUT)
	$(BIN)/python -m bench.zstd $(INPUT)
	$(BIN)/python -m bench.resume
	$(BIN)/python -m bench.index
	$(BIN)/python -m bench.publish $(if $(CAPTURES),--captures $(CAPTURES))
	$(BIN)/python -m bench.pages $(if $(CAPTURES),--captures $(CAPTURES))
	$(BIN)/python -m bench.change $(if $(CAPTURES),--captures $(CAPTURES))
	$(BIN)/python -m bench.redif
	$(BIN)/python -m bench.ingest_redif
	$(BIN)/python -m bench.records $(if $(CAPTURES),--records $(CAPTURES))
	$(BIN)/python -m bench.fileset
	$(BIN)/python -m bench.harvest $(if $(CAPTURES),--captures $(CAPTURES))
	$(BIN)/python -m bench.lookup $(if $(CAPTURES),--captures $(CAPTURES))
	$(BIN)/python -m bench.machines.crowd $(if $(CAPTURES),--captures $(CAPTURES))
	$(BIN)/python -m bench.machines.static $(if $(CAPTURES),--records $(CAPTURES))
	$(BIN)/python -m bench.site $(if $(CAPTURES),--records $(CAPTURES))
	$(BIN)/python -m bench.workers
	$(BIN)/python -m bench.harvester $(if $(CAPTURES),--captures $(CAPTURES))
	$(BIN)/python -m bench.cold $(if $(CAPTURES),--captures $(CAPTURES))

# Figures of the code itself; OF=participles, classes, chain, folders or arrows lists what one counts.
house: $(READY)
	$(BIN)/python -m bench.house $(OF)

format: $(TOOLS)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .engines .pages .tables .venv-aws .venv-wacz .venv-crate .venv-pywb .npm-wabac .npm-quint .npm-miniflare .release build dist *.egg-info demo-store
