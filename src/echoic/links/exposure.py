"""Who may listen where: on this machine anybody, elsewhere by TLS, or in the clear when that is said to be meant.

Every door of the product asks here before it opens, so that all have one rule and one message.
"""

from echoic.errors import InsecureError
from echoic.links.address import is_loopback, parse_address

__all__ = ["check_exposure"]


def check_exposure(listen: str, *, secure: bool, insecure: bool, remedy: str = "identity=...") -> tuple[str, int]:
    """Return host and port of an address to listen at.

    Args:
        listen: The address.
        secure: Whether it is by TLS.
        insecure: Whether somebody has said that strangers may read along.
        remedy: What would make it secure, for the message.

    Raises:
        AddressError: It is not an address.
        InsecureError: It can be reached from other machines, in the clear, and nobody said that this is meant.
    """
    host, port = parse_address(listen)
    if not secure and not insecure and not is_loopback(host):
        raise InsecureError(
            f"{listen} can be reached from other machines, in the clear: pass {remedy}, or insecure=True if that is "
            "meant"
        )
    return host, port
