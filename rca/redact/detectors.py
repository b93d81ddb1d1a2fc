"""The detect-secrets plugins in use, and plugins of the same kind for what it does not know.

Left out on purpose: high-entropy strings (hashes, commit and request ids are evidence, not secrets), keywords without
quotes (see assignments.py), and plugins whose shapes also fit ordinary ids (Twilio, Mailchimp, Artifactory): those are
asked for together with the name of the service. Tokens that a prefix gives away are in token_shapes.py.
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


class RequestDetector(RegexBasedDetector):  # type: ignore[misc]
    """Credentials in requests: headers, the signed parts of addresses, passwords in addresses."""

    secret_type = "Request credentials"
    denylist = (
        re.compile(
            r"(?i)\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token|apikey)\s+(?:token=)?[\"']?"
            r"([A-Za-z0-9._~+/=\-]{6,})"
        ),
        re.compile(r"(?i)\bbearer\s+([A-Za-z0-9._~+/=\-]{20,})"),
        re.compile(r"(?i)\b(?:set-)?cookie[\"']?\s*:\s*[\"']?([^\s\"'=]{1,64}=[^\"'\r\n]{8,})"),
        re.compile(
            r"(?i)[?&](?:x-amz-(?:signature|credential|security-token)|x-goog-(?:signature|credential)|awsaccesskeyid|"
            r"signature|sig|token|access_token|api_?key|key|auth|password|code|client_secret)=([^&\s\"'<>]{8,})"
        ),
        re.compile(r"(?i)\b(?:x-auth-(?:token|key)|private-token|x-api-key|api-key)[\"']?\s*:\s*[\"']?([^\s\"',]{8,})"),
        re.compile(r"(?i)://([A-Za-z0-9_\-]{20,})@"),
        re.compile(r"://[^/\s:\"'<>]{0,100}:([^/\s\"'<>]{1,200})@"),
        re.compile(r"(?i)https://[a-z0-9.\-]+/(?:api/webhooks|webhookb2)/([A-Za-z0-9_\-/@]{30,})"),
        re.compile(r"(?i)\baws_session_token[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9+/=]{40,})"),
        re.compile(r"(?i)\baws[\w ]{0,10}secret[\w ]{0,20}[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9+/]{40})\b"),
    )


class CommandDetector(RegexBasedDetector):  # type: ignore[misc]
    """Credentials in commands and in the files that tools keep them in."""

    secret_type = "Credentials of a tool"
    denylist = (
        re.compile(r"(?i)wandb[\w .\-\"'=:]{0,40}?\b([0-9a-f]{40})\b"),
        re.compile(r"(?i)\bcurl\b.{0,200}?\s(?:-u|--user)[ =]?[\"']?[\w.@%+\-]{1,64}:([^\s\"']{4,})"),
        re.compile(r"\b(?:sshpass|twine|docker login)\b.{0,200}?\s-p[ =]?[\"']?([^\s\"']{6,})"),
        re.compile(r"\bredis-cli\b.{0,100}?\s-a[ =]?[\"']?([^\s\"']{4,})"),
        re.compile(r"\bmysql(?:dump)?\b.{0,100}?\s-p([^\s\"']{4,})"),
        re.compile(r"(?i)\blogin\s+\S{1,64}\s+password\s+(\S{4,})"),
        re.compile(r"(?:^|\s)[\w.\-*]{1,100}:(?:543\d|6432|\*):[\w.\-*]{1,64}:[\w.\-*@]{1,64}:(\S{4,})"),
        re.compile(r"\"auth\"\s*:\s*\"([A-Za-z0-9+/]{12,}={0,2})\""),
        re.compile(r"\"username\"\s*:\s*\"[^\"]{0,64}\"\s*,\s*\"key\"\s*:\s*\"([0-9a-f]{32})\""),
        re.compile(r"(?i)twilio[\w .\-\"'=:]{0,40}?\b((?:AC|SK)?[0-9a-f]{32})\b"),
        re.compile(r"(?i)mailchimp[\w .\-\"'=:]{0,40}?\b([0-9a-f]{32}-us\d{1,2})\b"),
        re.compile(r"(?i)mailgun[\w .\-\"'=:]{0,40}?\b(key-[0-9a-z]{32})\b"),
    )


ACTIVE: tuple[RegexBasedDetector, ...] = tuple(
    detector()
    for detector in (
        AWSKeyDetector,
        AzureStorageKeyDetector,
        BasicAuthDetector,
        CommandDetector,
        GitHubTokenDetector,
        GitLabTokenDetector,
        JwtTokenDetector,
        NpmDetector,
        OpenAIDetector,
        PypiTokenDetector,
        RequestDetector,
        SendGridDetector,
        SlackDetector,
        SquareOAuthDetector,
        StripeDetector,
    )
)
