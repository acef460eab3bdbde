"""Tables of attack.py: a line per attack, and a comparison of two runs."""

import statistics

HEADER = ("attack, connections | client p50/p99/max (ms), quiet → under attack | the echo's |"
          " worst over a new connection | refused | worst probe |"
          " RSS at start/high/after (MiB) | usual speed after | attackers")
# Each has a column before and one after the change.
PAIRS = ("p50 / p99 / longest, ms", "refused", "worst probe, ms", "RSS high / 12 s after, MiB",
         "usual speed after")
COLUMNS = ("attack", "connections", *(f"{name}: {when}" for name in PAIRS
                                      for when in ("before", "after")), "beside the echo, ms")
# The default timeout of a kubelet's probe.
MAX_PROBE_SECONDS = 1


def has_failed(row):
    return bool(why(row))


def why(row):
    """Why an attack counts as failed; "" if it does not."""
    found = []
    if row["refused"] or not row["reviews"]:
        found.append(f"{row['refused']} reviews were refused or failed: {row['problems']}")
    if row["probe_problems"] or not row["probes"]:
        found.append(f"a probe failed: {row['probe_problems']}")
    elif row["probe_worst"] > MAX_PROBE_SECONDS:
        found.append(f"a probe took {row['probe_worst']:.1f} s")
    return "; ".join(found)


def line(row):
    """A row as text."""
    return " | ".join([
        f"{row['attack']}, {row['connections']}", speed(row),
        speed(row["echo"]) if "echo" in row else "-",
        millis(row["new_worst"]), refused(row), millis(row["probe_worst"]),
        "/".join(f"{row[key]:.0f}" for key in ("rss_first", "rss_high", "rss_after")), after(row),
        ", ".join(f"{name} {count:,}" for name, count in sorted(row["done"].items())),
    ])


def speed(row):
    """The client's times, quiet → under attack."""
    quiet, under = (" / ".join(map(millis, row[key] or [])) or "none" for key in ("quiet", "under"))
    return f"{quiet} → {under}"


def millis(seconds):
    if seconds is None:
        return "-"
    value = seconds * 1e3
    return f"{value:.2f}" if value < 10 else f"{value:,.0f}"


def after(row):
    seconds = row["usual_after"]
    return "cut after 40 s" if seconds is None else f"{seconds:.2f} s"


# --- several rounds, two runs ---


def middle(rows):
    """Several rounds of an attack as one: the median of times and memory, the worst of the rest."""
    first = dict(rows[0])
    for key in "quiet", "under":
        found = [row[key] for row in rows if row[key]]
        first[key] = [statistics.median(values) for values in zip(*found)] if found else None
    for key in "rss_first", "rss_high", "rss_after":
        first[key] = statistics.median(row[key] for row in rows)
    for key in "refused", "probe_worst", "new_worst":
        first[key] = max((row[key] for row in rows if row[key] is not None), default=None)
    for key in "problems", "probe_problems":
        first[key] = [problem for row in rows for problem in row[key]][:3]
    first["reviews"] = sum(row["reviews"] for row in rows)
    usual = [row["usual_after"] for row in rows]
    first["usual_after"] = None if None in usual else statistics.median(usual)
    if "echo" in first:
        first["echo"] = middle_of_echo([row["echo"] for row in rows])
    return first


def middle_of_echo(rows):
    return {key: [statistics.median(values)
                  for values in zip(*(row[key] for row in rows if row[key]))]
            for key in ("quiet", "under")}


def merged(before, after_rows):
    """A table in Markdown of two runs, by attack."""
    known = {(row["attack"], row["connections"]): row for row in before}
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for row in after_rows:
        pair = known.get((row["attack"], row["connections"])), row
        cells = [row["attack"], str(row["connections"])]
        for cell in (speed, refused, probe, memory, after):
            cells += [cell(side) if side else "" for side in pair]
        cells.append(speed(row["echo"]) if "echo" in row else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def refused(row):
    return f"{row['refused']:,} of {row['reviews']:,}"


def probe(row):
    return "failed" if row["probe_problems"] else millis(row["probe_worst"])


def memory(row):
    return f"{row['rss_high']:.0f} / {row['rss_after']:.0f}"
