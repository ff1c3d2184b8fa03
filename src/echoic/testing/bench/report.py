"""Everything one question has to say: tables, claims, remarks; for a person or for a program."""

from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table as RichTable

from echoic.testing.bench.claims import Claim
from echoic.testing.bench.results import Table
from echoic.testing.bench.spread import Spread

__all__ = ["Report"]


@dataclass(slots=True)
class Report:
    """What a question found.

    Attributes:
        name: The question.
        tables: What was measured.
        claims: What was promised, beside it.
        remarks: What a reader should know besides.
        header: Machine, date and so on; the caller's.
        cells: What the numbers of a table are.
    """

    name: str
    tables: list[Table] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    header: dict[str, str] = field(default_factory=dict)
    cells: str = "median (low..high) of the rounds"

    def show(self, console: Console) -> None:
        """Print all of it."""
        for name, value in self.header.items():
            console.print(f"{name}: {value}", soft_wrap=True)
        console.print(f"cells: {self.cells}\n")
        for table in self.tables:
            for shown in _drawn(table):
                console.print(shown)
        for line in (*self.remarks, *map(str, self.claims)):
            console.print(line, soft_wrap=True)

    def as_json(self) -> dict[str, object]:
        """Return all of it for a program to read."""
        return {
            "benchmark": self.name,
            "header": self.header,
            "tables": [table.as_json() for table in self.tables],
            "remarks": self.remarks,
            "claims": [claim.as_json() for claim in self.claims],
        }


def _drawn(table: Table) -> list[RichTable]:
    """Return the table in its unit and, where anybody is to be held to the baseline, in ratios."""
    drawn = [_grid(table, f"{table.title}, {table.unit.value}", table.columns, table.value)]
    if table.baseline in table.cases and len(table.cases) > 1:
        columns = [column for column in table.columns if table.has(table.baseline, column)]
        better = "more is better" if table.faster_is_more else "less is better"
        drawn.append(_grid(table, f"the same, in ratios to {table.baseline} ({better})", columns, table.ratio))
    return drawn


def _grid(table: Table, title: str, columns: list[str], cell: Callable[[str, str], Spread]) -> RichTable:
    grid = RichTable(title=title, title_justify="left", title_style="bold")
    grid.add_column("case")
    for column in columns:
        grid.add_column(column, justify="right")
    for case in table.cases:
        grid.add_row(case, *(str(cell(case, column)) if table.has(case, column) else "" for column in columns))
    return grid
