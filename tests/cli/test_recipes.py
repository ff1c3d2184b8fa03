"""Derivations as they are typed: parameters with and without types, capacities, code from words and files."""

from pathlib import Path

import pytest

from echoic import Record
from echoic.cli.recipes import Around, read_code
from echoic.errors import EchoicError


def block(*words: str) -> Record:
    made = Around(param=list(words)).parameters()
    assert isinstance(made, Record)
    return made


def test_a_parameter_without_a_type_is_what_it_looks_like() -> None:
    made = block("low=75.5", "lot=100", "mask=0x10", "open=true", "symbol=IBM", 'text="7"', "weights=[1, 2.5]")
    spelled = {field.name: field.spelling for field in made.format.fields}
    assert spelled == {
        "low": "float64",
        "lot": "int64",
        "mask": "int64",
        "open": "bool",
        "symbol": "string",
        "text": "string",
        "weights": "float64[2]",
    }
    assert (made["low"], made["lot"], made["mask"], made["open"]) == (75.5, 100, 16, True)
    assert (made["symbol"], made["text"], list(made["weights"])) == ("IBM", "7", [1.0, 2.5])


def test_a_parameter_may_have_a_type_and_an_equals_sign_in_its_value() -> None:
    made = block("low:float32=75", "codes: uint8[3] = [1, 2, 3]", "text:str=a=b, c")
    assert [field.spelling for field in made.format.fields] == ["float32", "uint8[3]", "string"]
    assert (made["low"], list(made["codes"]), made["text"]) == (75.0, [1, 2, 3], "a=b, c")


def test_records_are_parameters_too() -> None:
    made = block("range={low: 1, high: 9.5}")
    assert [(path, field.spelling) for path, field in made.format.walk()][1:] == [
        ("range.low", "int64"),
        ("range.high", "float64"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["low"], "expected NAME=VALUE or NAME:TYPE=VALUE, got `low`"),
        (["low=1", "low=2"], "parameter `low` is given twice"),
        (["low:flot=1"], "no type is called `flot`"),
        (["low:int, b: int=1"], "expected one type"),
        (["low:int8=300"], "300"),
        (["low:int=x"], 'expected `int64`, got "x" - at `low`'),
        (["1low=3"], "expected"),
        (["low=[]"], "an empty sequence does not tell the type of its elements"),
    ],
)
def test_a_word_that_is_no_parameter_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(EchoicError) as caught:
        Around(param=words).parameters()
    assert said in str(caught.value)


def test_a_signature_has_all_that_was_given() -> None:
    around = Around(output="Sums{n: int, sums: float[n]}", param=["low=1"], ports=3, capacity=["sums=16"])
    signature = around.signature(block("price=1.5").format)
    assert signature.output is not None
    assert (signature.output.name, signature.ports, signature.capacities) == ("Sums", 3, (("sums", 16),))
    assert signature.params is not None
    assert list(signature.params.by_name) == ["low"]
    with pytest.raises(EchoicError, match="expected NAME=N"):
        Around(capacity=["sums"]).capacities()


def test_code_is_a_word_or_a_file_and_python_by_its_ending(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("def f(input):\n    return 1\n", encoding="utf-8")
    assert read_code("1", "", python=False).spelling == "ecode"
    assert read_code("def f(input): return 1", "", python=True).spelling == "python"
    code = read_code("", str(file), python=False)
    assert (code.spelling, code.file) == ("python", str(file))
    with pytest.raises(EchoicError, match="and not twice"):
        read_code("1", str(file), python=False)
    with pytest.raises(EchoicError, match="there is none"):
        read_code("", "", python=False)
    with pytest.raises(EchoicError, match="cannot read"):
        read_code("", str(tmp_path), python=False)
