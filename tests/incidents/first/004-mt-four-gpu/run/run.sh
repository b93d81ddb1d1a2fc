#!/bin/bash
set -e
accelerate launch --multi_gpu --num_processes 4 train_mt.py \
  --max_train_steps 40000 --num_warmup_steps 2000 --learning_rate 5e-4 \
  --with_tracking --output_dir /exp/mt_ende
