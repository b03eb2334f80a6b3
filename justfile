# What there is to do here; `just` alone lists it. Everything works without just as well: README.md has the commands.

_default:
    @just --list --unsorted

# Serve the page on 127.0.0.1:7070
serve *arguments:
    cargo run --release -- serve {{ arguments }}

# Write all code in its format
fmt:
    cargo fmt --all

# Format and lints, as the tests demand them
lint:
    tests/run format lint pure

# Every test but the journeys
test:
    tests/run test

# The journeys through Chromium
e2e:
    tests/run journeys

# What takes longer than `tests/run` may: other random cases, and more of them; kills, damage, garbage, a load; all golden pictures,
# random gestures on all files, the main journeys through Firefox, and the views in WebKit. just soak minutes=30
soak minutes="10" cases="2000":
    VRAMSCOPE_PAGE=skip PROPTEST_CASES={{ cases }} cargo test --package session --package allocator --no-fail-fast
    VRAMSCOPE_PAGE=skip VRAMSCOPE_SOAK_SECONDS=$(( {{ trim_start_match(minutes, "minutes=") }} * 10 )) \
        cargo test --package tests --no-fail-fast --test ingest --test publish --test shares soak:: -- --nocapture --test-threads 1
    cargo build --release --features published-page
    VRAMSCOPE_SOAK=1 VRAMSCOPE_PROGRAM=target/release/vramscope tests/run journeys firefox webkit

# Measure: the core natively, then this page and, given its folder, PyTorch's
bench peer="" *files:
    cargo bench --package session --package allocator
    cargo bench --package collector --package vramscope
    cargo build --release
    node tests/measure/pages.mjs {{ if peer == "" { "" } else { "--peer " + peer } }} {{ files }}
    node tests/measure/live.mjs

# Fuzz a target, for a minute by default; needs cargo-fuzz. Threads of `ingest` and `store` that are ending would be reported as leaks
fuzz target="import" seconds="60":
    cd tests/fuzz && VRAMSCOPE_PAGE=skip RUSTC_BOOTSTRAP=1 ASAN_OPTIONS=detect_leaks={{ if target =~ "ingest|store" { "0" } else { "1" } }} \
        cargo fuzz run {{ if target =~ "ingest|store" { "--features server" } else { "" } }} {{ target }} -- -max_total_time={{ seconds }}

# Check the driver on a real GPU; says skipped, and why, where there is none
gpu-test:
    VRAMSCOPE_PAGE=skip cargo test --release --package tests --test gpu -- --nocapture a_real_gpu

# Compare the allocator with a PyTorch release for some minutes: just differential 2.11 minutes=5
differential torch="2.11" minutes="10":
    VRAMSCOPE_PAGE=skip cargo build --release
    python3 tests/differential/farm.py --torch {{ torch }} --minutes {{ trim_start_match(minutes, "minutes=") }}

# Compare what `whatif` predicts with PyTorch; each argument is a command that runs a Python with torch
[positional-arguments]
whatif-truth *pythons:
    VRAMSCOPE_PAGE=skip cargo build --release
    tests/truth/truth.py --table shared/whatif/src/TRUTH.md "$@"

# Ask the doctor which line leaks, of programs whose answer is known: downloads PyTorch 2.11 once
leaks-truth *jobs:
    VRAMSCOPE_PAGE=skip cargo build
    tests/truth/leaks/leaks.py {{ if jobs == "" { "--table tests/truth/leaks/RESULTS.md" } else { jobs } }}

# Ask what changed between programs that differ in one known thing: downloads PyTorch 2.8, 2.11 and 2.15 once
changes-truth *pairs:
    VRAMSCOPE_PAGE=skip cargo build
    tests/truth/changes/changes.py {{ if pairs == "" { "--table tests/truth/changes/RESULTS.md" } else { pairs } }}

# Measure a malloc and a free beside PyTorch's, in one process
beside *scripts:
    VRAMSCOPE_PAGE=skip cargo build --release --package callable
    python3 tests/measure/allocator/beside.py {{ scripts }}

# The Python package with its library and the program, as a wheel for this machine in dist/: of what cargo build --release makes
wheel:
    python3 -m pip wheel --no-deps --wheel-dir dist ./collector/python

# The wheels for all machines, with prebuilt trackers, and the sources, in dist/; or for some: just wheels x86_64-unknown-linux-gnu
wheels *targets:
    python3 -m venv target/tools/zig
    target/tools/zig/bin/python -m pip install --quiet cargo-zigbuild==0.24.0 ziglang==0.17.1
    cd collector/python && python3 -m packager sdist
    cd collector/python && PATH="$PWD/../../target/tools/zig/bin:$PATH" python -m packager wheels {{ targets }}

# Check a wheel, and everything from an empty virtual environment to the page
wheel-test wheel:
    VRAMSCOPE_PAGE=skip VRAMSCOPE_WHEEL={{ wheel }} cargo test --package tests --test wheel -- --include-ignored --nocapture

# The program as users install it, for this machine, in dist/
program:
    cargo build --profile wheel --package vramscope --features published-page --bin vramscope
    mkdir -p dist
    cp target/wheel/vramscope{{ if os() == "windows" { ".exe" } else { "" } }} dist/vramscope-{{ os() }}-{{ arch() }}{{ if os() == "windows" { ".exe" } else { "" } }}

# Write the SHA-256 of each file in dist/ beside them
checksums:
    cd dist && rm -f SHA256SUMS && sha256sum -- * > SHA256SUMS.part && mv SHA256SUMS.part SHA256SUMS

# Set a version everywhere and date the changelog; a tag starts the release
release version:
    python3 .github/release.py prepare {{ version }}

# Print what the changelog says of a version
release-notes version:
    @python3 .github/release.py notes {{ version }}

# The server alone in a container
container tag="vramscope":
    {{ container_engine }} build --file collector/Containerfile --tag {{ tag }} .

# Pushes an image to its registry, as the user GITHUB_ACTOR with the password TOKEN
container-push tag:
    printenv TOKEN | {{ container_engine }} login "$(echo "{{ tag }}" | cut -d/ -f1)" --username "$GITHUB_ACTOR" --password-stdin
    {{ container_engine }} push {{ tag }}

# The Python package's tests with real PyTorch jobs; PYTHON is a command that runs a Python with torch
torch-test python:
    VRAMSCOPE_PAGE=skip VRAMSCOPE_TORCH_PYTHON="{{ python }}" cargo test --package tests --test python -- --nocapture

# What the agent and the allocator cost in a job, beside the same job alone
torch-bench python:
    VRAMSCOPE_PAGE=skip cargo build --release --package pluggable
    tests/measure/agent.py "{{ python }}"
    tests/measure/per_event.py "{{ python }}"
    VRAMSCOPE_LIBRARY=target/release/libvramscope_pluggable.so {{ python }} tests/measure/pluggable.py

# On a GPU: training jobs recorded and on this allocator, failures and what avoids them. PYTHON has torch and this package
gpu-bench python="python3":
    {{ python }} tests/measure/gpu/recorded.py
    {{ python }} tests/measure/gpu/swapped.py
    {{ python }} tests/measure/gpu/remedy.py

# The page while it watches a job: how late, how smooth, how much memory
live-bench *arguments:
    cargo build --release
    node tests/measure/live.mjs {{ arguments }}
