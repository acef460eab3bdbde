"""The results of a part: tables and budgets for the summary, and raw data beside them."""

import argparse
import csv
import json
import math
import signal
import statistics
import sys
from pathlib import Path

from servers import Failure


def part(name, run, options=None):
    """The main function of a part: calls `run(arguments, report)`, then writes the report. One with
    `options`, which adds its own, also runs without a folder.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, required=options is None, help="folder of the run")
    parser.add_argument("--smoke", action="store_true", help="seconds, not minutes")
    if options:
        options(parser)
    args = parser.parse_args()
    if args.out:
        args.out.mkdir(parents=True, exist_ok=True)
    # An exception, so that the processes that were started are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    report = Report(name)
    try:
        run(args, report)
    except Failure as failure:
        print(f"FAILED {name}: {failure}", flush=True)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if args.out:
            report.write(args.out)
    return 0


class Report:
    def __init__(self, name):
        self.name = name
        self.sections, self.budgets, self.facts = [], [], {}

    def table(self, title, columns, rows, notes=()):
        """A table of text; also printed."""
        rows = [[str(cell) for cell in row] for row in rows]
        self.sections.append({"title": title, "columns": columns, "rows": rows, "notes": notes})
        print("\n".join(markdown(self.sections[-1])), flush=True)

    def budget(self, what, found, most=None, least=None, form="{:.3f}", baseline=""):
        """A figure beside its budget; a missed budget does not fail the part."""
        is_met = (most is None or found <= most) and (least is None or found >= least)
        sign, limit = ("≤", most) if least is None else ("≥", least)
        self.budgets.append({"what": what, "found": form.format(found), "baseline": baseline,
                             "budget": f"{sign} {form.format(limit)}", "met": is_met})
        print(f"{what}: {form.format(found)}, budget {sign} {form.format(limit)}: "
              f"{'met' if is_met else 'NOT MET'}", flush=True)

    def write(self, folder):
        text = json.dumps(vars(self), indent=1, ensure_ascii=False)
        (folder / f"{self.name}.json").write_text(text + "\n")


def markdown(section):
    lines = [f"### {section['title']}", "",
             "| " + " | ".join(section["columns"]) + " |",
             "|" + "---|" * len(section["columns"])]
    lines += ["| " + " | ".join(row) + " |" for row in section["rows"]]
    for note in section["notes"]:
        lines += ["", note]
    return lines + [""]


def write_csv(path, columns, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


# --- figures ---


def percentile(values, share):
    """By nearest rank; `values` in any order."""
    if not values:
        raise Failure("nothing was measured")
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]


def median(values):
    return statistics.median(values)


def micros(seconds):
    """A time as text, in µs or ms."""
    value = seconds * 1e6
    return f"{value:,.0f} µs" if value < 10_000 else f"{value / 1000:,.1f} ms"


def p50_p99(latencies):
    """Two cells of a table."""
    return [micros(percentile(latencies, 0.5)), micros(percentile(latencies, 0.99))]
