"""Metrics as training programs print them: every shape with its steps, names and units."""

# ruff: noqa: E501 - log lines stand as they are printed

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from rca.ingest.training_metrics.pairs import pairs

Point = tuple[int | None, float]

SHAPES: list[tuple[str, str, Mapping[str, Sequence[Point]]]] = [
    (
        "transformers with a bar for every step",
        "  0%|          | 0/412 [00:00<?, ?it/s]\n"
        "  0%|          | 1/412 [00:22<2:33:30, 22.41s/it]\n"
        "{'loss': 2.09, 'learning_rate': 0.0, 'epoch': 0.01}\n"
        "  0%|          | 2/412 [00:44<2:33:30, 22.41s/it]\n"
        "{'loss': 1.99, 'learning_rate': 1e-06, 'epoch': 0.02}\n",
        {"loss": [(1, 2.09), (2, 1.99)], "learning_rate": [(1, 0.0), (2, 1e-6)], "step_time": [(1, 22.41), (2, 22.41)]},
    ),
    (
        "transformers with quoted numbers, nan and numpy scalars",
        "{'loss': '1.905', 'grad_norm': 'nan', 'learning_rate': '5.556e-07', 'epoch': '0.1'}\n"
        "{'loss': np.float64(2.1), 'grad_norm': inf, 'learning_rate': 0.0002, 'epoch': 0.2}\n",
        {"loss": [(None, 1.905), (None, 2.1)], "grad_norm": [(None, math.nan), (None, math.inf)]},
    ),
    (
        "transformers that logs every ten steps and draws few bars",
        "  0%|          | 0/1250 [00:00<?, ?it/s]\n"
        + "".join(f"{{'loss': {9 - k / 10}, 'epoch': 0.{k}}}\n" for k in range(1, 6))
        + "  4%|4         | 50/1250 [05:05<2:02:00,  6.10s/it]\n"
        + "".join(f"{{'loss': {9 - k / 10}, 'epoch': 0.{k}}}\n" for k in range(6, 9))
        + "  8%|8         | 80/1250 [08:05<2:02:00,  6.10s/it]\n",
        {"loss": [(10 * k, 9 - k / 10) for k in range(1, 9)]},
    ),
    (
        "ESPnet: the epoch and the batches that a mean covers",
        "[n1] 2023-02-11 09:10:31,214 (trainer:720) INFO: 1epoch:train:1-50batch: iter_time=1.1e-03, loss=80.1, lr0=1e-06\n"
        "[n1] 2023-02-11 09:11:31,214 (trainer:720) INFO: 1epoch:train:51-100batch: iter_time=1.1e-03, loss=nan, lr0=2e-06\n"
        "[n1] 2023-02-11 09:12:31,214 (trainer:720) INFO: 2epoch:train:1-50batch: iter_time=1.1e-03, loss=70.5, lr0=3e-06\n",
        {
            "loss": [(50, 80.1), (100, math.nan), (150, 70.5)],
            "learning_rate": [(50, 1e-06), (100, 2e-06), (150, 3e-06)],
        },
    ),
    (
        "wenet: the epoch and the batch within it, and the score of an epoch joined to its name",
        "2024-05-02 10:02:31,725 INFO Epoch 0 TRAIN info lr 0.0001 rank 0\n"
        "2024-05-02 10:02:54,275 DEBUG TRAIN Batch 0/100 loss 4.135698 acc 0.19 lr 0.0004 grad_norm 1.539 rank 0\n"
        "2024-05-02 10:04:54,275 DEBUG TRAIN Batch 0/200 loss 4.035698 acc 0.20 lr 0.0008 grad_norm 1.439 rank 0\n"
        "2024-05-02 10:05:06,311 DEBUG CV Batch 0/100 loss 4.3 acc 0.21  rank 0\n"
        "2024-05-02 10:05:06,311 INFO Epoch 0 Step 240 CV info lr 0.0001 0 loss_4.2332923544258465 acc_0.1922 rank 0\n"
        "2024-05-02 10:06:54,275 DEBUG TRAIN Batch 1/100 loss 3.9 acc 0.21 lr 0.0008 grad_norm 1.3 rank 0\n",
        {
            "loss": [(100, 4.135698), (200, 4.035698), (340, 3.9)],
            "eval_loss": [(200, 4.3), (240, 4.2332923544258465)],
            "eval_accuracy": [(200, 0.21), (240, 0.1922)],
        },
    ),
    (
        "losses of an epoch on lines of their own, with a dot behind the short word",
        "Epoch: 01 | Time: 0m 31s\n\tTrain Loss: 5.052 | Train PPL: 156.386\n\t Val. Loss: 4.921 |  Val. PPL: 137.1\n"
        "Epoch: 02 | Time: 0m 31s\n\tTrain Loss: 4.052 | Train PPL: 57.5\n\t Val. Loss: 4.521 |  Val. PPL: 91.9\n",
        {"loss": [(None, 5.052), (None, 4.052)], "eval_loss": [(None, 4.921), (None, 4.521)]},
    ),
    (
        "a bar about the data of a split counts no steps",
        "train: Scanning /data/labels/train.cache... 4118 images, 3 corrupt: 100%|###| 4187/4187 [00:00<?, ?it/s]\n"
        "Tokenizing train dataset:  50%|#####     | 20000/40000 [00:10<00:10, 2000.0it/s]\n"
        "step 1 loss 2.0\nstep 2 loss 1.9\n",
        {"loss": [(1, 2.0), (2, 1.9)]},
    ),
    (
        "evaluation and summary of transformers",
        "100%|##########| 20/20 [00:40<00:00,  2.00s/it]\n"
        "{'eval_loss': 1.25, 'eval_accuracy': 0.5, 'eval_runtime': 9.5, 'epoch': 1.0}\n"
        "{'train_runtime': 40.0, 'train_samples_per_second': 2.5, 'train_loss': 1.5, 'epoch': 1.0}\n",
        {"eval_loss": [(20, 1.25)], "eval_accuracy": [(20, 0.5)], "summary.train_loss": [(20, 1.5)], "loss": []},
    ),
    (
        "Lightning bars",
        "Epoch 0:  41%|####      | 87/212 [00:11<00:16,  7.50it/s, v_num=3, train_loss=0.683]\r"
        "Epoch 0: 100%|##########| 212/212 [00:27<00:00,  8.00it/s, v_num=3, train_loss=0.471, val_loss=0.490]\n"
        "Epoch 1:   0%|          | 4/212 [00:27<00:00,  8.00it/s, v_num=3, train_loss=0.428]\n",
        {
            "loss": [(87, 0.683), (212, 0.471), (216, 0.428)],
            "eval_loss": [(212, 0.490)],
            "step_time": [(87, 1 / 7.5), (212, 0.125), (216, 0.125)],
        },
    ),
    (
        "the checkpoint message of Lightning",
        "Epoch 0, global step 20000: 'val_loss' reached 3.91000 (best 3.91000), saving model to 'x.ckpt' as top 1\n",
        {"eval_loss": [(20000, 3.91)]},
    ),
    (
        "Megatron-LM",
        " iteration       10/    1000 | consumed samples:         1024 | elapsed time per iteration (ms): 1500.0 | "
        "learning rate: 1.875E-05 | global batch size:  1024 | lm loss: 1.244238E+01 | loss scale: 4096.0 | "
        "grad norm: 67.593 | number of skipped iterations:   0 | number of nan iterations:   0 |\n",
        {
            "loss": [(10, 12.44238)],
            "step_time": [(10, 1.5)],
            "learning_rate": [(10, 1.875e-5)],
            "loss_scale": [(10, 4096.0)],
            "grad_norm": [(10, 67.593)],
        },
    ),
    (
        "the validation line of Megatron-LM",
        "iteration 90/ 100 | lm loss: 2.5E+00 |\n"
        "validation loss at iteration 100 | lm loss value: 8.5E+00 | lm loss PPL: 5.3E+03 |\n",
        {"eval_loss": [(100, 8.5)], "loss": [(90, 2.5)]},
    ),
    (
        "DeepSpeed",
        "[2023-04-18 02:03:40,386] [INFO] [logging.py:96:log_dist] [Rank 0] step=1330, skipped=24, "
        "lr=[8.9e-06, 8.9e-06], mom=[(0.9, 0.95), (0.9, 0.95)]\n"
        "[2023-04-18 02:03:40,414] [INFO] [timer.py:199:stop] epoch=2/micro_step=410/global_step=1330, "
        "RunningAvgSamplesPerSec=171.7, CurrSamplesPerSec=171.3, MemAllocated=3.96GB, MaxMemAllocated=22.95GB\n",
        {"learning_rate": [(1330, 8.9e-6)], "throughput": [(1330, 171.3)], "memory_allocated": [(1330, 3.96)]},
    ),
    (
        "loss scales of DeepSpeed and Apex",
        "step 5 loss 2.5\n"
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768\n"
        "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 32768, but hysteresis is 2. Reducing hysteresis to 1\n"
        "Reducing dynamic loss scale from 1024.0 to 512.0\n"
        "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 256.0\n",
        {"loss_scale": [(5, 32768), (5, 32768), (5, 512), (5, 256)]},
    ),
    (
        "nanoGPT",
        "step 0: train loss 4.2000, val loss 4.1000\niter 10: loss 3.4000, time 20.00ms, mfu 3.00%\n",
        {"loss": [(0, 4.2), (10, 3.4)], "eval_loss": [(0, 4.1)], "step_time": [(10, 0.02)], "mfu": [(10, 3.0)]},
    ),
    (
        "torchtune",
        "1|12|Loss: 1.2500: 100%|##########| 12/12 [00:10<00:00,  1.20it/s]\n"
        "2|13|Loss: 1.1500:   8%|#         | 1/12 [00:10<00:00,  1.20it/s]\n",
        {"loss": [(12, 1.25), (13, 1.15)]},
    ),
    (
        "torchtitan",
        "[rank0]:[titan] 2025-05-20 03:11:21,401 - root - INFO - \x1b[31mstep: 20  \x1b[32mloss:  8.8918  "
        "\x1b[38;2;180;60;0mgrad_norm:  2.5177  \x1b[38;2;54;234;195mmemory: 61.07GiB(64.30%)  \x1b[34mtps: 12,645  "
        "\x1b[36mtflops: 103.19  \x1b[35mmfu: 33.43%\x1b[39m\n",
        {
            "loss": [(20, 8.8918)],
            "grad_norm": [(20, 2.5177)],
            "memory_allocated": [(20, 61.07)],
            "throughput": [(20, 12645)],
            "mfu": [(20, 33.43)],
        },
    ),
    (
        "fairseq as JSON",
        '2021-01-01 00:00:00 | INFO | train_inner | {"epoch": 1, "update": 0.1, "loss": "9.1", "ppl": "550", '
        '"wps": "1000", "num_updates": "100", "lr": "5e-05", "gnorm": "2.5", "train_wall": "30"}\n',
        {"loss": [(100, 9.1)], "learning_rate": [(100, 5e-5)], "grad_norm": [(100, 2.5)], "throughput": [(100, 1000)]},
    ),
    (
        "fairseq in one line",
        "| epoch 001:     10 / 100 loss=10.2, nll_loss=9.9, ppl=955, wps=1000, num_updates=11, lr=5e-05, gnorm=3.5\n",
        {"loss": [(11, 10.2)], "learning_rate": [(11, 5e-5)], "grad_norm": [(11, 3.5)]},
    ),
    (
        "llm.c",
        "step   10/100 | loss 3.400000 (+nanz)| norm 1.2000 (+nanz)| lr 3.00e-04 | 100.00 ms | 45.1% A100 MFU | 123456 tok/s\n",
        {
            "loss": [(10, 3.4)],
            "grad_norm": [(10, 1.2)],
            "learning_rate": [(10, 3e-4)],
            "step_time": [(10, 0.1)],
            "throughput": [(10, 123456)],
        },
    ),
    (
        "llm.c log files",
        "s:0 tel:11.009\ns:0 trl:11.009 lr:0.000001 norm:15.37\ns:250 trl:4.5 lr:0.0003 norm:0.24\n",
        {"eval_loss": [(0, 11.009)], "loss": [(0, 11.009), (250, 4.5)], "grad_norm": [(0, 15.37), (250, 0.24)]},
    ),
    (
        "modded-nanogpt",
        "step:0/1480 val_loss:10.8 train_time:0ms step_avg:nanms\n"
        "step:10/1480 train_loss:4.1 train_time:1000ms step_avg:100.00ms\n",
        {"eval_loss": [(0, 10.8)], "loss": [(10, 4.1)], "step_time": [(0, math.nan), (10, 0.1)]},
    ),
    (
        "torchvision and DETR",
        "Epoch: [1]  [  10/2031]  eta: 15:49  lr: 0.002000  loss: 37.1221 (36.5198)  grad_norm: 39.04  time: 0.4687  "
        "data: 0.0121  max mem: 6312\n",
        {
            "loss": [(10, 37.1221)],
            "learning_rate": [(10, 0.002)],
            "step_time": [(10, 0.4687)],
            "data_time": [(10, 0.0121)],
            "memory_allocated": [(10, 6312 / 1024)],
        },
    ),
    (
        "the ImageNet example",
        "Epoch: [0][   0/5005]\tTime 10.027 (10.027)\tData  9.810 ( 9.810)\tLoss 7.0400e+00 (7.0200e+00)\tAcc@1   0.75 (  0.00)\n"
        "Epoch: [0][  10/5005]\tTime  1.551 ( 5.789)\tData  1.333 ( 5.572)\tLoss 7.0309e+00 (7.0150e+00)\tAcc@1   0.79 (  0.02)\n"
        "Epoch: [1][  10/5005]\tTime  1.551 ( 5.789)\tData  1.333 ( 5.572)\tLoss 6.0309e+00 (7.0150e+00)\tAcc@1   0.79 (  0.02)\n",
        {"loss": [(0, 7.04), (10, 7.0309), (5015, 6.0309)], "data_time": [(0, 9.81), (10, 1.333), (5015, 1.333)]},
    ),
    (
        "timm",
        "Train: 0 [  50/1251 (  4%)]  Loss: 6.93 (6.94)  Time: 0.40s, 640/s  LR: 1.000e-06  Data: 0.010 (0.020)\n"
        "Train: 1 [   0/1251 (  0%)]  Loss: 6.83 (6.83)  Time: 0.40s, 640/s  LR: 1.000e-05  Data: 0.010 (0.020)\n",
        {
            "loss": [(50, 6.93), (1251, 6.83)],
            "step_time": [(50, 0.4), (1251, 0.4)],
            "learning_rate": [(50, 1e-6), (1251, 1e-5)],
        },
    ),
    (
        "open_clip",
        "2025-02-02,10:00:00 | INFO | Train Epoch: 0 [   4096/120000 (3%)] Data (t): 3.953 Batch (t): 4.612, 911.2/s, 113.9/s/gpu "
        "LR: 0.000100 Logit Scale: 14.286 Loss: 8.2000 (8.3000)\n",
        {"data_time": [(4096, 3.953)], "step_time": [(4096, 4.612)]},
    ),
    (
        "PaddleDetection",
        "[02/02 10:00:00] ppdet.engine INFO: Epoch: [0] [  50/1251] learning_rate: 0.000100 loss: 2.1 eta: 10:00:00 "
        "batch_cost: 0.8123 data_cost: 0.7010 ips: 9.8 images/s\n",
        {"loss": [(50, 2.1)], "data_time": [(50, 0.701)], "step_time": [(50, 0.8123)]},
    ),
    (
        "BasicSR",
        "2025-02-02 10:00:00,000 INFO: [x4..][epoch:  0, iter:     200, lr:(2.000e-04,)] [eta: 5 days, 1:00:00, "
        "time (data): 0.812 (0.701)] l_pix: 3.1000e-02 \n",
        {"data_time": [(200, 0.701)], "step_time": [(200, 0.812)]},
    ),
    (
        "mmengine",
        "2024-01-01 00:00:00 - mmengine - INFO - Epoch(train)  [1][  50/7330]  lr: 2.0000e-05  eta: 1 day, 2:03:04  "
        "time: 0.5000  data_time: 0.0100  memory: 5120  loss: 1.2000\n",
        {"loss": [(50, 1.2)], "step_time": [(50, 0.5)], "data_time": [(50, 0.01)], "memory_allocated": [(50, 5.0)]},
    ),
    (
        "mmengine that counts iterations",
        "2024/01/01 00:00:00 - mmengine - INFO - Iter(train) [   50/80000]  lr: 9.9e-03  eta: 10:59:11  time: 0.4839  "
        "data_time: 0.0062  memory: 9216  loss: 3.3696  decode.acc_seg: 40.9\n",
        {"loss": [(50, 3.3696)], "step_time": [(50, 0.4839)], "memory_allocated": [(50, 9.0)]},
    ),
    (
        "detectron2",
        "[10/22 04:15:57 d2.utils.events]:  eta: 1:00:00  iter: 19  total_loss: 9.6  loss_cls: 4.3  time: 0.5  "
        "data_time: 0.01  lr: 1.9e-05  max_mem: 2987M\n",
        {"loss": [(19, 9.6)], "loss_cls": [(19, 4.3)], "step_time": [(19, 0.5)], "learning_rate": [(19, 1.9e-5)]},
    ),
    (
        "Keras",
        "Epoch 1/10\n 100/1875 [=>............................] - ETA: 5s - loss: 0.5000 - accuracy: 0.8000\r"
        "1875/1875 [==============================] - 6s 3ms/step - loss: 0.2000 - accuracy: 0.9000 - val_loss: 0.1500\n",
        {"loss": [(100, 0.5), (1875, 0.2)], "accuracy": [(100, 0.8), (1875, 0.9)], "eval_loss": [(1875, 0.15)]},
    ),
    (
        "Keras with one line an epoch",
        "Epoch 1/10\n37/37 - 5s - 150ms/step - accuracy: 0.8000 - loss: 0.2000 - val_loss: 0.1500\n"
        "Epoch 2/10\n37/37 - 5s - loss: 0.1000 - accuracy: 0.9000 - val_loss: 0.1400 - 5s/epoch - 150ms/step\n"
        "9/9 - 1s - 96ms/step - accuracy: 0.6923 - loss: 2.7391\n",
        {
            "loss": [(37, 0.2), (74, 0.1)],
            "accuracy": [(37, 0.8), (74, 0.9)],
            "eval_loss": [(37, 0.15), (74, 0.14), (74, 2.7391)],
        },
    ),
    (
        "one loss under the names of several scripts",
        "step 1 step_loss=3.5 lr=0.1\nstep 2 avr_loss=3.4 lr=0.1\nstep 3 loss.avg: 3.3 lr=0.1\n"
        "step 4 loss: 3.2 avg_loss: 3.6\nstep 5 box_loss: 1.0 loss: 3.1\n",
        {"loss": [(1, 3.5), (2, 3.4), (3, 3.3), (4, 3.2), (5, 3.1)], "box_loss": [(5, 1.0)]},
    ),
    (
        "plain prints",
        "step 12 loss 3.4\nstep 13, loss=3.3, lr=0.001\n[  500] loss 3.200  0.835 s/step\n[510] loss=3.1 |g|=1.17\n",
        {
            "loss": [(12, 3.4), (13, 3.3), (500, 3.2), (510, 3.1)],
            "grad_norm": [(510, 1.17)],
            "step_time": [(500, 0.835)],
        },
    ),
    (
        "epochs and steps in one line, counted within the epoch",
        "epoch 0 step 300/400 loss 3.0\nepoch 1 step 100/400 loss 2.0\nepoch 2 step 0/400 loss 1.0\n",
        {"loss": [(300, 3.0), (500, 2.0), (800, 1.0)]},
    ),
    (
        "epochs and steps in one line, counted over the run",
        "epoch 1 step 300 loss 3.0\nepoch 2 step 700 loss 2.0\nepoch 3 step 1100 loss 1.0\n",
        {"loss": [(300, 3.0), (700, 2.0), (1100, 1.0)]},
    ),
    (
        "epochs only",
        "[Epoch : 1/40] src_loss 1.6400 src_acc 56.04\n[Epoch : 2/40] src_loss 1.5400 src_acc 57.04\n",
        {"src_loss": [(1, 1.64), (2, 1.54)], "src_acc": [(1, 56.04), (2, 57.04)]},
    ),
    (
        "epoch summaries after steps",
        "step 100 loss 2.0\nEpoch 1/3, train loss 2.1, val loss 2.2, val acc 0.5\nstep 200 loss 1.0\n",
        {"loss": [(100, 2.0), (100, 2.1), (200, 1.0)], "eval_loss": [(100, 2.2)], "eval_accuracy": [(100, 0.5)]},
    ),
    (
        "evaluation with its own batches",
        "step 100 loss 2.0\nTest: [ 10/100]\tTime 0.1 (0.1)\tLoss 1.5 (1.6)\tAcc@1 50.0 (50.0)\nstep 110 loss 1.9\n",
        {"loss": [(100, 2.0), (110, 1.9)], "eval_loss": [(100, 1.5)]},
    ),
    (
        "a number in front of a unit that the next number belongs to",
        "13:00:58 step     78 loss 3.5064 it/s 1.25 tok/s/gpu 21545 data_wait 1.5ms comm 9.7%\n",
        {"loss": [(78, 3.5064)], "step_time": [(78, 0.8)], "throughput": [(78, 21545)], "data_time": [(78, 0.0015)]},
    ),
    (
        "comma lists with a speed at the end",
        "ep 7 train, step 4120, ctc 0.624, ce 0.823, mem_usage:cuda:6 39.1GB, 1.116 sec/step, elapsed 1:16:20\n",
        {"ctc": [(4120, 0.624)], "ce": [(4120, 0.823)], "step_time": [(4120, 1.116)]},
    ),
    (
        "not-a-numbers",
        "step 1 loss nan grad_norm inf\nstep 2 loss NaN grad_norm -inf\n",
        {"loss": [(1, math.nan), (2, math.nan)], "grad_norm": [(1, math.inf), (2, -math.inf)]},
    ),
    (
        "a perplexity of its own",
        "global_step=460, lr=[1e-5], loss=2.0\nppl: 4998.29\n",
        {"perplexity": [(460, 4998.29)]},
    ),
    (
        "SGLang",
        "Decode batch. #running-req: 1, #token: 42, token usage: 0.25, cuda graph: True, "
        "gen throughput (token/s): 727.63, #queue-req: 3\n",
        {
            "generation_throughput": [(None, 727.63)],
            "kv_cache_usage": [(None, 0.25)],
            "requests_running": [(None, 1)],
            "requests_waiting": [(None, 3)],
        },
    ),
    (
        "text-generation-inference",
        '2024-06-28T12:30:44.811042Z  INFO generate{total_time="1.25s" validation_time="1ms" queue_time="500µs" '
        'inference_time="1.2s" time_per_token="25.5ms" seed="None"}: router: Success\n',
        {"ms_per_token": [(None, 25.5)], "latency_s": [(None, 1.25)], "queue_s": [(None, 0.0005)]},
    ),
    (
        "parts of a step in whole milliseconds, with a qualifier behind a name",
        "it 00080 | fwd_bwd 1021 ms | grad_sync(exposed) 63 ms | total 1152 ms | loss 2.3\n"
        "it 00081 | fwd_bwd 1020 ms | grad_sync(exposed) 64 ms | total 1151 ms | loss 2.2\n",
        {
            "fwd_bwd": [(80, 1021), (81, 1020)],
            "grad_sync(exposed)": [(80, 63), (81, 64)],
            "total": [(80, 1152), (81, 1151)],
            "loss": [(80, 2.3), (81, 2.2)],
        },
    ),
    (
        "the word step before a short time is its time",
        "iter   20  step 424.1 ms  loss 2.31\niter   40  step 431.7 ms  loss 2.22\n",
        {"step_time": [(20, 0.4241), (40, 0.4317)], "loss": [(20, 2.31), (40, 2.22)]},
    ),
    (
        "sentences a second, and the place in the source in front",
        "I0202 10:00:00.123456 140210 decode.py:88] batch=1 32 sentences (0.51 sent/s)\n"
        "I0202 10:01:00.123456 140210 decode.py:88] batch=2 32 sentences (0.52 sent/s)\n",
        {"throughput": [(1, 0.51), (2, 0.52)], "decode.py": []},
    ),
    (
        "batches of one accumulated step",
        "micro 1/32 loss 1.5 mem peak=26.5 GiB\nmicro 2/32 loss 1.4 mem peak=27.5 GiB\n",
        {"loss": [(None, 1.5), (None, 1.4)], "memory_allocated": [(None, 26.5), (None, 27.5)]},
    ),
    (
        "no metrics",
        "for step in range(10):\n    loss = model(x)\nlr=0.1 is the default\nseed 1234 version 2.5\n"
        "annotation check: images 8124, boxes 61330\nprint(f'step:{step} loss:{loss}')\nsaved step 100 to out/step_100.pt\n",
        {"loss": [], "learning_rate": [], "step_time": []},
    ),
]


