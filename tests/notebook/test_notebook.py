"""The notebook of the examples, run from its first cell to its last by a real kernel."""

from pathlib import Path
from typing import Any

import nbclient
import nbformat
import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.ipynb"
PATIENCE_SECONDS = 120

pytestmark = pytest.mark.system


class Client(nbclient.NotebookClient):
    """Runs a notebook, and remembers what widgets have sent to the page."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.sent: list[tuple[dict[str, Any], list[Any]]] = []

    def process_message(self, message: dict[str, Any], cell: Any, cell_index: int) -> Any:
        data = message["content"].get("data", {})
        if message["msg_type"] == "comm_msg" and data.get("method") == "custom":
            self.sent.append((data["content"], message["buffers"]))
        return super().process_message(message, cell, cell_index)


@pytest.fixture(scope="module")
def ran() -> Client:
    """The notebook when it has run, with a cell that waits for some pictures."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    waiting = "import time\nwhile view.feed.pushes < 10:\n    time.sleep(0.02)"
    notebook.cells.insert(-1, nbformat.v4.new_code_cell(waiting))
    client = Client(notebook, timeout=PATIENCE_SECONDS, kernel_name="python3")
    client.execute()
    return client


def outputs(ran: Client, kind: str) -> list[str]:
    return [
        each["data"][kind]
        for cell in ran.nb.cells
        if cell.cell_type == "code"
        for each in cell.outputs
        if kind in each.get("data", {})
    ]


def test_no_cell_fails_or_complains(ran: Client) -> None:
    for cell in ran.nb.cells:
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error"
            assert output.get("name") != "stderr", output["text"]


def test_cells_show_what_they_are_said_to_show(ran: Client) -> None:
    texts = outputs(ran, "text/plain")
    assert texts[0].startswith("<Channel echoic://127.0.0.1:")
    assert texts[1:3] == ["<Live view of trades: price>", "<Live view of cheap: price>"]
    assert "description='limit'" in texts[3]
    assert texts[4] == "<Batch of 100 Trade>"
    assert "IBM" in texts[5]
    assert "SUN" in texts[5]
    assert ran.nb.cells[-1].outputs[0]["text"] == "True True\n"


def test_pictures_went_to_the_page_as_binary_buffers(ran: Client) -> None:
    points = [(content, buffers) for content, buffers in ran.sent if content["type"] == "points"]
    assert points
    for content, (times, envelopes) in points:
        assert len(times) == 8 * content["count"]
        assert len(envelopes) == 8 * 4 * content["count"]


def test_the_notebook_is_kept_without_outputs_and_without_places_of_a_machine() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")
