"""A certificate authority of the test's own, which vouches for every host that is asked for."""

import ssl
import tempfile
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.x509.oid import NameOID


@dataclass
class Authority:
    """Makes a certificate for a host when the first client asks for it."""

    _contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def certificate(self) -> str:
        """The authority's own certificate, as text."""
        return _root()[1].public_bytes(serialization.Encoding.PEM).decode()

    def trusted(self) -> ssl.SSLContext:
        """Return what a client checks certificates with."""
        return ssl.create_default_context(cadata=self.certificate)

    def context(self) -> ssl.SSLContext:
        """Return what a server shows its certificates with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.sni_callback = self._chosen  # type: ignore[assignment]
        return context

    def _chosen(self, connection: ssl.SSLSocket, host: str | None, _: ssl.SSLContext) -> None:
        with self._lock:
            name = host or "localhost"
            if name not in self._contexts:
                self._contexts[name] = _made(name)
            connection.context = self._contexts[name]


@cache
def _root() -> tuple[EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    return key, _signed("Fake platforms", key, None)


def _signed(
    name: str,
    key: EllipticCurvePrivateKey,
    issuer: tuple[EllipticCurvePrivateKey, x509.Certificate] | None,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
    now = datetime.now(UTC)
    signer = issuer[0] if issuer else key
    root = issuer is None
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[1].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=root, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()),
            critical=False,
        )
    )
    if root:
        made = made.add_extension(
            x509.KeyUsage(False, False, False, False, False, True, True, False, False),
            critical=True,
        )
    else:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    return made.sign(signer, hashes.SHA256())


def _made(host: str) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = _signed(host, key, _root())
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
