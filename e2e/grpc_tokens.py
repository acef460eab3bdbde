"""Tokens of ServiceAccounts, reviewed by a real API server: valid, invalid and missing."""

import concurrent.futures
import json
import os
import time
from pathlib import Path

import grpc

from client import get, metric
from cluster import collection
from control_plane import ACCOUNT, CONTROL_PLANE, ControlPlane
from expect import DEADLINE_SECONDS, Failure, expect, poll
from grpc_servers import (
    Requests, Served, expect_injected, expect_refused, expect_served, messages, must_succeed,
    request,
)
from injectd import LINKERD
from lab import Component

AUDIENCE = "injectd"
NAMESPACE = "default"
CALLER, STRANGER = "workflow-controller", "stranger"
USER = "system:serviceaccount:{}:{}"
LOOKUP_SECONDS = 4
CALL_SECONDS = 10
AT_ONCE_SECONDS = 0.5
# Streams, and messages of each, whose answers wait for the cluster.
STREAMS, LARGE, LARGE_BYTES = 4, 12, 9 << 20
# --max-body-memory, and as much again for data read from sockets.
MAX_KIB = 2 * 64 << 10


class Tokens:
    """A process for a cluster whose callers have tokens."""

    def __init__(self, folder, api):
        self.api = api
        self.control_plane = ControlPlane(os.environ["INJECTD"], api, folder)
        self.api_server = Component(Path(os.environ["KUBECONFIG"]).parent, "kube-apiserver")
        self.folder = folder
        self.served = None

    def steps(self):
        return {
            "a ServiceAccount with Linkerd's ClusterRole that may create TokenReviews":
                self.make_accounts,
            "serve --grpc-token-audience --grpc-allow is ready": self.start,
            "a token for the audience is served": self.valid,
            "a token is reviewed once": self.reviewed_once,
            "a token for another audience: UNAUTHENTICATED": self.wrong_audience,
            "no token: UNAUTHENTICATED": self.no_token,
            "garbage: UNAUTHENTICATED": self.garbage,
            "other schemes and empty tokens: UNAUTHENTICATED": self.other_schemes,
            "a user that is not in --grpc-allow: PERMISSION_DENIED": self.stranger,
            "health needs no token": self.health,
            "an unknown namespace: FAILED_PRECONDITION": self.no_namespace,
            "the API server hangs: UNAVAILABLE in time; known tokens are served": self.hung,
            "such a call is counted with reason cluster": self.counted,
            "the API server hangs: the caller's own deadline counts": self.short_deadline,
            f"{STREAMS} × {LARGE} messages of {LARGE_BYTES >> 20} MiB wait for the API server: "
            f"at most {MAX_KIB >> 10} MiB":
                self.large_wait,
            "the API server is back: served without a restart": self.back,
            "SIGTERM ends it with exit code 0": lambda: expect("exit code", 0, self.served.stop()),
        }

    # --- start ---

    def make_accounts(self):
        self.control_plane.make_account()
        group = "rbac.authorization.k8s.io"
        self.control_plane.create({
            "apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{ACCOUNT}-tokens"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "system:auth-delegator"},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": CONTROL_PLANE}],
        })
        for name in CALLER, STRANGER:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}}
            self.control_plane.create(account, NAMESPACE)

    def token(self, name=CALLER, audience=AUDIENCE):
        path = f"{collection('v1', 'ServiceAccount', NAMESPACE)}/{name}/token"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 3600, "audiences": [audience]}}
        return self.api.call("POST", path, json.dumps(request)).created()["status"]["token"]

    def start(self):
        kubeconfig = self.control_plane.kubeconfig(self.api.server)
        self.served = Served(
            self.folder / "served", "--kubeconfig", kubeconfig,
            "--values", LINKERD / "values/default.yaml",
            "--trust-roots", LINKERD / "example-root.crt",
            "--grpc-token-audience", AUDIENCE, "--grpc-allow", USER.format(NAMESPACE, CALLER),
            "--lookup-timeout", f"{LOOKUP_SECONDS}s",
            # Not only loopback, because callers authenticate.
            grpc_addr=":0", is_standalone=False).start()
        poll("/ready", lambda: expect("/ready", 200, self.admin("/ready")[0]))
        self.known = self.token()
        # Other tokens of the same user.
        self.unseen = [self.token() for _ in range(4)]
        return self.served.address()

    def admin(self, path):
        return get(self.served.port("admin"), path, DEADLINE_SECONDS)

    def call(self, token=None, **how):
        how = {"address": f"127.0.0.1:{self.served.port()}", **how}
        return self.served.call(token=token, **how)

    # --- tokens ---

    def valid(self):
        with self.call(self.known) as client:
            must_succeed(lambda: expect_injected(client.inject(namespace=NAMESPACE)))
            requests = Requests()
            requests.send(uid="1", namespace=NAMESPACE)
            requests.close()
            [answer] = must_succeed(lambda: list(client.stream(requests)))
        expect_injected(answer.response)

    def reviewed_once(self):
        token, count = self.token(), 100
        before = self.token_reviews()
        with self.call(token) as client:
            for _ in range(count):
                must_succeed(lambda: client.inject(namespace=NAMESPACE))
        expect("TokenReviews", 1, self.token_reviews() - before)
        return f"{count} calls"

    def token_reviews(self):
        """The number of TokenReviews that the API server has received so far."""
        text = self.api.call("GET", "/metrics").body["message"]
        return metric(text, "apiserver_request_total", resource="tokenreviews")

    def wrong_audience(self):
        return expect_refused("UNAUTHENTICATED", self.call(self.token(audience="another")))

    def no_token(self):
        return expect_refused("UNAUTHENTICATED", self.call(), "authorization")

    def garbage(self):
        head, payload, signature = self.known.split(".")
        forged = payload[:-4] + ("AAAA" if payload[-4:] != "AAAA" else "BBBB")
        for token in "garbage", f"{head}.{forged}.{signature}", "x" * 8_000:
            expect_refused("UNAUTHENTICATED", self.call(token))
        expect_served(self.call(self.known))

    def other_schemes(self):
        for value in f"Basic {self.known}", self.known, "Bearer", "Bearer ":
            client = self.call()
            client.metadata = [("authorization", value)]
            expect_refused("UNAUTHENTICATED", client)

    def stranger(self):
        user = USER.format(NAMESPACE, STRANGER)
        return expect_refused("PERMISSION_DENIED", self.call(self.token(STRANGER)), user)

    def health(self):
        with self.call() as client:
            expect("the health", 1, must_succeed(client.health))

    def no_namespace(self):
        return expect_refused("FAILED_PRECONDITION", self.call(self.known), "nowhere",
                              namespace="nowhere")

    # --- the API server hangs ---

    def hung(self):
        expect_served(self.call(self.known))
        self.api_server.hang()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            unseen = pool.submit(self.timed_unavailable, self.unseen[0])
            known = [self.timed_served() for _ in range(20)]
            words, seconds = unseen.result()
        if max(known) > AT_ONCE_SECONDS:
            raise Failure(f"the slowest call with a known token took {max(known):.1f} s")
        if seconds > CALL_SECONDS:
            raise Failure(f"UNAVAILABLE after {seconds:.1f} s")
        return (f"{words} after {seconds:.1f} s; known: slowest {max(known) * 1000:.0f} ms "
                "with its handshake")

    def timed_unavailable(self, token):
        begin = time.monotonic()
        words = expect_refused("UNAVAILABLE", self.call(token), "token", timeout=CALL_SECONDS)
        return words, time.monotonic() - begin

    def timed_served(self):
        begin = time.monotonic()
        expect_served(self.call(self.known), namespace=NAMESPACE)
        return time.monotonic() - begin

    def counted(self):
        """Comes before a caller gives up: whether the server then counts its own deadline or the
        caller's reset is a race."""
        before = self.refused()
        expect_refused("UNAVAILABLE", self.call(self.unseen[1]), timeout=CALL_SECONDS)
        expect("refused requests by reason", {**before, "cluster": before["cluster"] + 1},
               self.refused())

    def short_deadline(self):
        begin = time.monotonic()
        expect_refused("DEADLINE_EXCEEDED", self.call(self.unseen[1]), timeout=LOOKUP_SECONDS / 4)
        seconds = time.monotonic() - begin
        if seconds > LOOKUP_SECONDS / 2:
            raise Failure(f"after {seconds:.1f} s")
        return f"after {seconds:.1f} s"

    def refused(self):
        _, text = self.admin("/metrics")
        return {why: metric(text, "injectd_requests_rejected_total", reason=why, server="grpc")
                for why in ("cluster", "deadline", "caller")}

    def large_wait(self):
        """Each message names a namespace that injectd must look up in the API server."""
        before, most = self.served.rss_kib(), 0
        padding = b" " * LARGE_BYTES

        def codes_of(number):
            requests = (messages.InjectStreamRequest(request=request(
                uid=str(index), namespace=f"unknown-{number}-{index}",
                object=padding + b'{"kind":"Pod","metadata":{},"spec":{}}'))
                for index in range(LARGE))
            with self.call(self.known) as client:
                return codes(client.stream(requests))

        with concurrent.futures.ThreadPoolExecutor() as pool:
            answers = [pool.submit(codes_of, number) for number in range(STREAMS)]
            while not all(answer.done() for answer in answers):
                most = max(most, self.served.rss_kib() - before)
                time.sleep(0.02)
        words = f"{most >> 10} MiB more, codes {[answer.result() for answer in answers]}"
        self.served.expect_alive()
        if most > MAX_KIB:
            raise Failure(words)
        return words

    def back(self):
        self.api_server.resume()
        poll("the API server", lambda: expect_served(self.call(self.unseen[0])))
        expect_served(self.call(self.unseen[2]))
        expect_refused("UNAUTHENTICATED", self.call("garbage"))
        expect("/ready", 200, self.admin("/ready")[0])

    def clean_up(self):
        self.api_server.clean_up()
        if self.served:
            self.served.kill()


def codes(answers):
    """How often each code occurs in a stream's answers and at its end."""
    found = {}
    try:
        for answer in answers:
            found[answer.failure.code] = found.get(answer.failure.code, 0) + 1
    except grpc.RpcError as error:
        found[error.code().name] = 1
    return found
