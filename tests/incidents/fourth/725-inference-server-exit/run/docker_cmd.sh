nvidia-docker run --rm --shm-size=1g --ulimit memlock=-1 --ulimit stack=67108864 \
  -p8000:8000 -p8001:8001 -p8002:8002 -v/srv/trtis/models:/models \
  nvcr.io/nvidia/tensorrtserver:19.09-py3 trtserver --model-repository=/models
