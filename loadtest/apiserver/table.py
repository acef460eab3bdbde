"""Tables of what was measured: medians of rounds, and ratios and differences within a round."""

from statistics import median
from typing import NamedTuple

from ways import AGAIN, ALLOWED, COMPLETE, INJECTD, NOTHING, POLICY

SHOWN = [NOTHING, AGAIN, POLICY, INJECTD, ALLOWED, COMPLETE]


class Row(NamedTuple):
    """One way, by its namespace, in one round; CPU in seconds, for all of its pods."""

    round: int
    creators: int
    way: str
    pods: int
    seconds: float
    apiserver_cpu: float
    injector_cpu: float
    etcd_cpu: float
    client_cpu: float
    connections: int

    @property
    def rate(self):
        return self.pods / self.seconds

    @property
    def server(self):
        """CPU of the API server in ms per pod."""
        return self.apiserver_cpu / self.pods * 1000

    @property
    def total(self):
        return (self.apiserver_cpu + self.injector_cpu) / self.pods * 1000


def summary(rows, sizes, setting):
    levels = list(dict.fromkeys(row.creators for row in rows))
    measured = {level: Level([row for row in rows if row.creators == level]) for level in levels}
    plain, injected = (f"{size / 1000:.0f} KB" for size in sizes)
    rounds = len({row.round for row in rows})
    client = sum(row.client_cpu for row in rows) / sum(row.pods for row in rows) * 1000
    pods = sum(row.pods for row in rows)
    lines = [
        "# A sidecar through the API server",
        "",
        *setting,
        f"Rounds: {rounds}, {pods:,} pods; a stored one has {plain}, with sidecar {injected}.",
        "",
        "Pods with a sidecar by injectd and by the policy were compared: they are the same. The",
        "policy is made of injectd's answer for this very pod: what injectd works out (labels,",
        "ports, settings) is constant in it. Figures are medians of rounds, CPU in ms per pod;",
        "those of injector and etcd are means; ratios and differences are within a round. The",
        f"client took {client:.2f} ms per pod.",
    ]
    for level, it in measured.items():
        lines += ["", f"## {level} at a time", "", *it.costs(), "", *it.ratios()]
    lines += ["", "## What it is made of", "", *parts(measured), "", *verdict(measured)]
    return "\n".join(lines)


class Level:
    """All rounds with so many creators."""

    def __init__(self, rows):
        self.ways = {way.namespace: [] for way in SHOWN}
        for row in rows:
            self.ways[row.way].append(row)

    def costs(self):
        yield ("| way | pods/s (min–max) | API server | injector | both (min–max) | ÷ nothing "
               "| etcd |")
        yield "|---|---|---|---|---|---|---|"
        for way in SHOWN:
            if not (rows := self.ways[way.namespace]):
                continue
            yield (f"| {way.title} | {spread([row.rate for row in rows], 0)} "
                   f"| {median(row.server for row in rows):.2f} | {self.injector(way):.3f} "
                   f"| {spread([row.total for row in rows], 2)} "
                   f"| {median(self.compared(way, NOTHING, 'total')):.2f} "
                   f"| {pooled(rows, 'etcd_cpu'):.2f} |")

    def ratios(self):
        yield "| ratio (min–max) | CPU of both | CPU of the API server | pods/s |"
        yield "|---|---|---|---|"
        for one, other in (INJECTD, POLICY), (AGAIN, NOTHING):
            cells = [spread(self.compared(one, other, it), 2) for it in ("total", "server", "rate")]
            yield f"| {one.title} ÷ {other.title} | {' | '.join(cells)} |"

    def compared(self, one, other, figure):
        return [getattr(a, figure) / getattr(b, figure) for a, b in self.pairs(one, other)]

    def pairs(self, one, other):
        return zip(self.ways[one.namespace], self.ways[other.namespace])

    def injector(self, way):
        # A tick is as much as a hundred pods: all rounds together.
        return pooled(self.ways[way.namespace], "injector_cpu")

    def more(self, one, other):
        """How much more CPU the API server takes."""
        return median(a.server - b.server for a, b in self.pairs(one, other))

    def noise(self):
        """How far the same way was from itself in the worst round."""
        return max(max(it, 1 / it) for it in self.compared(AGAIN, NOTHING, "total"))

    def opened(self):
        rows = self.ways[INJECTD.namespace]
        return sum(row.connections for row in rows) / sum(row.pods for row in rows) * 1000


def parts(measured):
    """Differences of ways, where all were measured."""
    [(level, it)] = [(level, it) for level, it in measured.items() if it.ways[ALLOWED.namespace]]
    call, sidecar = it.more(ALLOWED, NOTHING), it.more(COMPLETE, NOTHING)
    yield f"| CPU in ms per pod, {level} at a time | by injectd | by the policy |"
    yield "|---|---|---|"
    yield f"| the API server calls the webhook, which only allows | {call:.2f} | |"
    yield (f"| the API server does all the rest that it would not do for nothing "
           f"| {it.more(INJECTD, ALLOWED):.2f} | {it.more(POLICY, NOTHING):.2f} |")
    yield f"| of that, for a pod that is sent with its sidecar | {sidecar:.2f} | {sidecar:.2f} |"
    yield f"| injectd itself | {it.injector(INJECTD):.2f} | |"
    yield ""
    opened = ", ".join(f"{it.opened():.0f} at {level}" for level, it in measured.items())
    yield f"Connections that the API server opened to injectd per 1,000 pods: {opened} at a time."


def verdict(measured):
    yield "Budget: injectd no dearer than the policy, CPU of API server and injector together."
    for level, it in measured.items():
        ratio, noise = median(it.compared(INJECTD, POLICY, "total")), it.noise()
        word = "kept" if ratio <= 1 else "NOT kept: see what it is made of"
        if 1 < ratio <= noise:
            word = "dearer by less than the noise"
        yield (f"- {level} at a time: {ratio:.2f}, {word} "
               f"(nothing against itself: up to {noise:.2f})")


def spread(values, digits):
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def pooled(rows, field):
    return sum(getattr(row, field) for row in rows) / sum(row.pods for row in rows) * 1000
