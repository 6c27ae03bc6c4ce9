# make help lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help build tidemark test test-product test-e2e demo bench bench-check bench-go chaos chaos-histories chaos-guards lint check-rules check-kubernetes licenses vulncheck fmt clean

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

# One set of build flags everywhere, or every set fills a build cache of its own.
build: tidemark ## bin/tidemark, and bin/devstack: Temporal, S3 and Postgres for development
	@echo "building bin/devstack (the first time takes 5 to 10 minutes: it embeds a Temporal server)"
	@cd cmd/devstack && go build -o ../../bin/devstack .

tidemark: ## bin/tidemark alone
	@mkdir -p bin
	@echo "building bin/tidemark"
	@go build -o bin/tidemark ./cmd/tidemark

test: ## all tests, on real Postgres 15 and 18, Temporal, S3 and Chromium; installs what is missing
	@scripts/bootstrap
	@scripts/test

test-product: ## the product's tests alone
	@scripts/bootstrap
	@scripts/test product

test-e2e: ## the end-to-end tests alone; RUN=<pattern> for some of them
	@scripts/bootstrap
	@scripts/test e2e "$(RUN)"

demo: ## Tidemark on a fresh stack under a live write load; ONCE=1 to stop by itself, ARGS for more flags
	@scripts/bootstrap demo
	@$(MAKE) --no-print-directory build
	@bin/devstack demo $(if $(ONCE),-once) $(ARGS)

bench: ## speed and memory on a fresh stack, into bench.json; QUICK=1 for less work, ARGS for more flags
	@scripts/bootstrap
	@$(MAKE) --no-print-directory build
	@bin/devstack bench $(if $(QUICK),-quick) $(ARGS)

bench-check: ## which figures have moved beyond their spread: BEFORE=old.json AFTER=bench.json
	@cd cmd/devstack && go run ./bench/check "$(abspath $(or $(BEFORE),$(error say BEFORE=, a bench.json from before)))" "$(abspath $(or $(AFTER),bench.json))"

chaos: ## break everything under load and count what is lost: MINUTES=5, SEED=n for a certain choice, ARGS for more flags
	@scripts/bootstrap
	@$(MAKE) --no-print-directory build
	@bin/devstack chaos -minutes $(or $(MINUTES),5) $(if $(SEED),-seed $(SEED)) $(ARGS)

chaos-histories: ## random short histories of commits and faults; N=100 of them, failing ones are made shorter
	@scripts/bootstrap
	@cd cmd/devstack && go test -vet=off -count=1 -v -timeout 24h ./chaos -run EveryHistory -chaos.histories $(or $(N),100)

chaos-guards: ## break each guard on purpose, and see that the histories find it; ARGS for more flags
	@scripts/bootstrap
	@cd cmd/devstack && go test -vet=off -count=1 -v -timeout 6h -tags chaos_guards ./chaos -run BrokenGuard $(ARGS)

bench-go: ## benchmarks of single packages
	@go test -run '^$$' -bench . -benchmem ./... | grep -v 'no test files'

lint: ## golangci-lint, which has to be installed, over both modules
	@command -v golangci-lint >/dev/null || { echo "golangci-lint is missing: go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0"; exit 1; }
	golangci-lint run ./...
	cd cmd/devstack && golangci-lint run --config ../../.golangci.yml ./...

check-rules: ## the alert rules, with promtool, which has to be installed
	@command -v promtool >/dev/null || { echo "promtool is missing: it comes with Prometheus (on Debian: apt-get install prometheus)"; exit 1; }
	promtool check rules deploy/prometheus/*.rules.yml

check-kubernetes: ## deploy/kubernetes, with kubectl and kubectl-validate, which have to be installed
	@scripts/check-kubernetes

licenses: ## docs/licenses.md, anew from the modules that are linked into the binary
	@go test -count=1 -run Licenses ./internal -update

# Its database is asked for at vuln.go.dev, which not every machine reaches.
vulncheck: ## known vulnerabilities in what the binary calls, by govulncheck
	@go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./...

fmt: ## gofmt over both modules
	@gofmt -l -w $$(git ls-files '*.go')

clean: ## what was built; what was installed in .work stays
	rm -rf bin
