"""A certificate authority and its certificates, like those of cert-manager."""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = ipaddress.ip_address("127.0.0.1")


@dataclass(frozen=True)
class Issued:
    """Hold the files of a certificate and its key."""

    certificate: Path
    key: Path

    @property
    def pem(self) -> str:
        return self.certificate.read_text()


class Authority:
    """Sign certificates for loopback."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir()
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, directory.name)])
        self._own = self._sign(self._name, self._key.public_key(), is_authority=True)
        self.certificate = self._write("ca.crt", self._own.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str) -> Issued:
        """Issue a certificate for a server on loopback, or for a client of that name."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        signed = self._sign(subject, key.public_key(), is_authority=False)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return Issued(
            self._write(f"{name}.crt", signed.public_bytes(serialization.Encoding.PEM)),
            self._write(f"{name}.key", private),
        )

    def _sign(self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *, is_authority: bool) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if not is_authority:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(LOOPBACK)]), critical=False)
        return builder.sign(self._key, hashes.SHA256())

    def _write(self, name: str, data: bytes) -> Path:
        path = self._directory / name
        path.write_bytes(data)
        return path
