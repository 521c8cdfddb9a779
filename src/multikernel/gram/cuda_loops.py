"""Two loops over float32 or float64 matrices on a GPU, compiled by Triton, which comes with PyTorch for CUDA.

Both read each entry once. PyTorch alone would widen matrices to float64 in memory first, five times the traffic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

try:
    import torch
    import triton
    import triton.language as tl
except ImportError:
    triton = None


def available(matrices: Sequence[Any]) -> bool:
    """Whether the loops can read these matrices: on a GPU, with rows that are contiguous and one stride."""
    first = matrices[0]
    alike = {(K.dtype, K.stride(0), K.stride(1)) for K in matrices}
    return triton is not None and first.is_cuda and len(alike) == 1 and first.stride(1) == 1


if triton is not None:  # pragma: no cover  # where there is a GPU

    @triton.jit
    def _sum_rows(K, idx, v, out, n, m, stride, R: tl.constexpr, B: tl.constexpr):
        c = tl.program_id(0) * B + tl.arange(0, B)
        r0 = tl.program_id(1) * R
        acc = tl.zeros((B,), tl.float64)
        for j in range(r0, min(r0 + R, m)):
            row = tl.load(idx + j).to(tl.int64)
            acc += tl.load(K + row * stride + c, mask=c < n, other=0.0).to(tl.float64) * tl.load(v + j)
        tl.store(out + tl.program_id(1).to(tl.int64) * n + c, acc, mask=c < n)

    @triton.jit
    def _mix(at, weights, out, p, n, stride, rows, B: tl.constexpr, WIDE: tl.constexpr):
        r = tl.program_id(1).to(tl.int64)
        c = tl.program_id(0) * B + tl.arange(0, B)
        row = tl.load(rows + r)
        total = tl.zeros((B,), tl.float64 if WIDE else tl.float32)
        for k in range(p):
            K = tl.load(at + k).to(tl.pointer_type(tl.float64 if WIDE else tl.float32))
            total += tl.load(weights + k) * tl.load(K + row * stride + c, mask=c < n, other=0.0)
        tl.store(out + r * n + c, total, mask=c < n)


def sum_rows(K: Any, idx: Any, v: Any) -> Any:  # pragma: no cover  # where there is a GPU
    """Return sum_j v_j K[idx_j], summed in float64."""
    n, rows, block = K.shape[1], 256, 512
    parts = triton.cdiv(len(idx), rows)
    out = torch.empty((parts, n), dtype=torch.float64, device=K.device)
    _sum_rows[(triton.cdiv(n, block), parts)](K, idx, v.contiguous(), out, n, len(idx), K.stride(0), R=rows, B=block)
    return out.sum(0)


def mix_rows(matrices: Sequence[Any], weights: Any, rows: Any, out: Any) -> None:  # pragma: no cover
    """Set ``out``, contiguous, to sum_k weights_k K_k[rows], in the precision of the matrices."""
    n, block = out.shape[1], 1024
    at = torch.tensor([K.data_ptr() for K in matrices], device=out.device)
    weights = torch.as_tensor(weights, dtype=out.dtype, device=out.device)
    stride, wide = matrices[0].stride(0), out.dtype == torch.float64
    # rows of a grid's second axis are limited to 65,535
    for start in range(0, len(rows), 1 << 15):
        part, some = out[start : start + (1 << 15)], rows[start : start + (1 << 15)]
        _mix[(triton.cdiv(n, block), len(some))](at, weights, part, len(matrices), n, stride, some, B=block, WIDE=wide)
