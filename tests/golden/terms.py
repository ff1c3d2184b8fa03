"""Write the golden vectors of the forms of terms: `python -m tests.golden.terms`.

They are committed, with the four that an encoder of ToolBus-NG wrote and the example of the thesis, so that a change
of a form cannot go unnoticed; codecs in other languages are tested against the same file. A value is given as text.
"""

import json
from pathlib import Path

from echoic.terms import parse_text, write_text
from echoic.terms.appendix_b import encode_appendix_b
from echoic.terms.saf import encode_blocks, encode_file, encode_saf
from echoic.terms.taf import write_taf
from tests.terms.baf_writer import encode_baf

GOLDEN = Path(__file__).with_name("terms.json")

# What others wrote.
FOREIGN = {
    "line(box(rect(2),rect(5),square(4,3)),circle(10),circle(10))": (
        "01 03 04 6c696e65 01 03 03 626f78 01 01 04 72656374 02 02 41 02 02 05 01 02 06 737175617265 02 04 02 03"
        " 01 01 06 636972636c65 02 0a 80 09"
    ),
    "f(a,b){[1,2]}": "11 02 01 66 01 00 01 61 01 00 01 62 04 01 04 02 02 01 02 02",
    '[1,-256,2000000000,3.25,"q s",<int>]': (
        "04 06 02 01 02 80feffff0f 02 80a8d6b907 03 0000000000000a40 21 00 03 712073 05 01 00 03 696e74"
    ),
    "a(1)": "01 01 01 61 02 01",
}
THESIS = 'snd-data(data("TestData"),data("TestData")){test-annotation("TestAnnotationContent")}'

TEXTS = (
    *FOREIGN,
    THESIS,
    "a",
    "()",
    "(a,b)",
    "[]",
    "[true,false,undefined]",
    '"a \\" b \\\\ \\n \\001"',
    '["Zürich","名","🜁"]',
    '"two words"(1)',
    '["f"(1),"f"(2),f(1)]',
    "[127,128,-1,2147483647,-2147483648]",
    "[2147483648,-2147483649,9223372036854775807,-9223372036854775808]",
    "[9223372036854775808,-9223372036854775809,1267650600228229401496703205376]",
    "[0.0,-0.0,0.1,1.0e+22,5.0e-324]",
    '[@real"7ff0000000000000",@real"fff0000000000000",@real"7ff8000000000001"]',
    '[@blob"",@blob"AP8=",@blob"AP8="]',
    '@name"two words"(@name"_x")',
    "<list(<int>)>",
    "[1{a},1{a},1,a{1{b}},[a]{b}]",
    '["x","x"{a},"x"(1)]',
    "[test,test,f(test),f(test),[f(test)]]",
)
# Only forms that say them the same way: BAF has neither large integers nor all reals.
NOT_IN_BAF = ("2147483648", "9223372036854775808", "@real", "5.0e-324")

MALFORMED_SAF = {
    "nothing": "",
    "an unknown kind": "0f",
    "a value in itself": "04018000",
    "a value that comes later": "0402800202 01",
    "a symbol that is not there": "4100",
    "a list that is longer than the bytes": "04ffffffff0f",
    "a name that is longer than the bytes": "0100ffffff7f61",
    "a count of more than 32 bits": "04ffffffff1f",
    "a name that is not UTF-8": "010002c328",
    "annotations that are no list": "12010201",
    "annotations that are none": "12010400",
    "bytes behind it": "020100",
}


def vector(text: str) -> dict[str, object]:
    value = parse_text(text)
    made: dict[str, object] = {"text": write_text(value), "taf": write_taf(value), "saf": encode_saf(value).hex()}
    made["appendix_b"] = encode_appendix_b(value).hex()
    if not any(part in text for part in NOT_IN_BAF):
        made["baf"] = encode_baf(value).hex()
    return made


def text() -> str:
    long = parse_text('f("' + "x" * 150 + '",' + ",".join(map(str, range(60))) + ")")
    vectors = {
        "values": [vector(each) for each in TEXTS],
        "file": {"text": "a(1)", "bytes": encode_file(parse_text("a(1)")).hex()},
        "blocks": {
            "text": write_text(long),
            "blocks": [each.hex() for each in encode_blocks(long, block_bytes_max=128)],
        },
        "malformed_saf": [{"why": why, "saf": each.replace(" ", "")} for why, each in MALFORMED_SAF.items()],
    }
    return json.dumps(vectors, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(text(), encoding="utf-8")
