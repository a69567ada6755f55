"""A certificate for a server of a test."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make(folder: str) -> Path:
    """Makes a certificate of 127.0.0.1 that vouches for itself, and returns the file of key and certificate."""
    both, certificate = Path(folder, "both.pem"), Path(folder, "certificate.pem")
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    files = ["-keyout", str(both), "-out", str(certificate)]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*command.split(), *files, *names], check=True, capture_output=True)
    with both.open("ab") as file:
        file.write(certificate.read_bytes())
    return both
