# Entry points of the project; `make run` needs nothing installed.

CARGO ?= cargo
LISTEN ?= $(or $(ASSAY_GATEWAY__LISTEN),127.0.0.1:8080)
DATA_DIR ?= ./data
# What `make run` builds: the profile of first starts, without what only the other databases and brokers need (ADR 30).
STANDALONE = --release --package assay --bin assay --no-default-features
# Where cargo builds.
TARGET = $(or $(CARGO_TARGET_DIR),target)
ORGANIZATION ?= default
CHAOS_SEEDS ?= 1
# Working folder for fitting the reader, and the shipped model.
TRAINING = target/training
READER = crates/scoring/model/reader.bin
PYTHON = $(TRAINING)/venv/bin/python

# nextest runs each test in its own process; falls back to `cargo test` where it is not installed.
TEST_RUNNER = $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo "$(CARGO) nextest run" || echo "$(CARGO) test")

.PHONY: changelog help run test test-read-model test-tls test-first-start test-api test-s3 test-deployment screenshots fairness flood lint chaos bench bench-scoring stack stack-down stack-key docs reader second-step corpus-check benchmark \
  compose-up compose-down compose-key compose-test kubernetes-e2e judge-test

help:
	@echo "make run         build and start everything in one process on $(LISTEN), data in $(DATA_DIR)"
	@echo "make test        all tests, with private servers; as root on Debian it installs what they need"
	@echo "make fairness    a million conversations of one organization beside ten a second of another, and imports at full speed beside them, on both stacks, and the results"
	@echo "make flood       10,000 idle and 3,000 rude connections against both stacks, and the results"
	@echo "make test-read-model   lists, summaries and files of ten thousand random filters while rows change"
	@echo "make screenshots every page of the console in both themes and two widths: target/screenshots"
	@echo "make lint        formatting, clippy, licences and advisories, and the corpus"
	@echo "make chaos       fault injection with the seeds in CHAOS_SEEDS=1,2,3, on both stacks: minutes for each seed"
	@echo "make bench       benchmarks beside baselines of PostgreSQL and SQLite: a table of ratios"
	@echo "make bench-scoring   how long an evaluation takes, by conversation and for texts made to be slow"
	@echo "make stack       every service as a process on PostgreSQL and RabbitMQ, in the foreground"
	@echo "make stack-down  clean up after a stack that crashed"
	@echo "make stack-key ORGANIZATION=acme   print a new API key of the running stack"
	@echo "make compose-up      every service in containers: docker-compose.yml, with passwords made once; compose-down stops them"
	@echo "make compose-key ORGANIZATION=acme   print a new API key of the containers"
	@echo "make compose-test    bring docker-compose.yml up and check what it promises; without Docker, as root on Debian"
	@echo "make kubernetes-e2e  the development overlay in a real cluster of one node, with imports beside deleted pods and a new image; as root on Debian"
	@echo "make judge-test      the judge against a real, very small model on this machine: a download of 100 MB, some minutes"
	@echo "make reader      fit the scorer's reader again on corpus/: downloads torch and scikit-learn, takes about an hour on two cores, prints how well it agrees with the raters"
	@echo "make second-step fit only the last step of the reader again, from the acts to scores and verdicts: ten minutes"
	@echo "make corpus-check    formats, figures and guards against templates of corpus/"
	@echo "make benchmark   how well the scorer agrees with the raters of corpus/, on what it was not fitted on"
	@echo "make changelog VERSION=0.1.0   make CHANGELOG.md of the files in changes/"
	@echo "make docs        regenerate the documents under proto-docs/"

run:
	$(CARGO) run $(STANDALONE) -- standalone --listen $(LISTEN) --data-dir $(DATA_DIR)

test:
	scripts/packages.sh
	$(TEST_RUNNER) --workspace --no-run
	$(TARGET)/debug/assay-test-services --postgres --rabbit -- $(TEST_RUNNER) --workspace --no-fail-fast
	@$(MAKE) test-tls
	@$(MAKE) test-first-start
	@$(MAKE) --jobs 3 --output-sync=target --keep-going test-api test-s3 test-deployment

# TLS to PostgreSQL, in a build of its own, by the system's OpenSSL. It replaces $(TARGET)/debug/assay: not beside other tests.
test-tls:
	OPENSSL_NO_VENDOR=1 $(TEST_RUNNER) --workspace --features assay/postgres-tls --test postgres_tls

# The executable of `make run`; it replaces $(TARGET)/release/assay.
test-first-start:
	$(CARGO) build $(STANDALONE)
	scripts/first-start-test.sh $(TARGET)/release/assay

test-api:
	scripts/schemathesis.sh $(TARGET)/debug/assay

test-s3:
	scripts/s3-test.sh $(TARGET)/debug

test-deployment:
	scripts/kubernetes-test.sh

# `make test` includes a small one. FAIRNESS_CONVERSATIONS=20000 for another number than a million.
fairness:
	$(CARGO) build --release --workspace --bins
	$(CARGO) test --release -p assay --test e2e --no-run
	$(TARGET)/release/assay-test-services --postgres --rabbit -- \
	  $(CARGO) test --release -p assay --test e2e -- --ignored --nocapture --test-threads 1 fairness

