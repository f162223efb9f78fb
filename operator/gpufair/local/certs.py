"""Certificates for one instance: a CA of its own, so that no instance trusts another."""

import datetime
import ipaddress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
    from cryptography.x509 import Certificate, SubjectAlternativeName

_YEARS = 10


class Authority:
    """A certificate authority that writes `NAME.crt` and `NAME.key` into one directory.

    The authority's own pair is `NAME.crt`, `NAME.key` of the `name` it is made with.
    """

    def __init__(self, directory: Path, name: str, *, rsa: bool = False) -> None:
        self._directory = directory
        self._name = name
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._key = _rsa_key() if rsa else _key()
        self._certificate = _certificate(
            subject=(name, []), names=_names([name]), key=self._key, issuer=None
        )
        _write(directory, name, self._certificate, self._key)

    @property
    def certificate(self) -> Path:
        """The file with the authority's certificate."""
        return self._directory / f"{self._name}.crt"

    def serving(self, name: str, dns: list[str]) -> None:
        """Issue a serving certificate for loopback and the given DNS names."""
        self._issue(name, (name, []), _names(dns, loopback=True))

    def client(self, name: str, user: str, groups: list[str]) -> None:
        """Issue a client certificate that the API server takes for `user` in `groups`."""
        self._issue(name, (user, groups), None)

    def _issue(
        self, name: str, subject: tuple[str, list[str]], names: "SubjectAlternativeName | None"
    ) -> None:
        key = _key()
        certificate = _certificate(
            subject=subject, names=names, key=key, issuer=(self._certificate, self._key)
        )
        _write(self._directory, name, certificate, key)


def signing_key(path: Path) -> None:
    """Write the key that signs service account tokens, and its public half beside it (.pub)."""
    from cryptography.hazmat.primitives import serialization

    key = _rsa_key()
    _write_private(path, _pem(key))
    path.with_suffix(".pub").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )


def _key() -> "CertificateIssuerPrivateKeyTypes":
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _rsa_key() -> "CertificateIssuerPrivateKeyTypes":
    from cryptography.hazmat.primitives.asymmetric import rsa

    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _names(dns: list[str], *, loopback: bool = False) -> "SubjectAlternativeName":
    from cryptography import x509

    names: list[x509.GeneralName] = [x509.DNSName(name) for name in dns]
    if loopback:
        names += [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    return x509.SubjectAlternativeName(names)


def _certificate(
    *,
    subject: tuple[str, list[str]],
    names: "SubjectAlternativeName | None",
    key: "CertificateIssuerPrivateKeyTypes",
    issuer: "tuple[Certificate, CertificateIssuerPrivateKeyTypes] | None",
) -> "Certificate":
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    user, groups = subject
    name = x509.Name(
        [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        + [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    )
    now = datetime.datetime.now(datetime.UTC)
    authority = issuer is None
    issuer_name, issuer_key = (name, key) if issuer is None else (issuer[0].subject, issuer[1])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer_name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=365 * _YEARS))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    if not authority:
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _pem(key: "CertificateIssuerPrivateKeyTypes") -> bytes:
    from cryptography.hazmat.primitives import serialization

    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(
    directory: Path, name: str, certificate: "Certificate", key: "CertificateIssuerPrivateKeyTypes"
) -> None:
    from cryptography.hazmat.primitives import serialization

    (directory / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_private(directory / f"{name}.key", _pem(key))


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)
