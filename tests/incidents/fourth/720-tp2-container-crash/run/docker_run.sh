docker run --runtime nvidia --gpus all \
  -e NCCL_DEBUG=INFO -p 8000:8000 \
  -v /srv/models/chat-13b:/mnt/model/ \
  registry.lan/vllm:nightly \
  --host 0.0.0.0 --model /mnt/model/ --tensor-parallel-size 2
