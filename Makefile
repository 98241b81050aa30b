# `make help` lists what there is.

GO      ?= go
BIN     := $(CURDIR)/bin
LINT    := $(BIN)/golangci-lint
ENGINES := internal/engines
TIMEOUT ?= 45m
COUNT   ?= 20
MINUTES ?= 30
SEED    ?= 0

.DEFAULT_GOAL := help
.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: test
test: tools compiled ## what has to pass before a change is sent: format, vet, lint, all tests on both engines
	@$(MAKE) --no-print-directory -j2 quick-lint unit

# Code without debugging information and inlining compiles in half the time, and tests that run once gain more by that than they lose.
# Race and proof compile as users do.
test compiled lint quick-lint unit: export GOFLAGS := $(shell $(GO) env GOFLAGS) '-gcflags=github.com/mortise-go/mortise/...=-dwarf=false -l'

# COMPILE compiles everything, with fewer garbage collections than go test would: a quarter less time, for some memory.
COMPILE := GOGC=400 $(GO) list -export -test -deps

.PHONY: compiled
compiled: # quick-lint and unit run side by side, and would each compile everything
	$(COMPILE) ./... > /dev/null

.PHONY: tools
tools: $(LINT) engine ## install the pinned engine (npm) and linter (Go)

$(LINT): internal/tools/go.mod internal/tools/go.sum
	cd internal/tools && $(GO) build -o $(LINT) github.com/golangci/golangci-lint/v2/cmd/golangci-lint

.PHONY: engine
engine: $(ENGINES)/node_modules/.package-lock.json ## install DynamoDB Local at its pinned version

$(ENGINES)/node_modules/.package-lock.json: $(ENGINES)/package-lock.json
	cd $(ENGINES) && npm ci --no-fund --no-audit
	@touch $@

.PHONY: format
format: $(LINT) ## format all code
	$(LINT) fmt

LINTRUN := GOGC=400 $(LINT) run

.PHONY: lint
lint: $(LINT) ## check the format, and run go vet's checks and all other linters
	$(LINTRUN)

# SLOW are the linters that follow values through functions. They take as long as all others together.
SLOW := bodyclose,contextcheck,gosec,nilerr,noctx,unparam,wastedassign

.PHONY: quick-lint
quick-lint: $(LINT)
	$(LINTRUN) --disable $(SLOW)

# Worlds in virtual time are small, and there are thousands: fewer garbage collections take a tenth of the time away, for some memory.
unit race proof: export GOGC := 400

PLATFORMS := linux/386 windows/amd64 darwin/arm64

.PHONY: platforms
platforms: ## compile and vet everything, with its tests, for 32 bits, Windows and macOS
	@set -e; for p in $(PLATFORMS); do echo $$p; GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./...; done

ONCE    = $(GO) test -count=1 -timeout $(TIMEOUT) -vet=off
# COUNTED also prints failures once more at the end.
COUNTED = $(GO) run ./internal/engines/cmd/contracttest $(BIN)/contract-tests-$@.jsonl $(ONCE)
BOTH    = MORTISE_ENGINE=inprocess,dynamodb-local $(COUNTED)
# The tests of lock compute for long, those of the programs wait for processes: lock comes first, beside the waiting.
ALL  := ./lock ./...

# SIDE fills all processors with packages that use one each: what a package does in virtual time costs a fifth less on one, and
# some packages wait.
SIDE = -cpu 1 -p $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

.PHONY: unit
unit: engine ## all tests on both engines, without -race, and with two seeds of each simulation
	$(BOTH) -short $(SIDE) $(ALL)

# Tests that read the source have no goroutines worth a race detector. Of the two engines one is enough, since both have the same clients,
# and unit and proof test both. But the soak test is about real processes and connections.
RACED = ./lock $(filter-out %/internal/docscheck %/internal/archtest %/internal/proof/soak,$(shell $(GO) list ./...))

.PHONY: race
race: engine ## all tests with -race, with as few repetitions as make test; on the in-process engine, but the soak test on DynamoDB Local
	@$(COMPILE) -race $(RACED) > /dev/null
	MORTISE_ENGINE=inprocess $(COUNTED) -race -short $(RACED)
	MORTISE_ENGINE=dynamodb-local $(ONCE) -race ./internal/proof/soak

.PHONY: proof
proof: engine ## all tests in full on both engines, without -race: every fault, all replays, more seeds of the simulations
	$(COMPILE) ./... > /dev/null
	$(BOTH) $(SIDE) $(ALL)

.PHONY: quick
quick: ## as unit, on the in-process engine alone, and without what has not changed
	MORTISE_ENGINE=inprocess $(GO) test -short -timeout $(TIMEOUT) ./...

