#!/usr/bin/env python3
"""Draws the panels of the Grafana dashboard from a Prometheus, as one SVG.

usage: plot_dashboard.py PROMETHEUS_URL SECONDS FILE [END]

Each panel with queries becomes a small chart of the SECONDS before END, which is now or a time in
seconds since 1970. Panels without samples say so.
"""

import html
import json
import pathlib
import sys
import time
import urllib.parse
import urllib.request

DASHBOARD = pathlib.Path(__file__).parent.parent / "deploy/grafana-dashboard.json"
COLOURS = ["#7eb26d", "#eab839", "#6ed0e0", "#ef843c", "#e24d42", "#1f78c1", "#ba43a9", "#705da0"]
COLUMNS, WIDTH, HEIGHT, ROW = 3, 330, 170, 30
# At most this many lines in a legend.
LEGEND = 4


def query(base, expression, begin, end):
    """The series of a query: labels, and pairs of time and value."""
    for name, value in (("$namespace", ".*"), ("$__rate_interval", "20s"), ("$__range", "60s")):
        expression = expression.replace(name, value)
    step = max((end - begin) / 80, 1)
    fields = {"query": expression, "start": begin, "end": end, "step": step}
    with urllib.request.urlopen(f"{base}/api/v1/query_range?{urllib.parse.urlencode(fields)}", timeout=10) as answer:
        result = json.load(answer)["data"]["result"]
    for series in result:
        pairs = [(float(at), float(value)) for at, value in series["values"] if value not in ("NaN", "+Inf", "-Inf")]
        if pairs:
            yield series["metric"], pairs


def legend(template, labels):
    """The legend of a series: {{label}} is replaced."""
    for key, value in labels.items():
        template = template.replace("{{" + key + "}}", value)
    return template if template and "{{" not in template else " ".join(labels.values())


def shown(value):
    """A number with few digits."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{value / limit:.3g}{suffix}"
    return f"{value:.3g}"


def panel(base, found, begin, end, x, y):
    """A panel as SVG."""
    lines = []
    for target in found.get("targets", []):
        for labels, pairs in query(base, target["expr"], begin, end):
            lines.append((legend(target.get("legendFormat", ""), labels), pairs))
    out = [f'<g transform="translate({x},{y})"><rect width="{WIDTH - 10}" height="{HEIGHT - 10}" class="panel"/>']
    out.append(f'<text x="8" y="16" class="title">{html.escape(found["title"])}</text>')
    if not lines:
        out.append(f'<text x="{WIDTH / 2 - 40}" y="{HEIGHT / 2}" class="small">no samples</text></g>')
        return out
    top = max(max(value for _, value in pairs) for _, pairs in lines)
    low = min(0, min(min(value for _, value in pairs) for _, pairs in lines))
    span = (top - low) or 1
    left, width, bottom, height = 40, WIDTH - 60, HEIGHT - 62, HEIGHT - 90
    for at, value in ((bottom, low), (bottom - height, top)):
        out.append(f'<text x="{left - 4}" y="{at + 4}" class="small" text-anchor="end">{shown(value)}</text>')
        out.append(f'<line x1="{left}" x2="{left + width}" y1="{at}" y2="{at}" class="grid"/>')
    for index, (_, pairs) in enumerate(lines[:24]):
        points = " ".join(
            f"{left + (at - begin) / (end - begin) * width:.1f},{bottom - (value - low) / span * height:.1f}"
            for at, value in pairs
        )
        out.append(f'<polyline points="{points}" stroke="{COLOURS[index % len(COLOURS)]}"/>')
    for index, (name, pairs) in enumerate(lines[:LEGEND]):
        place = (left - 30 + index % 2 * 150, HEIGHT - 40 + index // 2 * 14)
        text = html.escape(f"{name[:20]} {shown(pairs[-1][1])}")
        colour = COLOURS[index % len(COLOURS)]
        out.append(f'<text x="{place[0]}" y="{place[1]}" class="small" fill="{colour}">{text}</text>')
    out.append("</g>")
    return out


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit("usage: plot_dashboard.py PROMETHEUS_URL SECONDS FILE [END]")
    base, seconds, path = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    end = float(sys.argv[4]) if len(sys.argv) == 5 else time.time()
    begin = end - seconds
    out, column, y = [], 0, 10
    for found in json.loads(DASHBOARD.read_text())["panels"]:
        if found["type"] == "row":
            y += HEIGHT if column else 0
            column = 0
            out.append(f'<text x="10" y="{y + 18}" class="row">{html.escape(found["title"])}</text>')
            y += ROW
        elif found.get("targets"):
            out += panel(base, found, begin, end, 10 + column * WIDTH, y)
            column = (column + 1) % COLUMNS
            y += 0 if column else HEIGHT
    y += HEIGHT if column else 0
    style = (
        "text{font-family:sans-serif;fill:#ccccdc}.title{font-size:12px}.small{font-size:10px}"
        ".row{font-size:14px;font-weight:bold}.panel{fill:#181b1f;stroke:#2c3235}.grid{stroke:#2c3235}"
        "polyline{fill:none;stroke-width:1.4}"
    )
    size = (COLUMNS * WIDTH + 10, y + 10)
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}"><style>{style}</style>'
    svg += f'<rect width="{size[0]}" height="{size[1]}" fill="#111217"/>' + "\n".join(out) + "</svg>\n"
    pathlib.Path(path).write_text(svg)


main()
