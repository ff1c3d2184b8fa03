"""From LLVM text to addresses: what is compiled, what is refused."""

import ctypes
import gc
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

from echoic.codegen import Library, NativeCode, Tier, compile_library
from echoic.errors import CodegenError, LocalError
from echoic.formats import Format
from echoic.wire import Conversion

ANSWER = "define i64 @answer() {\n  ret i64 42\n}\n"


def calling(declaration: str, call: str) -> str:
    return f"{declaration}\ndefine i64 @main() {{\n  {call}\n  ret i64 0\n}}\n"


def test_a_function_can_be_called_at_its_address() -> None:
    library = compile_library(ANSWER, ("answer",))
    assert isinstance(library, Library)
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("answer"))() == 42


def test_several_functions_have_addresses_of_their_own() -> None:
    text = ANSWER + "define i64 @double(i64 %x) {\n  %y = add i64 %x, %x\n  ret i64 %y\n}\n"
    library = compile_library(text, ("answer", "double"))
    assert library.address("answer") != library.address("double")
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(library.address("double"))(21) == 42


def test_libraries_with_the_same_names_do_not_meet() -> None:
    libraries = [compile_library(ANSWER.replace("42", str(number)), ("answer",)) for number in range(5)]
    called = [ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("answer"))() for library in libraries]
    assert called == [0, 1, 2, 3, 4]


def test_code_stays_as_long_as_somebody_holds_it() -> None:
    code = NativeCode.of(compile_library(ANSWER, ("answer",)), "answer")
    for _ in range(3):
        compile_library(ANSWER, ("answer",))
        gc.collect()
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(int(code))() == 42


@pytest.mark.parametrize(
    ("name", "declaration", "call"),
    [
        ("system", "declare i32 @system(ptr)", "%r = call i32 @system(ptr null)"),
        ("printf", "declare i32 @printf(ptr, ...)", "%r = call i32 (ptr, ...) @printf(ptr null)"),
        ("dlsym", "declare ptr @dlsym(ptr, ptr)", "%r = call ptr @dlsym(ptr null, ptr null)"),
        ("memcpy", "declare ptr @memcpy(ptr, ptr, i64)", "%r = call ptr @memcpy(ptr null, ptr null, i64 0)"),
        ("PyRun_SimpleString", "declare i32 @PyRun_SimpleString(ptr)", "%r = call i32 @PyRun_SimpleString(ptr null)"),
        ("environ", "@environ = external global ptr", "%r = load ptr, ptr @environ"),
        ("exit", "declare extern_weak void @exit(i32)", "call void @exit(i32 0)"),
        ("unused", "declare void @unused()", ""),
        ("llvm.returnaddress", "declare ptr @llvm.returnaddress(i32)", "%r = call ptr @llvm.returnaddress(i32 0)"),
        ("llvm.memcpy_evil", "declare void @llvm.memcpy_evil()", ""),
    ],
)
@pytest.mark.parametrize("python", [False, True])
def test_a_symbol_that_is_not_on_the_whitelist_is_refused_by_name(
    name: str, declaration: str, call: str, python: bool
) -> None:
    with pytest.raises(CodegenError, match=rf"declares `{name}.*`, which is not on the whitelist|not valid"):
        compile_library(calling(declaration, call), ("main",), python=python)


def test_a_body_that_is_there_only_for_show_does_not_smuggle_a_symbol_in() -> None:
    """`available_externally` has a body for the optimiser, but the linker takes the function of the process."""
    text = calling(
        "define available_externally i32 @getpid() noinline optnone {\n  ret i32 -7\n}", "%r = call i32 @getpid()"
    ).replace("ret i64 0", "%wide = sext i32 %r to i64\n  ret i64 %wide")
    with pytest.raises(CodegenError, match="getpid"):
        compile_library(text, ("main",))


