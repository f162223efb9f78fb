"""Certificates of the local cluster."""

import datetime
import ipaddress
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID

from gpufair.local import certs


@pytest.fixture
def authority(tmp_path: Path) -> certs.Authority:
    return certs.Authority(tmp_path / "pki", "ca")


def load(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_a_serving_certificate_is_for_loopback(authority: certs.Authority, tmp_path: Path) -> None:
    authority.serving("serving", ["a.svc"])
    certificate = load(tmp_path / "pki" / "serving.crt")
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.svc", "localhost"]
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    certificate.verify_directly_issued_by(load(authority.certificate))


def test_a_client_certificate_names_user_and_groups(
    authority: certs.Authority, tmp_path: Path
) -> None:
    authority.client("kueue", "system:serviceaccount:n:s", ["g1", "g2"])
    certificate = load(tmp_path / "pki" / "kueue.crt")
    subject = certificate.subject
    assert [item.value for item in subject.get_attributes_for_oid(NameOID.COMMON_NAME)] == [
        "system:serviceaccount:n:s"
    ]
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert [item.value for item in groups] == ["g1", "g2"]
    certificate.verify_directly_issued_by(load(authority.certificate))


def test_certificates_outlive_kueues_rotation(authority: certs.Authority, tmp_path: Path) -> None:
    """It renews what ends within 90 days, into a secret that no file here follows."""
    authority.serving("serving", [])
    ends = load(tmp_path / "pki" / "serving.crt").not_valid_after_utc
    assert ends - datetime.datetime.now(datetime.UTC) > datetime.timedelta(days=5 * 365)


def test_keys_are_for_their_owner_only(authority: certs.Authority, tmp_path: Path) -> None:
    authority.client("admin", "admin", [])
    certs.signing_key(tmp_path / "pki" / "sa.key")
    keys = sorted((tmp_path / "pki").glob("*.key"))
    assert [key.name for key in keys] == ["admin.key", "ca.key", "sa.key"]
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}
    assert (tmp_path / "pki").stat().st_mode & 0o777 == 0o700
    assert b"PUBLIC KEY" in (tmp_path / "pki" / "sa.pub").read_bytes()
