"""A million reviews through one process, of all sizes and verdicts: does its memory grow?"""

import tempfile
from pathlib import Path

from h2load import h2load
from paced import CONNECTIONS
from results import part, write_csv
from reviews import MIX, mix_text, write
from servers import injectd

FIRST, ALL, BLOCKS = 10_000, 1_000_000, 20
SMOKE = 2000, 6000, 2
GROWTH_BUDGET = 1.1


def run(args, report):
    first, whole, blocks = SMOKE if args.smoke else (FIRST, ALL, BLOCKS)
    with tempfile.TemporaryDirectory() as folder, injectd() as server:
        list(write(Path(folder)))
        rows = [[0, 0, round(server.rss_mib(), 2), ""]]
        for block in (first, *[(whole - first) // blocks] * blocks):
            rate = mixed(server, Path(folder), block)
            done = server.metric("injectd_reviews_total", server="webhook")
            rows.append([done, round(rate), round(server.rss_mib(), 2),
                         round(server.rss_mib("VmHWM"), 2)])
        verdicts = {verdict: server.metric("injectd_reviews_total", verdict=verdict)
                    for verdict in ("injected", "skipped", "annotated", "denied")}
    write_csv(args.out / "soak.csv", ["reviews", "per_second", "rss_mib", "rss_peak_mib"], rows)
    add_results(report, rows, verdicts)


def mixed(server, folder, count):
    """Sends a block of the mix, the most frequent reviews last; returns the rate of all."""
    done, seconds = 0, 0.0
    for name, percent in sorted(MIX.items(), key=lambda share: share[1]):
        found = h2load(server, folder / f"{name}.json", CONNECTIONS, "-n", count * percent // 100)
        done += found.done
        seconds += found.done / found.rate
    return done / seconds


def add_results(report, rows, verdicts):
    chosen = [rows[0], rows[1], *(rows[6::5] or rows[2:])]
    counts = ", ".join(f"{count:,} {verdict}" for verdict, count in verdicts.items())
    report.table(f"{rows[-1][0]:,} reviews through one process, 25 connections", [
        "reviews so far", "RSS", "RSS peak"],
        [[f"{done:,}", *(f"{figure:.1f} MiB" if figure else "" for figure in memory)]
         for done, _, *memory in chosen], [f"{mix_text()}. {counts}."])
    first, last = rows[1][2], rows[-1][2]
    report.budget(f"RSS after {rows[-1][0]:,} reviews ÷ after {rows[1][0]:,}", last / first,
                  most=GROWTH_BUDGET, baseline=f"{first:.1f} MiB")


if __name__ == "__main__":
    raise SystemExit(part("soak", run))