.PHONY: flakes
flakes: ## all tests COUNT=20 times with -race on the in-process engine, one package after the other
	MORTISE_ENGINE=inprocess $(GO) test -race -count=$(COUNT) -p 1 -timeout 4h ./...

.PHONY: differential
differential: engine ## compare 100,000 generated operations with DynamoDB Local
	MORTISE_ENGINE=inprocess,dynamodb-local $(GO) test ./table/tabletest -run TestDifferential -count=1 -v -timeout 30m -differential.ops=100000

SEEDS    ?= 1000
FROM     ?= 0
WORKLOAD ?=
TWIN     ?=
REQUESTS ?=

.PHONY: sim
sim: ## play SEEDS=1000 simulated worlds of each workload (FROM=0, WORKLOAD= for one of them)
	@$(GO) run ./internal/proof/sim/cmd/sim -seeds $(SEEDS) -from $(FROM) -workload "$(WORKLOAD)"

.PHONY: replay
replay: ## show what happened in the world of SEED=0 (WORKLOAD=lockset, TWIN=name, or true, without what it checks, REQUESTS=1 with all requests)
	@$(GO) run ./internal/proof/sim/cmd/replay -seed $(SEED) -workload "$(WORKLOAD)" $(if $(TWIN),-twin=$(TWIN)) $(if $(REQUESTS),-requests)

.PHONY: soak
soak: engine ## locks in real processes that are killed, stopped and cut off: MINUTES=30, SEED= to repeat a plan
	$(GO) build -o $(BIN)/soak ./internal/proof/soak/cmd/soak
	$(BIN)/soak -minutes $(MINUTES) -seed $(SEED)

RUN   ?=
TESTS ?=

.PHONY: mutants
mutants: ## break the lock protocol in every way of a list, and show which test notices (RUN= for some ways, TESTS= for some tests)
	$(GO) run ./internal/proof/mutants/cmd/mutants -run '$(RUN)' -tests '$(TESTS)'

DEEP     ?=
TRACE    ?=
PARALLEL ?= 2

.PHONY: spec
spec: ## check the models of the lock protocol (lock/spec) with Spin (RUN= for some, DEEP=1 for larger bounds, TRACE=1 to show what breaks, PARALLEL=2)
	@$(GO) run ./internal/proof/speccheck/cmd/speccheck -run '$(RUN)' -parallel $(PARALLEL) $(if $(DEEP),-deep) $(if $(TRACE),-trace)

.PHONY: docs-check
docs-check: ## check the Markdown pages: links, snippets, commands, names, error texts
	$(GO) test ./internal/docscheck -count=1

.PHONY: bench
bench: ## run the benchmarks
	MORTISE_ENGINE=inprocess $(GO) test -run '^$$' -bench . -benchmem ./...

FLAGS ?=

.PHONY: peers
peers: engine ## measure the lock beside other locks, in 6 minutes (FLAGS='-only pairs' for a part of it, FLAGS=-help for all flags)
	@mkdir -p $(BIN)
	@cd internal/peers && $(GO) build -buildvcs=auto -o $(BIN)/peers ./cmd/peers
	@$(BIN)/peers $(FLAGS)

.PHONY: peers-check
peers-check: $(LINT) engine ## vet, lint and test the module that `make peers` runs
	cd internal/peers && $(GO) mod tidy -diff && $(GO) vet ./... && $(LINT) run ./...
	cd internal/peers && MORTISE_ENGINE=inprocess,dynamodb-local $(GO) test -race -count=1 -timeout $(TIMEOUT) ./...

.PHONY: chromium
chromium:
	@command -v chromium chromium-browser google-chrome >/dev/null || { \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -q && \
		DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core; \
	} || { echo "There is no chromium, and it cannot be installed with apt-get: install it." >&2; exit 1; }

.PHONY: browser
browser: chromium $(LINT) ## test the console in a real Chromium, installed with apt-get (as root) where there is none
	cd internal/browser && $(GO) mod tidy -diff && $(GO) vet ./... && $(LINT) run ./...
	cd internal/browser && MORTISE_BROWSER=required $(GO) test -count=1 -timeout $(TIMEOUT) ./...

.PHONY: picture
picture: chromium ## make docs/console.png, the picture of the console
	@mkdir -p $(BIN) docs
	@cd internal/browser && $(GO) build -o $(BIN)/picture ./cmd/picture
	@$(BIN)/picture

.PHONY: clean
clean: ## remove what the commands above have installed and written
	rm -rf $(BIN) $(ENGINES)/node_modules
