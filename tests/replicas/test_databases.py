"""What tables look like, how they grow, and what a database is refused for; the same for each kind of it."""

import sys

import pytest

import echoic
from echoic.errors import AddressError, ClosedError, IncompatibleTypesError, JournalError, LocalError, UnreachableError
from echoic.formats import Array, Format, char, float32, float64, int8, uint64
from echoic.replicas import ReplicatedLog, database_of
from echoic.wire import Batch
from tests.replicas.conftest import FindUrl
from tests.replicas.ticks import Stamped, Tick, query, tick, ticks

HOSTILE = (
    'x"; DROP TABLE y; --',
    "x`y",
    "x'y",
    "",
    "a b",
    "ä",
    "x\0y",
    "x" * 61,
    "-x",
    "SQLITE_x",
    "echoic_applied",
    "pg_x",
)


def test_rows_and_number_are_written_together_or_not_at_all(url: str, name: str) -> None:
    database = database_of(url)
    database.prepare(name, Format.of(Tick))
    database.append([ticks(1, 3), ticks(4, 6)])
    assert database.applied() == 6
    quote = "`" if url.startswith("mariadb") else '"'
    query(url, f"INSERT INTO {quote}{name}{quote} (sequence, sender) VALUES (9, 'somebody else')")
    with pytest.raises(JournalError):
        database.append([ticks(7, 10)])
    assert database.applied() == 6
    assert query(url, f"SELECT sequence FROM {name} WHERE sequence > 5 ORDER BY sequence") == [(6,), (9,)]
    query(url, f"DELETE FROM {name} WHERE sequence = 9")
    database.append([ticks(7, 10)])
    assert database.applied() == 10
    database.close()
    for call in (database.applied, lambda: database.append([ticks(11, 11)]), lambda: database.read(0, 9, 9)):
        with pytest.raises(ClosedError):
            call()


def test_two_writers_of_a_log_cannot_mix_their_rows(url: str, name: str) -> None:
    one, other = database_of(url), database_of(url)
    for database in (one, other):
        database.prepare(name, Format.of(Tick))
    one.append([ticks(1, 5)])
    with pytest.raises(JournalError, match=f"`{name}` does not end at 0: another writer has it"):
        other.append([ticks(1, 3)])
    other.append([ticks(6, 7)])
    assert [database.applied() for database in (one, other)] == [7, 7]
    for database in (one, other):
        database.close()


def test_rows_that_somebody_took_away_are_missed(url: str, name: str) -> None:
    with ReplicatedLog(name, Tick, url) as log:
        for number in range(1, 6):
            log.deliver(Batch.of([tick(number)], Tick), Stamped(number, "n"))
        log.flush()
        query(url, f"DELETE FROM {name} WHERE sequence = 3")
        with pytest.raises(JournalError, match="no row 3"):
            list(log.read())
        query(url, f"DELETE FROM {name}")
        with pytest.raises(JournalError, match="no row 1"):
            list(log.read())


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_refused(file_url: str, hostile: str) -> None:
    with pytest.raises(AddressError, match="cannot be the name of a log"):
        ReplicatedLog(hostile, Tick, file_url)


def test_names_of_groups_are_names_of_tables(url: str, name: str) -> None:
    for each in (f"desk/{name}", f"{name}.orders-2", f"select_{name}"):
        with ReplicatedLog(each, Tick, url) as log:
            log.deliver(Batch.of([tick(1)], Tick), Stamped(1, "n"))
            log.flush()
            assert [found.event for found in log.read()] == [tick(1)]


def test_a_table_of_somebody_else_is_left_alone(url: str, name: str) -> None:
    query(url, f"CREATE TABLE {name} (precious int)")
    query(url, f"INSERT INTO {name} VALUES (42)")
    for _ in range(2):
        with pytest.raises(JournalError, match=f"`{name}` is there already and is not that of a log"):
            ReplicatedLog(name, Tick, url)
    assert query(url, f"SELECT * FROM {name}") == [(42,)]


