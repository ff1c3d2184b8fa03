"""What the page about checking scripts shows is what happens."""

import contextlib
import io
import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "check-a-script.md"
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```(?:text|output)\n(.*?)```)?", re.DOTALL)


def test_the_page_shows_what_its_code_prints() -> None:
    names: dict[str, object] = {}
    for code, shown in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, PAGE.name, "exec"), names)
        assert printed.getvalue() == shown
