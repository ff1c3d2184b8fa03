"""What Java and its children write to stderr, put aside into a file.

Settings for logs keep Spark's loggers quiet, but not everybody logs: a Python worker whose query was stopped while it
answered writes a traceback about a broken pipe, and so do others that end with it. They are children of Java, and have
the stderr that it was started with. So Java is started with another one: the file stands in its place for the moment in
which Java is started, and for good in what Java then starts. Nothing is lost; it is in the file.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from echoic.errors import PipelineError
from echoic.trust import open_private

__all__ = ["stderr_aside"]

STDERR: Final = 2
SHOWN_BYTES_MAX: Final = 16 * 1024


@contextmanager
def stderr_aside(path: Path) -> Iterator[None]:
    """Have what is started meanwhile write its stderr to the end of a file; show what came there if that fails.

    Raises:
        PipelineError: The file cannot be written.
    """
    try:
        file = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
    except OSError as error:
        raise PipelineError(f"what Spark says cannot be kept: {error.strerror} - at {path}") from error
    begin = os.fstat(file).st_size
    sys.stderr.flush()
    own = os.dup(STDERR)
    os.dup2(file, STDERR)
    os.close(file)
    try:
        yield
    except PipelineError:
        with path.open("rb") as said:
            said.seek(begin)
            os.write(own, said.read(SHOWN_BYTES_MAX))
        raise
    finally:
        os.dup2(own, STDERR)
        os.close(own)