@pytest.mark.parametrize(("text", "expected"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_shape(read: Callable, text: str, expected: Mapping[str, Sequence[Point]]) -> None:
    found = read("train.log", text)
    for name, points in expected.items():
        got = found.metrics(name)
        assert [step for step, _ in got] == [step for step, _ in points], name
        assert [value for _, value in got] == pytest.approx([value for _, value in points], nan_ok=True), name


@pytest.mark.parametrize("text", [row[1] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_the_same_behind_a_rank_tag(read: Callable, text: str) -> None:
    plain = read("train.log", text)
    tagged = read("train.log", "".join(f"[rank3]: {line}\n" for line in text.splitlines()))
    rows = [row for row in plain.table.table.to_pylist() if row["kind"] == "metric"]
    for name in {row["name"] for row in rows} & {"loss", "eval_loss", "learning_rate"}:
        there, here = tagged.metrics(name), plain.metrics(name)
        assert [step for step, _ in there] == [step for step, _ in here]
        assert [value for _, value in there] == pytest.approx([value for _, value in here], nan_ok=True)
    if "ank 0]" not in text and "rank0]" not in text:
        assert {row["rank"] for row in tagged.table.table.to_pylist() if row["kind"] == "metric"} <= {3}


def test_of_several_losses_in_a_line_the_one_called_loss_is_the_loss(read: Callable) -> None:
    text = "".join(f"| Iter: {n} | lm_loss: 3.{n} | d_loss: nan | loss: 9.{n} | lr: 1.0e-6\n" for n in range(1, 6))
    table = read("train.log", text).table
    assert list(table.metric("loss").value) == [9.1, 9.2, 9.3, 9.4, 9.5]
    assert list(table.metric("lm_loss").value) == [3.1, 3.2, 3.3, 3.4, 3.5]


@pytest.mark.parametrize(
    ("line", "loss", "other"),
    [
        ("step   100 | train 3.2114 | lr 1.00e-03", 3.2114, None),
        ("Epoch 2: train 1.2031, val 1.3033", 1.2031, 1.3033),
        ("epoch 3 train 0.9112 val 0.8633", None, None),
        ("epoch 3 train 91.120 val 86.330", None, None),
        ("epoch 3 accuracy train 1.0000 val 1.0000", None, None),
    ],
)
def test_bare_splits_are_losses(line: str, loss: float | None, other: float | None) -> None:
    found = {pair.name: pair.value for pair in pairs(line)}
    assert (found.get("loss"), found.get("eval_loss")) == (loss, other)


@pytest.mark.parametrize("scale", ["1024.0-", "1e+", "1.2.3", "....", "+", "1e", "1024.", "1e999"])
def test_a_loss_scale_that_is_cut_or_garbled_costs_no_log(read: Callable, scale: str) -> None:
    found = read("train.log", f"step 5 loss 2.5\nReducing dynamic loss scale from 2048.0 to {scale}\nstep 6 loss 2.4\n")
    assert found.metrics("loss") == [(5, 2.5), (6, 2.4)]


def test_settings_in_a_line_are_no_progress(read: Any) -> None:
    found = read(
        "train.log", "vocab 50257 block 512 batch 32 lr 1e-3\nstep 0 loss 10.9 lr 1e-3\nstep 5 loss 9.1 lr 1e-3\n"
    )
    assert found.metrics("learning_rate") == [(0, 1e-3), (5, 1e-3)]


@pytest.mark.parametrize(
    ("line", "train", "held_out"),
    [
        ("epoch 3 train loss 0.31 acc 0.91 | val loss 0.42 acc 0.87", 0.91, 0.87),
        ("epoch 3 loss: 0.31 - accuracy: 0.91 - val_loss: 0.42 - val_accuracy: 0.87", 0.91, 0.87),
        ("epoch 3 val loss 0.42 acc 0.87", 0.87, None),
    ],
)
def test_the_second_accuracy_is_that_of_the_second_loss(line: str, train: float, held_out: float | None) -> None:
    found = {pair.name: pair.value for pair in pairs(line)}
    assert (found.get("accuracy"), found.get("eval_accuracy")) == (train, held_out)


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("Step 50/100000; acc: 3.2; ppl: 1234.5; xent: 7.10; lr: 0.00001; 12 sec;", "loss", 7.1),
        ("Training epoch 0, iteration 3/999 | lr: 1.5e-07 | global_step: 3 | reduced_train_loss: 10.91", "loss", 10.91),
        ("[10]\ttrain-logloss:0.41000\tvalid-logloss:0.52000", "eval_loss", 0.52),
        ("Train Epoch: 0 [512/9999 (5%)] Logit Scale: 14.286 Loss: 8.31 (8.35)", "logit_scale", 14.286),
    ],
)
def test_names_of_many_trainers(line: str, name: str, value: float) -> None:
    assert {pair.name: pair.value for pair in pairs(line)}[name] == value
