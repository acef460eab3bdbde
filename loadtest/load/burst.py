"""Bursts: new TLS connections beside 25 kept ones, and a thousand at once.

An API server keeps 25 idle connections to a webhook; each review beyond them opens a new one.
"""

import multiprocessing
import time

from connection import Connection, request_of, unverified_context
from h2load import h2load, steady
from paced import CONNECTIONS, Load, paced
from results import median, micros, p50_p99, part, write_csv
from reviews import TYPICAL
from servers import injectd

FEW, MANY = 16, 1000
RATE_BUDGET, RSS_BUDGET_MIB = 0.9, 256
# New connections of each of two clients.
NEW_PER_SECOND = 75
# The server notices closed connections in this time.
SETTLING_SECONDS = 0.05


def run(args, report):
    with injectd() as server:
        h2load(server, TYPICAL, FEW, "-n", 2000)
        cost_of_connections(report, server, 100 if args.smoke else 1500)
        beside_kept_connections(args, report, server)
    # Memory is measured in a process that has served nothing else.
    with injectd() as server:
        thousand(args, report, server)


# --- the cost of a connection ---


def cost_of_connections(report, server, count):
    """CPU of the server for a connection with one review, minus that of a review."""
    kept = min(h2load(server, TYPICAL, 1, "-n", count).cpu for _ in range(3))
    rows, costs = [], {}
    for name, with_tickets in ("full handshake", False), ("resumed by ticket", True):
        before = server.cpu_seconds()
        opened = one_by_one(server.address, count, with_tickets)
        cpu = (server.cpu_seconds() - before) / count
        costs[name] = cpu - kept
        resumed = sum(is_resumed for _, is_resumed in opened)
        rows.append([name, count, resumed, micros(costs[name]), f"{costs[name] / kept:.1f}",
                     *p50_p99([seconds for seconds, _ in opened])])
    full, resumed = costs.values()
    report.facts["ticket_saves_share"] = 1 - resumed / full
    report.table("CPU of the server for a new connection, without its review", [
        "connection", "opened", "resumed", "CPU", "CPU ÷ review", "p50 to the answer", "p99"], rows,
        [f"A review over a kept connection takes {micros(kept)} of CPU, one at a time. A ticket"
         f" saves {micros(full - resumed)}, {1 - resumed / full:.0%} of a connection."])


def one_by_one(address, count, with_tickets):
    """Opens a connection per review; (seconds to the answer, whether it was resumed) of each."""
    context, request = unverified_context(), request_of(TYPICAL.read_bytes())
    session, found = None, []
    for _ in range(count):
        begin = time.perf_counter()
        connection = Connection(address, context, session)
        connection.ask(request)
        found.append((time.perf_counter() - begin, connection.tls.session_reused))
        if with_tickets:
            session = connection.tls.session
        connection.close()
    return found


# --- beside kept connections ---


def beside_kept_connections(args, report, server):
    """Times of reviews over kept connections while others open new ones."""
    seconds = 1 if args.smoke else 5
    peak = h2load(server, TYPICAL, CONNECTIONS, "-D", 1).rate
    rate, rows = peak / 4, []
    alone = paced(server.address, rate, seconds)
    rows.append(["none", *p50_p99(alone.latencies), "", "", ""])
    for name, with_tickets in ("new, full handshakes", False), ("new, resumed by ticket", True):
        load = Load(server.address, rate, seconds)
        opened = open_new(server.address, with_tickets, seconds)
        kept = load.result()
        rows.append([name, *p50_p99(kept.latencies), f"{len(opened) / seconds:.0f}",
                     *p50_p99([latency for latency, _ in opened])])
    crowd = 50 if args.smoke else 200
    load = Load(server.address, rate, seconds)
    time.sleep(seconds / 3)
    begin = time.perf_counter()
    h2load(server, TYPICAL, crowd, "-n", crowd)
    took = time.perf_counter() - begin
    rows.append([f"{crowd} new at once, all answered after {micros(took)}",
                 *p50_p99(load.result().latencies), "", "", ""])
    report.table(f"25 kept connections at {rate:,.0f} reviews/s (a quarter of the peak)", [
        "other connections", "kept: p50", "p99", "new /s", "new, with handshake: p50", "p99"],
        rows)


