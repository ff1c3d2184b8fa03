"""Private files: what is ours alone to read, or ours alone to write, in a folder of our own.

A file that others may read or write where they must not is refused and not mended, as `ssh` does: who knows who has
read it already. Writing goes by way of another file, so that nobody ever sees half of one, and what was written is on
the disk when the call returns.

What is kept of events and states is private too, but its owner may want to share it: with a recorder's reader, with the
machines of a cluster. Then it is the folder that says so. What is made in one that hands its group down (setgid), its
group may read; in any other, the owner alone. A folder or file that is there already stays as somebody made it.

    mkdir journals; chgrp analysts journals; chmod 2750 journals          files 0640, folders 2750
    any other folder, or none                                             files 0600, folders 0700

The folder is $ECHOIC_HOME, else `echoic` in $XDG_CONFIG_HOME, else ~/.config/echoic.
"""

import errno
import os
import stat
import tempfile
from pathlib import Path
from typing import Final

from echoic.errors import InsecureError, LocalError

__all__ = [
    "FILE_BYTES_MAX",
    "OTHERS_READ",
    "OTHERS_WRITE",
    "home",
    "make_private_folder",
    "mode_in",
    "open_private",
    "read_private",
    "write_private",
]

FILE_BYTES_MAX: Final = 1024 * 1024
OTHERS_READ: Final = 0o077
OTHERS_WRITE: Final = 0o022
OWNERS: Final = 0o700
GROUPS: Final = 0o750
NOT_RUN: Final = 0o666


def home() -> Path:
    """Return the folder of keys: $ECHOIC_HOME, else `echoic` in the folder of configurations."""
    chosen = os.environ.get("ECHOIC_HOME")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "echoic"


def read_private(
    path: Path, *, forbidden: int = OTHERS_READ, bytes_max: int = FILE_BYTES_MAX, own: bool = False
) -> bytes | None:
    """Return the bytes of a file that others must not read, or write; None if there is none.

    Args:
        path: The file.
        forbidden: The bits that its mode must not have.
        bytes_max: How large it may be.
        own: Whether it must belong to this user; root can read those of others, who know what is in them.

    Raises:
        LocalError: It cannot be read, or is too large.
        InsecureError: Others may do with it what they must not.
    """
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            mode = stat.S_IMODE(found.st_mode)
            data = file.read(bytes_max + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LocalError(f"cannot read {path}: {error.strerror}") from error
    if own and found.st_uid != os.getuid():
        raise InsecureError(f"{path} belongs to another user, who may read and write it")
    if mode & forbidden:
        danger = "write" if mode & forbidden & 0o066 in (0o020, 0o002, 0o022) else "read"
        raise InsecureError(
            f"others may {danger} {path}, its mode is {mode:04o}; chmod {mode & ~forbidden:04o} mends it"
        )
    if len(data) > bytes_max:
        raise LocalError(f"{path} has more than {bytes_max} bytes, limit is {bytes_max}")
    return data


def write_private(path: Path, data: bytes, *, replace: bool, mode: int = 0o600) -> None:
    """Write a file by way of another one, and make its folder if there is none.

    Args:
        path: The file.
        data: All that it is to have.
        replace: Whether a file that is there already may go.
        mode: Who may read it.

    Raises:
        LocalError: The file is there already, or cannot be written.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                os.fchmod(file.fileno(), mode)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                Path(name).replace(path)
            else:
                path.hardlink_to(name)  # unlike a rename, it fails where a file is
        finally:
            Path(name).unlink(missing_ok=True)
    except FileExistsError as error:
        raise LocalError(f"{path} is there already and would be lost; --force replaces it") from error
    except OSError as error:
        raise LocalError(f"cannot write {path}: {error.strerror}") from error


def mode_in(folder: Path) -> int:
    """Return the mode of a folder that is made in another one, to be used by its owner, and by a group it hands down.

    Raises:
        OSError: There is no such folder, or it cannot be looked at.
    """
    return GROUPS if folder.stat().st_mode & stat.S_ISGID else OWNERS


def make_private_folder(path: Path) -> None:
    """Make a folder, and those above it that are not there, for its owner and for a group that is handed down to it.

    Raises:
        OSError: As the operating system says.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode_in(each.parent), exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def open_private(path: str | Path, flags: int) -> int:
    """Open a file and return its descriptor; the `opener` of a file that may be made, with the mode that it gets then.

    Raises:
        OSError: As the operating system says.
    """
    return os.open(path, flags, mode_in(Path(path).parent) & NOT_RUN)
