# `make check` while you work (no root, no devices), `make test` before you hand in: it is what CI runs.

PREFIX ?= /usr/local
CARGO ?= cargo
# Cargo uses this one as well when it is set.
RUSTC ?= rustc
BENCH ?=
# Cargo's profile of what is installed; `make dist` packs `dist`.
PROFILE ?= release
BINDIR = $(DESTDIR)$(PREFIX)/bin
SYSCONFDIR ?= /etc
UNITDIR = $(DESTDIR)$(PREFIX)/lib/systemd/system
TARGET = $(or $(CARGO_TARGET_DIR),target)

# Which build it is: a release at its tag, or a commit. Without git, Cargo finds out whether this is a clone.
BUILD = $(shell git describe --tags --exact-match --match 'v*' >/dev/null 2>&1 && echo release || git describe --always --dirty --exclude '*' 2>/dev/null)

# What an installed program has, and a first `cargo run --release -- try` need not build.
FEATURES = fleet,kerberos,manual,mimalloc,parquet,tls

# The targets of release archives, and the one of `make static`. A target without a Rust standard library on this machine is left out.
DIST_TARGETS ?= x86_64-unknown-linux-musl aarch64-unknown-linux-musl
HOST_ARCH = $(shell uname -m)
HAS_MUSL = $(wildcard $(shell $(RUSTC) --print target-libdir --target $(HOST_ARCH)-unknown-linux-musl)/libstd-*.rlib)
STATIC_TARGET ?= $(HOST_ARCH)-unknown-linux-$(if $(HAS_MUSL),musl,gnu)
# SBOM=no: without the list of components, whose tool takes minutes to build.
SBOM ?= yes

MDBOOK = $(TARGET)/tools/bin/mdbook
CYCLONEDX = $(TARGET)/tools/bin/cargo-cyclonedx

.PHONY: all check book test test-deps devices python h2spec lint fuzz-check doc unit bench bench-quick bench-protocols install install-services uninstall static dist dist-check image clean

all:
	POLYGRAPH_BUILD='$(BUILD)' $(CARGO) build --profile $(PROFILE) --locked --features $(FEATURES)

# Formatting, lints, unit tests and the rules of the tree.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features polygraph/manual --locked -- -D warnings
	$(CARGO) test --workspace --lib --bins --features polygraph/manual --locked --quiet -- --skip a_browser
	$(CARGO) test --package polygraph-tidy --locked --quiet

# The pages of docs/ as a book with search, in target/book; fails on warnings and dead links.
book: $(MDBOOK)
	python3 -B book/build.py '$(MDBOOK)'

$(MDBOOK):
	$(CARGO) install --locked --quiet mdbook --version 0.5.4 --no-default-features --features search --root '$(TARGET)/tools'

# Cheap checks first.
test: test-deps
	$(MAKE) lint
	$(MAKE) doc
	$(MAKE) unit

test-deps: devices python

# Packages of the devices under test, those that are missing; their services stay off.
devices:
	sh devices/install.sh

# DuckDB and pandas, which the tests read exported tables with, and pyspnego, a peer for authentication.
python:
	sh crates/export/tests/python.sh '$(TARGET)/python'

# The conformance tests of h2spec, a Go program that must be in PATH, against servers with and without TLS.
H2SPEC ?= h2spec
h2spec: all
	sh crates/cli/tests/h2spec.sh '$(TARGET)/$(PROFILE)/polygraph' '$(H2SPEC)'

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features polygraph/manual --locked -- -D warnings
	# The workspace has the client of NATS and Parquet; a plain build of the program does not.
	$(CARGO) clippy --package polygraph-export --package polygraph-fleet --no-default-features --locked -- -D warnings
	$(MAKE) fuzz-check

# Fuzz targets are a workspace of their own that only a nightly compiler can link; any compiler can check it. The
# path, of which nothing is read, keeps libFuzzer itself from being built.
fuzz-check:
	CUSTOM_LIBFUZZER_PATH=/not-linked/libfuzzer.a \
		$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir '$(TARGET)'

# Most tests of the program wait for clocks and sockets, so there are more threads than cores. The few that fail are
# run a second time, alone.
unit:
	CARGO='$(CARGO)' sh crates/test.sh

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

# Processor time per transaction against peers, and of the workload compiler; writes bench/RESULTS.md.
# BENCH=--compiler-only measures the compiler alone and leaves the rest of the page as it is.
# Both engines are measured, and then the protocols (see below): it takes about 55 minutes, 25 and 30. With BENCH, the protocols are
# left out; BENCH="--minutes 60" takes more time for narrower intervals.
# What is measured is what `make install` installs. BENCH="--repeats 9" passes options on.
# `bench-quick` takes under three minutes and writes no page. Both add their ratios to bench/history.csv.
bench bench-quick: all
	python3 -B bench/bench.py $(if $(filter bench-quick,$@),--quick) $(BENCH)
	$(if $(filter bench,$@),$(if $(BENCH),,python3 -B bench/protocols.py))

