"""Folders that tables and checkpoints are in: is a path local, and which of its files may go?"""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from echoic.errors import PipelineError

__all__ = ["local_folder", "remove_files"]


def local_folder(path: str | Path) -> Path | None:
    """Return the absolute folder that a path or a `file:` address names, None for an address of another kind."""
    if isinstance(path, Path):
        return path.absolute()
    parts = urlsplit(path)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme else Path(path).absolute()


def remove_files(files: Iterable[Path], before: float) -> tuple[str, ...]:
    """Remove those files that were last written before a time, in seconds since 1970, and return their paths.

    Raises:
        PipelineError: A file cannot be removed.
    """
    removed = []
    for file in files:
        try:
            if file.stat().st_mtime <= before:
                file.unlink()
                removed.append(str(file))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise PipelineError(f"cannot remove {file}: {error.strerror}") from error
    return tuple(removed)
