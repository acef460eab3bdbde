# The recipes; `just` lists them. Each is a cargo command or a script that runs without `just` too.

# Where recorded answers of real injectors are; tests pass over without them.
corpus := env("INJECTD_CORPUS", "")

[private]
default:
    @just --list --unsorted

# Everything a change has to pass, but for what needs a cluster.
ci: lint test parity deny

# Formatting and clippy, warnings denied.
lint:
    cargo fmt --all --check
    cargo clippy --all-targets --locked -- -D warnings

# All tests that need nothing outside of the project.
test:
    cargo test --locked

# Our answers against those recorded from real injectors ($INJECTD_CORPUS); prints the counts.
parity:
    INJECTD_CORPUS={{ corpus }} cargo test --locked --release --test parity core_answers_as_recorded

# The fast renderer against the slow one on a million random reviews.
agreement cases="1000000":
    INJECTD_AGREEMENT_CASES={{ cases }} cargo test --locked --release --test agreement -- --nocapture

# Rewrite the golden cases; read the diff.
bless:
    BLESS=1 cargo test --locked --test golden

# The release build optimized by profile, as the image has it; half an hour (llvm-profdata, h2load).
pgo *file:
    deploy/pgo.sh {{ file }}

# Licences, sources, banned crates (cargo-deny).
deny:
    cargo deny check bans licenses sources

# Criterion benches of every step of a review, three sizes, each beside a baseline.
bench *args:
    cargo bench --locked --bench review -- {{ args }}

# Instructions per review by callgrind, against the committed figures; BLESS=1 writes them anew.
instructions:
    cargo bench --locked --bench instructions

# Instructions per byte of a review that is large in one place, for every place, by callgrind.
cost:
    cargo bench --locked --bench cost

# CPU of a request by part of the program, beside the echo's (perf; a release build).
profile seconds="5":
    cargo build --release --locked --bin injectd --example echo
    python3 loadtest/load/parts.py {{ seconds }}

# Load on the webhook door and on the echo in turn (h2load).
rounds *args:
    loadtest/run.sh {{ args }}

# The whole load test (h2load, k6, ghz, the API server) into loadtest/runs/DATE: `pgo`, then twenty minutes.
load *args:
    loadtest/load.sh {{ args }}

# Any bytes into the core (cargo-fuzz).
fuzz seconds="60":
    mkdir -p fuzz/corpus/raw_body
    RUSTC_BOOTSTRAP=1 cargo fuzz run raw_body fuzz/corpus/raw_body fuzz/seeds/raw_body -- \
        -dict=fuzz/raw_body.dict -max_total_time={{ seconds }}

# A real API server calls the webhook ($KUBECONFIG, else a local control plane).
e2e:
    e2e/run.sh

# The gRPC door on a real API server: clients in Go and Python, mutual TLS, tokens, sockets, abuse.
grpc:
    e2e/grpc.sh

# CPU of a gRPC call beside a review of the same object (ghz, h2load).
ghz *args:
    loadtest/ghz/run.sh {{ args }}

# Pods through a real API server: with injectd, with a MutatingAdmissionPolicy, with nothing.
apiserver *args:
    loadtest/apiserver/run.sh {{ args }}

# Linkerd's injector swapped for ours and back, on a real API server ($INJECTD_CORPUS; root).
swap:
    INJECTD_CORPUS={{ corpus }} e2e/swap.sh

# Two replicas on a real API server while everything around them changes, fails and comes back.
storm *args:
    e2e/storm.sh {{ args }}

# A well-behaved client beside attackers, measured; --smoke takes less than a minute.
attack *args:
    cargo build --release --locked --bin injectd --example echo --example paced
    python3 -B e2e/attack.py {{ args }}

# What the process holds for namespaces, pods, owners and overrides, and how fast it starts.
memory *args:
    e2e/memory.sh {{ args }}

# The container of Linkerd's Deployment with our binary in it, manifest by manifest ($INJECTD_CORPUS; root).
dropin:
    INJECTD_CORPUS={{ corpus }} e2e/dropin.sh

# That container under load: files swapped thousands of times, ten thousand connections, SIGTERM (root).
endurance *args:
    INJECTD_CORPUS={{ corpus }} e2e/dropin.sh endurance {{ args }}
