"""Who this program says it is: the name in its own certificate, read as peers read it (`credentials`)."""

from typing import TYPE_CHECKING

from echoic.errors import InsecureError
from echoic.links.credentials import name_among

if TYPE_CHECKING:
    from echoic.links.identity import Identity

__all__ = ["own_name"]


def own_name(identity: "Identity") -> str:
    """Return the name in a certificate, "" if it has none that rights could be given to.

    Raises:
        InsecureError: The file is missing, or is no certificate.
    """
    from cryptography import x509

    try:
        certificate = x509.load_pem_x509_certificate(identity.certificate.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ""
    except (OSError, ValueError) as error:
        raise InsecureError(f"cannot use certificate {identity.certificate}: {error}") from error
    uris = names.get_values_for_type(x509.UniformResourceIdentifier)
    return name_among(uris, names.get_values_for_type(x509.DNSName))
