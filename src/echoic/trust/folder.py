"""The folder of identities: where every machine has its certificates, and whom it believes.

`trust.authority` says what each file is for; a machine that is no authority has those that are marked as copied.
"""

from pathlib import Path
from typing import Final

from echoic.trust.names import check_name
from echoic.trust.private_files import home

__all__ = ["AUTHORITY", "ISSUERS", "REVOKED", "REVOKED_TOKENS", "authority_folder", "identity_names", "identity_path"]

AUTHORITY: Final = "authority.pem"
REVOKED: Final = "revoked.pem"
ISSUERS: Final = "issuers"
REVOKED_TOKENS: Final = "revoked-tokens"


def authority_folder(root: Path | None = None) -> Path:
    """Return the folder of the authority, or of what this machine knows of it; `root` is `home()` if not given."""
    return (root or home()) / "authority"


def identity_path(name: str, root: Path | None = None) -> Path:
    """Return the file with the certificate and the key of a name; `root` is `home()` if not given.

    Raises:
        LocalError: Nobody can be called this.
    """
    check_name(name, "a certificate's")
    return (root or home()) / "identities" / f"{name}.pem"


def identity_names(root: Path | None = None) -> list[str]:
    """Return the names for which there is a certificate; `root` is `home()` if not given."""
    return sorted(path.stem for path in ((root or home()) / "identities").glob("[!.]*.pem"))
