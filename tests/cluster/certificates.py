"""The cluster's own certificate authority, and what it signs: everyone proves who they are, as in a real cluster.

A component's rights follow from its certificate: the common name is its user, the organisation its group.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["Authority", "KeyPair", "write_key"]

LIFETIME = dt.timedelta(days=7)
CLOCK_SKEW = dt.timedelta(hours=1)


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its private key, as files."""

    certificate: Path
    key: Path


class Authority:
    """Signs certificates into a directory."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._name = _name("accelbench-tests", None)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = directory / "authority.crt"
        usage = x509.KeyUsage(
            digital_signature=True,
            key_cert_sign=True,
            crl_sign=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            encipher_only=False,
            decipher_only=False,
        )
        signed = (
            self._builder(self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def client(self, user: str, group: str | None = None) -> KeyPair:
        """Sign a certificate that proves to the API server who is calling."""
        return self._sign(user, group, ExtendedKeyUsageOID.CLIENT_AUTH, ())

    def server(self, name: str, hosts: Sequence[str]) -> KeyPair:
        """Sign a certificate for a server that is reached by these host names and addresses."""
        return self._sign(name, None, ExtendedKeyUsageOID.SERVER_AUTH, hosts)

    def _sign(self, user: str, group: str | None, usage: x509.ObjectIdentifier, hosts: Sequence[str]) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._builder(_name(user, group), key.public_key()).add_extension(
            x509.ExtendedKeyUsage([usage]), critical=False
        )
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False
            )
        stem = user.replace(":", "-")
        pair = KeyPair(self._directory / f"{stem}.crt", self._directory / f"{stem}.key")
        signed = builder.sign(self._key, hashes.SHA256())
        pair.certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        write_key(pair.key, key)
        return pair

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - CLOCK_SKEW)
            .not_valid_after(now + LIFETIME)
        )


def write_key(path: Path, key: ec.EllipticCurvePrivateKey | None = None) -> None:
    """Write a private key, a new one unless it is given, that only its owner may read."""
    path.touch(mode=0o600)
    # The API server derives a public key from this format only.
    path.write_bytes(
        (key or ec.generate_private_key(ec.SECP256R1())).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )


def _name(user: str, group: str | None) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(attributes)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
