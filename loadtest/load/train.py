"""What an instrumented injectd ($INJECTD) is to be optimized for: the servers, `review` and `inject` do
some of their usual work. Used by `deploy/pgo.sh`; checks what comes of it, measures nothing.

    python3 loadtest/load/train.py
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from servers import INJECTD, ROOT, Failure, injectd  # finds expect

from expect import expect, expect_in
from h2load import JSON, ran, read, reviews_of
from reviews import MIX, TYPICAL, with_override, write

sys.path.append(str(ROOT / "loadtest/ghz"))

import data  # noqa: E402

CONNECTIONS = 16
# Of the webhook over HTTP/1.1, in the shares of the mix; over HTTP/2; of the gRPC server.
REVIEWS, REVIEWS_HTTP2, CALLS = 40_000, 4000, 4000
OVERRIDE = "config.linkerd.io/proxy-outbound-connect-timeout"
# Sets of overrides, a template each.
SETS = 50
SECONDS = 300


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        list(write(folder))
        with injectd(grpc_addr="127.0.0.1:0") as server:
            webhook(server, folder)
            grpc(server, folder / "call")
        # Killed, it would have kept what it counted for itself.
        expect("exit code of the server", 0, server.process.returncode)
        command("review", *(folder / f"{it}.json" for it in MIX))
    for example in "deployment.yaml", "pod.json":
        command("inject", ROOT / "examples" / example)


def webhook(server, folder):
    for name, percent in MIX.items():
        answered(reviews_of(server), folder / f"{name}.json", REVIEWS * percent // 100, "--h1")
    review = folder / "overrides"
    for index in range(SETS):
        review.write_bytes(with_override(TYPICAL.read_bytes(), OVERRIDE, f"{1001 + index}ms"))
        answered(reviews_of(server), review, 2, "--h1")
    injected = (sum(MIX[it] for it in ("small", "typical", "large")) * REVIEWS // 100) + 2 * SETS
    for verdict, count in {"injected": injected, **{
            it: MIX[it] * REVIEWS // 100 for it in ("skipped", "annotated", "denied")}}.items():
        expect(f"{verdict} reviews", count,
               server.metric("injectd_reviews_total", server="webhook", verdict=verdict))
    http2(reviews_of(server), TYPICAL, REVIEWS_HTTP2)


def grpc(server, call):
    call.write_bytes(data.message(TYPICAL))
    http2(f"https://{server.grpc}/injectd.v1.Injector/Inject", call, CALLS,
          headers=("content-type: application/grpc", "te: trailers"))
    # The status of a call is in its trailers, which h2load does not look at.
    expect("injected by call", CALLS,
           server.metric("injectd_reviews_total", server="grpc", verdict="injected"))


def http2(url, body, count, headers=JSON):
    run = answered(url, body, count, headers=headers)
    expect_in("what h2load told", "Application protocol: h2\n", run.stdout)


def answered(url, body, count, *flags, headers=JSON):
    connections = min(CONNECTIONS, count)
    run, _ = ran(url, body, connections, "-n", count, *flags, headers=headers)
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
