accelerate launch --num_cpu_threads_per_process 8 train_network.py ^
 --pretrained_model_name_or_path=D:\sd\models\base.ckpt --train_data_dir=D:\sd\train ^
 --output_dir=D:\sd\out --output_name=mkz_v1 --resolution=512 --enable_bucket ^
 --network_module=networks.lora --network_dim=32 --train_batch_size=2 --learning_rate=1e-4 ^
 --max_train_epochs=10 --use_8bit_adam --xformers --mixed_precision=fp16 --cache_latents ^
 --gradient_checkpointing --save_model_as=safetensors --max_token_length=150