def test_logs_whose_names_differ_by_case_alone_are_refused(url: str, name: str) -> None:
    ReplicatedLog(name, Tick, url).close()
    with pytest.raises(JournalError, match=f"is that of the log `{name}`"):
        ReplicatedLog(name.upper(), Tick, url)


@echoic.event
class Leg:
    x: float32
    label: str


@echoic.event
class First:
    sequence: int
    xmin: str
    name: str
    Name: bytes


@echoic.event
class Second:
    legs: Array[Leg, ...]  # type: ignore[type-arg]
    NAME: bool
    Name: bytes
    sequence: int
    name: str
    xmin: str
    hint: str | None
    count: int8 = 5
    code: Array[char, 4] = ()  # type: ignore[assignment]
    where: str = "here"


def test_fields_get_columns_of_free_names_and_new_fields_new_columns(url: str, name: str) -> None:
    with ReplicatedLog(name, First, url) as log:
        log.deliver(Batch.of([First(1, "x", "low", b"up")], First), Stamped(1, "n"))
    with ReplicatedLog(name, Second, url) as log:
        second = Second([Leg(0.5, "left"), Leg(2.5, "right")], True, b"Up", 2, "Low", "y", None, -3, b"ab", "there")
        log.deliver(Batch.of([second], Second), Stamped(2, "n"))
        log.flush()
        first = Second([], False, b"up", 1, "low", "x", None, 5, b"", "here")
        assert [found.event for found in log.read()] == [first, second]
    with ReplicatedLog(name, First, url) as log:
        assert [found.event for found in log.read()][1] == First(2, "y", "Low", b"Up")
    known = query(url, f"SELECT field, name, type FROM echoic_columns WHERE log = '{name}'")
    columns = {field: (column, kind) for field, column, kind in known}
    assert columns["sequence"] == ("sequence_2", "int64")
    assert columns["xmin"] == ("xmin_2", "text")
    assert columns["Name"] == ("Name_2", "bytes")
    assert columns["NAME"] == ("NAME_3", "bool")
    assert columns["legs"] == ("legs", "{x: float32, label: text}[]")
    assert columns["code"] == ("code", "char[4]")
    (row,) = query(url, f"SELECT sequence, sequence_2, code, legs FROM {name} WHERE sequence = 2")
    legs = [{"x": 0.5, "label": "left"}, {"x": 2.5, "label": "right"}]
    assert row[:3] == (2, 2, "ab")
    assert row[3] in (legs, '[{"x":0.5,"label":"left"},{"x":2.5,"label":"right"}]')


def test_a_field_that_changed_its_type_is_refused(url: str, name: str) -> None:
    @echoic.event
    class Before:
        at: int
        values: Array[float64, ...]  # type: ignore[type-arg]

    @echoic.event
    class After:
        at: float
        values: Array[float64, ...]  # type: ignore[type-arg]

    @echoic.event
    class Later:
        at: int
        values: Array[float32, ...]  # type: ignore[type-arg]

    ReplicatedLog(name, Before, url).close()
    with pytest.raises(IncompatibleTypesError, match=r"the log has `at` as `int64`, the type as `float64`.*`After.at`"):
        ReplicatedLog(name, After, url)
    with pytest.raises(
        IncompatibleTypesError, match=r"the log has `values` as `float64\[\]`, the type as `float32\[\]`"
    ):
        ReplicatedLog(name, Later, url)
    ReplicatedLog(name, Before, url).close()


