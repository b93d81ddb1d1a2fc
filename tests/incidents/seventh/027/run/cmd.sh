accelerate launch --mixed_precision=fp16 train_text_to_image_lora_sdxl.py \
  --pretrained_model_name_or_path=/models/sdxl-base-1.0 \
  --train_data_dir=./mugs --resolution=1024 --train_batch_size=1 --max_train_steps=500 \
  --learning_rate=1e-4 --lr_scheduler=constant --output_dir=out-xl
