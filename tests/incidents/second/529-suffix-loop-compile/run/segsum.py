import torch, time

N = 40
log_p = torch.randn(N, N, device="cuda")


@torch.compile
def accumulate(x, start, end):
    acc = x[start, start].clone()
    for j in range(start + 1, end):
        acc = acc + x[start, j] * 0.5
    return acc


for s in range(N):
    t0 = time.time()
    accumulate(log_p, s, N)
    torch.cuda.synchronize()
    print(f"call start={s} end={N}   {time.time() - t0:.3f} s")