def test_numbers_that_no_column_holds_come_back_all_the_same(url: str, name: str) -> None:
    @echoic.event
    class Odd:
        big: uint64
        single: float32
        double: float64
        text: str

    tiny, huge, nan, endless = 5e-324, 1.7976931348623157e308, float("nan"), float("inf")
    events = [
        Odd((1 << 64) - 1, nan, -0.0, "\0"),
        Odd(1 << 63, endless, -endless, "a\0b"),
        Odd((1 << 63) - 1, -0.0, nan, "😀\r\n\\' %s"),
        Odd(0, 2.0**-149, tiny, ""),
        Odd(1, 3.4028234663852886e38, huge, "plain"),
    ]
    with ReplicatedLog(name, Odd, url) as log:
        log.deliver(Batch.of(events, Odd), Stamped(1, "n"))
        log.flush()
        assert [str(found.event) for found in log.read()] == list(map(str, events))
        chunks = list(log.save(0))
    with ReplicatedLog(f"{name}_copy", Odd, url) as copy:
        copy.load(chunks, 5)
        assert [str(found.event) for found in copy.read()] == list(map(str, events))


def test_an_event_too_large_for_the_server_is_refused_with_the_limit(find_url: FindUrl, name: str) -> None:
    @echoic.event
    class Large:
        data: bytes

    with ReplicatedLog(name, Large, find_url("mariadb")) as log:
        log.deliver(Batch.of([Large(bytes(7_000_000))], Large), Stamped(1, "n"))
        log.flush()
        log.deliver(Batch.of([Large(bytes(9_000_000))], Large), Stamped(2, "n"))
        with pytest.raises(JournalError, match="event 2 needs a statement of 18000002 bytes, the server's max_allowed"):
            log.flush()
        assert log.applied() == 1


@pytest.mark.parametrize(
    "wrong",
    [
        *("orders.db", "sqlite:", "sqlite:x.db?durability=some", "sqlite:x.db?sync=full", "sqlite://host/x.db"),
        *("oracle://x", "mariadb://localhost", "mariadb://localhost/x?durability=full", "mariadb://localhost:no/x"),
        *("postgresql://localhost/x?durability=half", "sqlite::memory:"),
    ],
)
def test_urls_that_name_no_database_are_refused(wrong: str) -> None:
    with pytest.raises(AddressError):
        database_of(wrong)


@pytest.mark.parametrize(("durability", "told"), [("full", (2, "on")), ("normal", (1, "off"))])
def test_durability_is_a_setting_of_the_connection(find_url: FindUrl, name: str, durability: str, told: object) -> None:
    found = []
    for kind, statement in (("sqlite", "PRAGMA synchronous"), ("postgresql", "SHOW synchronous_commit")):
        url = find_url(kind)
        database = database_of(f"{url}{'&' if '?' in url else '?'}durability={durability}")
        database.prepare(name, Format.of(Tick))
        with database._writing.use() as connection:  # noqa: SLF001 - what it has set is told to nobody else
            found.append(connection.ask(statement)[0][0])
        database.close()
    assert tuple(found) == told


@pytest.mark.parametrize(
    ("module", "url", "extra"),
    [
        ("psycopg", "postgresql:///x", r"echoic\[postgresql\]"),
        ("pymysql", "mariadb://localhost/x", r"echoic\[mariadb\]"),
    ],
)
def test_what_must_be_installed_is_told(monkeypatch: pytest.MonkeyPatch, module: str, url: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(LocalError, match=extra):
        database_of(url)


@pytest.mark.parametrize("url", ["postgresql:///x?host=/nowhere", "mariadb://localhost/x?unix_socket=/nowhere/socket"])
def test_a_server_that_is_not_there_is_told_at_once(url: str) -> None:
    with pytest.raises(UnreachableError):
        ReplicatedLog("a", Tick, url)


def test_a_file_that_is_no_database_is_told(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("files") / "text.db"
    file.write_text("this is not a database " * 100)
    with pytest.raises(JournalError, match="file is not a database"):
        ReplicatedLog("a", Tick, f"sqlite:{file}")
    with pytest.raises(JournalError, match="unable to open"):
        ReplicatedLog("a", Tick, f"sqlite:{file}/below.db")
