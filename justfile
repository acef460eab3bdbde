# `just` lists the recipes. Each is a cargo command or a script, which also runs without `just`.

# Folder with recorded answers of real injectors. Without it, the tests that need it are skipped.
corpus := env("INJECTD_CORPUS", "")

[private]
default:
    @just --list --unsorted

# Checks for every change, except those that need a cluster (.ci/run runs all).
ci: lint test parity deny

# Check the format, and run clippy with warnings denied.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings
    cargo clippy --lib --features profiling --locked -- -D warnings

# Run the tests that need nothing outside of the repository.
test:
    cargo test --locked

# Compare injectd's answers with recorded ones of real injectors ($INJECTD_CORPUS); prints counts.
parity:
    INJECTD_CORPUS={{ corpus }} cargo test --locked --release --test parity

# Compare the fast renderer with the reference renderer on a million random reviews; some minutes.
agreement cases="1000000":
    INJECTD_AGREEMENT_CASES={{ cases }} cargo test --locked --release --test agreement -- --nocapture

# Inject pods with a million random hostile values in each mode of --tainted-values; ten minutes.
tainted pods="165000":
    INJECTD_CORPUS={{ corpus }} INJECTD_TAINT_CASES={{ pods }} cargo test --locked --release -p injectd-istio --test taint -- --nocapture

# Rewrite the golden cases and the generated code; read the diff.
bless:
    BLESS=1 cargo test --locked --test golden --test generated

# Record anew what Kubernetes' YAML libraries read (Go); read the counts.
record-yaml:
    RECORD=1 cargo test --locked -p injectd-yaml --test battery recorded_answers -- --nocapture

# Compare YAML that is read, written and edited with Kubernetes' libraries, at random (Go).
ask-yaml count="5000":
    INJECTD_ASK_GO={{ count }} cargo test --locked -p injectd-yaml --test battery go_ -- --nocapture

# Record anew what Kubernetes' strategic merge makes of Pods and patches (Go); read the counts.
record-merge:
    RECORD=1 cargo test --locked -p injectd-merge --test battery recorded_answers -- --nocapture

# Compare the merge and its table of types with Kubernetes' library, on random Pods (Go).
ask-merge count="20000":
    INJECTD_ASK_GO={{ count }} cargo test --locked -p injectd-merge --test battery of_go_now -- --nocapture

# Record anew what Go's templates and sprig render (Go); read the counts.
record-templates:
    RECORD=1 cargo test --locked -p injectd-gotemplate --test battery recorded_answers -- --nocapture

# Compare the templates with Go's on random ones (Go).
ask-templates count="4000":
    INJECTD_ASK_GO={{ count }} cargo test --locked -p injectd-gotemplate --test battery answers_of_go_now -- --nocapture

# Record anew what Kubernetes' CEL says of expressions (Go); read the counts.
record-cel:
    RECORD=1 cargo test --locked -p injectd-cel --lib recorded_answers -- --nocapture

# Compare CEL with Kubernetes' on random expressions (Go).
ask-cel count="20000":
    INJECTD_ASK_GO={{ count }} cargo test --locked -p injectd-cel --lib answers_of_go_now -- --nocapture

# Write the tables of Kubernetes' resources and fields for `manifest check` anew, for all releases; read the diff (Go).
tables:
    e2e/lab/tables.sh

# Build the binary of the image, optimized by profile; half an hour (llvm-profdata, h2load).
pgo *file:
    deploy/pgo.sh {{ file }}

# Build it, and compare its answers to recorded reviews with those of the plain binary.
pgo-check: pgo
    cargo build --locked --release --features profiling
    INJECTD_CORPUS={{ corpus }} deploy/same-answers.sh "${CARGO_TARGET_DIR:-target}/release/injectd" "${CARGO_TARGET_DIR:-target}/pgo/injectd"

# Build the image from a built binary without a daemon, and run it confined; [FILE]: OCI archive (root, buildah).
image binary="target/pgo/injectd" *file:
    deploy/image.sh {{ binary }} {{ file }}

# Check licences, sources and banned crates (cargo-deny).
deny:
    cargo deny check bans licenses sources

# Benchmark every step of a review in three sizes, for both meshes, each beside a baseline (criterion).
bench *args:
    cargo bench --locked --bench review -- {{ args }}

# Compare instructions per review, and of expressions, with the committed figures; BLESS=1 rewrites them (valgrind).
instructions:
    cargo bench --locked --bench instructions
    cargo bench --locked -p injectd-templates --bench instructions
    cargo bench --locked -p injectd-templates-mesh --bench instructions

