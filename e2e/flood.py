"""Clients that take all of a replica's connections and requests for a while."""

from client import Connection

# How many are turned away before it is enough.
BEYOND = 3


class Flood:
    """Opens more connections than a replica serves, and sends as many half reviews as it takes."""

    def __init__(self, replica, authority, body, most_requests):
        self.replica, self.target = replica, replica.target(authority)
        self.context = self.target.context()
        self.request, self.most_requests = self.target.post(body), most_requests
        self.connections, self.halves = [], []

    def begin(self, most_connections):
        """Takes them all; what comes now is told 503."""
        request, half = self.request, len(self.request) // 2
        for _ in range(self.most_requests):
            connection = Connection(self.target, self.context)
            connection.send(request[:half])
            self.halves.append(connection)
        before = self.refused("connections")
        while self.refused("connections") < before + BEYOND:
            taken = self.replica.metric("injectd_connections", door="webhook")
            for _ in range(max(most_connections - taken, 0) + BEYOND):
                self.connections.append(Connection(self.target, self.context))

    def refused(self, what):
        """How many requests or connections were one too many."""
        reason = {"reason": "requests"} if what == "requests" else {}
        return self.replica.metric(f"injectd_{what}_refused_total", door="webhook", **reason)

    def end(self):
        """Sends the other halves, and gives how they were answered."""
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
