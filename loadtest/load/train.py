"""Trains an instrumented injectd ($INJECTD): its servers, `review` and `inject` do some of their
usual work. `deploy/pgo.sh` uses it. It checks the results and measures nothing.

    python3 loadtest/load/train.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from connection import Connection, request_of, unverified_context
from expect import expect, expect_in
from h2load import JSON, read, review_url, run_h2load
from reviews import MIX, TYPICAL, with_override, write
from servers import INJECTD, ROOT, SMALL, Failure, injectd, injectd_for_istio

sys.path.append(str(ROOT / "loadtest/ghz"))

import data  # noqa: E402

CONNECTIONS = 16
# Of the webhook over HTTP/1.1, in the shares of the mix, and over HTTP/2; of the gRPC server.
REVIEWS, REVIEWS_HTTP2, CALLS = 40_000, 4000, 4000
OVERRIDE = "config.linkerd.io/proxy-outbound-connect-timeout"
# Sets of overrides, each with its own template.
SETS = 50
# Of Istio's webhook: of one pod, and of pods of which no two are alike.
ISTIO_REVIEWS, ISTIO_UNLIKE = 10_000, 2000
ISTIO_OVERRIDE = "sidecar.istio.io/proxyCPU"
ISTIO_FILES = ROOT / "loadtest/istio/config.yaml", SMALL / "values.json", SMALL / "mesh.yaml"
SECONDS = 300


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        list(write(folder))
        with injectd(grpc_addr="127.0.0.1:0") as server:
            webhook(server, folder)
            grpc(server, folder / "call")
        # A killed process does not write its counts.
        expect("exit code of the server", 0, server.process.returncode)
        with injectd_for_istio(files=ISTIO_FILES) as server:
            istio(server)
        expect("exit code of the server for Istio", 0, server.process.returncode)
        command("review", *(folder / f"{review}.json" for review in MIX))
    for example in "deployment.yaml", "pod.json":
        command("inject", ROOT / "examples" / example)


def webhook(server, folder):
    for name, percent in MIX.items():
        send(review_url(server), folder / f"{name}.json", REVIEWS * percent // 100, "--h1")
    review = folder / "overrides"
    for index in range(SETS):
        review.write_bytes(with_override(TYPICAL.read_bytes(), OVERRIDE, f"{1001 + index}ms"))
        send(review_url(server), review, 2, "--h1")
    injected = sum(MIX[name] for name in ("small", "typical", "large")) * REVIEWS // 100 + 2 * SETS
    others = {name: MIX[name] * REVIEWS // 100 for name in ("skipped", "annotated", "denied")}
    for verdict, count in {"injected": injected, **others}.items():
        expect(f"{verdict} reviews", count,
               server.metric("injectd_reviews_total", server="webhook", verdict=verdict))
    http2(review_url(server), TYPICAL, REVIEWS_HTTP2)


def istio(server):
    send(review_url(server), TYPICAL, ISTIO_REVIEWS // 2, "--h1")
    http2(review_url(server), TYPICAL, ISTIO_REVIEWS // 2)
    connection = Connection(server.address, unverified_context())
    for index in range(ISTIO_UNLIKE):
        body = with_override(TYPICAL.read_bytes(), ISTIO_OVERRIDE, f"{1001 + index}m")
        connection.ask(request_of(body, server.path))
    connection.close()
    expect("reviews of Istio", ISTIO_REVIEWS + ISTIO_UNLIKE,
           server.metric("injectd_reviews_total", server="webhook", verdict="injected"))


def grpc(server, call):
    call.write_bytes(data.message(TYPICAL))
    http2(f"https://{server.grpc}/injectd.v1.Injector/Inject", call, CALLS,
          headers=("content-type: application/grpc", "te: trailers"))
    # The status of a call is in its trailers, which h2load does not check.
    expect("calls that injected", CALLS,
           server.metric("injectd_reviews_total", server="grpc", verdict="injected"))


def http2(url, body, count, headers=JSON):
    run = send(url, body, count, headers=headers)
    expect_in("the output of h2load", "Application protocol: h2\n", run.stdout)


def send(url, body, count, *flags, headers=JSON):
    connections = min(CONNECTIONS, count)
    run, _ = run_h2load(url, body, connections, "-n", count, *flags, headers=headers)
    read(run)
    return run


def command(*words):
    run = subprocess.run([INJECTD, *words], capture_output=True, text=True, timeout=SECONDS,
                         check=False)
    if run.returncode:
        raise Failure(f"injectd {words[0]}: {run.stderr[-300:]}")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        raise SystemExit(f"train: {failure}") from None