@pytest.mark.parametrize(
    "text",
    [
        'module asm ".globl smuggled"\n' + ANSWER,
        'define i64 @answer() {\n  call void asm sideeffect "nop", ""()\n  ret i64 42\n}\n',
    ],
    ids=["of the module", "inside a function"],
)
def test_assembly_of_the_machine_is_refused(text: str) -> None:
    """In a process of its own: LLVM ends the process when it meets assembly that it cannot read."""
    program = (
        "from echoic.codegen import compile_library\n"
        "from echoic.errors import CodegenError\n"
        "try:\n"
        f"    compile_library({text!r}, ('answer',))\n"
        "except CodegenError:\n"
        "    print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "refused\n")


@pytest.mark.parametrize(
    "intrinsic",
    [
        (
            "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
            "call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %p, i64 8, i1 false)",
        ),
        (
            "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
            "call void @llvm.memmove.p0.p0.i64(ptr %p, ptr %p, i64 8, i1 false)",
        ),
        (
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            "call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 8, i1 false)",
        ),
        ("declare i32 @llvm.bswap.i32(i32)", "%r = call i32 @llvm.bswap.i32(i32 1)"),
        ("declare i64 @llvm.smax.i64(i64, i64)", "%r = call i64 @llvm.smax.i64(i64 1, i64 2)"),
        ("declare i8 @llvm.umin.i8(i8, i8)", "%r = call i8 @llvm.umin.i8(i8 1, i8 2)"),
        ("declare i8 @llvm.fptoui.sat.i8.f64(double)", "%r = call i8 @llvm.fptoui.sat.i8.f64(double 1.0)"),
        ("declare i64 @llvm.fptosi.sat.i64.f32(float)", "%r = call i64 @llvm.fptosi.sat.i64.f32(float 1.0)"),
    ],
    ids=lambda pair: pair[0].split("@")[1].split("(")[0],
)
def test_the_intrinsics_of_conversion_are_accepted(intrinsic: tuple[str, str]) -> None:
    declaration, call = intrinsic
    text = calling(declaration, f"%p = alloca i64, align 8\n  {call}")
    library = compile_library(text, ("main",))
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("main"))() == 0


def test_large_copies_are_linked_to_the_memory_functions_of_the_process() -> None:
    """What `llvm.memcpy` of unknown length becomes must be found, though nobody can declare it."""
    text = (
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n"
        "define i64 @copy(ptr %to, ptr %from, i64 %size) {\n"
        "  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)\n"
        "  ret i64 %size\n}\n"
    )
    library = compile_library(text, ("copy",))
    source, target = ctypes.create_string_buffer(b"x" * 5000), ctypes.create_string_buffer(5001)
    copy = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)(library.address("copy"))
    assert copy(target, source, 5000) == 5000
    assert target.raw == source.raw


def test_functions_of_cpython_are_accepted_only_when_asked_for() -> None:
    text = calling("declare ptr @PyErr_Occurred()", "%r = call ptr @PyErr_Occurred()")
    assert compile_library(text, ("main",), python=True).address("main")
    with pytest.raises(CodegenError, match="PyErr_Occurred"):
        compile_library(text, ("main",))


@pytest.mark.parametrize(
    "text",
    [
        "this is not LLVM",
        "define i64 @answer() {",
        "define i64 @answer() {\n  ret i32 1\n}\n",
        "define i64 @answer() {\n  ret i64 %x\n}\n",
        "define i64 @answer() {\nentry:\n  br label %gone\n}\n",
        "define i64 @answer() {\n  %x = add i64 1, 2\n}\n",
        "define i64 @answer() {\nentry:\n  br label %entry\n}\n",
        "define i64 @f(i1 %c) {\nbr i1 %c, label %a, label %b\na:\n%x = add i64 1, 2\nret i64 1\nb:\nret i64 %x\n}\n",
    ],
)
def test_text_that_is_not_valid_is_refused(text: str) -> None:
    with pytest.raises(CodegenError, match="not valid"):
        compile_library(text, ("answer",))


def test_an_export_that_is_not_there_is_refused() -> None:
    with pytest.raises(CodegenError, match="missing"):
        compile_library(ANSWER, ("missing",))


def test_a_refused_module_leaves_nothing_behind() -> None:
    with pytest.raises(CodegenError):
        compile_library(ANSWER + "declare void @system()\n", ("answer",))
    library = compile_library(ANSWER, ("answer",))
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address("answer"))() == 42
    assert issubclass(CodegenError, LocalError)


def test_a_conversion_whose_code_is_refused_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    library = sys.modules["echoic.codegen.library"]
    monkeypatch.setattr(library, "INTRINSICS", re.compile("none"))
    monkeypatch.setattr(library, "_objects", {})
    conversion = Conversion(Format.of(numpy.dtype([("a", ">i8")])), Format.of(numpy.dtype([("a", "<i8")])))
    for _ in range(3):
        assert bytes(conversion.convert_fixed((bytes(7) + b"\1") * 3000, 3000)) == (b"\1" + bytes(7)) * 3000
    assert not conversion.statistics().native


