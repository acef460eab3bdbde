"""CPU of a gRPC call beside a review of the same object, on one process: in turn, ghz calls the gRPC
server, and h2load calls it and the webhook.

The figure that counts is CPU per answer, gRPC's ÷ the webhook's: rates and times move with the machine
and with the cost of the client, the ratio hardly does. Alone: `just ghz`. Needs ghz ($GHZ), or Go to
build it.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from h2load import JSON, read, review_url, run_h2load
from results import median, part, write_csv
from reviews import TYPICAL
from rounds import expect_injected, machine
from servers import ROOT, Failure, injectd

sys.path.append(str(ROOT / "loadtest/ghz"))

import data  # noqa: E402

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
GHZ = Path(os.environ.get("GHZ", CACHE / "injectd-ci/tools/bin/ghz"))
BUDGET = 1.4
# A smoke fails above it.
MAX_RATIO = 5
STREAM_REQUESTS = 100
WARM_UP = 2000
MAX_SECONDS = 600
KINDS = {"webhook": "webhook, HTTP/1.1", "webhook_h2": "webhook, HTTP/2",
         "call": "call, by h2load", "unary": "call, by ghz",
         "stream": f"stream of {STREAM_REQUESTS} requests, by ghz"}
WEBHOOKS = "webhook", "webhook_h2"
CALL_HEADERS = "content-type: application/grpc", "te: trailers"


class Run(NamedTuple):
    """Answers per second, and CPU of an answer in µs."""

    rate: float
    cpu: float


def options(parser):
    parser.add_argument("--rounds", type=int, default=3, help="rounds, each of every kind [3]")
    parser.add_argument("--seconds", type=int, default=5, help="length of a run [5]")
    parser.add_argument("--callers", default="1 25 100",
                        help="callers at a time, each over a connection of its own [1 25 100]")
    parser.add_argument("--review", type=Path, default=TYPICAL, help="the AdmissionReview")


def run(args, report):
    if args.smoke:
        args.rounds, args.seconds = 1, 1
    build()
    print(machine(), flush=True)
    with tempfile.TemporaryDirectory() as name, injectd(grpc_addr="127.0.0.1:0") as server:
        expect_injected(server, args.review)
        bench = Bench(server, args.review, Path(name))
        bench.warm_up()
        rows = [[callers, kind, index, *bench.measure(kind, callers, args.seconds)]
                for callers in map(int, args.callers.split())
                for index in range(1, args.rounds + 1) for kind in KINDS]
    if args.out:
        write_csv(args.out / "ghz.csv", ["callers", "kind", "round", "per_second", "cpu_us"], rows)
    worst = add_results(report, rows)
    if args.smoke and worst > MAX_RATIO:
        raise Failure(f"the ratio is above {MAX_RATIO}")


def build():
    if GHZ.exists():
        return
    GHZ.parent.mkdir(parents=True, exist_ok=True)
    version = re.search(r"^GHZ_VERSION=(\S+)", (ROOT / ".ci/tools.sh").read_text(), re.MULTILINE)
    subprocess.run(["go", "install", f"github.com/bojand/ghz/cmd/ghz@{version[1]}"], check=True,
                   cwd=GHZ.parent.parent, env={**os.environ, "GOBIN": str(GHZ.parent)})


class Bench:
    """The server, and the files of its clients."""

    def __init__(self, server, review, folder):
        self.server, self.review = server, review
        self.call = folder / "call"
        self.call.write_bytes(data.message(review))
        self.requests = {"unary": 1, "stream": STREAM_REQUESTS}
        self.files = {kind: folder / f"{kind}.json" for kind in self.requests}
        for kind, count in self.requests.items():
            self.files[kind].write_text(json.dumps(data.requests(review, count)))

    def warm_up(self):
        self.h2load("webhook", 1, "-n", WARM_UP)
        self.h2load("call", 1, "-n", WARM_UP)
        for kind, count in self.requests.items():
            self.ghz(kind, 1, "--total", WARM_UP // count)

    def measure(self, kind, callers, seconds):
        before = self.server.cpu_seconds()
        if kind in self.requests:
            rate, answers = self.ghz(kind, callers, "--duration", f"{seconds}s")
        else:
            rate, answers = self.h2load(kind, callers, "-D", seconds)
        cpu = (self.server.cpu_seconds() - before) / answers * 1e6
        print(f"{callers} callers, {KINDS[kind]}: {rate:.0f}/s, {cpu:.1f} µs", flush=True)
        return Run(round(rate, 1), round(cpu, 2))

    def answered(self):
        """The number of pods that the gRPC server has injected so far."""
        return self.server.metric("injectd_reviews_total", server="grpc", verdict="injected")

    def h2load(self, kind, callers, *extent):
        """By the webhook's client, so that only the server differs."""
        before = self.answered()
        if kind == "call":
            url = f"https://{self.server.grpc}/injectd.v1.Injector/Inject"
            found, _ = run_h2load(url, self.call, callers, "-m", 1, *extent, headers=CALL_HEADERS)
        else:
            protocol = ["--h1"] if kind == "webhook" else []
            found, _ = run_h2load(review_url(self.server), self.review, callers, "-m", 1,
                                  *protocol, *extent, headers=JSON)
        rate, done = read(found)
        # The status of a call is in its trailers, which h2load does not check.
        if kind == "call" and self.answered() - before < done:
            raise Failure(f"{done} calls were made, {self.answered() - before} were injected")
        return rate, done

    def ghz(self, kind, callers, *extent):
        before, count = self.answered(), self.requests[kind]
        command = [GHZ, "--config", f"loadtest/ghz/{kind}.json", "--data-file", self.files[kind],
                   "--concurrency", callers, "--connections", callers, *extent,
                   "--format", "json", self.server.grpc]
        found = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=ROOT,
                               timeout=MAX_SECONDS, check=False)
        if found.returncode:
            raise Failure(f"ghz: {found.stderr[-300:]}")
        result = json.loads(found.stdout)
        calls, good = result["count"], result["statusCodeDistribution"].get("OK", 0)
        answers = self.answered() - before
        # Every call must be OK, and each of its requests injected.
        if not calls or good < calls or answers != calls * count:
            raise Failure(f"{good} of {calls} calls are OK, {answers} requests were injected:"
                          f" {result.get('errorDistribution')}")
        return answers / (result["total"] / 1e9), answers


def add_results(report, rows):
    """The table; returns the largest ratio of a call to the webhook."""
    figures, table, worst = {}, [], 0
    for callers, kind, _, *figure in rows:
        figures.setdefault((callers, kind), []).append(Run(*figure))
    for (callers, kind), runs in figures.items():
        to_webhook, to_h2 = (median([mine.cpu / its.cpu for mine, its in
                                     zip(runs, figures[callers, base])]) for base in WEBHOOKS)
        if kind not in WEBHOOKS:
            worst = max(worst, to_webhook)
        table.append([callers, KINDS[kind], f"{median([run.rate for run in runs]):,.0f}",
                      f"{median([run.cpu for run in runs]):.1f}", f"{to_webhook:.2f}",
                      f"{to_h2:.2f}"])
    report.table("gRPC beside the webhook, the same object", [
        "callers", "answers", "/s", "CPU µs", "÷ webhook", "÷ webhook over HTTP/2"], table)
    report.budget("CPU of gRPC ÷ webhook, at most", worst, most=BUDGET, form="{:.2f}",
                  baseline="webhook over HTTP/1.1 = 1")
    return worst


if __name__ == "__main__":
    raise SystemExit(part("ghz", run, options))
