# `make demo` shows the main job on a simulated node; `make test` runs every check and test.
# Both install what they need (scripts/setup) on a Debian machine that has a Rust toolchain.

SHELL := /bin/bash
.DELETE_ON_ERROR:
export PATH := $(CURDIR)/target/tools/bin:$(PATH)

.PHONY: demo test lint build bench install-simulator clean

demo:
	scripts/setup demo
	cargo build --workspace --bins --lib -q
	scripts/demo

# One build of everything in one profile; the tests are told that it is there.
test: build lint
	MIGD_TESTS_BUILT=1 cargo nextest run --workspace --no-fail-fast

build:
	scripts/setup test
	cargo build --workspace --all-targets

lint:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -q -- -D warnings

# Measurements, in a release build; they assert nothing.
bench:
	scripts/setup test
	cargo build --workspace --release
	cargo bench --workspace

# The simulator alone, for people who test other GPU software.
PREFIX ?= /usr/local
install-simulator:
	scripts/setup demo
	cargo build --release -p nvml-simulator
	scripts/install-simulator target/release "$(PREFIX)"

clean:
	cargo clean
