"""Maximum and minimum that the compiler may turn into vector instructions.

Numba compiles ``a if a > b else b`` to a form whose reductions stay scalar; the LLVM intrinsics below do not, which
is worth a factor of four in the searches of the working set. Without compilation they are Python's own.
"""

from __future__ import annotations

from numba import config, types
from numba.extending import intrinsic


def _vector_op(name: str, plain):
    if config.DISABLE_JIT:
        return plain

    @intrinsic
    def op(typingctx, a, b):
        def codegen(context, builder, signature, args):
            from llvmlite import ir

            kind = args[0].type
            function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind, kind]))
            return builder.call(function, args, fastmath=("nnan", "nsz"))

        return types.float64(types.float64, types.float64), codegen

    return op


vmax = _vector_op("llvm.maxnum", max)
vmin = _vector_op("llvm.minnum", min)
