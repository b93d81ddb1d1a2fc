"""Lines with secrets of every shape, put together at run time so that no real-looking secret stands in the repository.

Each item is (the secret, a line that holds it). The secrets are alphabets and counters: they open nothing.
"""

from __future__ import annotations

import base64
import json

UPPER = "QWERTYUIOPASDFGHJKLZXCVBNM" * 4
LOWER = UPPER.lower()
DIGITS = "0123456789" * 8
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0fG" * 4
HEX = "0f1e2d3c4b5a69788796a5b4c3d2e1f0" * 4


def _jwt() -> str:
    parts = [json.dumps({"alg": "HS256", "typ": "JWT"}), json.dumps({"sub": "1234567890", "iat": 1516239022})]
    body = ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)
    return f"{body}.{MIXED[:43]}"


def secrets() -> list[tuple[str, str]]:
    """Secrets with the lines they stand in."""
    aws = "AK" + "IA" + UPPER[:12] + DIGITS[2:6]
    aws_secret = MIXED[:38] + "/+"
    shapes = [
        (aws, "INFO boto3: using credentials {}"),
        (aws, "AWS_ACCESS_KEY_ID={}"),
        (aws_secret, "aws_secret_access_key = '{}'"),
        (aws_secret, "export AWS_SECRET_ACCESS_KEY={}"),
        (MIXED[:80], "AWS_SESSION_TOKEN={}"),
        (MIXED[:86] + "==", "DefaultEndpointsProtocol=https;AccountName=a;AccountKey={}"),
        ("ab1" + "8Q~" + MIXED[:34], "azure client credential {}"),
        ("gh" + "p_" + MIXED[:36], "remote: {} is not allowed"),
        ("gh" + "s_" + MIXED[:36], "https://x-access-token:{}@github.com/o/r.git"),
        ("github" + "_pat_" + MIXED[:60], "GITHUB_TOKEN={}"),
        ("glpat" + "-" + MIXED[:20], "git clone https://oauth2:{}@gitlab.com/a/b"),
        ("glptt" + "-" + HEX[:40], "trigger {} used"),
        ("xox" + "b-" + "123456789012-123456789012-" + MIXED[:24].lower(), "slack: posting with {}"),
        ("https://hooks.slack." + "com/services/T" + UPPER[:8] + "/B" + UPPER[:8] + "/" + MIXED[:24], "callback {}"),
        ("sk" + "_live_" + MIXED[:24], "stripe {}"),
        ("sk-" + MIXED[:20] + "T3Blbk" + "FJ" + MIXED[20:40], "OPENAI_API_KEY={}"),
        ("sk-" + "proj-" + MIXED[:48], "openai.AuthenticationError: Incorrect API key provided: {}."),
        ("sk-" + "ant-api03-" + MIXED[:60], "x-api-key: {}"),
        ("hf" + "_" + MIXED[:34], "huggingface_hub: token {} is expired"),
        ("hf" + "_" + MIXED[:34], "HF_TOKEN={}"),
        ("api" + "_org_" + MIXED[:34], "login with {}"),
        (HEX[:40], "WANDB_API_KEY={}"),
        (HEX[:40], "wandb login {}"),
        (HEX[:40], "wandb: api key '{}' configured"),
        ("nvapi" + "-" + MIXED[:60], "NGC_API_KEY: {}"),
        ("r8" + "_" + MIXED[:37], "replicate token {}"),
        ("dapi" + HEX[:32], "databricks host uses {}"),
        ("gsk" + "_" + MIXED[:52], "groq {}"),
        ("AI" + "za" + MIXED[:35], "google key {}"),
        ("ya29" + "." + MIXED[:60], "gcloud token {}"),
        ("npm" + "_" + MIXED[:36], "//registry.npmjs.org/:_authToken={}"),
        ("pypi-" + "AgEIcHlwaS5vcmc" + MIXED[:80], "twine upload -p {}"),
        ("SG" + "." + MIXED[:22] + "." + MIXED[:43], "sendgrid {}"),
        ("dckr" + "_pat_" + MIXED[:27], "docker login with {}"),
        ("hvs" + "." + MIXED[:28], "VAULT: {}"),
        (_jwt(), "Cookie: session={}"),
        (_jwt(), "Authorization: Bearer {}"),
        (MIXED[:30], "authorization: token {}"),
        (base64.b64encode(b"someone:hunter2hunter2").decode(), "Authorization: Basic {}"),
        ("s3cr3t-Pa55", "postgresql://train:{}@db.example.com/runs"),
        (MIXED[:32], "https://{}@o1.ingest.example.com/2"),
        (HEX[:64], "https://bucket.s3.amazonaws.com/w.bin?X-Amz-Expires=3600&X-Amz-Signature={}&x=1"),
        (MIXED[:44] + "%3D", "https://acc.blob.core.windows.net/c/x?sv=2022&sig={}"),
        ("hunter2", "password={} user=train"),
        ("correct horse battery", 'db_password = "{}"'),
        (MIXED[:24], "'api_key': '{}', 'lr': 0.1"),
        (MIXED[:40], '"client_secret": "{}"'),
        (MIXED[:32], "--hub-token {} --max-steps 10"),
        (MIXED[:32], "neptune_api_token: {}"),
        (MIXED[:64], "{}"),
        (MIXED[:100], "-----BEGIN RSA PRIVATE " + "KEY-----\\n{}\\n-----END RSA PRIVATE " + "KEY-----"),
    ]
    return [(secret, line.replace("{}", secret)) for secret, line in shapes]


