"""A plot of latency against rate: p50 and p99 of each server, as SVG, time on a log axis."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 480
LEFT, RIGHT, TOP, BOTTOM = 80, 150, 58, 60
COLOURS = {"echo": "#8a6d00", "injectd": "#0b5fa5"}
# Index of the time in a point, and the dashes of its line.
LINES = {"p50": (2, "6 4"), "p99": (3, "none")}


def svg(points):
    """`points`: by server, (share, rate, p50, p99) in requests/s and µs."""
    everything = [point for line in points.values() for point in line]
    max_rate = step_above(max(point[1] for point in everything))
    low = 10 ** math.floor(math.log10(min(point[2] for point in everything)))
    high = 10 ** math.ceil(math.log10(max(point[3] for point in everything)))
    scale = Scale(max_rate, low, max(high, low * 10))
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
             f'width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" font-size="13">',
             f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
             text(WIDTH / 2, 24, "Latency against rate: 12 KB reviews, 25 connections, TLS 1.3",
                  "middle", 'font-size="16"'),
             text(WIDTH / 2, 42, "dots: arrivals at random; squares: a closed loop, the peak",
                  "middle")]
    parts += scale.axes()
    labels = []
    for server, line in points.items():
        for name, (column, dashes) in LINES.items():
            places = [(scale.x(point[1]), scale.y(point[column])) for point in line]
            parts += drawn(places, COLOURS[server], dashes)
            labels.append((places[-1], f"{server} {name}", COLOURS[server]))
    return "\n".join(parts + list(spread(labels)) + ["</svg>", ""])


def drawn(places, colour, dashes):
    *below, (peak_x, peak_y) = places
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in below)
    yield (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" '
           f'stroke-dasharray="{dashes}"/>')
    for x, y in below:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    # The peak is another kind of load, so it is not on the line.
    yield (f'<rect x="{peak_x - 4:.1f}" y="{peak_y - 4:.1f}" width="8" height="8" fill="#ffffff" '
           f'stroke="{colour}" stroke-width="2"/>')


def spread(labels):
    """Labels at the ends of lines, without overlaps."""
    last = -math.inf
    for (x, y), name, colour in sorted(labels, key=lambda label: label[0][1]):
        last = max(y + 4, last + 16)
        yield text(WIDTH - RIGHT + 14, last, name, "start", f'fill="{colour}"')
        yield (f'<line x1="{x + 5:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT + 11}" y2="{last - 4:.1f}" '
               f'stroke="{colour}" stroke-width="0.5"/>')


class Scale:
    def __init__(self, max_rate, low, high):
        self.max_rate, self.low, self.high = max_rate, low, high

    def x(self, rate):
        return LEFT + (WIDTH - LEFT - RIGHT) * rate / self.max_rate

    def y(self, micros):
        share = math.log10(micros / self.low) / math.log10(self.high / self.low)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def axes(self):
        right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
        for index in range(6):
            rate = self.max_rate * index / 5
            x = self.x(rate)
            yield line(x, TOP, x, bottom)
            yield text(x, bottom + 20, f"{rate:,.0f}", "middle")
        decade = self.low
        while decade <= self.high:
            for factor in (1, 2, 5):
                if decade * factor <= self.high:
                    y = self.y(decade * factor)
                    yield line(LEFT, y, right, y)
                    yield text(LEFT - 8, y + 4, milliseconds(decade * factor), "end")
            decade *= 10
        yield text((LEFT + right) / 2, HEIGHT - 16, "answers per second", "middle")
        middle = (TOP + bottom) / 2
        yield text(22, middle, "latency (ms)", "middle", f'transform="rotate(-90 22 {middle})"')


def line(x1, y1, x2, y2):
    return (f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
            'stroke="#d8d8d8" stroke-width="1"/>')


def text(x, y, what, anchor, more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(what)}</text>'


def milliseconds(micros):
    return f"{micros / 1000:g}"


def step_above(value):
    """A round number of five round steps, at least `value`."""
    unit = 10 ** math.floor(math.log10(value / 5))
    return next(5 * unit * factor for factor in (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
                if 5 * unit * factor >= value)
