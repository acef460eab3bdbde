"""Tables of the figures: medians of rounds, and ratios and differences within a round."""

from statistics import median
from typing import NamedTuple

from ways import AGAIN, ALLOWED, COMPLETE, INJECTD, NOTHING, POLICY

SHOWN = [NOTHING, AGAIN, POLICY, INJECTD, ALLOWED, COMPLETE]


class Row(NamedTuple):
    """One way, named by its namespace, in one round; CPU in seconds, for all of its pods."""

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
        f"Rounds: {rounds}, {pods:,} pods; a stored pod has {plain}, with sidecar {injected}.",
        "",
        "A pod injected by injectd equals a pod injected by the policy: both were compared. The",
        "policy is made from injectd's answer for this pod, so the values that injectd computes",
        "(labels, ports, settings) are constants in it. Figures are medians of rounds, CPU in ms",
        "per pod; those of injector and etcd are means. Ratios and differences are within a round.",
        f"The client took {client:.2f} ms per pod.",
    ]
    for level, group in measured.items():
        lines += ["", f"## {level} at a time", "", *group.costs(), "", *group.ratios()]
    lines += ["", "## Parts of the cost", "", *parts(measured), "", *verdict(measured)]
    return "\n".join(lines)


class Level:
    """All rounds with one number of creators."""

    def __init__(self, rows):
        self.ways = {way.namespace: [] for way in SHOWN}
        for row in rows:
            self.ways[row.way].append(row)

    def costs(self):
        yield ("| way | pods/s (min–max) | API server | injector | both (min–max) "
               f"| ÷ {NOTHING.title} | etcd |")
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
            cells = [spread(self.compared(one, other, figure), 2)
                     for figure in ("total", "server", "rate")]
            yield f"| {one.title} ÷ {other.title} | {' | '.join(cells)} |"

    def compared(self, one, other, figure):
        return [getattr(a, figure) / getattr(b, figure) for a, b in self.pairs(one, other)]

    def pairs(self, one, other):
        return zip(self.ways[one.namespace], self.ways[other.namespace])

    def injector(self, way):
        # Over all rounds, because a clock tick is the CPU of a hundred pods.
        return pooled(self.ways[way.namespace], "injector_cpu")

    def more(self, one, other):
        """The additional CPU of the API server in ms per pod."""
        return median(a.server - b.server for a, b in self.pairs(one, other))

    def noise(self):
        """The ratio of a way to itself in the worst round."""
        return max(max(ratio, 1 / ratio) for ratio in self.compared(AGAIN, NOTHING, "total"))

    def opened(self):
        rows = self.ways[INJECTD.namespace]
        return sum(row.connections for row in rows) / sum(row.pods for row in rows) * 1000


def parts(measured):
    """Differences between ways, for the level at which all were measured."""
    [(level, group)] = [(level, group) for level, group in measured.items()
                        if group.ways[ALLOWED.namespace]]
    call, sidecar = group.more(ALLOWED, NOTHING), group.more(COMPLETE, NOTHING)
    yield f"| CPU in ms per pod, {level} at a time | injectd | policy |"
    yield "|---|---|---|"
    yield f"| API server: the call of a webhook that only allows | {call:.2f} | |"
    yield (f"| API server: all other work that a pod without sidecar does not need "
           f"| {group.more(INJECTD, ALLOWED):.2f} | {group.more(POLICY, NOTHING):.2f} |")
    yield f"| of that, if the request already has the sidecar | {sidecar:.2f} | {sidecar:.2f} |"
    yield f"| injectd itself | {group.injector(INJECTD):.2f} | |"
    yield ""
    opened = ", ".join(f"{group.opened():.0f} with {level}" for level, group in measured.items())
    yield f"Connections that the API server opened to injectd per 1,000 pods: {opened} at a time."


def verdict(measured):
    yield "Budget: CPU of API server and injector with injectd ≤ that with the policy."
    for level, group in measured.items():
        ratio, noise = median(group.compared(INJECTD, POLICY, "total")), group.noise()
        word = "met" if ratio <= 1 else "NOT MET: see the parts of the cost"
        if 1 < ratio <= noise:
            word = "missed by less than the noise"
        yield (f"- {level} at a time: {ratio:.2f}, {word} "
               f"({NOTHING.title} ÷ itself: up to {noise:.2f})")


def spread(values, digits):
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}–{max(values):.{digits}f})"


def pooled(rows, field):
    return sum(getattr(row, field) for row in rows) / sum(row.pods for row in rows) * 1000
