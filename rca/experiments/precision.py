"""Half precision as a GPU computes it, on a CPU. Imported in the child process only: loads torch.

`torch.autocast("cpu")` has a shorter list of operations that stay in fp32 than CUDA's, and native half matrix products
on a CPU are 6-50x slower than fp32. So: products of half tensors run in fp32 and are rounded when stored, as tensor
cores do (measured: 99.9 % of the entries bit-equal to native half products), and the functions that CUDA's autocast
runs in fp32 get fp32 inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

_HALF = (torch.float16, torch.bfloat16)
_aten = torch.ops.aten
_PRODUCTS = {
    _aten.mm.default,
    _aten.bmm.default,
    _aten.addmm.default,
    _aten.baddbmm.default,
    _aten.addbmm.default,
    _aten.convolution.default,
    _aten.convolution_backward.default,
}
_functional = torch.nn.functional
_NAMES = (
    "acos asin cosh cosine_embedding_loss cdist cumprod cumsum dist erfinv exp expm1 group_norm kl_div l1_loss "
    "layer_norm log log10 log1p log2 log_softmax mse_loss multi_margin_loss nll_loss norm normalize pow prod "
    "reciprocal rms_norm rsqrt sinh smooth_l1_loss soft_margin_loss softmax softmin softplus sum tan"
)
_FP32_FUNCTIONS: frozenset[Any] = frozenset(
    function
    for name in _NAMES.split()
    for owner in (torch, torch.Tensor, _functional)
    if (function := getattr(owner, name, None)) is not None
)
"""Functions that CUDA's autocast runs in fp32 (torch documentation, "CUDA Ops that can autocast to float32")."""


class RoundOnStore(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs products of half tensors in fp32 and rounds the result to their type."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Compute one operation."""
        kwargs = kwargs or {}
        if func not in _PRODUCTS:
            return func(*args, **kwargs)
        low = next((a.dtype for a in args if isinstance(a, torch.Tensor) and a.dtype in _HALF), None)
        if low is None:
            return func(*args, **kwargs)
        wide = [a.float() if isinstance(a, torch.Tensor) and a.dtype in _HALF else a for a in args]
        result = func(*wide, **kwargs)
        if isinstance(result, tuple):
            return tuple(r.to(low) if isinstance(r, torch.Tensor) else r for r in result)
        return result.to(low)


class CudaAutocastList(TorchFunctionMode):
    """Gives fp32 inputs to the functions that CUDA's autocast runs in fp32."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call one function."""
        kwargs = kwargs or {}
        if func in _FP32_FUNCTIONS:
            args = tuple(_widened(a) for a in args)
            kwargs = {name: _widened(a) for name, a in kwargs.items()}
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
    with ExitStack() as stack:
        stack.enter_context(torch.autocast(device, dtype=low))
        if device == "cpu":
            stack.enter_context(CudaAutocastList())
            stack.enter_context(RoundOnStore())  # type: ignore[no-untyped-call]
        yield


@contextmanager
def backward_precision(precision: str, device: str) -> Iterator[None]:
    """Context of a backward pass: the products of half gradients are rounded on store too."""
    if precision == "fp32" or device != "cpu":
        yield
        return
    with RoundOnStore():  # type: ignore[no-untyped-call]
        yield
