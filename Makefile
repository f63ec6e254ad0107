# The front door. Each target installs what is missing (Debian packages), builds, and does its work.
#
#   make chat    talk to the model in weights/demo, or MODEL=folder-or-name
#   make build   leave the command at build/tessera
#   make test    build everything that can be built here and run every test that can run
#   make fuzz    read RUNS mutated inputs per reader of untrusted files, under sanitizers
#   make bench   speed of MODEL on this machine
#   make sanitize-gpu   look for races and wild accesses in the CUDA kernels (needs a GPU)
#   make dist    a relocatable archive in dist/
#   make format  lay out all sources as .clang-format says
#   make clean   remove what the others have made

MODEL ?= weights/demo
BUILD := build
JOBS ?= $(shell nproc)
# Without a GPU there is nothing to gain from compiling for one.
CUDA := $(shell nvidia-smi -L >/dev/null 2>&1 && echo AUTO || echo OFF)

.PHONY: chat build test test-asan fuzz bench sanitize-gpu dist format clean

chat: build
	@$(BUILD)/tessera chat -m $(MODEL)

# A build folder that exists keeps its configuration, so that `make chat` after `make test` is quick.
build:
	@.ci/setup
	@test -e $(BUILD)/build.ninja || \
	  cmake --preset release -DTESSERA_TESTS=OFF -DTESSERA_CUDA=$(CUDA) >&2
	@cmake --build $(BUILD) --target tessera -j $(JOBS) >&2

test: test-asan
	@cmake --preset release -DTESSERA_TESTS=ON -DTESSERA_CUDA=AUTO >&2
	@cmake --build $(BUILD) -j $(JOBS) >&2
	@ctest --test-dir $(BUILD) --output-on-failure -j $(JOBS)

# Before the main run, so that the closing lines are those of the full suite.
test-asan:
	@.ci/setup --tests
	@cmake --preset asan >&2
	@cmake --build build-asan -j $(JOBS) >&2
	@ctest --test-dir build-asan --output-on-failure -j $(JOBS)

RUNS ?= 1200000
SEED ?= 1
fuzz:
	@.ci/setup --fuzz
	@python3 tests/fuzz/run.py --runs $(RUNS) --seed $(SEED)

bench: build
	@$(BUILD)/tessera bench -m $(MODEL)

sanitize-gpu:
	@.ci/setup --tests
	@cmake --preset release -DTESSERA_TESTS=ON -DTESSERA_CUDA=ON >&2
	@cmake --preset release -B build-racecheck -DTESSERA_TESTS=ON -DTESSERA_CUDA=ON \
	  -DTESSERA_RACECHECK=ON >&2
	@cmake --build $(BUILD) -j $(JOBS) --target kernels_test golden_test >&2
	@cmake --build build-racecheck -j $(JOBS) --target kernels_test golden_test >&2
	@tests/sanitize_gpu.sh $(BUILD) build-racecheck

dist:
	@.ci/setup --tests
	@.ci/dist

format:
	@.ci/setup --tests
	@git ls-files -co --exclude-standard '*.h' '*.cpp' '*.cu' '*.cuh' | xargs clang-format -i

clean:
	@rm -rf build build-asan build-dist build-fuzz build-racecheck dist
