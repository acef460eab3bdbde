"""Draws latency against rate of a load run as SVG, readable in light and in dark mode.

    python3 loadtest/load/plot.py loadtest/runs/RUN/curve.csv docs/img/latency.svg

Each point is the median of the run's rounds at one share of the server's own peak.
"""

import csv
import math
import statistics
import sys
from pathlib import Path

WIDTH, HEIGHT = 860, 470
LEFT, RIGHT, TOP, BOTTOM = 86, 36, 78, 64
LOWEST, HIGHEST = 50, 20_000  # µs
TICKS = {50: "50 µs", 100: "100 µs", 200: "200 µs", 500: "500 µs", 1_000: "1 ms", 2_000: "2 ms",
         5_000: "5 ms", 10_000: "10 ms", 20_000: "20 ms"}
RATE_STEP = 5_000
# Offset of a label from the last dot of its line, in pixels, and its text-anchor.
LABELS = {"injectd": (-9, -8, "end"), "echo": (10, 16, "start")}
STYLE = """
  text { font: 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
  .title { font-size: 16px; font-weight: 600 }
  .page { fill: #ffffff } .grid { stroke: #d1d9e0 } .axis { stroke: #59636e }
  .line { fill: none; stroke-width: 2 } .p50 { stroke-dasharray: 6 4 }
  .injectd { stroke: #0b5fa5 } .echo { stroke: #8a5a00 }
  text.injectd { fill: #0b5fa5 } text.echo { fill: #8a5a00 }
  text.injectd, text.echo { stroke: #ffffff; stroke-width: 5; paint-order: stroke }
  circle.injectd { fill: #0b5fa5 } circle.echo { fill: #8a5a00 }
  .peak { fill: #ffffff; stroke-width: 2 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .page, .peak { fill: #0d1117 }
    .grid { stroke: #30363d } .axis { stroke: #9198a1 }
    .injectd { stroke: #6cb6ff } .echo { stroke: #e3b341 }
    text.injectd { fill: #6cb6ff } text.echo { fill: #e3b341 }
    text.injectd, text.echo { stroke: #0d1117 }
    circle.injectd { fill: #6cb6ff } circle.echo { fill: #e3b341 }
  }
"""


def draw(source, target):
    with source.open() as file:
        rows = list(csv.DictReader(file))
    curves = {server: curve([row for row in rows if row["server"] == server])
              for server in ("echo", "injectd")}
    target.write_text(svg(curves, source))


def curve(rows):
    """(rate, p50, p99) by rising share of the peak; the last is the peak itself."""
    columns = "answered_per_second", "p50_us", "p99_us"
    shares = sorted({float(row["share_of_peak"]) for row in rows})
    return [[statistics.median(float(row[column]) for row in rows
                               if float(row["share_of_peak"]) == share) for column in columns]
            for share in shares]


def svg(curves, source):
    fastest = max(point[0] for points in curves.values() for point in points)
    highest_rate = math.ceil(fastest / RATE_STEP) * RATE_STEP

    def x(rate):
        return LEFT + rate / highest_rate * (WIDTH - LEFT - RIGHT)

    def y(micros):
        share = math.log(micros / LOWEST) / math.log(HIGHEST / LOWEST)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    end, bottom, middle = WIDTH - RIGHT, HEIGHT - BOTTOM, (LEFT + WIDTH - RIGHT) / 2
    run = source.parent.name
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
             f'aria-label="Latency against rate of injectd and of a TLS echo server, run {run}">',
             f"<style>{STYLE}</style>", f'<rect class="page" width="{WIDTH}" height="{HEIGHT}"/>',
             text(LEFT, 26, "Latency against rate: 12 KB reviews, 25 connections, TLS 1.3", "title"),
             text(LEFT, 47, "Dots: requests arrive at random. Squares: closed loop, the peak rate. "
                  "Medians of the rounds."),
             text(middle, HEIGHT - 16, "answers per second", anchor="middle"),
             text(LEFT, 68, "Time to the answer, on a log scale:")]
    for micros, label in TICKS.items():
        parts += [f'<path class="grid" d="M{LEFT} {y(micros):.1f}H{end}"/>',
                  text(LEFT - 10, y(micros) + 4.5, label, anchor="end")]
    for rate in range(0, highest_rate + 1, RATE_STEP):
        parts += [f'<path class="axis" d="M{x(rate):.1f} {bottom}v6"/>',
                  text(x(rate), bottom + 23, f"{rate:,}", anchor="middle")]
    parts.append(f'<path class="axis" d="M{LEFT} {bottom}H{end}"/>')
    for server, points in curves.items():
        for column, name in (1, "p50"), (2, "p99"):
            places = [(x(point[0]), y(point[column])) for point in points]
            *below, peak = places
            path = "L".join(f"{a:.1f} {b:.1f}" for a, b in below)
            parts.append(f'<path class="line {server} {name}" d="M{path}"/>')
            parts += [f'<circle class="{server}" cx="{a:.1f}" cy="{b:.1f}" r="3"/>'
                      for a, b in below]
            parts.append(f'<rect class="peak {server}" x="{peak[0] - 4:.1f}" '
                         f'y="{peak[1] - 4:.1f}" width="8" height="8"/>')
            right, down, anchor = LABELS[server]
            parts.append(text(below[-1][0] + right, below[-1][1] + down, f"{server} {name}",
                              server, anchor))
    return "\n".join([*parts, "</svg>\n"])


def text(a, b, words, style="", anchor="start"):
    return f'<text class="{style}" x="{a:.1f}" y="{b:.1f}" text-anchor="{anchor}">{words}</text>'


if __name__ == "__main__":
    draw(*map(Path, sys.argv[1:]))
