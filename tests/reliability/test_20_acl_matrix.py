"""Trial 20: the matrix of rights; and that a rule too many, or one too few, is found."""

import pytest

from echoic.testing.trials.acl_actors import rules_text
from echoic.testing.trials.acl_matrix import AclStage
from tests.reliability.trying import try_out


def test_what_is_granted_works_and_what_is_not_is_refused_and_told(request: pytest.FixtureRequest) -> None:
    assert try_out(request, "acl_matrix").figures["cells"] >= 42


def test_a_rule_too_many_is_found() -> None:
    with AclStage(rules_text() + "\nallow viewer publish trades") as stage:
        assert stage.try_cell("viewer", "publish") == "viewer could publish, though he may not"


def test_a_rule_too_few_is_found() -> None:
    with AclStage(rules_text() + "\ndeny sink derive *") as stage:
        assert stage.try_cell("sink", "derive") == "sink could not derive, though he may"
