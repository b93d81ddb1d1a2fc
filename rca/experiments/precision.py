"""Half precision as a GPU computes it, on a CPU. Imported in the child process only: loads torch.

`torch.autocast("cpu")` keeps fewer operations in fp32 than CUDA's does, and native half products on a CPU are 6-50x
slower than fp32. So a mode stands in for autocast: products get inputs rounded to the half type, run in fp32 and are
rounded when stored, as tensor cores do (backward too, where autograd repeats the casts); the functions that CUDA's
autocast runs in fp32 get fp32 inputs; everything else computes in the type that it is given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

_HALF = (torch.float16, torch.bfloat16)
_FLOATS = (torch.float32, *_HALF)


def _named(names: str) -> frozenset[Any]:
    """Return the functions of those names, as torch, its tensors and its functional module have them."""
    owners = (torch, torch.Tensor, torch.nn.functional)
    found = (getattr(owner, name, None) for name in names.split() for owner in owners)
    return frozenset(function for function in found if function is not None)


_PRODUCTS = _named(
    "matmul __matmul__ mm bmm mv addmm addmv addbmm baddbmm linear conv1d conv2d conv3d conv_transpose1d "
    "conv_transpose2d einsum scaled_dot_product_attention"
)
"""CUDA's autocast runs these in the half type."""
_FP32 = _named(
    "acos asin cosh cosine_embedding_loss cross_entropy cdist cumprod cumsum dist erfinv exp expm1 group_norm kl_div "
    "l1_loss layer_norm log log10 log1p log2 log_softmax mse_loss multi_margin_loss nll_loss norm normalize pow "
    "__pow__ prod reciprocal rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus sum tan"
)
"""CUDA's autocast runs these in fp32 (torch documentation, "CUDA Ops that can autocast to float32")."""


class AsOnGpu(TorchFunctionMode):
    """Autocast to `low` as CUDA does it."""

    def __init__(self, low: torch.dtype) -> None:
        super().__init__()
        self.low = low

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call one function."""
        kwargs = kwargs or {}
        if func in _PRODUCTS:
            result = func(*map(self._stored, args), **{name: self._stored(value) for name, value in kwargs.items()})
            return result.to(self.low) if isinstance(result, torch.Tensor) else result
        if func in _FP32:
            return func(*map(_widened, args), **{name: _widened(value) for name, value in kwargs.items()})
        return func(*args, **kwargs)

    def _stored(self, value: Any) -> Any:
        """Round to the half type and widen again: what fp32 arithmetic on stored half values sees."""
        if isinstance(value, torch.Tensor) and value.dtype in _FLOATS:
            return value.to(self.low).float()
        return value


class FullPrecisionList(TorchFunctionMode):
    """Only the fp32 half of it: on top of `torch.autocast("cpu")`, where the sizes count and not the numbers."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call one function."""
        kwargs = kwargs or {}
        if func in _FP32:
            return func(*map(_widened, args), **{name: _widened(value) for name, value in kwargs.items()})
        return func(*args, **kwargs)


def _widened(value: Any) -> Any:
    return value.float() if isinstance(value, torch.Tensor) and value.dtype in _HALF else value


@contextmanager
def forward_precision(precision: str, device: str) -> Iterator[None]:
    """Context of a forward pass: nothing for fp32, autocast as CUDA does it for fp16 and bf16."""
    if precision == "fp32":
        yield
        return
    low = torch.float16 if precision == "fp16" else torch.bfloat16
    with AsOnGpu(low) if device == "cpu" else torch.autocast(device, dtype=low):
        yield