# Measure instructions per byte of reviews that are large in one place, of meshes and sidecar templates; a quarter of an hour (valgrind).
cost:
    INJECTD_CORPUS={{ corpus }} cargo bench --locked --bench cost

# Measure the CPU of a request by part of the program, beside the echo's (perf, h2load).
profile seconds="5":
    cargo build --release --locked --bin injectd --example echo
    cargo run --quiet --release --locked --example load -- parts {{ seconds }}

# Measure CPU and rate of the webhook server and of the echo in turn (h2load).
rounds *args:
    cargo build --release --locked --bin injectd --example echo
    cargo run --quiet --release --locked --example load -- rounds {{ args }}

# Run the whole load test, figures into loadtest/runs/DATE: `just pgo`, then twenty minutes (h2load, Go, control plane).
load *args:
    loadtest/load.sh {{ args }}

# Try sidecar templates at full length: random values in all parameters of the examples, random templates, any texts; and
# compare what is served with the reference.
templates values="1000000" cases="20000" texts="20000" pods="1000000":
    INJECTD_SCALAR_CASES={{ values }} INJECTD_PROPERTY_CASES={{ cases }} INJECTD_ANY_CASES={{ texts }} \
        cargo test --release --locked -p injectd-templates-tree -- --nocapture \
            nothing_leaves_its_scalar injecting_again_is_injecting_once any_text
    INJECTD_TEMPLATES_PODS={{ pods }} \
        cargo test --release --locked -p injectd-templates-mesh --lib -- --nocapture an_excerpt_says_all_to_random_templates

# Count the memory of 500 sidecar templates after 10,000 pods.
templates-memory:
    cargo test --release --locked -p injectd-templates-mesh --test memory -- --ignored --nocapture

# Feed random bytes to the core, templates, YAML, the merge, CEL and sidecar templates, SECONDS each (cargo-fuzz).
fuzz seconds="60" targets="raw_body template rendered merge cel sidecar annotations":
    for target in {{ targets }}; do \
        mkdir -p fuzz/corpus/$target && \
        RUSTC_BOOTSTRAP=1 cargo fuzz run $target fuzz/corpus/$target fuzz/seeds/$target -- \
            -dict=fuzz/$target.dict -timeout=10 -max_total_time={{ seconds }} || exit 1; \
    done

# Test the webhook with a real API server ($KUBECONFIG, else a local control plane: --kube 1.NN); NAME selects scenarios that contain it.
e2e *args:
    e2e/run.sh {{ args }}

# Test Istio's injection at full length: 1,000 edits under load, 5,000 Nodes; some minutes (kubectl, control plane).
istio:
    INJECTD_CORPUS={{ corpus }} e2e/run.sh --long istio::

# Test the gRPC server at full length: clients in Go and Python, mutual TLS, tokens, sockets, abuse (control plane).
grpc:
    e2e/run.sh --long grpc::

# Measure the CPU of a gRPC call beside a review of the same object (ghz, h2load).
ghz *args:
    cargo build --release --locked --bin injectd
    cargo run --quiet --release --locked --example load -- ghz {{ args }}

# Measure pods through an API server: with injectd, with a MutatingAdmissionPolicy, with neither (control plane).
apiserver *args:
    cargo build --release --locked --bin injectd
    cargo run --quiet --release --locked --example load -- apiserver {{ args }}

# Test the swap of Linkerd's injector for injectd, and back ($INJECTD_CORPUS, kubectl, root, control plane).
swap:
    INJECTD_CORPUS={{ corpus }} e2e/run.sh swap::

# Test two replicas while configuration, certificates, API server and replicas change and fail; minutes (control plane).
storm name="":
    e2e/run.sh --long storm::{{ name }}

# Measure a well-behaved client beside attackers; half an hour, or a part by its name.
attack name="":
    cargo build --release --locked --bin injectd --example overload
    INJECTD="${INJECTD:-${CARGO_TARGET_DIR:-target}/release/injectd}" INJECTD_CORPUS={{ corpus }} \
        e2e/run.sh --long attacks::{{ name }}

# Measure memory by namespaces, pods, owners and overrides, and the time to start; minutes (control plane).
memory name="":
    e2e/run.sh --long memory::{{ name }}

# Test injectd in the container of Linkerd's Deployment, manifest by manifest ($INJECTD_CORPUS, root).
dropin:
    INJECTD_CORPUS={{ corpus }} e2e/run.sh dropin::

# Test the container of `dropin` under load: swapped files, ten thousand connections, SIGTERM; minutes (root).
endurance name="":
    INJECTD_CORPUS={{ corpus }} e2e/run.sh --long endurance::{{ name }}
