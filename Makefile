# SPDX-License-Identifier: MIT
#
# The few commands a person types; meson does the work. `make help` lists them.
#
#   SETUP=0        never install packages: say what is missing and stop
#   BUILD=build    the build folder; prefix=/usr/local, DESTDIR= as usual for install
#   ONLY='unit e2e' only these suites of make test (tests/run --list)

SETUP  ?= 1
BUILD  ?= build
prefix ?= /usr/local
PYTHON ?= $(firstword $(wildcard /usr/bin/python3) python3)
JOBS   ?= $(shell nproc 2>/dev/null || echo 2)
FUZZ_SECONDS ?= 60

export SETUP PYTHON JOBS FUZZ_SECONDS

.PHONY: all build setup demo test check-all unit e2e asan tsan fuzz fresh bench bench-stack \
	install uninstall wheel deb clean format lint docs peers zoo help

all: build			## build (the default): leaves build/spotter

build:
	@SETUP=check tools/setup build || { echo "or: make setup" >&2; exit 1; }
	@test -d $(BUILD)/npm/node_modules/uplot -o -f $(BUILD)/npm/no-uplot || BUILD=$(BUILD) tools/setup web
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD)
	@ninja -C $(BUILD) -j $(JOBS)

setup:				## install what is missing for building, testing and benchmarks
	@rm -f $(BUILD)/npm/no-uplot $(BUILD)/engines/none
	@BUILD=$(BUILD) tools/setup build test more web browser

demo:				## watch a small busy program for some seconds and show the verdict
	@tools/setup build
	@$(MAKE) --no-print-directory build
	@tools/demo $(BUILD)/spotter

test:				## every test; the last line is "N passed, N failed"
	@BUILD=$(BUILD) tools/setup build test
	@test -d $(BUILD)/npm/node_modules/uplot -o -f $(BUILD)/npm/no-uplot || BUILD=$(BUILD) tools/setup web
	@BUILD=$(BUILD) tools/setup pages
	@$(PYTHON) tests/run --build $(BUILD) $(ONLY)

check-all:			## make test, then long tests, fuzzing and a clang build
	@BUILD=$(BUILD) tools/setup build test more web browser
	@$(PYTHON) tests/run --build $(BUILD) --long $(ONLY)

unit e2e asan tsan:		## one part of make test
	@BUILD=$(BUILD) tools/setup build test
	@$(PYTHON) tests/run --build $(BUILD) $@

fuzz:				## libFuzzer, FUZZ_SECONDS=60 for each target
	@tools/setup build more
	@tools/fuzz $(FUZZ_TARGETS)

fresh:				## make test and make demo on a fresh Debian 12 (root; debootstrap, some minutes)
	@tools/fresh

bench:				## the cost of it all, as ratios to other tools
	@tools/setup build test more
	@$(MAKE) --no-print-directory build
	@bench/host
	@bench/gpu
	@bench/stack
	@bench/hooks

bench-stack:			## the cost of stacks beside py-spy and austin; 11 minutes, 3 with QUICK=1
	@tools/setup build test more
	@$(MAKE) --no-print-directory build
	@tools/peers $(BUILD)/peers > /dev/null
	@SPOTTER_BUILD=$(BUILD) bench/stack $(if $(QUICK),--quick) $(if $(ANYWAY),--anyway)

install: build			## DESTDIR and prefix as usual
	@meson configure $(BUILD) -Dprefix=$(abspath $(prefix))
	@meson install -C $(BUILD)

uninstall:			## take out what make install put there
	@ninja -C $(BUILD) uninstall

wheel: build			## a wheel for pip: leaves build/dist/spotter-*.whl
	@$(PYTHON) packaging/python/wheel_backend.py --build $(BUILD) $(BUILD)/dist

deb:				## Debian packages, in build/deb (needs debhelper)
	@packaging/deb $(BUILD)/deb || [ $$? = 77 ]

clean:				## remove every build folder
	rm -rf build build-asan build-tsan build-fuzz build-clang build-fresh build-wheel

format:				## clang-format every C file
	@$(PYTHON) tools/style.py --list-c | xargs clang-format -i

lint:				## who includes whom, style, format
	@$(PYTHON) tools/layers.py
	@$(PYTHON) tools/style.py

docs:				## write the generated pages again (docs/metrics.md, docs/top.svg)
	@$(PYTHON) tools/metrics_page.py > docs/metrics.md.new
	@mv docs/metrics.md.new docs/metrics.md
	@$(PYTHON) tools/screen_svg.py tests/golden/screens/overview-docs-132x38-true.txt > docs/top.svg.new
	@mv docs/top.svg.new docs/top.svg

peers:				## fetch gpustat, nvitop, nvidia-ml-py (and NVTOP_SOURCE=), py-spy, austin, perfetto to compare with
	@tools/peers $(BUILD)/peers

zoo:				## record real programs with real ailments and score the verdicts (1.5 h as root; docs/zoo.md)
	@tools/setup build test zoo
	@$(MAKE) --no-print-directory build
	@zoo/zoo record $(CASES)
	@[ "$$(id -u)" != 0 ] || zoo/zoo record --user $(CASES)
	@zoo/zoo score --json build/zoo/score.out

help:				## this list
	@sed -n 's/^\([a-z0-9 -]*\):[^#]*##[[:space:]]*/\1\t/p' $(MAKEFILE_LIST) | \
		awk -F '\t' '{ printf "  make %-20s %s\n", $$1, $$2 }'
