# `make check` while you work (no root, no devices), `make test` before you hand in: it is what CI runs.

PREFIX ?= /usr/local
CARGO ?= cargo
BENCH ?=
BINDIR = $(DESTDIR)$(PREFIX)/bin
TARGET = $(or $(CARGO_TARGET_DIR),target)

MDBOOK = $(TARGET)/tools/bin/mdbook

.PHONY: all check book test test-deps devices python lint fuzz-check doc unit bench bench-quick install uninstall clean

all:
	$(CARGO) build --release --locked --features fleet

# Formatting, lints, unit tests and the rules of the tree.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	$(CARGO) test --workspace --lib --bins --locked --quiet -- --skip a_browser
	$(CARGO) test --package polygraph-tidy --locked --quiet

# The pages of docs/ as a book with search, in target/book; fails on warnings and dead links.
book: $(MDBOOK)
	python3 -B book/build.py '$(MDBOOK)'

$(MDBOOK):
	$(CARGO) install --locked --quiet mdbook --version 0.5.4 --no-default-features --features search --root '$(TARGET)/tools'

# Cheap checks first.
test: test-deps
	$(MAKE) lint
	$(MAKE) unit
	$(MAKE) doc

test-deps: devices python

# Packages of the devices under test, those that are missing; their services stay off.
devices:
	sh devices/install.sh

# DuckDB and pandas, which the tests read exported tables with.
python:
	sh crates/export/tests/python.sh '$(TARGET)/python'

lint:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	# The workspace has the client of NATS; a plain build of the program does not.
	$(CARGO) clippy --package polygraph-fleet --no-default-features --locked -- -D warnings
	$(MAKE) fuzz-check

# Fuzz targets are a workspace of their own that only a nightly compiler can link; any compiler can check it. The
# path, of which nothing is read, keeps libFuzzer itself from being built.
fuzz-check:
	CUSTOM_LIBFUZZER_PATH=/not-linked/libfuzzer.a \
		$(CARGO) check --locked --manifest-path fuzz/Cargo.toml --target-dir '$(TARGET)/fuzz'

# Most tests of the program wait for clocks and sockets, so there are more threads than cores. The few that fail are
# run a second time, alone.
unit:
	CARGO='$(CARGO)' sh crates/test.sh

doc:
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

# Processor time per transaction against peers, and of the workload compiler; writes bench/RESULTS.md.
# BENCH=--compiler-only measures the compiler alone and leaves the rest of the page as it is.
# What is measured is what `make install` installs. BENCH="--repeats 9" passes options on.
# `bench-quick` takes under three minutes and writes no page. Both add their ratios to bench/history.csv.
bench bench-quick: all
	python3 -B bench/bench.py $(if $(filter bench-quick,$@),--quick) $(BENCH)

# The program, and its classic names as links to it.
install: all
	install -d '$(BINDIR)'
	install -m 755 '$(TARGET)/release/polygraph' '$(BINDIR)/polygraph'
	for name in $$('$(BINDIR)/polygraph' installed-names); do ln -sf polygraph "$(BINDIR)/$$name"; done

uninstall:
	for name in $$('$(BINDIR)/polygraph' installed-names); do rm -f "$(BINDIR)/$$name"; done
	rm -f '$(BINDIR)/polygraph'

clean:
	$(CARGO) clean
