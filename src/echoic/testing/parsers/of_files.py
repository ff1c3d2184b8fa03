"""Parsers of files: journals, the logs of groups, runs and recordings of tools, pipelines, settings, trusted keys."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from echoic.engines.embedded import log_blocks, log_contents
from echoic.errors import EchoicError
from echoic.groups.writes import Ballot, Entry
from echoic.recorder.blocks import (
    SEGMENT_HEADER_BYTES,
    BlockHead,
    BlockKind,
    SegmentHeader,
    encode_block,
    encode_segment_header,
    parse_segment_header,
)
from echoic.recorder.index import load_index
from echoic.recorder.reader import parse_gap
from echoic.recorder.scanning import payload_of, scan
from echoic.terms import TermList
from echoic.terms.saf import encode_saf
from echoic.testing.flip_campaign import FlippedJournal
from echoic.testing.parsers.parser import Target, load_place
from echoic.testing.parsers.repairs import seal_blocks, seal_log
from echoic.testing.samples import Trade
from echoic.trust.keys import SigningKey
from echoic.trust.trusted import TrustedKey, read_trust, write_trust
from echoic.wire import Batch, Buffer

__all__ = ["JOURNAL", "LOG", "PIPELINES", "RECORDINGS", "RUNS", "SETTINGS", "TRUSTED", "fresh_folder", "written"]

PIPELINE: Final = b"""name = "market"
[sources.trades]
channel = "trades"
journal = "journals"
time = "at"
watermark = "10 seconds"
[steps.minutes]
from = "trades"
window = "1 minute"
by = ["symbol"]
aggregates = { volume = "sum(volume)", highest = "max(price)" }
[steps.odd]
sql = "select * from trades where volume < 100"
[outputs.odd_lots]
from = "odd"
table = "tables/odd"
"""
STORE: Final = ExitStack()
"""Holds the folder in which a parser of files finds what it is given, as long as the process lives."""


@cache
def _folder(process: int) -> Path:  # noqa: ARG001 - a fuzzer forks, and each process has a folder of its own
    memory = Path("/dev/shm")  # noqa: S108 - much faster, where there is one
    folder = tempfile.TemporaryDirectory(prefix="echoic-parsed-", dir=memory if memory.is_dir() else None)
    return Path(STORE.enter_context(folder))


def written(data: bytes) -> Path:
    """Return a file with these bytes, which only its owner may write."""
    path = _folder(os.getpid()) / "echoic.toml"
    path.write_bytes(data)
    path.chmod(0o600)
    return path


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """Give an empty folder for what a parser makes of a file, and remove it."""
    path = _folder(os.getpid()) / "made"
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _feed_journal(data: bytes) -> None:
    """Scan a segment, look at each of its blocks, and take its end for an index."""
    header = parse_segment_header(data, "a segment")
    view = memoryview(data)
    load_index(data[SEGMENT_HEADER_BYTES:], header.seed, len(data))
    scan(view, header, "a segment", last=False)
    seen = scan(view, header, "a segment", last=True)
    for offset, head in seen.heads(view):
        if head.kind is BlockKind.GAP:
            parse_gap(head, payload_of(view, offset, head))


def _journal_seeds() -> Iterator[bytes]:
    plain, seed = encode_segment_header(SegmentHeader(bytes(16), 0, 0, 5))
    batch = Batch.of([Trade("IBM", 75.5, number) for number in range(3)], Trade)
    blocks: tuple[tuple[BlockHead, Sequence[Buffer]], ...] = (
        (BlockHead(BlockKind.POSITIONS, 0, 1), []),
        (BlockHead(BlockKind.FORMAT, 0, 1), [batch.format.descriptor]),
        (BlockHead(BlockKind.BATCH, 0, 1, source=7, first=0, count=3), batch.buffers()),
        (BlockHead(BlockKind.COMMIT, 3, 2, synced=100), []),
        (BlockHead(BlockKind.SEAL, 3, 2), []),
    )
    yield plain + b"".join(b"".join(encode_block(head, payload, seed)) for head, payload in blocks)
    journal = FlippedJournal(1, batches=4)
    yield from (bytes(journal.disk.open(path).view()) for path in journal.segments)


def _feed_log(data: bytes) -> None:
    """Look at each block of a segment of a group's log, or of a snapshot."""
    view = memoryview(data)
    magic = log_blocks.SNAPSHOT_MAGIC if data[:8] == log_blocks.SNAPSHOT_MAGIC else log_blocks.SEGMENT_MAGIC
    _, seed = log_blocks.parse_file_header(magic, view, "a file")
    at = log_blocks.FILE_HEADER_BYTES
    while (block := log_blocks.parse_block(view, at, seed)) is not None:
        for decode in (log_contents.decode_state, log_contents.decode_ballot, log_contents.decode_entries):
            try:
                decode(block, "a file")
            except EchoicError:
                continue
        at = block.end
    log_blocks.find_claim(view, at, seed)


