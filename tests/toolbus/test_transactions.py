"""Which question an answer is for."""

from echoic.scripts.running.messages import FromTool, ToTool
from echoic.terms import Term
from echoic.toolbus.transactions import Transactions


def test_the_late_answer_to_a_cancelled_eval_is_not_that_of_the_next() -> None:
    both = Transactions()
    first = both.told(ToTool.EVAL, (Term("a"),))
    assert both.busy
    assert both.told(ToTool.CANCEL, ()) == first
    assert not both.busy
    second = both.told(ToTool.EVAL, (Term("b"),))
    assert not both.said(FromTool.VALUE, first, (1,))
    assert both.said(FromTool.VALUE, second, (2,))
    assert not both.busy


def test_a_tool_without_numbers_answers_what_is_open() -> None:
    both = Transactions()
    both.told(ToTool.DO, (Term("a"),))
    assert both.said(FromTool.VOID, 0, ())
    assert not both.busy


def test_an_acknowledgement_is_for_the_same_event_else_for_one_that_begins_with_it_else_for_one_of_its_name() -> None:
    both = Transactions()
    for number, value in enumerate((1, 2, 3), 1):
        both.said(FromTool.EVENT, number, (Term("e", value, "x"),))
    assert both.told(ToTool.ACK_EVENT, (Term("e", 2, "x"),)) == 2
    assert both.told(ToTool.ACK_EVENT, (Term("e", 3),)) == 3
    assert both.told(ToTool.ACK_EVENT, (Term("e", 99),)) == 1
    assert both.told(ToTool.ACK_EVENT, (Term("e", 99),)) == 0
    assert both.told(ToTool.ACK_EVENT, (Term("f"),)) == 0


def test_a_response_is_for_the_request_of_its_name_else_for_the_oldest() -> None:
    both = Transactions()
    both.said(FromTool.REQUEST, 1, (Term("a"),))
    both.said(FromTool.REQUEST, 2, (Term("b"),))
    assert both.told(ToTool.RESPONSE, (Term("b", 5),)) == 2
    assert both.told(ToTool.RESPONSE, (Term("answer"),)) == 1
    assert both.told(ToTool.RESPONSE, (Term("answer"),)) == 0
