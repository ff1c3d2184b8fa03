"""Who this program says it is: what its own certificate says, read as peers read it (`credentials`)."""

from typing import TYPE_CHECKING

from echoic.errors import InsecureError
from echoic.links.credentials import Credentials, name_among

if TYPE_CHECKING:
    from echoic.links.identity import Identity

__all__ = ["own_credentials", "own_name"]


def own_credentials(identity: "Identity") -> Credentials:
    """Return what peers see in the certificate of an identity, as its file is at this moment.

    Raises:
        InsecureError: The file is missing, or is no certificate.
    """
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(identity.certificate.read_bytes())
        found = [each.value for each in certificate.extensions if isinstance(each.value, x509.SubjectAlternativeName)]
    except (OSError, ValueError) as error:
        raise InsecureError(f"cannot use certificate {identity.certificate}: {error}") from error
    expires, serial = certificate.not_valid_after_utc.timestamp(), certificate.serial_number
    if not found:
        return Credentials("", frozenset(), expires, serial)
    hosts = found[0].get_values_for_type(x509.DNSName)
    numbers = [str(number) for number in found[0].get_values_for_type(x509.IPAddress)]
    name = name_among(found[0].get_values_for_type(x509.UniformResourceIdentifier), hosts)
    return Credentials(name, frozenset([*hosts, *numbers]), expires, serial)


def own_name(identity: "Identity") -> str:
    """Return the name in a certificate, "" if it has none that rights could be given to.

    Raises:
        InsecureError: The file is missing, or is no certificate.
    """
    return own_credentials(identity).name
