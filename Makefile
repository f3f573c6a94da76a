# Programs that `make bench` compares with, from the distribution:
#   apt-get install -y wrk apache2-utils nghttp2-client nginx-light
# PROFILE=bench-max builds with everything the compiler can do; BENCH="--repeats 9" passes options on.
PROFILE ?= release
BENCH ?=

.PHONY: bench
bench:
	cargo build --profile $(PROFILE)
	python3 -B bench/bench.py --profile $(PROFILE) $(BENCH)
