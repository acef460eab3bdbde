"""Latency against rate, injectd and the echo in turn, from a tenth of the peak up to it.

The peak is a closed loop over 25 connections (h2load), measured again in each round, because a
shared machine changes its speed. Below it, requests arrive at random, at the same shares of each
server's own peak.
"""

from contextlib import ExitStack

import plot
from h2load import h2load
from paced import CONNECTIONS, paced
from results import median, micros, part, percentile, write_csv
from reviews import TYPICAL
from servers import echo, injectd

HALF = 0.5
P99_BUDGET_MS = 1.0
COLUMNS = ["round", "server", "share_of_peak", "offered_per_second", "answered_per_second",
           "unsent", "p50_us", "p99_us", "cpu_us_per_request"]


def run(args, report):
    rounds, seconds = (1, 0.5) if args.smoke else (7, 1.5)
    shares = [0.1, HALF] if args.smoke else [0.1, 0.25, HALF, 0.65, 0.8, 0.9]
    rows = []
    with ExitStack() as stack:
        servers = {"echo": stack.enter_context(echo(TYPICAL)),
                   "injectd": stack.enter_context(injectd())}
        for server in servers.values():
            h2load(server, TYPICAL, CONNECTIONS, "-n", 2000)
        for index in range(1, rounds + 1):
            peaks = {name: peak(server) for name, server in servers.items()}
            rows += [[index, name, 1, *of_h2load(found)] for name, found in peaks.items()]
            for share in shares:
                for name, server in servers.items():
                    found = at_rate(server, share * peaks[name].rate, seconds, seed=index)
                    rows.append([index, name, share, *found])
    write_csv(args.out / "curve.csv", COLUMNS, rows)
    plot.draw(args.out / "curve.csv", args.out / "latency.svg")
    add_results(report, medians(rows, [*shares, 1]))


def peak(server):
    return h2load(server, TYPICAL, CONNECTIONS, "-D", 1, wants_latencies=True)


def of_h2load(found):
    rate = round(found.rate)
    return [rate, rate, 0, *quantiles(found.latencies), round(found.cpu * 1e6, 1)]


def at_rate(server, rate, seconds, seed):
    before = server.cpu_seconds()
    found = paced(server.address, rate, seconds, seed)
    # Includes a handshake and a first review of each connection.
    cpu = (server.cpu_seconds() - before) / len(found.latencies)
    return [round(rate), round(found.rate), found.unsent, *quantiles(found.latencies),
            round(cpu * 1e6, 1)]


def quantiles(latencies):
    return [round(percentile(latencies, share) * 1e6) for share in (0.5, 0.99)]


def medians(rows, shares):
    """By server and share: (share, rate, p50, p99), medians of the rounds, times in µs."""
    return {name: [(share, *(median([row[column] for row in rows if row[1:3] == [name, share]])
                             for column in (4, 6, 7))) for share in shares]
            for name in ("echo", "injectd")}


def add_results(report, points):
    rows = [[f"{share:.0%}" if share < 1 else "peak, closed loop", *(
        cell for name in ("echo", "injectd") for cell in cells(points[name][index]))]
        for index, (share, *_) in enumerate(points["echo"])]
    report.table("Latency against rate, 25 connections, medians of the rounds", [
        "share of its own peak", "echo /s", "p50", "p99", "injectd /s", "p50", "p99"], rows,
        ["Client and servers share the cores. Below the peak, requests fall due at random on each"
         " connection. A time starts when its request falls due, even if the connection is busy. A"
         " late wake-up of the client does not count. ![latency](latency.svg)"])
    report.facts["peak_per_second"] = points["injectd"][-1][1]
    echo_ms, ms = (next(point[3] for point in points[name] if point[0] == HALF) / 1000
                   for name in ("echo", "injectd"))
    report.budget("p99 at 25 connections, half load (ms)", ms, most=P99_BUDGET_MS,
                  baseline=f"echo {echo_ms:.2f} at half of its own peak")


def cells(point):
    _, rate, p50, p99 = point
    return [f"{rate:,.0f}", micros(p50 / 1e6), micros(p99 / 1e6)]


if __name__ == "__main__":
    raise SystemExit(part("curve", run))
