"""Subjects of certificates, as Java writes them, and damaged ones."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.server.login.certificate_names import subject_text
from millstream.testing.certificates import CertificateAuthority

# Subjects in DER, and the text of Java 17's X500Principal.getName().
SUBJECTS = [
    (
        "303c310b3009060355040613024742310c300a060355040a1303207820311f300c06035504030c05613d6223"
        "63300f060a0992268993f22c640101130137",
        r"CN=a\=b\#c+UID=7,O=\ x\ ,C=GB",
    ),
    ("300f310d300b06035504030c0423782b20", r"CN=\#x\+" + r"\ "),
    (
        "3026310e300c06035504031305616c6963653114301206092a864886f70d01090116056140622e63",
        "1.2.840.113549.1.9.1=#16056140622e63,CN=alice",
    ),
    ("3019310a30080603550403130161310b3009060355040513023132", "2.5.4.5=#13023132,CN=a"),
    ("30233111300f060a0992268993f22c640119160178310e300c06035504030c05c3a9e4b8ad", "CN=é中,DC=x"),
    ("30163114301206035504030c0b612c623b633c3e225c0061", r"CN=a\,b\;c\<\>\"\\\00a"),
    ("3000", ""),
]


def der(tag: int, *contents: bytes) -> bytes:
    content = b"".join(contents)
    size = len(content)
    head = bytes([size]) if size < 0x80 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + head + content


def certificate_of(subject: bytes, *, has_version: bool = True) -> bytes:
    """Return what stands around the subject of a certificate."""
    version = [der(0xA0, der(2, b"\2"))] if has_version else []
    empty = der(0x30)
    signed = der(0x30, *version, der(2, b"\1"), empty, empty, empty, subject, empty)
    return der(0x30, signed, empty, der(3, b"\0"))


@pytest.mark.parametrize(("subject", "text"), SUBJECTS)
@pytest.mark.parametrize("has_version", [True, False])
def test_a_subject_reads_as_java_writes_it(subject: str, text: str, *, has_version: bool) -> None:
    found = subject_text(certificate_of(bytes.fromhex(subject), has_version=has_version))
    assert found == text


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("authority")
    pem = CertificateAuthority(folder).issue("alice").certificate.read_text()
    return ssl.PEM_cert_to_DER_cert(pem[: pem.index("-----END") + len("-----END CERTIFICATE-----")])


def test_a_real_certificate(real: bytes) -> None:
    assert subject_text(real) == "CN=alice"


def test_a_part_of_a_certificate_is_refused(real: bytes) -> None:
    for size in range(len(real)):
        with pytest.raises(ValueError, match=r"."):
            subject_text(real[:size])


@given(st.data())
def test_damage_is_refused_or_read(real: bytes, data: st.DataObject) -> None:
    damaged = bytearray(real)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(real) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert isinstance(subject_text(bytes(damaged)), str)
    except ValueError:
        pass
