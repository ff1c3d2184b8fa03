"""Any script, for hypothesis."""

from hypothesis import strategies as st

from echoic.scripts.syntax.tokens import FEATURES, KINDS, TIMINGS
from echoic.scripts.syntax.tree import (
    ATOMS,
    Application,
    Assign,
    Atom,
    Call,
    ChannelNote,
    Choice,
    Conditional,
    Configuration,
    Constant,
    Create,
    Declaration,
    Disrupt,
    Expression,
    Formal,
    Iteration,
    LeftBiased,
    Let,
    ListOf,
    Merge,
    PlaceholderOf,
    Process,
    ProcessDefinition,
    RightBiased,
    Script,
    Sequence,
    Span,
    Timing,
    ToolDefinition,
    Variable,
)
from echoic.terms import UNDEFINED, Placeholder, Term, TermList, Value

HERE = Span("", 1, 1, 1, 1)
SPAN = st.just(HERE)

identifiers = st.from_regex(r"[a-z][A-Za-z0-9_-]{0,3}", fullmatch=True).filter(lambda word: word not in KINDS)
identifiers |= st.sampled_from([*FEATURES, "note", "as"])
names = st.from_regex(r"[A-Z_][A-Za-z0-9_-]{0,3}", fullmatch=True)
strings = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
scalars: st.SearchStrategy[Value] = st.one_of(
    st.booleans(), st.integers(), st.floats(allow_nan=False), strings, st.just(UNDEFINED)
)


def _types(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    return st.one_of(
        st.builds(lambda name, arguments: Term(name, *arguments), identifiers, st.lists(inner, max_size=3)),
        st.builds(lambda elements: TermList(*elements), st.lists(inner, max_size=3)),
        st.builds(Placeholder, inner),
    )


types = st.recursive(scalars | st.builds(Term, st.sampled_from(["int", "str", "term", "list"])), _types, max_leaves=4)


def _terms(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, max_size=3).map(tuple)
    return st.builds(Application, identifiers, several, SPAN) | st.builds(ListOf, several, SPAN)


terms: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(
        st.builds(Constant, scalars, SPAN),
        st.builds(Variable, names, st.booleans(), SPAN),
        st.builds(PlaceholderOf, types, SPAN),
    ),
    _terms,
    max_leaves=6,
)
arguments = st.lists(terms, max_size=3).map(tuple)
timing = st.lists(st.builds(Timing, st.sampled_from(TIMINGS), arguments, SPAN), max_size=2).map(tuple)
calls = st.builds(Call, names, arguments, SPAN)
with_arguments = st.sampled_from([name for name in ATOMS if name not in ("delta", "tau")])
actions: st.SearchStrategy[Process] = st.one_of(
    calls,
    st.builds(Atom, st.sampled_from(["delta", "tau"]), st.just(()), timing, SPAN),
    st.builds(Atom, with_arguments, arguments, timing, SPAN),
    st.builds(Assign, st.builds(Variable, names, st.just(False), SPAN), terms, timing, SPAN),
    st.builds(Create, calls, terms, timing, SPAN),
)
declarations = st.lists(st.builds(Declaration, names, types, SPAN), min_size=1, max_size=2).map(tuple)


def _processes(inner: st.SearchStrategy[Process]) -> st.SearchStrategy[Process]:
    binary = [Sequence, Choice, RightBiased, LeftBiased, Merge, Iteration, Disrupt]
    return st.one_of(
        *(st.builds(kind, inner, inner, SPAN) for kind in binary),
        st.builds(Conditional, terms, inner, inner | st.none(), SPAN),
        st.builds(Let, declarations, inner, SPAN),
    )


processes: st.SearchStrategy[Process] = st.recursive(actions, _processes, max_leaves=12)
formals = st.lists(st.builds(Formal, names, types, st.booleans(), SPAN), max_size=2).map(tuple)
features = st.lists(st.tuples(st.sampled_from(FEATURES), strings), max_size=3).map(tuple)
scripts = st.builds(
    Script,
    st.lists(st.builds(ProcessDefinition, names, formals, processes, SPAN), max_size=2).map(tuple),
    st.lists(st.builds(ToolDefinition, identifiers, formals, features, SPAN), max_size=2).map(tuple),
    st.lists(st.builds(Configuration, st.lists(calls, min_size=1, max_size=3).map(tuple), SPAN), max_size=2).map(tuple),
    st.just({}),
    st.lists(st.builds(ChannelNote, strings, types, SPAN), max_size=2).map(tuple),
)
