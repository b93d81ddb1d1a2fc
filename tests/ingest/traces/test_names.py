from __future__ import annotations

import pytest

from rca.ingest.traces.names import Role, kind_of


@pytest.mark.parametrize(
    ("category", "name", "role"),
    [
        ("Kernel", "volta_sgemm_64x64_nt", Role.KERNEL),
        ("kernel", "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*)", Role.COMMUNICATION),
        ("kernel", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", Role.COMMUNICATION),
        ("kernel", "void vllm::cross_device_reduce_1stage<__half, 8>(...)", Role.COMMUNICATION),
        ("Memcpy", "Memcpy HtoD (Pageable -> Device)", Role.MEMCPY),
        ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", Role.MEMCPY),
        ("gpu_memset", "Memset (Device)", Role.MEMSET),
        ("Runtime", "cudaLaunchKernel", Role.RUNTIME),
        ("cuda_driver", "cuLaunchKernelEx", Role.RUNTIME),
        ("cuda_runtime", "hipLaunchKernel", Role.RUNTIME),
        ("Operator", "ProfilerStep#7", Role.STEP),
        ("user_annotation", "ProfilerStep#7", Role.STEP),
        ("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", Role.DATALOADER),
        ("Operator", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", Role.DATALOADER),
        ("user_annotation", "gloo:all_reduce", Role.COMMUNICATION),
        ("user_annotation", "nccl:all_reduce", Role.IGNORED),
        ("user_annotation", "Optimizer.step#AdamW.step", Role.CPU),
        ("user_annotation", "my whole epoch", Role.IGNORED),
        ("cpu_op", "aten::mm", Role.CPU),
        ("gpu_user_annotation", "ProfilerStep#7", Role.IGNORED),
        ("", "anything", Role.IGNORED),
    ],
)
def test_role(category: str, name: str, role: Role) -> None:
    assert kind_of(category, name).role is role


@pytest.mark.parametrize(
    "name",
    [
        "volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_tn",
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x64x16",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_32x6_nn_align8>(Params)",
        "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NNT",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off",
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<...>>>",
        "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt64x128x32_wt32x32x8",
        "Cijk_Ailk_Bljk_BBS_BH_MT32x32x64_MI16x16x16x1_SN_1LDSB0",
    ],
)
def test_kernels_on_matrix_units(name: str) -> None:
    assert kind_of("kernel", name).tensor_core
    assert kind_of("kernel", name).matmul


@pytest.mark.parametrize(
    ("name", "matmul"),
    [
        ("volta_sgemm_128x32_nt", True),
        ("ampere_sgemm_64x64_tn", True),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x128_8x4_tn_align1>(Params)", True),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(...)", True),
        ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1>(...)", True),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", False),
        ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false>(...)", False),
    ],
)
def test_kernels_on_ordinary_units(name: str, matmul: bool) -> None:
    kind = kind_of("kernel", name)
    assert not kind.tensor_core
    assert kind.matmul is matmul


def test_calls_of_the_host() -> None:
    assert kind_of("cuda_runtime", "cudaLaunchKernelExC").launch
    assert kind_of("cuda_runtime", "hipExtModuleLaunchKernel").launch
    assert kind_of("cuda_runtime", "cudaGraphLaunch").graph
    assert not kind_of("cuda_runtime", "cudaGraphLaunch").launch
    assert kind_of("cuda_runtime", "cudaStreamSynchronize").sync
    assert kind_of("cuda_driver", "cuStreamSynchronize").sync
    assert not kind_of("cuda_runtime", "cudaMemcpyAsync").sync
    assert kind_of("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)").to_host
    assert kind_of("cpu_op", "aten::_local_scalar_dense").item
