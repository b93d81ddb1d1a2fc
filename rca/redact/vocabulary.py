"""Words that decide what is a secret, a person or a machine, and what only looks like one."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of `text` as a set."""
    return frozenset(text.split())


TOKEN_OF = words(
    """access api auth bearer bot client clearml comet csrf databricks deploy docker dvc gh github gitlab gl hf hub
    huggingface id jenkins jira jwt kaggle login mlflow neptune ngc npm oauth personal private push pypi refresh
    registry secret service session slack sso user vault wandb webhook write read"""
)
"""What a secret token is for; `pad_token`, `image_token` and `max_new_tokens` are tokens of text."""

NOT_THE_VALUE = words("type name path file url len length count ids size index env var regex")
"""Last words of names that only describe a secret: `api_key_path`."""

OTHER_KEYS = words(
    """cache cell column dedup dict feature foreign group hash idempotency image input item map mask metric output
    partition primary public row run sample sort state weight"""
)
"""What a key is of that opens nothing: `CACHE_KEY`."""

HARMLESS_VALUES = words(
    "none null nil true false yes no undefined unset empty hidden redacted default required optional str string"
)

REFERENCES = ("$", "%", "<", "*", "~/", "./", "../", "os.", "env", "xxx", "...", "{{")
"""Beginnings of values that point to a secret kept elsewhere, or stand for one."""

NOT_A_DOMAIN = words(
    "bin bz2 cfg csv gguf git gz ini json log md npz onnx out pkl pt pth py safetensors sh so tar txt yaml yml zip"
)
"""File endings that a mail address cannot end with: `adapter@main.bin`."""

SHARED_ACCOUNTS = words(
    """admin anaconda3 app appuser azureuser centos conda data debian docker ec2-user jovyan miniconda3 node public root
    runner sagemaker-user share shared ubuntu user users vscode work worker workspace"""
)
"""Accounts of images and clouds, and folders beside home directories: they name no person."""

SPEAKERS = words("assistant bot human model system tool user")
"""Who speaks in a chat: no one's account."""

COMMON_FOLDERS = words(
    """apps bench build cache checkpoint checkpoints code config configs dataset datasets demo deploy devel develop
    experiment experiments host images infer inference jobs logs media model models notebook notebooks opt
    output outputs project projects repo research runs scripts server service source storage test tests tmp tools
    torch train trainer training venv weights"""
)
"""Names of folders: an account of this name is replaced in its home directory, but not wherever the word stands."""

PRIVATE_SERVICES = words(
    """artifactory bitbucket confluence corp git gitea gitlab grafana harbor internal intranet jenkins jira ldap minio
    mirror mlflow nexus prometheus proxy pypi registry s3 sso vault wandb wiki"""
)
"""First labels of services that a company runs for itself."""

PUBLIC_DOMAINS = words(
    """amazonaws.com anaconda.com anaconda.org anthropic.com apache.org arxiv.org azure.com conda.io debian.org
    docker.com docker.io example.com example.org gcr.io ghcr.io github.com github.io githubusercontent.com gitlab.com
    google.com googleapis.com hf.co huggingface.co json-schema.org kaggle.com kubernetes.io lightning.ai microsoft.com
    modelscope.cn nvidia.com openai.com pypi.org python.org pythonhosted.org pytorch.org quay.io ray.io readthedocs.io
    readthedocs.org stackoverflow.com tensorflow.org ubuntu.com vllm.ai w3.org wandb.ai wikipedia.org windows.net"""
)
"""Well-known services: which one was unreachable is evidence, and it names no one."""

DOCUMENTATION = words(
    "arxiv.org nvidia.com python.org pytorch.org readthedocs.io readthedocs.org stackoverflow.com wikipedia.org"
)
"""Where manuals stand: their addresses say nothing of a run."""

NO_HOSTS = words(
    "localhost localhost.localdomain none null unknown host node master worker main gpu cpu cuda rank default"
)
"""Words that logs put where a host name belongs."""

PUBLIC_PATHS = (
    "/dev/",
    "/proc/",
    "/sys/",
    "/usr/",
    "/lib/",
    "/lib64/",
    "/etc/",
    "/opt/conda/",
    "/bin/",
    "/sbin/",
)
"""Folders that every machine has."""