def _log_seeds() -> Iterator[bytes]:
    start, seed = log_blocks.encode_file_header(log_blocks.SEGMENT_MAGIC, log_blocks.FileHeader(1, 0, 7))
    ballot = Ballot(1, "a")
    entries, heads_bytes = log_contents.encode_entries([Entry(1, 0, "a", 1, 1, b"payload")])
    data = start
    for kind, body, heads in (
        (log_blocks.BlockKind.BALLOT, [log_contents.encode_ballot(ballot)], 0),
        (log_blocks.BlockKind.APPEND, entries, heads_bytes),
    ):
        pieces, _ = log_blocks.encode_block(kind, body, seed=seed, offset=len(data), heads_bytes=heads)
        data += b"".join(pieces)
    yield data


def _feed_run(data: bytes) -> None:
    load_place("echoic.toolbus.run_file:read_run")(written(data))


def _run_seeds() -> Iterator[bytes]:
    head = b'{"digest":"d","seed":1,"now_ns":2,"epoch_ns":3,"int32":false,"limits":{}}\n'
    saf = encode_saf(TermList(1, "x")).hex().encode()
    yield head + b'{"turns":1,"now_ns":2}\n{"turns":1,"now_ns":3,"heard":"connected","name":"t","instance":1}\n'
    yield head + b'{"turns":1,"now_ns":2,"heard":"said","tool":1,"kind":"event","saf":"%s"}\n' % saf
    yield head + b'{"turns":1,"now_ns":2,"heard":"lost","tool":1,"text":"gone"}\n'


def _feed_recording(data: bytes) -> None:
    for _ in load_place("echoic.toolbus.record:read_recording")(written(data)):
        pass


def _recording_seeds() -> Iterator[bytes]:
    saf = encode_saf(TermList(1, "x")).hex().encode()
    yield b'{"at":0.5,"tool":"t","number":1,"says":"tool","word":"event","text":"[1]","saf":"%s"}\n' % saf


def _feed_pipeline(data: bytes) -> None:
    load_place("echoic.spark.pipeline.loading:load_spec")(written(data))


def _pipeline_seeds() -> Iterator[bytes]:
    yield PIPELINE


def _feed_settings(data: bytes) -> None:
    load_place("echoic.cli.settings:read_settings")(written(data))


def _settings_seeds() -> Iterator[bytes]:
    yield b'names = "127.0.0.1:7400"\ncontext = "a"\n[contexts.a]\nnames = "h:1"\nlisten = "[::]:0"\ninsecure = true\n'


def _feed_trust(data: bytes) -> None:
    read_trust(written(data))


def _trust_seeds() -> Iterator[bytes]:
    path = written(b"")
    key = SigningKey.generate().public
    write_trust([TrustedKey(key, "alice"), TrustedKey("*", sandbox=True)], path)
    yield path.read_bytes()


JOURNAL: Final = Target(_feed_journal, _journal_seeds, seal_blocks)
LOG: Final = Target(_feed_log, _log_seeds, seal_log)
RUNS: Final = Target(_feed_run, _run_seeds)
RECORDINGS: Final = Target(_feed_recording, _recording_seeds)
PIPELINES: Final = Target(_feed_pipeline, _pipeline_seeds)
SETTINGS: Final = Target(_feed_settings, _settings_seeds)
TRUSTED: Final = Target(_feed_trust, _trust_seeds)
