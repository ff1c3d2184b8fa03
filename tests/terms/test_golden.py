"""The committed vectors of the forms of terms against the program, in both directions."""

import json
from typing import Any

import pytest

from echoic.errors import MalformedTermError
from echoic.terms import parse_text, write_text
from echoic.terms.appendix_b import decode_appendix_b, encode_appendix_b
from echoic.terms.baf import decode_baf
from echoic.terms.saf import decode_file, decode_saf, encode_saf
from echoic.terms.taf import parse_taf
from tests.golden import terms
from tests.terms.values import exactly

VECTORS: dict[str, Any] = json.loads(terms.GOLDEN.read_text(encoding="utf-8"))


def test_the_program_still_writes_the_committed_vectors() -> None:
    assert terms.text() == terms.GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("vector", VECTORS["values"], ids=lambda vector: vector["text"])
def test_a_golden_value_is_read_from_every_form(vector: dict[str, str]) -> None:
    value = parse_text(vector["text"])
    assert write_text(value) == vector["text"]
    assert exactly(parse_taf(vector["taf"]), value)
    assert exactly(decode_saf(bytes.fromhex(vector["saf"])), value)
    assert exactly(decode_appendix_b(bytes.fromhex(vector["appendix_b"])), value)
    if "baf" in vector:
        assert exactly(decode_baf(bytes.fromhex(vector["baf"])), value)


@pytest.mark.parametrize("text", terms.FOREIGN)
def test_what_an_encoder_of_the_toolbus_wrote_is_what_we_write(text: str) -> None:
    written = bytes.fromhex(terms.FOREIGN[text])
    assert encode_saf(parse_text(text)) == written
    assert decode_saf(written) is parse_text(text)


def test_the_example_of_the_thesis() -> None:
    def field(number: int) -> bytes:
        return number.to_bytes(4, "little")

    def content(text: bytes) -> bytes:
        return field(len(text)) + text

    written = b"".join(
        (
            *(b"\0\x08snd-data", field(0), field(2), field(1)),
            *(b"\0\x04data", field(1), field(0), field(0), content(b"TestData")),
            *(b"\1", field(2)),
            *(b"\0\x0ftest-annotation", field(1), field(0), field(0), content(b"TestAnnotationContent")),
        )
    )
    assert encode_appendix_b(parse_text(terms.THESIS)) == written
    assert decode_appendix_b(written) is parse_text(terms.THESIS)


def test_the_golden_file_and_blocks_are_read() -> None:
    assert decode_file(bytes.fromhex(VECTORS["file"]["bytes"])) is parse_text(VECTORS["file"]["text"])
    blocks = bytes.fromhex("".join(VECTORS["blocks"]["blocks"]))
    assert len(VECTORS["blocks"]["blocks"]) > 2
    assert decode_file(b"?" + blocks) is parse_text(VECTORS["blocks"]["text"])


@pytest.mark.parametrize("vector", VECTORS["malformed_saf"], ids=lambda vector: vector["why"])
def test_a_malformed_golden_value_is_refused(vector: dict[str, str]) -> None:
    with pytest.raises(MalformedTermError):
        decode_saf(bytes.fromhex(vector["saf"]))
