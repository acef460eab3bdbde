"""Clients that use up a replica's connections and requests."""

from client import Connection

# The flood is complete after this many refused connections.
BEYOND = 3


class Flood:
    """Opens more connections than a replica serves, and as many half reviews as it accepts."""

    def __init__(self, replica, authority, body, max_requests):
        self.replica, self.target = replica, replica.target(authority)
        self.context = self.target.context()
        self.request, self.max_requests = self.target.post(body), max_requests
        self.connections, self.halves = [], []

    def begin(self, max_connections):
        """Uses up connections and requests."""
        request, half = self.request, len(self.request) // 2
        for _ in range(self.max_requests):
            connection = Connection(self.target, self.context)
            connection.send(request[:half])
            self.halves.append(connection)
        before = self.refused_connections()
        while self.refused_connections() < before + BEYOND:
            taken = self.replica.metric("injectd_connections", server="webhook")
            for _ in range(max(max_connections - taken, 0) + BEYOND):
                self.connections.append(Connection(self.target, self.context))

    def refused_requests(self):
        """Requests that were refused at the limit."""
        return self.count("injectd_requests_rejected_total", reason="requests")

    def refused_connections(self):
        """Connections that were refused at the limit."""
        return self.count("injectd_connections_rejected_total")

    def answered(self):
        """Pods that were injected."""
        return self.count("injectd_reviews_total", kind="pod", verdict="injected")

    def count(self, metric, **labels):
        """A counter of the webhook server."""
        return self.replica.metric(metric, server="webhook", **labels)

    def end(self):
        """Sends the other halves; returns the statuses of their answers."""
        half = len(self.request) // 2
        answers = []
        for connection in self.halves:
            connection.send(self.request[half:])
        for connection in self.halves:
            answers.append(connection.receive().status)
        self.close()
        return answers

    def close(self):
        for connection in self.connections + self.halves:
            connection.close()
        self.connections, self.halves = [], []
