"""Edge: touches sockets. Moves bytes between hubs: TCP, TLS, Unix sockets with shared memory, and within a process."""

from echoic.links.address import format_address, is_loopback, parse_address, plain_host, unix_path
from echoic.links.connection import QUIET_SECONDS, Connection
from echoic.links.credentials import Credentials, credentials_of
from echoic.links.dialling import dial
from echoic.links.exposure import check_exposure
from echoic.links.identity import Identity, Visitor, serving_context
from echoic.links.listener import Listener
from echoic.links.own_name import own_credentials, own_name
from echoic.links.refusals import Refusals
from echoic.links.ring import SHARED_BYTES_MIN
from echoic.links.strangers import STRANGERS_MAX, Strangers, origin_of
from echoic.links.tls import MAY_WANT_TLS, NO_TLS

__all__ = [
    "MAY_WANT_TLS",
    "NO_TLS",
    "QUIET_SECONDS",
    "SHARED_BYTES_MIN",
    "STRANGERS_MAX",
    "Connection",
    "Credentials",
    "Identity",
    "Listener",
    "Refusals",
    "Strangers",
    "Visitor",
    "check_exposure",
    "credentials_of",
    "dial",
    "format_address",
    "is_loopback",
    "origin_of",
    "own_credentials",
    "own_name",
    "parse_address",
    "plain_host",
    "serving_context",
    "unix_path",
]
