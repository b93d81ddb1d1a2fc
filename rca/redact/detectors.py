"""The detect-secrets plugins in use, and plugins of the same kind for what it does not know.

Left out on purpose: high-entropy strings (hashes, commit and request ids are evidence, not secrets), keywords without
quotes (see assignments.py), and plugins whose shapes also fit ordinary ids (Twilio, Mailchimp, Artifactory, Telegram,
Discord).
Imported only when a line looks suspicious: the library takes 0.2 s to load.
"""

from __future__ import annotations

import re

from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.basic_auth import BasicAuthDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.jwt import JwtTokenDetector
from detect_secrets.plugins.npm import NpmDetector
from detect_secrets.plugins.openai import OpenAIDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector


class ModelHubDetector(RegexBasedDetector):  # type: ignore[misc]
    """Tokens of model hubs and trackers: Hugging Face, Weights & Biases, Replicate, Kaggle, Databricks, NGC."""

    secret_type = "Model hub token"
    denylist = (
        re.compile(r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
        re.compile(r"\bwandb_v\d_[A-Za-z0-9_]{30,}"),
        re.compile(r"(?i)wandb[\w .\-\"'=:]{0,40}?\b([0-9a-f]{40})\b"),
        re.compile(r"\br8_[A-Za-z0-9]{30,}"),
        re.compile(r"\bnvapi-[A-Za-z0-9_\-]{30,}"),
        re.compile(r"\bdapi[0-9a-f]{32}"),
        re.compile(r"\bKGAT_[0-9a-f]{32}"),
    )


class ModelServiceDetector(RegexBasedDetector):  # type: ignore[misc]
    """Keys of model services: OpenAI's newer forms, Anthropic, Groq, Google, Cohere-style headers."""

    secret_type = "Model service key"
    denylist = (
        re.compile(r"\bsk-(?:proj|svcacct|admin|ant|or)-[A-Za-z0-9_\-]{20,}"),
        re.compile(r"\bsk-[A-Za-z0-9]{40,}"),
        re.compile(r"\bgsk_[A-Za-z0-9]{40,}"),
        re.compile(r"\bAIza[0-9A-Za-z_\-]{35}"),
        re.compile(r"\bya29\.[0-9A-Za-z_\-]{20,}"),
    )


class PlatformTokenDetector(RegexBasedDetector):  # type: ignore[misc]
    """Tokens of code hosts, registries and vaults with a prefix of their own."""

    secret_type = "Platform token"
    denylist = (
        re.compile(r"\bgithub_pat_[A-Za-z0-9_]{40,}"),
        re.compile(r"\bdckr_pat_[A-Za-z0-9_\-]{20,}"),
        re.compile(r"\bnpm_[A-Za-z0-9]{36}"),
        re.compile(r"\bhvs\.[A-Za-z0-9_\-]{24,}"),
        re.compile(r"\bxapp-\d-[A-Z0-9]+-\d+-[a-f0-9]{20,}"),
        re.compile(r"\bxoxe\.xox[bp]-\d-[A-Za-z0-9]{20,}"),
        re.compile(r"\bAGE-SECRET-KEY-1[A-Z0-9]{30,}"),
        re.compile(r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.\-]{31,34}"),
        re.compile(r"(?i)https://[a-z0-9.\-]+/api/webhooks/(\d+/[A-Za-z0-9_\-]{30,})"),
    )


class RequestDetector(RegexBasedDetector):  # type: ignore[misc]
    """Credentials in requests: authorization headers and the signed parts of addresses."""

    secret_type = "Request credentials"
    denylist = (
        re.compile(r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token)\s+([A-Za-z0-9._~+/=\-]{6,})"),
        re.compile(r"(?i)\bbearer\s+([A-Za-z0-9._~+/=\-]{20,})"),
        re.compile(
            r"(?i)[?&](?:x-amz-(?:signature|credential|security-token)|x-goog-signature|awsaccesskeyid|signature|sig|"
            r"token|access_token|api_?key|key|auth|password)=([^&\s\"'<>]{8,})"
        ),
        re.compile(r"(?i)://([A-Za-z0-9_\-]{20,})@"),
        re.compile(r"(?i)\baws_session_token[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9+/=]{40,})"),
        re.compile(r"(?i)\baws[\w ]{0,10}secret[\w ]{0,20}[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9+/]{40})\b"),
    )


ACTIVE: tuple[RegexBasedDetector, ...] = tuple(
    detector()
    for detector in (
        AWSKeyDetector,
        AzureStorageKeyDetector,
        BasicAuthDetector,
        GitHubTokenDetector,
        GitLabTokenDetector,
        JwtTokenDetector,
        ModelHubDetector,
        ModelServiceDetector,
        NpmDetector,
        OpenAIDetector,
        PlatformTokenDetector,
        PypiTokenDetector,
        RequestDetector,
        SendGridDetector,
        SlackDetector,
        SquareOAuthDetector,
        StripeDetector,
    )
)
