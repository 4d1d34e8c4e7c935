# Needs only python3 and make. Each stamp is one installed set of packages; `make clean` forgets all.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Pins what is installed, and what the build itself needs.
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
INPUTS := pyproject.toml constraints.txt reproductions/pyproject.toml
# More options of `make demo`, such as DEMO="--stay".
DEMO ?=
# Word counts (columns word and count) for `make words`.
WORDS ?= ../shared/data/en_words_50k.parquet

.PHONY: demo words rounds attacks thresh forgers shuffling quick test check bench collector year scale spark spark-speed series study reproduce build clean

demo: $(VENV)/.demo
	$(BIN)/deniable demo --charts out/demo $(DEMO)

words: $(VENV)/.demo
	$(BIN)/python examples/words.py --data $(WORDS) --out out/words

rounds: $(VENV)/.demo
	$(BIN)/python examples/rounds.py --out out/rounds

attacks: $(VENV)/.demo
	$(BIN)/python examples/attacks.py --out out/attacks

thresh: $(VENV)/.demo
	$(BIN)/python examples/thresh.py --out out/thresh

forgers: $(VENV)/.demo
	$(BIN)/python examples/manipulation.py --out out/manipulation

shuffling: $(VENV)/.demo
	$(BIN)/python examples/shuffling.py --out out/shuffling

# Tests run beside each other: BLAS with threads of its own would only wait, busily, for a core.
quick test: export OPENBLAS_NUM_THREADS := 1

# A verdict in a minute, without network, browser or database.
quick: $(VENV)/.dev
	$(BIN)/pytest tests -m "not (slow or network or browser or postgres or crash or spark)"

test: $(VENV)/.dev
	$(BIN)/pytest -n auto --dist worksteal --durations 25 -m "not spark"
	$(BIN)/pytest -m spark

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

bench: $(VENV)/.bench
	$(BIN)/python benchmarks/foundation.py --out out/bench
	$(BIN)/python benchmarks/longitudinal.py --out out/bench
	$(BIN)/python benchmarks/choices.py --out out/bench
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/estimation.py --out out/bench

collector: $(VENV)/.dev
	$(BIN)/python benchmarks/collector.py --out out/collector
	$(BIN)/python benchmarks/collector.py --out out/collector --kills 200
	$(BIN)/python benchmarks/several_collectors.py --out out/collector
	$(BIN)/python benchmarks/several_collectors.py --out out/collector --kills 60

# A store with a year of submissions, on SQLite and PostgreSQL.
year: $(VENV)/.dev
	$(BIN)/python benchmarks/year.py --out out/year
	$(BIN)/python benchmarks/year.py --postgres --out out/year

scale: $(VENV)/.demo
	$(BIN)/python benchmarks/scale.py --out out/scale
	$(BIN)/python benchmarks/lake.py --out out/lake

# Clusters of Spark that lose an executor, or run a task twice: the same results as on this machine.
spark: $(VENV)/.dev
	$(BIN)/python benchmarks/spark.py --cluster

# What Spark costs beside the local engine, on 10^9 reports.
spark-speed: $(VENV)/.dev
	$(BIN)/python benchmarks/spark.py --out out/spark

series: $(VENV)/.demo
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/series.py --out out/series

study: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/decoders.py --out out/study
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python benchmarks/numeric.py --out out/study

# All papers; REPRODUCE="--full --data FOLDER" for their whole grids and the tables of public data.
reproduce: $(VENV)/.papers
	for paper in kairouz comparative ibu survey numbers; do \
		OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/deniable reproduce $$paper $(REPRODUCE) || exit 1; \
	done

build: $(VENV)/.dev
	$(BIN)/python -m build --outdir dist

clean:
	rm -rf $(VENV) build dist out .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.base: $(INPUTS)
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.demo: $(VENV)/.base
	@echo "Setting up (once) ..."
	$(PIP) -e ".[serve]"
	touch $@

$(VENV)/.dev: $(VENV)/.base
	@echo "Setting up (once) ..."
	$(PIP) -e ".[dev]" -e ./reproductions
	touch $(VENV)/.demo $(VENV)/.papers $@

$(VENV)/.papers: $(VENV)/.base
	@echo "Setting up (once) ..."
	$(PIP) -e ".[serve]" -e ./reproductions
	touch $(VENV)/.demo $@

$(VENV)/.bench: $(VENV)/.base
	@echo "Setting up (once) ..."
	$(PIP) -e ".[bench]"
	touch $(VENV)/.demo $@