# A quarter of an hour or more: `make test` includes 400 filters on both databases.
test-read-model:
	$(CARGO) test -p assay-export --test export --no-run
	$(CARGO) build -p assay-testkit --bins
	$(TARGET)/debug/assay-test-services --postgres -- \
	  $(CARGO) test -p assay-export --test export -- --ignored --nocapture ten_thousand_filters

screenshots:
	scripts/packages.sh
	$(CARGO) build -p assay --bins
	$(CARGO) test -p assay --test e2e -- --ignored --exact --nocapture standalone::screenshots

# `make test` includes a tenth of it.
flood:
	$(CARGO) build --release --workspace --bins
	$(CARGO) test --release -p assay --test e2e --no-run
	$(TARGET)/release/assay-test-services --postgres --rabbit -- \
	  $(CARGO) test --release -p assay --test e2e -- --ignored --nocapture --test-threads 1 flood

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) clippy --package assay --bin assay --no-default-features -- -D warnings
	$(CARGO) deny --all-features check
	python3 training/check_corpus.py

# nextest only: plain `cargo test` would run both at once.
chaos:
	$(CARGO) build -p assay --bins
	CHAOS_SEEDS=$(CHAOS_SEEDS) $(CARGO) nextest run -p assay --test chaos --run-ignored only --no-capture

# Benchmarks beside baselines of the databases; BENCH="imports --rounds 1" runs a part, BENCH=--quick is a smoke test,
# BENCH="console --rows 5000000" the lists and pages over five million evaluations instead of one.
bench:
	$(CARGO) bench --profile dist -p assay --bench load -- $(BENCH)

bench-scoring:
	$(CARGO) bench -p assay-scoring --bench evaluate

stack:
	$(CARGO) build --release --bin assay --bin assay-stack
	$(TARGET)/release/assay-stack up

stack-down:
	$(CARGO) build --release --bin assay-stack
	$(TARGET)/release/assay-stack down

stack-key:
	@$(CARGO) build --quiet --release --bin assay --bin assay-stack
	@$(TARGET)/release/assay-stack key --organization $(ORGANIZATION)

compose-up:
	deploy/docker/secrets.sh
	docker compose up --build --detach --wait

compose-down:
	docker compose down

compose-key:
	@docker compose run --rm -T tools keys create --organization $(ORGANIZATION)

compose-test:
	scripts/compose-test.sh

# Kubernetes 1.20 is built the first time: ten minutes, 2 GB under .local.
kubernetes-e2e:
	scripts/kubernetes-e2e.sh

judge-test:
	$(CARGO) build -p assay --bin assay
	scripts/judge-test.sh $(TARGET)/debug/assay

docs:
	$(CARGO) run --bin assay -- openapi > proto-docs/openapi/assay.json
	$(CARGO) run --bin assay -- reference > proto-docs/cli.md
	deploy/kubernetes/prometheus-rule.sh > deploy/kubernetes/components/monitoring/prometheus-rule.yaml

# Needed after a change of the corpus, the features or the fit: the engine refuses a model fitted for other features. The encoder is fitted on the part `train` (about an hour on two cores), the second step on `dev`, so that
# `make benchmark` on `test` measures what the model has not seen. The committed model was fitted with PUBLIC=FOLDER: public
# conversations with scores by people, which are not part of the project (training/prepare.py). Without it the corpus alone is fitted on.
# START=FILE continues from a copy of a model file instead of the base.
reader: corpus-check $(TRAINING)/venv/installed
	mkdir -p $(TRAINING)
	$(PYTHON) training/base.py $(TRAINING)
	$(PYTHON) training/prepare.py $(TRAINING) $(if $(PUBLIC),--public $(PUBLIC))
	$(CARGO) run --release -p assay-scoring --example reader_inputs -- $(TRAINING)/base.assayenc < $(TRAINING)/bodies.jsonl > $(TRAINING)/inputs.jsonl
	$(PYTHON) training/encoder.py $(TRAINING) --out $(TRAINING)/encoder.npz --predictions $(TRAINING)/predictions.npz \
		$(if $(START),--start $(START) --epochs 2 --rate 1e-4 --seed 15)
	$(PYTHON) training/outcome.py $(TRAINING) --out $(READER)

# Only the second step, on the encoder of the committed model: after a change of `dev`, of features.py or of outcome.py.
second-step: corpus-check $(TRAINING)/venv/installed
	mkdir -p $(TRAINING)
	$(PYTHON) training/prepare.py $(TRAINING) $(if $(PUBLIC),--public $(PUBLIC))
	$(CARGO) run --release -p assay-scoring --example reader_inputs -- $(READER) < $(TRAINING)/bodies.jsonl > $(TRAINING)/inputs.jsonl
	$(PYTHON) training/encoder.py $(TRAINING) --start $(READER) --epochs 0 --predictions $(TRAINING)/predictions.npz
	$(PYTHON) training/outcome.py $(TRAINING) --model $(READER) --out $(READER)

$(TRAINING)/venv/installed: training/requirements.txt
	python3 -m venv $(TRAINING)/venv
	$(TRAINING)/venv/bin/pip install --quiet --disable-pip-version-check --requirement training/requirements.txt
	touch $@

corpus-check:
	python3 training/check_corpus.py

benchmark:
	@$(CARGO) build --quiet $(STANDALONE)
	@$(TARGET)/release/assay benchmark corpus --part dev
	@echo
	@$(TARGET)/release/assay benchmark corpus --part test

changelog:
	scripts/changelog.sh --version $(VERSION)
