"""The decoder in the browser itself, as the viewer serves it, against the vectors that Python is tested with."""

import json
from pathlib import Path

from tests.golden import make
from tests.viewer.browser.conftest import OpenTab
from tests.viewer.browser.stage import empty_world

PROGRAM = Path(__file__).with_name("decode_vectors.js")


def test_chromium_reads_the_golden_vectors_as_python_does(open_tab: OpenTab) -> None:
    vectors = json.loads(make.GOLDEN.read_text(encoding="utf-8"))
    with empty_world() as viewer:
        tab = open_tab(viewer.url)
        program = PROGRAM.read_text(encoding="utf-8").partition("async (")[2].rstrip(";\n")
        found = tab.page.evaluate(f"async ({program}", [vectors, f"{tab.origin}/decoder.mjs"])
    assert found["wrong"] == []
    kinds = ("frames", "formats", "batches", "malformed", "malformed_frames", "malformed_formats")
    assert found["tried"] == sum(len(vectors[kind]) for kind in kinds)