# TLS, HTTP/2 and HTTP/3 beside others; writes bench/PROTOCOLS.md. `make bench` without BENCH includes it.
bench-protocols: all
	python3 -B bench/protocols.py $(BENCH)

# The program, its classic names as links to it, man pages and completions of shells.
install: all
	install -d '$(BINDIR)'
	install -m 755 '$(TARGET)/$(PROFILE)/polygraph' '$(BINDIR)/polygraph'
	for name in $$('$(BINDIR)/polygraph' installed-names); do ln -sf polygraph "$(BINDIR)/$$name"; done
	'$(BINDIR)/polygraph' extras '$(DESTDIR)$(PREFIX)' >/dev/null

# Units of systemd for agents and servers, with files for their options. Existing files with options are kept.
install-services:
	install -d '$(UNITDIR)' '$(DESTDIR)$(SYSCONFDIR)/default'
	for unit in agent server; do \
		sed 's|/usr/local/bin/|$(PREFIX)/bin/|' deploy/polygraph-$$unit.service >'$(UNITDIR)'/polygraph-$$unit.service; \
		chmod 644 '$(UNITDIR)'/polygraph-$$unit.service; \
		options='$(DESTDIR)$(SYSCONFDIR)/default'/polygraph-$$unit; \
		test -e "$$options" || install -m 644 deploy/polygraph-$$unit.default "$$options"; \
	done

uninstall:
	'$(BINDIR)/polygraph' extras --list '$(DESTDIR)$(PREFIX)' | while read -r file; do rm -f "$$file"; done
	for name in $$('$(BINDIR)/polygraph' installed-names); do rm -f "$(BINDIR)/$$name"; done
	rm -f '$(BINDIR)/polygraph' '$(UNITDIR)/polygraph-agent.service' '$(UNITDIR)/polygraph-server.service'

# LLD, which Rust brings along for this target, keeps one of several functions with the same code: 1 % of the size.
FOLDED = $(if $(filter x86_64-unknown-linux-gnu,$(STATIC_TARGET)),-C link-arg=-Wl$(comma)--icf=all)
comma := ,

# A program that needs no library, in target/static/polygraph: for musl, or else with glibc linked statically.
static:
	# Position-independent programs have tens of thousands of relocations, which take a tenth of the space when packed.
	CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	RUSTFLAGS='-C target-feature=+crt-static -C link-arg=-Wl,-z,pack-relative-relocs $(FOLDED)' \
	POLYGRAPH_BUILD='$(BUILD)' \
		$(CARGO) build --profile $(PROFILE) --locked --features $(FEATURES) --target $(STATIC_TARGET)
	install -D '$(TARGET)/$(STATIC_TARGET)/$(PROFILE)/polygraph' '$(TARGET)/static/$(STATIC_TARGET)/polygraph'
	ln -sf '$(STATIC_TARGET)/polygraph' '$(TARGET)/static/polygraph'

# Nothing unwinds through the C code of a release, and tables that say how are 1 % of its size.
# (Not twice: C code is compiled again when its options change.)
static dist image: export CFLAGS := $(filter-out -fno-asynchronous-unwind-tables,$(CFLAGS)) -fno-asynchronous-unwind-tables

# Everything that a release publishes, in dist/.
dist: PROFILE = dist
dist: BUILD = release
# For all builds of a release, because those of C code depend on it.
dist: export SOURCE_DATE_EPOCH := $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null || date +%s))
dist: all $(if $(filter yes,$(SBOM)),$(CYCLONEDX))
	POLYGRAPH_BUILD='$(BUILD)' CARGO='$(CARGO)' RUSTC='$(RUSTC)' TARGET='$(TARGET)' FEATURES='$(FEATURES)' PROFILE='$(PROFILE)' DIST_TARGETS='$(DIST_TARGETS)' \
		CYCLONEDX='$(if $(filter yes,$(SBOM)),$(CYCLONEDX))' sh deploy/dist.sh

$(CYCLONEDX):
	$(CARGO) install --locked --quiet cargo-cyclonedx --version 0.5.9 --root '$(TARGET)/tools'

# What users do with the packages in dist/, in clean roots; needs root and Debian's packages mmdebstrap and lintian. CI of every change
# does not run it.
dist-check:
	sh deploy/dist-check.sh

# An image for containers, from the static program.
image: PROFILE = dist
image: BUILD = release
image: static
	rm -rf '$(TARGET)/image'
	sh deploy/image-root.sh '$(TARGET)/static/polygraph' '$(TARGET)/image'
	container=$$(buildah from scratch) && \
		buildah copy "$$container" '$(TARGET)/image' / && \
		buildah config --user 65532:65532 --workingdir /work --stop-signal SIGTERM --entrypoint '["/usr/bin/polygraph"]' --cmd --help "$$container" && \
		buildah commit --rm "$$container" polygraph

clean:
	$(CARGO) clean
