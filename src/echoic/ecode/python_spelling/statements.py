"""Python's statements as E-Code's.

    x = 1                          long x = 1;              the first time; later x = 1;
    x: int32 = 0                   int x = 0;
    xs: Array[float64, 10]         double xs[10];
    n: static[int32] = 0           static int n = 0;
    for i in range(a, b): ...      for (long stop = b, i = a; i < stop; i += 1) ...
    return input.price > 3         return input.price > 3;  and 0 where nothing is returned

A variable keeps the type of its first value: int64 or float64 (uint64 stays what it is). A float that would lose its
fraction in an integer variable or field is refused; Python would have kept it.

The bound of a `for` is evaluated once, as Python does. It is written into the test nevertheless if it consists of
constants, counters of loops around and fields of `input` and `param`, which cannot change: there the analysis of loops
can make more of it.
"""

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from echoic.ecode.numbers import INT32, INT64, Number
from echoic.ecode.python_spelling.arithmetic import wide
from echoic.ecode.python_spelling.expressions import OPERATORS, TYPES, Expressions, number_named
from echoic.ecode.python_spelling.names import RECORDS, Meaning, Names, assigned_after, bindings
from echoic.ecode.python_spelling.refusals import refusal
from echoic.ecode.syntax import tree
from echoic.ecode.syntax.nearest import did_you_mean
from echoic.ecode.syntax.text import Problems, mistake, quoted
from echoic.errors import ECodeError

if TYPE_CHECKING:
    from echoic.ecode.python_spelling.places import Places
    from echoic.ecode.typed import Position

__all__ = ["Statements"]

SAME_IN_C: Final = frozenset({"+", "-", "*", "&", "|", "^", "<<", ">>"})


