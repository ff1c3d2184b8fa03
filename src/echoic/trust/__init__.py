"""Edge: touches files. WHO is who: keys, certificates, tokens."""

from echoic.trust.folder import authority_folder, identity_names, identity_path
from echoic.trust.issuers import Issuers
from echoic.trust.keys import SigningKey, check_public, key_path, verify
from echoic.trust.names import check_name, is_name
from echoic.trust.private_files import home, make_private_folder, mode_in, open_private, read_private, write_private
from echoic.trust.revocations import Revocations
from echoic.trust.rights_file import load_rights, rights_path
from echoic.trust.tokens import ALL_RIGHTS, Claims, is_signed, new_token_id, read_token, sign_token
from echoic.trust.trusted import (
    TrustedKey,
    read_trust,
    sandboxed_keys,
    trust_path,
    trusted_keys,
    write_trust,
)
from echoic.trust.watched import Watched

__all__ = [
    "ALL_RIGHTS",
    "Claims",
    "Issuers",
    "Revocations",
    "SigningKey",
    "TrustedKey",
    "Watched",
    "authority_folder",
    "check_name",
    "check_public",
    "home",
    "identity_names",
    "identity_path",
    "is_name",
    "is_signed",
    "key_path",
    "load_rights",
    "make_private_folder",
    "mode_in",
    "new_token_id",
    "open_private",
    "read_private",
    "read_token",
    "read_trust",
    "rights_path",
    "sandboxed_keys",
    "sign_token",
    "trust_path",
    "trusted_keys",
    "verify",
    "write_private",
    "write_trust",
]
