"""The number of ones in a 64-bit word, as the compiler's own instruction."""

from __future__ import annotations

import numpy as np
from numba import config, types
from numba.extending import intrinsic


def _plain(word):
    """Count the ones of a word; what runs without compilation."""
    return np.uint64(int(word).bit_count())


def _compiled():
    @intrinsic
    def op(typingctx, word):
        def codegen(context, builder, signature, args):
            from llvmlite import ir

            kind = args[0].type
            function = builder.module.declare_intrinsic("llvm.ctpop", [kind], ir.FunctionType(kind, [kind]))
            return builder.call(function, args)

        return types.uint64(types.uint64), codegen

    return op


popcount = _plain if config.DISABLE_JIT else _compiled()
