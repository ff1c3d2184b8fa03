"""The functions that are checked are those that can be called."""

import pytest

from echoic.scripts.checking import SIGNATURES


def test_every_function_has_a_type_and_does_something() -> None:
    functions = pytest.importorskip("echoic.scripts.graph.functions").FUNCTIONS
    assert set(functions) == set(SIGNATURES)
    for name, signature in SIGNATURES.items():
        assert functions[name].parameters == signature.arguments, name
        assert functions[name].result == signature.result, name
