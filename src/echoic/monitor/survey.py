"""Asking many hubs at once, and not waiting for those that do not answer."""

import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from echoic.channels import ChannelEntry, ChannelId
from echoic.errors import EchoicError
from echoic.hub import Hub
from echoic.monitor.finding import browse

__all__ = ["Detail", "ask_all", "survey"]

Q = TypeVar("Q")
A = TypeVar("A")

ANSWER_SECONDS: Final = 3.0
ASKERS_MAX: Final = 16

Detail = ChannelEntry | None


def ask_all(questions: Iterable[Q], ask: Callable[[Q], A], seconds: float = ANSWER_SECONDS) -> dict[Q, A]:
    """Return the answers that come in time, by question; those that fail or are late are left out."""
    asked: queue.SimpleQueue[Q] = queue.SimpleQueue()
    answers: queue.SimpleQueue[tuple[Q, A] | None] = queue.SimpleQueue()
    waiting, late = 0, threading.Event()
    for question in questions:
        asked.put(question)
        waiting += 1

    def work() -> None:
        while not late.is_set() and not asked.empty():
            try:
                question = asked.get_nowait()
                answers.put((question, ask(question)))
            except queue.Empty:
                return
            except EchoicError:
                answers.put(None)

    for _ in range(min(waiting, ASKERS_MAX)):
        threading.Thread(target=work, name="echoic-survey", daemon=True).start()
    found: dict[Q, A] = {}
    deadline = time.monotonic() + seconds
    for _ in range(waiting):
        try:
            answer = answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            late.set()  # what nobody has begun to ask is not asked any more
            break
        if answer is not None:
            found[answer[0]] = answer[1]
    return found


def survey(hub: Hub, *, unnamed: bool = False) -> list[tuple[ChannelEntry, Detail]]:
    """Return all channels that the name server knows, each with what its manager says; None when it says nothing.

    Args:
        hub: Who asks.
        unnamed: Return also what is derived from these channels and has no name there.

    Raises:
        UnreachableError: The name server does not answer.
    """
    known = browse(hub)
    managers = {ChannelId.parse(entry.id).address for entry in known}
    answers = ask_all(sorted(managers), hub.channels)
    details = {entry.id: entry for entries in answers.values() for entry in entries}
    if unnamed:
        named = {entry.id for entry in known}
        known = known + [entry for entry in details.values() if entry.parent and entry.id not in named]
    return [(entry, details.get(entry.id)) for entry in sorted(known, key=lambda entry: entry.name)]
