torchrun --nproc_per_node 6 train_ppo.py \
  --pretrain /models/l3-8b-sft --reward_pretrain /models/l3-8b-rm \
  --micro_train_batch_size 4 --train_batch_size 256 \
  --micro_rollout_batch_size 4 --rollout_batch_size 1024 \
  --max_epochs 1 --prompt_max_len 1024 --generate_max_len 1024 \
  --zero_stage 2 --bf16 --actor_learning_rate 5e-7 --critic_learning_rate 9e-6 \
  --init_kl_coef 0.01 --prompt_data prompts_mix_v3 --flash_attn --gradient_checkpointing
