"""Pure. A program as native code: LLVM text for one routine over a batch, compiled and linked by `codegen`."""

from echoic.ecode.native.columns import Column
from echoic.ecode.native.kernel import NativeKernel, compile_native

__all__ = ["Column", "NativeKernel", "compile_native"]
