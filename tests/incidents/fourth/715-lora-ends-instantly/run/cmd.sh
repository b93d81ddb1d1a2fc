accelerate launch --num_cpu_threads_per_process 4 sdxl_train_network.py \
  --pretrained_model_name_or_path=/mnt/ckpt/xl_base.safetensors \
  --train_data_dir="/mnt/sets/lantern/" \
  --output_dir=/mnt/out/lantern --output_name=lantern_v1 \
  --resolution=1024,1024 --enable_bucket --train_batch_size=2 \
  --network_module=networks.lora --network_dim=32 --network_alpha=16 \
  --learning_rate=1e-4 --max_train_epochs=10 --mixed_precision=bf16 \
  --cache_latents --gradient_checkpointing --sdpa --seed=7
