# Every command that CI or a user runs. `make` alone lists them.
#
#   make bench DIR=/mnt/card ARGS="--json card.json"

CARGO_TARGET_DIR ?= $(CURDIR)/target
export CARGO_TARGET_DIR
DIR ?= .
ARGS ?=
PLAN ?= smoke

.DEFAULT_GOAL := help
.PHONY: help build extension packages bench lab workloads smoke test soak lint fmt clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## libwaldio.so and joj, below target/release; debug information beside each
	tests/install_packages.sh build
	cargo build --release -p waldio -p joj
	packages/separate_debug.sh $(CARGO_TARGET_DIR)/release/libwaldio.so $(CARGO_TARGET_DIR)/release/joj
	packages/preload/build.sh $(CARGO_TARGET_DIR)/release/libwaldio-preload.so

extension: ## libwaldio.so alone: needs Rust and gcc, neither clang nor libelf, and installs nothing
	cargo build --release -p waldio
	packages/separate_debug.sh $(CARGO_TARGET_DIR)/release/libwaldio.so
	packages/preload/build.sh $(CARGO_TARGET_DIR)/release/libwaldio-preload.so

packages: build ## what people install, below target/packages: wheels, npm, Go, crates, debs, tarballs, checksums
	packages/build.sh $(CARGO_TARGET_DIR)/release $(CARGO_TARGET_DIR)/packages

bench: build ## measure what a durable commit costs on the disk of DIR (default: here); ARGS= for joj bench
	$(CARGO_TARGET_DIR)/release/joj bench $(DIR) $(ARGS)

lab: build ## measure PLAN (default: smoke) in an emulated machine; ARGS= for joj lab run
	tests/install_packages.sh lab
	$(CARGO_TARGET_DIR)/release/joj lab run $(PLAN) $(ARGS)

workloads: build ## make the recordings of lab/recordings again, with the programs of lab/programs, in an emulated machine
	tests/install_packages.sh lab
	cd lab/recordings && ../programs/record.sh $(CARGO_TARGET_DIR)/release/joj

smoke: ## lint, unit tests, SQL: about a minute, for every commit
	tests/suites.sh smoke

test: ## everything that must hold before a merge: under 30 minutes cold on 2 cores
	tests/suites.sh test

soak: ## the long ones: SQLite's whole suite, every client, kill -9, fuzzing: hours, before a release
	tests/suites.sh soak

lint: ## format, clippy, documentation warnings, types of the fuzz targets, dependency licences
	tests/lint.sh

fmt: ## format the sources
	cargo fmt --all

clean: ## remove everything that was built or fetched
	cargo clean
