"""Certificates for the webhook's Service, made with openssl, from a CA of the run."""

import subprocess

from expect import expect, expect_in

# The formats of a private key that Linkerd's injector accepts, and the openssl command of each.
KEYS = {
    "PKCS#1 RSA": ["genrsa", "-traditional", "-out", "tls.key", "2048"],
    "SEC1 EC": ["ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "tls.key"],
    "PKCS#8 RSA": ["genpkey", "-algorithm", "RSA", "-out", "tls.key"],
    "PKCS#8 EC": ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                  "-out", "tls.key"],
}
HEADERS = {"PKCS#1": "RSA PRIVATE KEY", "SEC1": "EC PRIVATE KEY", "PKCS#8": "PRIVATE KEY"}


class Authority:
    """A CA in a folder."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.openssl(*KEYS["PKCS#8 EC"][:-1], "ca.key")
        self.openssl("req", "-x509", "-key", "ca.key", "-days", "2", "-subj", "/CN=e2e",
                     "-out", "ca.crt")
        self.path = folder / "ca.crt"

    def openssl(self, *args):
        run = subprocess.run(["openssl", *args], cwd=self.folder, capture_output=True, text=True)
        expect(f"openssl {args[0]}: {run.stderr}", 0, run.returncode)

    def secret(self, host, form):
        """The files of a Secret with a certificate for a host and a key of this form."""
        self.openssl(*KEYS[form])
        self.openssl("req", "-x509", "-key", "tls.key", "-days", "2", "-subj", f"/CN={host}",
                     "-CA", "ca.crt", "-CAkey", "ca.key", "-out", "tls.crt",
                     "-addext", f"subjectAltName=DNS:{host}",
                     "-addext", "basicConstraints=critical,CA:FALSE",
                     "-addext", "extendedKeyUsage=serverAuth")
        files = {name: (self.folder / name).read_text() for name in ("tls.crt", "tls.key")}
        expect_in("the key", f"BEGIN {HEADERS[form.split()[0]]}", files["tls.key"])
        return files
