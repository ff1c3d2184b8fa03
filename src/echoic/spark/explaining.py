"""Why Spark failed, in one line.

An error in a source of ours crosses three languages until it is raised in the driver: Python's traceback in the worker
becomes the text of an exception in Java, which is wrapped by the task, the stage and the query, each with a page of its
own. What people need is the line that was written for them. It is looked for in this order:

    echoic.errors.JournalError: ...          the words of an error of ours, wherever they stand in the text
    java.io.IOException: No space left ...   trouble with files and memory, which has a cause outside of the program
    FooError: ...                            the last line of a traceback of Python, as from a function of the user's
    [CONDITION] ...                          what Spark says itself: innermost, without ids and its SQL state
"""

import re
from typing import Final

from py4j.protocol import Py4JError, Py4JNetworkError  # type: ignore[import-untyped] # it ships no types
from pyspark.errors import PySparkException

from echoic.errors import EchoicError

__all__ = ["SPARK_ERRORS", "reason_of"]

SPARK_ERRORS: Final = (PySparkException, Py4JError, OSError)
"""What is raised when something of Spark, the way to it, or the files below it fail."""
REASON_MAX: Final = 600
TEXT_MAX: Final = 1 << 20
CAUSES_MAX: Final = 16
OURS: Final = re.compile(
    r"echoic\.errors\.(\w+): (.+?)(?=\n\s*(?:at |Caused by|Traceback|During handling|\n|\t|==)|\n\n|\Z)", re.DOTALL
)
OUTSIDE: Final = re.compile(
    r"(No space left on device|Disk quota exceeded|Permission denied|Too many open files|Read-only file system|"
    r"java\.lang\.OutOfMemoryError: [^\n]+)"
)
PYTHON: Final = re.compile(r"^(?:[\w.]+\.)?([A-Z]\w*(?:Error|Exception|Exit|Interrupt)): ([^\n]+)$", re.MULTILINE)
CONDITION: Final = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ([^\n]+)")
FAILED: Final = re.compile(r"\[STREAM_FAILED\] Query \[[^\]]*\] terminated with exception: ")
STATE: Final = re.compile(r"\s*(?:SQLSTATE: \w+|=== Streaming Query ===).*", re.DOTALL)
ANOTHER: Final = (
    "this is another query than the one that made the checkpoint; undo the change, or remove the checkpoint to begin "
    "anew"
)
HINTS: Final = {
    "STATE_STORE_": ANOTHER,
    "STREAMING_STATEFUL_OPERATOR_": ANOTHER,
    "STREAMING_OUTPUT_MODE": "groups of a stream are over when its time has passed; give the sources a `watermark` and "
    "group by windows",
}
"""What to do, by the beginning of what Spark calls it."""
FILE: Final = re.compile(r"(?:file:)?(/[^\s:(),]+)")
WRITTEN: Final = re.compile(r"writing rows to (?:file:)?(/\S+?)\.?(?=\s)")


def reason_of(error: BaseException) -> str:
    """Return in one line why something of Spark failed."""
    if isinstance(error, EchoicError):
        return str(error)
    if isinstance(error, Py4JNetworkError | ConnectionError) or type(error) is Py4JError:
        return "the Java that ran Spark is gone, killed or out of memory"
    text = _text(error)
    if ours := OURS.findall(text):
        return _line(_outermost([said for _, said in ours]))
    if outside := OUTSIDE.search(text):
        return _line(_with_file(outside[1], text, outside.start()))
    if python := PYTHON.findall(text):
        return _line(f"{python[-1][0]}: {python[-1][1]}")
    if conditions := CONDITION.findall(text):
        return _line(_said(conditions))
    return _line(f"{type(error).__name__}: {text.strip()}")


def _text(error: BaseException) -> str:
    """Return all that an error and those that caused it say."""
    said: list[str] = []
    for each in _causes(error):
        said.append(str(each))
        if isinstance(each, PySparkException):
            said.append(str(each.getMessage() or ""))
    return FAILED.sub("", "\n\n".join(said)[:TEXT_MAX])


def _causes(error: BaseException) -> list[BaseException]:
    """Return an error and those that caused it, in Python or, as Spark notes it, in Java; the innermost is the last."""
    found: list[BaseException] = []
    current: object = error
    while isinstance(current, BaseException) and current not in found and len(found) < CAUSES_MAX:
        found.append(current)
        current = getattr(current, "_cause", None) or current.__cause__ or current.__context__
    return found


def _outermost(ours: list[str]) -> str:
    """Return the last of our errors: Python tells causes first. Of its copies it is the shortest, which ends right."""
    line = ours[-1].partition("\n")[0]
    return min((said for said in ours if said.startswith(line)), key=len)


def _said(conditions: list[tuple[str, str]]) -> str:
    """Return the innermost of what Spark says, with the name under which Spark explains it."""
    name, said = conditions[-1]
    said = STATE.sub("", said).strip().rstrip(".")
    line = f"{said[:1].lower()}{said[1:]} [{name}]"
    return next((f"{hint}: {line}" for begin, hint in HINTS.items() if name.startswith(begin)), line)


def _with_file(said: str, text: str, at: int) -> str:
    """Return trouble with a file together with that file: named before it in the same line, or as what was written."""
    files = FILE.findall(text[text.rfind("\n", 0, at) + 1 : at]) or WRITTEN.findall(text)
    return f"{said[:1].lower()}{said[1:]}" + (f" - at {files[-1]}" if files else "")


def _line(text: str) -> str:
    line = " ".join(STATE.sub("", text).split())
    return line if len(line) <= REASON_MAX else f"{line[:REASON_MAX]}..."
