"""A client of the API server."""

import base64
import json
import re
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import NamedTuple

from expect import DEADLINE_SECONDS, Failure


class Answer(NamedTuple):
    status: int
    body: dict

    def created(self):
        if self.status != 201:
            raise Failure(f"expected 201 Created, found {self.status}: {self.body.get('message')}")
        return self.body


class Api:
    """A client from a kubeconfig with one cluster and one user."""

    def __init__(self, kubeconfig, folder):
        fields = Path(kubeconfig).read_text()

        def field(name):
            found = re.findall(rf"^[ -]*{name}: *(\S+)", fields, re.MULTILINE)
            if len(found) > 1:
                raise Failure(
                    f"{kubeconfig}: expected one {name}, found {len(found)}; reduce it with "
                    "`kubectl config view --raw --minify --flatten`"
                )
            return found[0].strip("\"'") if found else None

        def decoded(name):
            return base64.b64decode(field(name) or "").decode()

        self.server = field("server")
        self.ca = decoded("certificate-authority-data")
        context = ssl.create_default_context(cadata=self.ca or None)
        if pem := decoded("client-key-data") + decoded("client-certificate-data"):
            client = folder / "client.pem"
            client.touch(mode=0o600)
            client.write_text(pem)
            context.load_cert_chain(client)
        token = field("token")
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        https = urllib.request.HTTPSHandler(context=context)
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), https)

    def call(self, method, path, body=None):
        headers = {"Accept": "application/json", **self.headers}
        if body is not None:
            body = body.encode()
            syntax = "json" if body.startswith(b"{") else "yaml"
            headers["Content-Type"] = f"application/{syntax}"
        request = urllib.request.Request(self.server + path, body, headers, method=method)
        try:
            response = self.opener.open(request, timeout=DEADLINE_SECONDS)
        except urllib.error.HTTPError as error:
            response = error
        except OSError as error:
            raise Failure(f"{method} {path}: {error}") from None
        with response:
            text = response.read().decode()
            body = json.loads(text) if text.startswith("{") else {"message": text}
            return Answer(response.status, body)

    def create(self, manifest, namespace=None, dry_run=False):
        """Creates an object from a dict or from YAML."""
        text = manifest if isinstance(manifest, str) else json.dumps(manifest, indent=0)
        version, kind = (
            re.search(rf'^"?{key}"?: *"?([\w./]+)', text, re.MULTILINE)[1]
            for key in ("apiVersion", "kind")
        )
        query = "?fieldValidation=Strict" + "&dryRun=All" * dry_run
        return self.call("POST", collection(version, kind, namespace) + query, text)


def collection(version, kind, namespace=None):
    scope = f"/namespaces/{namespace}" if namespace else ""
    return f"/{'apis' if '/' in version else 'api'}/{version}{scope}/{kind.lower()}s"