HARMLESS = [
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 (HEAD -> main)",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "model-00003-of-00007.safetensors: d41d8cd98f00b204e9800998ecf8427e",
    "Loading meta-llama/Llama-3.1-8B-Instruct at revision 0e9e39f249a16976918f6564b8830bc894c89659",
    "step 12000 loss 2.3410983 grad_norm 0.98127 lr 2.9999e-4 tokens/s 18273.123",
    "pad_token: <|endoftext|> eos_token_id: 128009 bos_token_id=128000",
    "special_tokens_map.json: {'pad_token': '[PAD]', 'unk_token': '[UNK]'}",
    "max_new_tokens=1024 min_tokens=0 num_tokens: 8388608",
    "tokenizer: LlamaTokenizerFast token_type_ids=None",
    "use_auth_token: True hub_token: None push_to_hub_token=None",
    "api_key=os.environ['OPENAI_API_KEY'] password=$DB_PASSWORD secret_key: ${SECRET}",
    "KeyError: 'attention_mask'",
    "key_padding_mask: torch.Size([8, 4096]) key=value",
    "sort_keys=True primary_key=sample_id foreign_key: batch",
    "RuntimeError: Error(s) in loading state_dict: Unexpected key(s): model.layers.31.self_attn.rotary_emb.inv_freq",
    "wandb: Syncing run dazzling-wood-114 run id 3kq7x2mn",
    "wandb: WARNING project 9fceb02d is archived",
    "nvidia-cublas-cu12==12.4.5.8 nvidia-curand-cu12==10.3.5.147 nvidia-cudnn-cu12==8.9.2.26",
    "NVIDIA-SMI 535.104.05 Driver Version: 535.104.05 CUDA Version: 12.2",
    "MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 listening on 0.0.0.0:8000",
    "requests.exceptions.ConnectionError: https://huggingface.co/api/models timed out",
    "See https://pytorch.org/docs/stable/notes/cuda.html and https://docs.vllm.ai/en/latest",
    "git clone git@github.com:pytorch/pytorch.git",
    "2026-03-01 12:00:00,123 [rank3]:[W315 19:22:08.532587508 ProcessGroupNCCL.cpp:1538] Warning",
    "c10d::ProcessGroupNCCL::WorkNCCL at::native::add 0x00007f8b4c0a1b2c",
    'File "/usr/lib/python3.11/threading.py", line 1045, in _bootstrap_inner',
    'File "/root/train.py", line 3, in <module> threading.local() torch.internal',
    'File "/home/ubuntu/train.py", line 10',
    "Permission denied (publickey,password).",
    "password authentication failed: please check the secret store",
    "00000000:3B:00.0 Off |                    0 | N/A   34C    P0",
    "tensor([0.1, 0.2], device='cuda:0') a@b matmul x @ y.T",
    "adapter@main.bin scale@0.5.pt",
    "AssertionError: sk-learn version risk-free hf_hub_download hf_transfer",
    "SK12 AC0 glm-4-9b gl-vit-large-patch14-224-imagenet21k",
    "UUID: GPU-8f6a1c2e-7f0a-4b7e-9a55-3f1f6a1b2c3d",
    "checkpoint saved: s3://ckpt-bucket/run-17/step_00012000",
]
"""Ordinary lines of runs; not one character of them may be lost."""