class Statements:
    """Turns the statements of one function into trees; mistakes are kept, and the next statement is looked at."""

    def __init__(self, problems: Problems, places: "Places", records: tuple[str, ...]) -> None:
        self._problems = problems
        self._places = places
        self._names = Names(records)
        self._expressions = Expressions(places, self._names)

    def function(self, statements: Sequence[ast.stmt], at: "Position") -> tree.Block:
        """Return the body of the function."""
        body = list(statements)
        if body and isinstance(body[0], ast.Expr) and _is_text(body[0].value):
            del body[0]
        found = self._items(body)
        if assigned_after(body) is not None:
            found.append(tree.Return(tree.Constant(0, INT32, at), at))
        return tree.Block(tuple(found), at, at)

    def _block(self, statements: Sequence[ast.stmt], at: "Position") -> tree.Block:
        self._names.enter()
        try:
            return tree.Block(tuple(self._items(statements)), at, at)
        finally:
            self._names.leave()

    def _items(self, statements: Sequence[ast.stmt]) -> list[tree.Statement]:
        found: list[tree.Statement] = []
        for statement in statements:
            if self._problems.full:
                break
            nesting = self._expressions.nesting
            at = self._places.start(statement)
            try:
                self._expressions.enter(at)
                found += self._statement(statement, at)
            except ECodeError as error:
                self._problems.keep(error)
                self._forgive(statement)
            self._expressions.nesting = nesting
        return found

    def _forgive(self, statement: ast.stmt) -> None:
        """Let variables pass whose only value had a mistake, so that it is not reported again at each use."""
        for name in bindings([statement]):
            if self._names.find(name) is None and name not in RECORDS:
                self._names.bind(name, Meaning("mistake"))

    def _statement(self, statement: ast.stmt, at: "Position") -> list[tree.Statement]:
        match statement:
            case ast.Assign():
                return [self._assign(statement, at)]
            case ast.AugAssign():
                return [self._augmented(statement, at)]
            case ast.AnnAssign():
                return [self._annotated(statement)]
            case ast.If():
                return self._if(statement, at)
            case ast.For() | ast.While() if statement.orelse:
                raise mistake(at, "`else` of a loop is not part of the subset; use a variable and an `if` after it")
            case ast.For():
                return [self._for(statement, at)]
            case ast.While():
                return [tree.While(self._expressions.value(statement.test), self._block(statement.body, at), at)]
            case ast.Return():
                return [self._return(statement.value, at)]
            case _:
                return self._smaller(statement, at)

    def _smaller(self, statement: ast.stmt, at: "Position") -> list[tree.Statement]:
        match statement:
            case ast.Break():
                return [tree.Break(at)]
            case ast.Continue():
                return [tree.Continue(at)]
            case ast.Pass():
                return []
            case ast.Expr():
                return [self._effect(statement.value, at)]
            case ast.Import(names=[ast.alias(name="math", asname=None)]) | ast.ImportFrom(module="math"):
                return []
            case _:
                raise mistake(at, refusal(statement))

    def _effect(self, node: ast.expr, at: "Position") -> tree.Statement:
        match node:
            case ast.Call(func=ast.Name(id="resize"), args=[array, length], keywords=[]):
                arguments = (self._expressions.place(array), self._expressions.value(length))
                return tree.Evaluate(tree.Call("resize", arguments, at), at)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="context") as record, attr=name), args=given, keywords=[]
            ):
                self._expressions.value(record)  # it must be a parameter
                numbers = tuple(self._expressions.value(each) for each in given)
                return tree.Evaluate(tree.Call(f"context.{name}", numbers, at), at)
            case ast.Call(func=ast.Name(id="resize")):
                raise mistake(at, "`resize` takes an array of `output` and its length")
            case _:
                self._expressions.value(node)
                raise mistake(at, "this expression has no effect; assign its value, or return it")

    def _assign(self, node: ast.Assign, at: "Position") -> tree.Statement:
        if len(node.targets) > 1:
            raise mistake(at, "several targets are not part of the subset; assign one at a time")
        target = node.targets[0]
        if isinstance(node.value, ast.List) and isinstance(target, ast.Name):
            declared = f"{quoted(target.id)[1:-1]}: Array[float64, 10]"
            raise mistake(self._places.start(node.value), f"lists are not part of the subset; declare `{declared}`")
        value = self._expressions.value(node.value)
        if isinstance(target, ast.Name):
            return self._set(target.id, value, self._places.start(target))
        return self._store("", target, value)

    def _set(self, name: str, value: tree.Expression, at: "Position") -> tree.Statement:
        """Return the assignment of a variable, or its declaration if this is its first value."""
        meaning = self._variable(name, at)
        if meaning is None and name not in self._names.awaited:
            self._names.bind(name, Meaning())
            return tree.Declaration(name, None, (), wide(value), static=False, constant=False, at=at)
        if meaning is None:
            self._names.bind(name, Meaning())
        target = tree.Name(name, at)
        return tree.Evaluate(tree.Assignment("", target, _fitting(target, value, name), at), at)

    def _variable(self, name: str, at: "Position") -> Meaning | None:
        """Return what a name that is assigned stands for, None if it has no value yet."""
        if name in RECORDS:
            raise mistake(at, f"`{name}` cannot be assigned to, only fields of `output` and `context` can")
        if not name.isascii():
            raise mistake(at, f"{quoted(name)} is not a name of a variable; use ASCII letters, digits and `_`")
        meaning = self._names.find(name)
        if meaning is not None and meaning.kind == "counter":
            raise mistake(at, f"`{name}` counts a loop and cannot be assigned to inside of it")
        if meaning is not None and meaning.dimensions:
            raise mistake(at, f"`{name}` is an array; assign its elements")
        return None if meaning is not None and meaning.kind == "mistake" else meaning

    def _store(self, operator: str, target: ast.expr, value: tree.Expression) -> tree.Statement:
        place = self._expressions.place(target)
        fitting = _fitting(place, value, ast.unparse(target))
        return tree.Evaluate(tree.Assignment(operator, place, fitting, place.at), place.at)

    def _augmented(self, node: ast.AugAssign, at: "Position") -> tree.Statement:
        symbol = OPERATORS.get(type(node.op))
        if symbol is None:
            raise mistake(at, refusal(node.op))
        if isinstance(node.target, ast.Name):
            start = self._places.start(node.target)
            self._names.expect(node.target.id, start)
            self._variable(node.target.id, start)
        value = self._expressions.value(node.value)
        if symbol in SAME_IN_C:
            return self._store(symbol, node.target, wide(value))
        place = self._expressions.place(node.target)
        where = self._places.operator(node.target, node.value, symbol)
        return self._store("", node.target, self._expressions.operation(symbol, place, value, where))

    def _annotated(self, node: ast.AnnAssign) -> tree.Statement:
        at = self._places.start(node.target)
        if not isinstance(node.target, ast.Name):
            raise mistake(at, "only variables can be annotated; fields have the types of their records")
        name = node.target.id
        inner = _inside_static(node.annotation)
        static = inner is not None
        number, dimensions = self._type(inner or node.annotation)
        if self._variable(name, at) is not None or (name in self._names.awaited and dimensions):
            raise mistake(at, f"`{name}` has a type already; annotate its first assignment only")
        if static and not self._names.outermost:
            raise mistake(at, f"declare the static `{name}` at the top of the function, not inside a block")
        initial = None if node.value is None else self._initial(node.value, number, dimensions, name)
        self._names.bind(name, Meaning(dimensions=dimensions))
        if name in self._names.awaited:
            return self._awaited_value(name, number, initial, at)
        sizes = tuple(tree.Constant(size, INT64, at) for size in dimensions)
        return tree.Declaration(name, number, sizes, initial, static=static, constant=False, at=at)

    def _awaited_value(
        self, name: str, number: Number, initial: "tree.Expression | tree.Braces | None", at: "Position"
    ) -> tree.Statement:
        """Return an annotated value of a variable that was declared before the `if`."""
        if self._names.awaited[name] is not number:
            raise mistake(at, f"`{name}` has another type in the other branch; declare it before the `if`")
        value = tree.Constant(0, INT64, at) if initial is None or isinstance(initial, tree.Braces) else initial
        return tree.Evaluate(tree.Assignment("", tree.Name(name, at), value, at), at)

    def _type(self, node: ast.expr) -> tuple[Number, tuple[int, ...]]:
        """Return the type that an annotation declares."""
        number = number_named(node)
        if number is not None:
            return number, ()
        at = self._places.start(node)
        match node:
            case ast.Subscript(value=value, slice=ast.Tuple(elts=[element, *sizes])) if sizes and _is_array(value):
                number = number_named(element)
                if number is None:
                    raise mistake(self._places.start(element), "elements of an array are numbers, such as `float64`")
                return number, tuple(self._size(size) for size in sizes)
            case ast.Subscript(value=value) if _is_array(value):
                raise mistake(at, "an array has elements and sizes, such as `Array[float64, 10]`")
            case ast.Name(id="bool"):
                raise mistake(at, "`bool` is not the type of a variable; use `int`, comparisons are 0 or 1")
            case ast.Name(id="str" | "bytes"):
                raise mistake(at, "texts are fields, not variables; name the field where the text is needed")
            case ast.Name(id="static" | "Array" as name):
                raise mistake(at, f"`{name}` needs brackets, such as `static[int32]` and `Array[float64, 10]`")
            case ast.Name(id=name):
                known = (*TYPES, "Array", "static")
                raise mistake(at, f"{quoted(name)} is not a type of the subset{did_you_mean(name, known)}")
            case _:
                raise mistake(at, "this is not a type of the subset; such are `int32`, `float64`, `Array[int64, 3]`")

    def _size(self, node: ast.expr) -> int:
        size = self._expressions.constant(node, "the size of an array")
        if size < 1:
            raise mistake(self._places.start(node), f"the size of an array must be positive, got {size}")
        return size

    def _initial(
        self, node: ast.expr, number: Number, dimensions: tuple[int, ...], name: str
    ) -> tree.Expression | tree.Braces:
        """Return the value of a declaration, for arrays a list of values."""
        at = self._places.start(node)
        if isinstance(node, ast.List | ast.Tuple) and dimensions:
            self._expressions.enter(at)
            items = tuple(self._initial(each, number, dimensions[1:], name) for each in node.elts)
            return tree.Braces(items, at)
        if dimensions:
            raise mistake(at, "the values of an array are a list; without one they are zero")
        value = self._expressions.value(node)
        return value if number.floating else tree.Fitting(number, value, _loss(name), value.at)

    def _if(self, node: ast.If, at: "Position") -> list[tree.Statement]:
        test = self._expressions.value(node.test)
        after = assigned_after([node]) or frozenset()
        fresh = {name for name in after if self._names.find(name) is None and name not in RECORDS}
        before = self._names.awaited
        found = self._hoisted(node, fresh - before.keys())
        self._names.awaited = before | {declared.name: declared.number for declared in found}
        yes = self._block(node.body, at)
        no = self._block(node.orelse, at) if node.orelse else None
        for name in fresh & self._names.awaited.keys():
            self._names.bind(name, Meaning())
        self._names.awaited = before
        return [*found, tree.If(test, yes, no, at)]

    def _hoisted(self, node: ast.If, names: set[str]) -> list[tree.Declaration]:
        """Return declarations of variables that have no value before an `if` and one after it in any case.

        The type of one can depend on that of another which is declared before it.
        """
        found: list[tree.Declaration] = []
        assignments = bindings([node])
        self._names.enter()
        try:
            for name in assignments:
                declared = self._hoist(name, assignments) if name in names else None
                if declared is not None:
                    found.append(declared)
                    self._names.bind(name, Meaning())
        finally:
            self._names.leave()
        return found

    def _hoist(self, name: str, assignments: "dict[str, list[ast.Assign | ast.AnnAssign]]") -> tree.Declaration | None:
        """Return the declaration of a variable, with the type of the first value that can be named before the `if`."""
        first = assignments[name][0]
        at = self._places.start(first)
        if isinstance(first, ast.AnnAssign):
            number = number_named(first.annotation)
            if number is None:
                return None  # an array, which lives in its branch
            return tree.Declaration(name, number, (), None, static=False, constant=False, at=at)
        for each in assignments[name]:
            parts = ast.walk(each.value) if each.value is not None else ()
            inside = {part.id for part in parts if isinstance(part, ast.Name)} & assignments.keys()
            if each.value is not None and all(self._names.find(other) is not None for other in inside):
                zero = tree.ZeroOf(self._expressions.value(each.value), at)
                return tree.Declaration(name, None, (), zero, static=False, constant=False, at=at)
        raise mistake(
            at, f"the type of `{name}` is not known before this `if`; declare it there, as in `{name}: float64`"
        )

    def _return(self, node: ast.expr | None, at: "Position") -> tree.Statement:
        """Return `return`: what is not zero passes the event, or is the port of a router; nothing is 0."""
        if node is None or (isinstance(node, ast.Constant) and node.value is None):
            return tree.Return(tree.Constant(0, INT32, at), at)
        return tree.Lone(self._expressions.value(node), at)

    def _for(self, node: ast.For, at: "Position") -> tree.Statement:
        match node.target, node.iter:
            case ast.Name(id=counter), ast.Call(func=ast.Name(id="range"), args=bounds, keywords=[]):
                pass
            case ast.Name(), _:
                raise mistake(
                    self._places.start(node.iter), "a `for` loop counts; write `for i in range(...)` and index with `i`"
                )
            case _:
                raise mistake(self._places.start(node.target), "a `for` loop has one counter: `for i in range(...)`")
        self._check_counter(counter, self._places.start(node.target))
        if not 1 <= len(bounds) <= 3:
            raise mistake(self._places.start(node.iter), f"`range` takes 1 to 3 arguments, got {len(bounds)}")
        return self._counted(counter, node, bounds, at)

    def _check_counter(self, counter: str, at: "Position") -> None:
        if self._variable(counter, at) is not None or counter in self._names.awaited:
            raise mistake(at, f"`{counter}` is a variable already; a counter ends with its loop and needs its own name")

    def _counted(self, counter: str, node: ast.For, bounds: Sequence[ast.expr], at: "Position") -> tree.Statement:
        place = self._places.start(node.target)
        start = self._bound(bounds[0]) if len(bounds) > 1 else tree.Constant(0, INT64, place)
        stop = self._bound(bounds[1] if len(bounds) > 1 else bounds[0])
        step = self._expressions.constant(bounds[2], "the step of `range`") if len(bounds) > 2 else 1
        if not step:
            raise mistake(self._places.start(bounds[2]), "the step of `range` must not be 0")
        initial = [tree.Declaration(counter, INT64, (), start, static=False, constant=False, at=place)]
        if not self._is_stable(stop):
            hidden = self._names.hidden()
            initial.insert(0, tree.Declaration(hidden, INT64, (), stop, static=False, constant=True, at=stop.at))
            stop = tree.Name(hidden, stop.at)
        name = tree.Name(counter, place)
        test = tree.Binary("<" if step > 0 else ">", name, tree.Cast(INT64, stop, stop.at), place)
        advance = tree.Assignment("+", name, tree.Constant(step, INT64, place), place)
        self._names.enter()
        self._names.bind(counter, Meaning("counter"))
        body = self._block(node.body, at)
        self._names.leave()
        return tree.For(tuple(initial), test, advance, body, at)

    def _bound(self, node: ast.expr) -> tree.Expression:
        value = self._expressions.value(node)
        if isinstance(value, tree.Constant) and isinstance(value.value, int):
            return value
        return tree.Fitting(INT64, value, "a bound of `range` must be an integer; write `int(x)`", value.at)

    def _is_stable(self, value: tree.Expression) -> bool:
        """Tell whether a value stays the same while a loop runs, and costs little."""
        match value:
            case tree.Constant() | tree.Name(name="input" | "param"):
                return True
            case tree.Name(name=name):
                meaning = self._names.find(name)
                return meaning is not None and meaning.kind == "counter"
            case tree.Member(record=inner) | tree.Fitting(value=inner) | tree.Wide(value=inner):
                return self._is_stable(inner)
            case tree.Subscript(array=array, index=index):
                return self._is_stable(array) and isinstance(index, tree.Constant)
            case tree.Binary(operator="+" | "-", left=left, right=right):
                return self._is_stable(left) and self._is_stable(right)
            case tree.Call(function="len", arguments=(inner,)):
                return self._is_stable(inner)
            case _:
                return False


def _fitting(target: tree.Expression, value: tree.Expression, name: str) -> tree.Expression:
    """Return a value to be assigned, checked for a loss of its fraction unless it can have none."""
    if isinstance(value, tree.String) or (isinstance(value, tree.Constant) and isinstance(value.value, int)):
        return value
    return tree.Fitting(target, value, _loss(name), value.at)


def _loss(name: str) -> str:
    shown = quoted(name)
    return f"{shown} is an integer, this is a float; write `int(...)` to cut it off, or make {shown} a float"


def _inside_static(node: ast.expr) -> ast.expr | None:
    """Return the type inside of `static[...]`, None if an annotation is no such thing."""
    match node:
        case ast.Subscript(value=ast.Name(id="static") | ast.Attribute(attr="static"), slice=inner):
            return inner
        case _:
            return None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_array(node: ast.expr) -> bool:
    match node:
        case ast.Name(id="Array") | ast.Attribute(value=ast.Name(id="echoic"), attr="Array"):
            return True
        case _:
            return False
