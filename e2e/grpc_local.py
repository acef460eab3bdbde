"""Servers that only this machine reaches (loopback, a unix socket), and flags rejected at start."""

import base64
import json
import os
import signal
import stat
import subprocess
import sys
import time

import grpc

from client import Target, ask, review
from expect import DEADLINE_SECONDS, Failure, expect, expect_in, poll
from grpc_servers import (
    HERE, POD, SERVICE, Requests, Served, environment, expect_injected, expect_served,
    expect_status, messages, must_succeed,
)

USAGE = 64
FAILED = 1
SERVING, NOT_SERVING = 1, 2
MODE = 0o600
# Long enough for calls between the signal and the end of the server.
DRAIN_SECONDS = 3


def run(*command):
    """Runs a program and returns its output; its exit code must be 0."""
    command = [str(word) for word in command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    expect(f"the exit code of {command[0]} ({done.stderr.strip()[-300:]})", 0, done.returncode)
    return done.stdout


def patch_of_webhook(served, pod):
    """The patch that the webhook server of a process returns for the same object."""
    target = Target(served.port("webhook"), "localhost", str(served.ca))
    answer, _ = ask(target, review(pod))
    return base64.b64decode(answer["response"]["patch"])


class Loopback:
    """One process that serves without a cluster: tools and clients in three languages."""

    def __init__(self, folder):
        self.folder = folder
        self.served = Served(folder / "served")
        self.pod = json.loads(POD.read_text())

    def steps(self):
        return {
            "serve --standalone has a gRPC server on loopback": self.start,
            "grpcurl lists its services": self.list,
            "grpcurl describes the service": self.describe,
            "grpcurl injects a pod by reflection": self.inject,
            "its health is SERVING": self.health,
            "a client in Go injects a pod: the patch is the webhook's": self.go,
            "a client in Python injects a pod: the patch is the webhook's": self.python,
            "a stream answers each request by its uid": self.stream,
            "gzip is accepted": self.gzip,
            "SIGTERM ends it with exit code 0": self.stop,
        }

    def start(self):
        self.served.start()
        return self.served.address()

    def grpcurl(self, *args):
        return run(os.environ["GRPCURL"], "-cacert", self.served.ca, *args)

    def list(self):
        found = self.grpcurl(self.served.address(), "list").split()
        for service in SERVICE, "grpc.health.v1.Health":
            expect_in("the services", service, found)
        return ", ".join(found)

    def describe(self):
        found = self.grpcurl(self.served.address(), "describe", SERVICE)
        for method in ("rpc Inject ( .injectd.v1.InjectRequest )",
                       "rpc InjectStream ( stream .injectd.v1.InjectStreamRequest )"):
            expect_in("the service", method, found)

    def inject(self):
        encoded = base64.b64encode(POD.read_bytes()).decode()
        data = json.dumps({"uid": "1", "namespace": "default", "kind": "Pod", "object": encoded})
        answer = json.loads(self.grpcurl("-d", data, self.served.address(), f"{SERVICE}/Inject"))
        expect("uid and verdict", ("1", "VERDICT_INJECTED"), (answer["uid"], answer["verdict"]))
        return f"{len(json.loads(base64.b64decode(answer['patch'])))} operations"

    def health(self):
        for service in "", SERVICE:
            data = json.dumps({"service": service})
            answer = self.grpcurl("-d", data, self.served.address(), "grpc.health.v1.Health/Check")
            expect(f"the health of {service!r}", "SERVING", json.loads(answer).get("status"))

    def go(self):
        return self.expect_same_patch(os.environ["GO_CLIENT"], "-addr", "-ca", "-patch")

    def python(self):
        program = [sys.executable, "-B", HERE / "clients/python/inject.py"]
        return self.expect_same_patch(*program, "--addr", "--ca", "--patch")

    def expect_same_patch(self, *command):
        *program, addr, ca, patch = command
        file = self.folder / "patch"
        output = run(*program, addr, self.served.address(), ca, self.served.ca, patch, file, POD)
        found = file.read_bytes()
        expect("whether the patch is the webhook's", True,
               found == patch_of_webhook(self.served, self.pod))
        expect("its output", f"VERDICT_INJECTED, {len(json.loads(found))} operations",
               output.strip())
        return f"{output.strip()}, {len(found)} bytes"

    def stream(self):
        requests, count = Requests(), 200
        for index in range(count):
            requests.send(uid=f"uid-{index}")
        requests.send(uid="")
        requests.send(uid="broken", object=b"{")
        requests.close()
        wrong = {"": 3, "broken": 3}
        with self.served.call() as client:
            answers = must_succeed(lambda: list(client.stream(requests)))
        expect("the number of answers", count + len(wrong), len(answers))
        expect("the uids", {*wrong, *(f"uid-{index}" for index in range(count))},
               {answer.uid for answer in answers})
        patch = patch_of_webhook(self.served, self.pod)
        for answer in answers:
            if answer.uid in wrong:
                expect(f"the code of {answer.uid!r}", wrong[answer.uid], answer.failure.code)
            else:
                expect("uid inside and outside", answer.uid, answer.response.uid)
                expect("whether the patch is the webhook's", True, answer.response.patch == patch)

    def gzip(self):
        with self.served.call() as client:
            response = must_succeed(lambda: client.stub.Inject(
                messages.InjectRequest(namespace="default", kind="Pod", object=POD.read_bytes()),
                timeout=DEADLINE_SECONDS, compression=grpc.Compression.Gzip))
        expect_injected(response)

    def stop(self):
        expect("the exit code", 0, self.served.stop())

    def clean_up(self):
        self.served.kill()


class UnixSocket:
    """A socket in the file system, only for this user."""

    def __init__(self, folder):
        self.path = folder / "grpc.sock"
        self.addr = f"unix:{self.path}"
        self.served, self.second = (
            Served(folder / name, grpc_addr=self.addr) for name in ("served", "second"))

    def steps(self):
        return {
            f"serve --grpc-addr unix:PATH makes a socket of mode {MODE:04o}": self.start,
            "grpcurl and Python are served on it, without TLS": self.serve,
            "a second process on it exits 1 and names --grpc-addr": self.taken,
            "a socket that kill -9 left is replaced": self.replaced,
            "a file that is not a socket stays": self.no_socket,
            "SIGTERM ends it with exit code 0, the socket is gone": self.stop,
        }

    def start(self):
        self.served.start()
        expect("the address", self.addr, self.served.address())
        self.expect_socket()

    def expect_socket(self):
        mode = self.path.stat().st_mode
        expect("whether it is a socket", True, stat.S_ISSOCK(mode))
        expect("its mode", oct(MODE), oct(stat.S_IMODE(mode)))

    def serve(self):
        found = run(os.environ["GRPCURL"], "-plaintext", "-unix", self.path, "list")
        expect_in("the services", SERVICE, found.split())
        expect_served(self.served.call())

    def taken(self):
        last_line = expect_exit(self.second.command, FAILED, "--grpc-addr")
        self.served.expect_alive()
        expect_served(self.served.call())
        return last_line

    def replaced(self):
        self.served.kill()
        self.expect_socket()
        self.served.start()
        self.expect_socket()
        expect_served(self.served.call())

    def no_socket(self):
        file = self.path.with_name("file")
        file.write_text("mine")
        command = [f"unix:{file}" if word == self.addr else word for word in self.second.command]
        last_line = expect_exit(command, FAILED, "--grpc-addr")
        expect("the file", "mine", file.read_text())
        return last_line

    def stop(self):
        expect("the exit code", 0, self.served.stop())
        expect("whether the socket is there", False, self.path.exists())

    def clean_up(self):
        self.served.kill()


def expect_exit(command, code, flag):
    """Fails unless a process ends with this exit code and its last line names the flag."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment(),
                              timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failure(f"still running; expected exit code {code}") from None
    expect(f"the exit code ({done.stderr.strip()})", code, done.returncode)
    [*_, last] = done.stderr.strip().splitlines()
    expect_in("the last line", flag, last)
    return last


class Refusals:
    """Servers that would accept any client, and flags that do not go together."""

    def __init__(self, folder):
        self.served = Served(folder / "served")
        ca = self.served.ca
        self.refused = {
            "--grpc-addr": ["--grpc-addr", ":0"],
            "--grpc-addr 0.0.0.0:0": ["--grpc-addr", "0.0.0.0:0"],
            "--grpc-on-webhook": ["--grpc-on-webhook"],
            "--grpc-allow": ["--grpc-allow", "controller.example.com"],
            "--grpc-allow-file": ["--grpc-allow-file", ca],
            "--grpc-token-audience": ["--grpc-token-audience", "injectd"],
        }

    def steps(self):
        return {f"{' '.join(map(str, flags[:2])) if flag != '--grpc-allow-file' else flag} without "
                f"authentication: exit code {USAGE}, {flag.split()[0]} is named":
                lambda flag=flag, flags=flags: self.expect_usage(flag.split()[0], flags)
                for flag, flags in self.refused.items()}

    def expect_usage(self, flag, flags):
        command = list(self.served.command)
        if "--grpc-addr" in flags:
            at = command.index("--grpc-addr")
            del command[at : at + 2]
        return expect_exit([*command, *flags], USAGE, flag)

    def clean_up(self):
        pass


class Ends:
    """SIGTERM and SIGINT while a stream is open."""

    def __init__(self, folder):
        self.served = Served(folder / "served", drain_delay=f"{DRAIN_SECONDS}s")

    def steps(self):
        return {
            "SIGTERM with an open stream: NOT_SERVING, answers, UNAVAILABLE, exit code 0":
                lambda: self.ends(signal.SIGTERM),
            "SIGINT with an open stream: UNAVAILABLE, exit code 0, without the delay":
                lambda: self.ends(signal.SIGINT),
        }

    def ends(self, how):
        self.served.start()
        requests = Requests()
        with self.served.call() as client, self.served.call() as watcher:
            expect("the health before", SERVING, must_succeed(watcher.health))
            answers = client.stream(requests)
            requests.send(uid="before")
            expect("the first answer", "before", must_succeed(lambda: next(answers)).uid)
            self.served.process.send_signal(how)
            begin = time.monotonic()
            if how == signal.SIGTERM:
                poll("the health", lambda: expect("the health", NOT_SERVING,
                                                  must_succeed(watcher.health)))
                # Other clients may not know it yet.
                expect_served(self.served.call())
                requests.send(uid="after")
                answer = must_succeed(lambda: next(answers))
                expect("the second answer", "after", answer.uid)
                expect_injected(answer.response)
            words = expect_status("UNAVAILABLE", lambda: next(answers))
            requests.close()
        expect("the exit code", 0, self.served.exit_code(how.name))
        seconds = time.monotonic() - begin
        if how == signal.SIGINT and seconds > DRAIN_SECONDS * 2 / 3:
            raise Failure(f"{words} and exit code 0, but after {seconds:.1f} s")
        return f"{words}, after {seconds:.1f} s"

    def clean_up(self):
        self.served.kill()