def open_new(address, with_tickets, seconds):
    """Opens connections from two processes, each at a constant rate; as `one_by_one`."""
    context = multiprocessing.get_context("fork")
    workers = []
    for _ in range(2):
        ours, theirs = context.Pipe(duplex=False)
        worker = context.Process(target=open_for, daemon=True,
                                 args=(theirs, address, with_tickets, seconds))
        worker.start()
        theirs.close()
        workers.append((worker, ours))
    found = []
    for worker, pipe in workers:
        found += pipe.recv()
        worker.join()
    return found


def open_for(pipe, address, with_tickets, seconds):
    found, session = [], None
    context, request = unverified_context(), request_of(TYPICAL.read_bytes())
    due = time.monotonic()
    end = due + seconds
    while due < end:
        time.sleep(max(0, due - time.monotonic()))
        due += 1 / NEW_PER_SECOND
        begin = time.perf_counter()
        connection = Connection(address, context, session)
        connection.ask(request)
        found.append((time.perf_counter() - begin, connection.tls.session_reused))
        session = connection.tls.session if with_tickets else None
        connection.close()
    pipe.send(found)


# --- a thousand ---


def thousand(args, report, server):
    """A closed loop over a thousand connections, beside the peak at sixteen."""
    rounds, seconds, requests = (1, 1, 40) if args.smoke else (3, 4, 60)
    rows = []
    h2load(server, TYPICAL, FEW, "-n", 2000)
    idle = server.rss_mib()
    for index in range(1, rounds + 1):
        few = h2load(server, TYPICAL, FEW, "-D", seconds, wants_latencies=True)
        many = steady(server, TYPICAL, MANY, requests)
        open_after, rss = open_and_rss(server)
        again = h2load(server, TYPICAL, FEW, "-D", 1, wants_latencies=True)
        rows.append([index, few, many, again, open_after, rss, server.rss_mib("VmHWM")])
    add_results(report, rows, idle)
    write_csv(args.out / "thousand.csv", [
        "round", "rate_16", "rate_1000", "rate_16_in_the_second_after", "open_after",
        "rss_after_mib", "rss_peak_mib"], [
        [index, *(round(run.rate) for run in runs), open_after, round(rss, 1), round(peak, 1)]
        for index, *runs, open_after, rss, peak in rows])


def open_and_rss(server):
    """Open connections and resident memory, a moment later."""
    time.sleep(SETTLING_SECONDS)
    return server.metric("injectd_connections", server="webhook"), server.rss_mib()


def add_results(report, rows, idle):
    table = []
    for index, few, many, again, open_after, rss, peak in rows:
        cells = [cell for run in (few, many, again)
                 for cell in (f"{run.rate:,.0f}", *p50_p99(run.latencies))]
        table.append([index, *cells, open_after, f"{rss:.0f} MiB", f"{peak:.0f} MiB"])
    report.table("1,000 connections, closed loop; 16 before, and in the second after", [
        "round", "16: /s", "p50", "p99", "1,000: /s", "p50", "p99", "16 after: /s", "p50", "p99",
        "open 0.05 s later", "RSS then", "RSS peak"], table,
        [f"RSS before: {idle:.0f} MiB. The figures of 1,000 connections are those while all are"
         " open and busy."])
    ratio = median([many.rate / few.rate for _, few, many, *_ in rows])
    back = median([again.rate / few.rate for _, few, _, again, *_ in rows])
    report.budget("rate with 1,000 connections ÷ peak at 16", ratio, least=RATE_BUDGET,
                  baseline="rate at 16 = 1")
    report.budget("RSS with 1,000 connections, closed loop (MiB)", max(row[-1] for row in rows),
                  most=RSS_BUDGET_MIB, form="{:.0f}", baseline=f"{idle:.0f} before")
    report.budget("rate at 16 in the second after ÷ before", back, least=RATE_BUDGET,
                  baseline="rate before = 1")


if __name__ == "__main__":
    raise SystemExit(part("burst", run))
