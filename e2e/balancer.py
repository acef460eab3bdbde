"""A stand-in for kube-proxy: forwards new connections to a Service to ready replicas in turn.

It probes /ready of each replica as a kubelet does. A change takes effect a little later, as with
endpoints. Open connections stay where they are.
"""

import asyncio
import itertools
import multiprocessing
import os
import signal

from client import HOST
from expect import Failure
from steps import wait_until

PROBE_SECONDS = 1
# From a kubelet's report to the kernel's rules.
LAG_SECONDS = 0.5
BUFFER_BYTES = 1 << 16


class Balancer:
    """A process of its own, so that measurements do not delay it."""

    def __init__(self, address, replicas):
        """Listens on an address; `replicas` has the ports of their webhook and admin servers."""
        context = multiprocessing.get_context("fork")
        self.rotation = context.Array("b", len(replicas))
        self.is_listening = context.Event()
        self.process = context.Process(
            target=run, daemon=True, args=(address, replicas, self.rotation, self.is_listening))
        self.process.start()
        if not self.is_listening.wait(5):
            raise Failure(f"the balancer does not listen on {address}")

    def wait_for(self, index, is_in):
        """Waits until a replica is in rotation, or out of it."""
        what = f"replica {index} {'in' if is_in else 'out of'} rotation"
        wait_until(what, lambda: bool(self.rotation[index]) == is_in)

    def close(self):
        self.process.terminate()
        self.process.join()


def run(*args):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # The parent process handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(serve(*args))


async def serve(address, replicas, rotation, is_listening):
    parent, turns = os.getppid(), itertools.count()

    async def accept(*client):
        ready = [port for (port, _), is_ready in zip(replicas, rotation) if is_ready]
        try:
            if not ready:
                raise ConnectionRefusedError
            server = await asyncio.open_connection(HOST, ready[next(turns) % len(ready)])
        except OSError:
            client[1].transport.abort()
            return
        await asyncio.gather(pump(client[0], server[1]), pump(server[0], client[1]))

    server = await asyncio.start_server(accept, *address)
    is_listening.set()
    async with server:
        probes = [probe(index, port, rotation) for index, (_, port) in enumerate(replicas)]
        await asyncio.gather(end_with(parent), *probes)


async def pump(reader, writer):
    try:
        while data := await reader.read(BUFFER_BYTES):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass  # One side is closed: close the other.
    writer.close()


async def probe(index, port, rotation):
    loop = asyncio.get_running_loop()
    while True:
        try:
            is_ready = await asyncio.wait_for(ask(port), PROBE_SECONDS)
        except (OSError, asyncio.TimeoutError):
            is_ready = False
        loop.call_later(LAG_SECONDS, rotation.__setitem__, index, is_ready)
        await asyncio.sleep(PROBE_SECONDS)


async def ask(port):
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        writer.write(b"GET /ready HTTP/1.1\r\nHost: replica\r\nConnection: close\r\n\r\n")
        return b" 200 " in await reader.readline()
    finally:
        writer.close()


async def end_with(parent):
    """Exits when the parent process has ended."""
    while os.getppid() == parent:
        await asyncio.sleep(PROBE_SECONDS)
    os._exit(1)
