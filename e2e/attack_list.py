"""The attacks of attack.py: name, connections, function."""

import functools
from typing import Callable, NamedTuple

import attack_bodies
import attack_floods
import attack_load
import attackers
import overload
from reviews import TYPICAL  # loadtest/load


class Attack(NamedTuple):
    """An attack: each process calls `run(place, its connections, until, *prepare(place))`."""

    name: str
    connections: int
    run: Callable
    prepare: Callable = lambda _: ()
    # Also runs against the echo: the attack is about connections and not about reviews.
    has_echo: bool = False
    on_grpc: bool = False
    is_one_process: bool = False
    # Its length if not the usual one, and the time that its processes may take beyond it.
    seconds: float | None = None
    grace: float = 1.5

    def key(self):
        return self.name, self.connections


def of_connections(name, run, *counts, body=None):
    """Attacks on connections, which also run against the echo."""
    prepare = (lambda _: (body,)) if body is not None else (lambda _: ())
    return [Attack(name, count, run, prepare, has_echo=True) for count in counts]


def expensive(name, make, on_grpc=False):
    """One expensive request after the other."""
    made = functools.cache(make)
    run = attack_load.calls if on_grpc else attack_load.reviews
    return [Attack(name, count, run, lambda _: (made(),), on_grpc=on_grpc) for count in (2, 8)]


CROWDS = 1, 8, 100
ATTACKS = [
    *of_connections("streams without end, no body", attackers.endless_streams, *CROWDS, body=b""),
    *of_connections("streams without end, 200 bytes of each body", attackers.endless_streams,
                    *CROWDS, body=b" " * 200),
    *of_connections("stalled bodies: 1 of 3 MiB, HTTP/1.1", attackers.stalled_bodies, *CROWDS),
    *of_connections("answers not taken: a window of 0", attackers.untaken_answers, *CROWDS,
                    body=TYPICAL.read_bytes()),
    *of_connections("refusals: requests beyond their share", attackers.refusals, 50),
    *of_connections("rapid reset", attack_floods.rapid_reset, 1, 20),
    *of_connections("CONTINUATION without end", attack_floods.continuations, 1, 20),
    *of_connections("flood of SETTINGS", attack_floods.settings, 1, 20),
    *of_connections("flood of PING", attack_floods.pings, 1, 20),
    *of_connections("half handshakes, 1 byte/s", attack_floods.half_handshakes, 500),
    *expensive("60,000 additional variables, 1.3 MB", attack_bodies.many_variables),
    *expensive("60,000 port names × 100,000 ports, 2.4 MB", attack_bodies.many_port_names),
    *expensive("2,900,000 empty opaque ports, 2.9 MB", attack_bodies.many_commas),
    *expensive("gRPC: 20,000 namespace annotations", attack_bodies.many_namespace_annotations,
               on_grpc=True),
    *expensive("gRPC: 60,000 additional variables", attack_bodies.many_variables_message,
               on_grpc=True),
    Attack("overload, HTTP/1.1", 1_000, overload.paced_overload, overload.paced_capacity,
           is_one_process=True, seconds=overload.SECONDS, grace=30),
    Attack("overload, HTTP/2, each review its own overrides", 100, overload.own_overload,
           overload.own_capacity, is_one_process=True, seconds=overload.SECONDS),
]
SMOKE = {
    ("streams without end, no body", 8), ("stalled bodies: 1 of 3 MiB, HTTP/1.1", 8),
    ("answers not taken: a window of 0", 8), ("refusals: requests beyond their share", 50),
    ("rapid reset", 1), ("flood of PING", 1), ("60,000 additional variables, 1.3 MB", 2),
    ("60,000 port names × 100,000 ports, 2.4 MB", 2),
    ("2,900,000 empty opaque ports, 2.9 MB", 2), ("gRPC: 60,000 additional variables", 2),
}
