"""The operator's file of rights: read as it is, and again when it has changed.

The rules themselves are `echoic.rights`. The file must be the operator's alone to write: whoever can change it has
every right. One that is not there is an error and not an empty one, though that would let nobody do anything: it was
asked for, so its path is probably mistaken.
"""

from pathlib import Path

from echoic.errors import LocalError
from echoic.rights import Rights, parse_rights
from echoic.trust.private_files import OTHERS_WRITE, home, read_private

__all__ = ["load_rights", "rights_path"]


def rights_path() -> Path:
    """Return where the file of rights is if nothing else is said."""
    return home() / "rights"


def load_rights(path: Path | str | None = None) -> Rights:
    """Return the rules of a file.

    Raises:
        LocalError: There is no such file, or a line of it is no rule.
        InsecureError: Others than its owner may write the file.
    """
    file = Path(path) if path is not None else rights_path()
    data = read_private(file, forbidden=OTHERS_WRITE)
    if data is None:
        raise LocalError(f"there is no file of rights {file}; docs/how-to/grant-rights.md shows one")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LocalError(f"expected lines of text: {error} - at {file}") from error
    return parse_rights(text, str(file))
