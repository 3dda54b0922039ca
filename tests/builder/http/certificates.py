"""A certificate authority of the tests' own, which vouches for every host that is asked for."""

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import NameOID


def trusted() -> ssl.SSLContext:
    """Return what a client checks certificates with."""
    return ssl.create_default_context(cadata=root_pem())


def root_pem() -> str:
    """Return the certificate of the authority."""
    return _root()[1].public_bytes(serialization.Encoding.PEM).decode()


def any_host() -> ssl.SSLContext:
    """Return what a server shows a certificate of each host with that a client asks for."""

    def choose(connection: ssl.SSLSocket, host: str | None, _: ssl.SSLContext) -> None:
        connection.context = of_host(host or "localhost")

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.sni_callback = choose  # type: ignore[assignment]
    return context


@cache
def of_host(host: str, days: int = 1) -> ssl.SSLContext:
    """Return what a server shows a host's certificate with, which ends after so many days."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _sign(host, key, _root(), days)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "host.pem")
        file.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
        context.load_cert_chain(file)
    return context


@cache
def _root() -> tuple[EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    return key, _sign("Tests", key, None)


def _sign(
    name: str,
    key: EllipticCurvePrivateKey,
    issuer: tuple[EllipticCurvePrivateKey, x509.Certificate] | None,
    days: int = 1,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    end = datetime.now(UTC) + timedelta(days=days)
    signer, above = (issuer[0], issuer[1].subject) if issuer else (key, subject)
    authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    signs = x509.KeyUsage(False, False, False, False, False, True, True, False, False)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(above)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=10))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=not issuer, path_length=None), critical=True)
        .add_extension(own, critical=False)
        .add_extension(authority, critical=False)
    )
    if issuer:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False
        )
    else:
        builder = builder.add_extension(signs, critical=True)
    return builder.sign(signer, hashes.SHA256())
