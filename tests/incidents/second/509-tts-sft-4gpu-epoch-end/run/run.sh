export CUDA_VISIBLE_DEVICES=0,1,2,3
torchrun --nnodes=1 --nproc_per_node=4 --rdzv_id=1986 --rdzv_backend=c10d --rdzv_endpoint=localhost:0 \
  cosyvoice/bin/train.py --train_engine torch_ddp --config conf/sft.yaml \
  --train_data data/sft/parts --cv_data data/sft/dev.list --model llm \
  --checkpoint pretrained/llm.pt --model_dir exp/sft/llm --ddp.dist_backend nccl \
  --num_workers 2 --prefetch 100 --timeout 60
