"""Pure. A program as generated Python: the reference for native code, and what runs where there is none."""

from echoic.ecode.generated_python.kernel import PythonKernel, compile_python

__all__ = ["PythonKernel", "compile_python"]
