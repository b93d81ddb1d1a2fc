accelerate launch train_dreambooth_lora.py \
  --pretrained_model_name_or_path=base-sd15 \
  --instance_data_dir=mug \
  --output_dir=out/mug-lora \
  --instance_prompt="a photo of zwk mug" \
  --validation_prompt="a photo of zwk mug on a desk" \
  --validation_epochs=1 \
  --mixed_precision="fp16" \
  --resolution=512 --train_batch_size=1 --learning_rate=1e-4 \
  --lr_scheduler=constant --lr_warmup_steps=0 --max_train_steps=500 --seed=0