TIERS: tuple[Tier, ...] = ("quick", "light", "full")
SUM = """
define i64 @sum(ptr %values, i64 %count) {
entry:
  %total = alloca i64
  %index = alloca i64
  store i64 0, ptr %total
  store i64 0, ptr %index
  br label %test
test:
  %i = load i64, ptr %index
  %more = icmp slt i64 %i, %count
  br i1 %more, label %body, label %done
body:
  %place = getelementptr i64, ptr %values, i64 %i
  %value = load i64, ptr %place, align 1
  %before = load i64, ptr %total
  %after = add i64 %before, %value
  store i64 %after, ptr %total
  %next = add i64 %i, 1
  store i64 %next, ptr %index
  br label %test
done:
  %result = load i64, ptr %total
  ret i64 %result
}
"""


@pytest.mark.parametrize("tier", TIERS)
def test_every_tier_gives_code_that_does_the_same(tier: Tier) -> None:
    library = compile_library(SUM, ("sum",), tier=tier)
    call = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(library.address("sum"))
    values = numpy.arange(1000, dtype=numpy.int64)
    assert call(values.ctypes.data, 1000) == 499_500
    assert call(values.ctypes.data, 0) == 0


def test_a_function_that_must_not_be_optimised_is_refused() -> None:
    """An optimiser that is used again would look at what its earlier runs left, for such functions alone."""
    with pytest.raises(CodegenError, match="must not be optimised"):
        compile_library("define i64 @answer() noinline optnone {\n  ret i64 42\n}\n", ("answer",))


@pytest.mark.parametrize(("name", "arguments"), [("sin", (0.7,)), ("pow", (1.7, 2.3)), ("fmod", (7.5, 2.0))])
def test_functions_of_mathematics_are_those_of_the_process(name: str, arguments: tuple[float, ...]) -> None:
    kinds = ", ".join("double" for _ in arguments)
    given = ", ".join(f"double %x{position}" for position, _ in enumerate(arguments))
    text = (
        f"declare double @{name}({kinds})\ndefine double @main({given}) {{\n"
        f"  %r = call double @{name}({given}) nobuiltin\n  ret double %r\n}}\n"
    )
    library = compile_library(text, ("main",), tier="light")
    doubles = [ctypes.c_double] * len(arguments)
    call = ctypes.CFUNCTYPE(ctypes.c_double, *doubles)(library.address("main"))
    assert call(*arguments) == getattr(math, name)(*arguments)


def test_what_was_compiled_before_is_only_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["echoic.codegen.library"]
    objects: dict[bytes, bytes] = {}
    monkeypatch.setattr(module, "_objects", objects)
    first, second = (compile_library(ANSWER, ("answer",)) for _ in range(2))
    assert len(objects) == 1
    assert first.address("answer") != second.address("answer")
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(second.address("answer"))() == 42
    compile_library(ANSWER, ("answer",), tier="light")
    compile_library(ANSWER, ("answer",), python=True)
    assert len(objects) == 3


def test_objects_are_forgotten_in_the_order_in_which_they_were_last_used(monkeypatch: pytest.MonkeyPatch) -> None:
    module = sys.modules["echoic.codegen.library"]
    objects: dict[bytes, bytes] = {}
    monkeypatch.setattr(module, "_objects", objects)
    texts = [ANSWER.replace("42", str(number)) for number in range(4)]
    compile_library(texts[0], ("answer",))
    size = len(next(iter(objects.values())))
    monkeypatch.setattr(module, "OBJECT_BYTES_MAX", 3 * size + size // 2)
    for text in (texts[1], texts[2], texts[0], texts[3]):
        compile_library(text, ("answer",))
    kept = list(objects)
    assert len(kept) == 3
    for text in (texts[2], texts[0], texts[3]):
        compile_library(text, ("answer",))
    assert list(objects) == kept
    compile_library(texts[1], ("answer",))
    assert list(objects) != kept


def test_refused_code_is_refused_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["echoic.codegen.library"], "_objects", {})
    for _ in range(2):
        with pytest.raises(CodegenError, match="system"):
            compile_library(ANSWER + "declare void @system()\n", ("answer",))


GROWTH = """
import gc, resource, sys
from pathlib import Path
from echoic.codegen import compile_library, library

library.OBJECT_BYTES_MAX = 0
tier, text = sys.argv[1], sys.argv[2]

def memory():
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

def compile_some(start, count):
    for number in range(start, start + count):
        distinct = text.replace("sum", f"sum{number}").replace(", 1\\n", f", {number + 1}\\n")
        compile_library(distinct, (f"sum{number}",), tier=tier)

compile_some(0, 150)
before = memory()
compile_some(150, 300)
print((memory() - before) / 300)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells its memory elsewhere")
@pytest.mark.parametrize("tier", TIERS)
def test_compiling_leaves_nothing_behind(tier: Tier) -> None:
    """What llvmlite leaves behind, unless it is asked not to, is 4 KB for each module of the light tier, 75 of full."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, tier, SUM], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1500
