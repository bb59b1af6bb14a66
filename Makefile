# SPDX-License-Identifier: Apache-2.0
# Thin names for the usual things; the work is in CMake and scripts/.

JOBS ?= $(shell nproc)
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)

.DEFAULT_GOAL := build
# The steps depend on each other; ninja and ctest do their work in parallel.
.NOTPARALLEL:
.PHONY: build demo test check bench bench-peers bench-serve soak format clean bootstrap help

## build: the release build, in build/release
build: build/release/build.ninja
	@cmake --build --preset release

build/release/build.ninja:
	@cmake --preset release

bootstrap:
	@scripts/bootstrap

## demo: install what is missing, build, run the model of data/demo
demo: bootstrap
	@scripts/demo

## test: install what is missing, build, run all tests but the long ones
test: bootstrap build
	@ctest --preset release

## check: everything (sanitizers, fuzzers, clang, aarch64 ...); CHECK_SKIP="stage ..."
check:
	@scripts/check

## bench: run the benchmarks, results in build/release/bench
bench: build
	@scripts/bench

## bench-peers: the same GGUF files in llama.cpp, the router in ONNX Runtime; needs npm
bench-peers: build
	@scripts/bench_peers

## bench-serve: TTFT of shared prefixes, 16 requests at once, drafts; on "small"
bench-serve: build
	@scripts/bench_serve

## soak: ten minutes of random load with dying clients; SOAK_SECONDS=120
SOAK_SECONDS ?= 600
soak: build
	@tests/e2e/soak/soak.py --seconds $(SOAK_SECONDS)

## format: clang-format over our sources
format:
	@scripts/format

## clean: remove everything that was built
clean:
	rm -rf build

help:
	@sed -n 's/^## //p' Makefile
