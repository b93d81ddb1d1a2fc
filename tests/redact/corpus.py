"""Secrets of every shape in the lines they are seen in, put together at run time.

No real-looking secret stands in the repository: every one is made of a prefix in pieces and of letters drawn by a
generator whose seed is the name of the shape. They open nothing.
"""

from __future__ import annotations

import base64
import json
import random
import string
from typing import NamedTuple

HEXADECIMAL = "0123456789abcdef"
ALPHANUMERIC = string.ascii_letters + string.digits


class Shape(NamedTuple):
    """One kind of secret."""

    name: str
    secret: str
    """What may not be shown; of several lines, none of them."""
    line: str
    """How it is seen."""
    alone: bool = False
    """The secret is known by its own shape, so that it is also found without the line around it."""


def drawn(seed: str, length: int, letters: str = ALPHANUMERIC) -> str:
    """Letters that are the same in every run; among the first are a capital, a small letter and a digit."""
    chance = random.Random(seed)
    text = "".join(chance.choice(letters) for _ in range(length))
    return "kQ7" + text[3:] if letters == ALPHANUMERIC else text


def web_token(seed: str) -> str:
    """A JSON web token."""
    parts = [{"alg": "RS256", "typ": "JWT"}, {"sub": drawn(seed, 12), "iss": "kubernetes/serviceaccount"}]
    body = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*body, drawn(seed + "signature", 86)])


def private_key(kind: str, lines: int = 6) -> str:
    """A key as its file holds it; `kind` such as `RSA `."""
    body = [drawn(f"{kind}{n}", 64, ALPHANUMERIC + "+/") for n in range(lines)] + [drawn(kind + "end", 24) + "=="]
    return "\n".join(
        ["-----BEGIN " + kind + "PRIVATE" + " KEY-----", *body, "-----END " + kind + "PRIVATE" + " KEY-----"]
    )


def _alone(name: str, prefix: str, length: int, line: str = "using {}", letters: str = ALPHANUMERIC) -> Shape:
    secret = prefix + drawn(name, length, letters)
    hidden = secret.removeprefix(prefix) if "://" in prefix else secret
    return Shape(name, hidden, line.replace("{}", secret), alone="://" not in prefix)


def _named(name: str, line: str, length: int = 40, letters: str = ALPHANUMERIC, prefix: str = "") -> Shape:
    secret = prefix + drawn(name, length, letters)
    return Shape(name, secret, line.replace("{}", secret))


def shapes() -> list[Shape]:
    """All of them."""
    return [*_clouds(), *_code_hosts(), *_models(), *_chat(), *_services(), *_requests(), *_databases(), *_settings()]


def secrets() -> list[tuple[str, str]]:
    """Secrets of one line with the lines they stand in."""
    return [(shape.secret, shape.line) for shape in shapes() if "\n" not in shape.secret]


def _clouds() -> list[Shape]:
    basic = ALPHANUMERIC + "+/"
    upper = string.ascii_uppercase + "234567"
    return [
        _alone("aws access key", "AK" + "IA", 16, "boto3: using credentials {}", upper),
        _alone("aws temporary access key", "AS" + "IA", 16, "AWS_ACCESS_KEY_ID={}", upper),
        _named("aws secret key", "aws_secret_access_key = '{}'", 40, basic),
        _named("aws secret key in the environment", "export AWS_SECRET_ACCESS_KEY={}", 40, basic),
        _named("aws session token", "AWS_SESSION_TOKEN={}", 300, basic, "IQoJb3JpZ2luX2Vj"),
        _named("aws credentials of a role", '"SecretAccessKey": "{}", "Token": ""', 40, basic),
        _alone("google api key", "AI" + "za", 35, "https://maps.googleapis.com/maps/api/js?key={}"),
        _alone("google access token", "ya29" + ".", 80, "gcloud token {}"),
        _named("google service account", '"private_key_id": "{}", "client_email": "x"', 40, HEXADECIMAL),
        _named("google client secret", "client: {}", 28, prefix="GOC" + "SPX-"),
        _named(
            "azure storage key", "DefaultEndpointsProtocol=https;AccountName=acc;AccountKey={}==;EndpointSuffix=x", 86
        ),
        _named("azure shared access", "https://acc.blob.core.windows.net/c/x?sv=2022-11-02&sr=b&sig={}%3D", 43),
        _named("azure service bus", "Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey={}=", 43),
        _named("azure openai", "AZURE_OPENAI_API_KEY={}", 32, HEXADECIMAL),
        _named("azure client secret", "azure: credential {} expired", 34, prefix="ab1" + "8Q~"),
        _named("azure openai header", "'api-key': '{}', 'Content-Type': 'application/json'", 32, HEXADECIMAL),
        _alone("digitalocean", "dop" + "_v1_", 64, "doctl auth with {}", HEXADECIMAL),
        _named("cloudflare", "CLOUDFLARE_API_TOKEN={}", 40),
        _named("cloudflare global key", "X-Auth-Key: {}", 37, HEXADECIMAL),
        _named("heroku", "HEROKU_API_KEY=01234567-89ab-cdef-0123-{}", 12, HEXADECIMAL),
        _alone("terraform cloud", drawn("tf", 14) + ".atlasv1.", 60, "credentials {}"),
        _alone("vault service token", "hvs" + ".", 90, "VAULT: {}"),
        _alone("vault batch token", "hvb" + ".", 120, "vault {}"),
        _named("vault legacy token", "VAULT_TOKEN={}", 24, prefix="s."),
        _named("lambda cloud", "lambda secret_{}", 32),
        _named("runpod", "RUNPOD_API_KEY={}", 40),
        _alone("runpod prefix", "rpa" + "_", 44, "runpod {}"),
        _named("alibaba secret", "ALIBABA_CLOUD_ACCESS_KEY_SECRET={}", 30),
        _alone("alibaba key id", "LT" + "AI5t", 20, "oss2 {}"),
    ]


def _code_hosts() -> list[Shape]:
    return [
        _alone("github classic", "gh" + "p_", 36, "remote: {} is not allowed"),
        _alone("github fine-grained", "github" + "_pat_", 82, "GITHUB_TOKEN={}"),
        _alone("github app", "gh" + "s_", 36, "https://x-access-token:{}@github.com/o/r.git"),
        _alone("gitlab personal", "glpat" + "-", 20, "git clone https://oauth2:{}@gitlab.com/a/b"),
        _alone("gitlab routable", "glpat" + "-", 27, "clone {}.01.0w1abcdef"),
        _alone("gitlab trigger", "glptt" + "-", 40, "trigger {} used", HEXADECIMAL),
        _alone("npm", "npm" + "_", 36, "//registry.npmjs.org/:_authToken={}"),
        _alone("pypi", "pypi-" + "AgEIcHlwaS5vcmc", 140, "twine upload -p {}"),
        _named("pypi index with password", "--extra-index-url https://build:{}@pypi.acme.io/simple", 24),
        _alone("docker hub", "dckr" + "_pat_", 27, "docker login with {}"),
        _docker_config(),
        _alone("artifactory key", "AKC" + "p", 69, "X-JFrog-Art-Api: {}"),
        _alone("artifactory reference token", "cmVm" + "dGtu", 56, "jfrog {}"),
        _named("bitbucket app password", "bitbucket {} rejected", 32, prefix="ATB" + "B"),
        _alone("atlassian", "ATATT" + "3xFf", 180, "jira token {}"),
    ]


def _docker_config() -> Shape:
    auth = base64.b64encode(f"robot$ci:{drawn('docker', 20)}".encode()).decode()
    return Shape("docker auth", auth, f'{{"auths": {{"registry.acme.io": {{"auth": "{auth}"}}}}}}')


def _models() -> list[Shape]:
    return [
        _alone("hugging face", "hf" + "_", 34, "huggingface_hub: {} is expired"),
        _named("hugging face in the environment", "HF_TOKEN={}", 34, prefix="hf" + "_"),
        _alone("hugging face organisation", "api" + "_org_", 34, "login with {}"),
        _alone("openai", "sk-" + drawn("o", 20) + "T3Blbk" + "FJ", 20, "OPENAI_API_KEY={}"),
        _alone("openai project", "sk-" + "proj-", 120, "Incorrect API key provided: {}."),
        _alone("openai service", "sk-" + "svcacct-", 60, "key {}"),
        _alone("anthropic", "sk-" + "ant-api03-", 93, "x-api-key: {}"),
        _alone("openrouter", "sk-" + "or-v1-", 64, "key {}", HEXADECIMAL),
        _named("wandb login", "wandb login {}", 40, HEXADECIMAL),
        _named("wandb login relogin", "$ wandb login --relogin {}", 40, HEXADECIMAL),
        _named("wandb in the environment", "WANDB_API_KEY={}", 40, HEXADECIMAL),
        _named("wandb netrc", "machine api.wandb.ai login user password {}", 40, HEXADECIMAL),
        _named("comet", "COMET_API_KEY={}", 25),
        _named("comet in code", 'comet_ml.init(api_key="{}")', 25),
        _named("neptune", "NEPTUNE_API_TOKEN={}", 160, prefix="eyJ" + "hcGlfYWRkcmVzcyI6"),
        _named("clearml", 'credentials {"access_key": "{}"}', 20, string.ascii_uppercase + string.digits),
        _named("mlflow", "MLFLOW_TRACKING_PASSWORD={}", 16),
        _named("kaggle", '{"username":"x","key":"{}"}', 32, HEXADECIMAL),
        _alone("kaggle token", "KG" + "AT_", 32, "kaggle {}", HEXADECIMAL),
        _alone("ngc", "nvapi" + "-", 64, "NGC_API_KEY: {}"),
        _alone("replicate", "r8" + "_", 37, "replicate {}"),
        _named("cohere", "CO_API_KEY={}", 40),
        _alone("databricks", "da" + "pi", 32, "databricks {}", HEXADECIMAL),
        _alone("groq", "gs" + "k_", 52, "groq {}"),
        _alone("xai", "xa" + "i-", 80, "grok {}"),
        _alone("perplexity", "pp" + "lx-", 48, "{}"),
        _alone("fireworks", "fw" + "_", 24, "fireworks {}"),
        _named("together", "TOGETHER_API_KEY={}", 64, HEXADECIMAL),
        _named("modal", "MODAL_TOKEN_SECRET={}", 22, prefix="as-"),
        _named("labelbox", "--labelbox-api-key {} --x 1", 60),
    ]


def _chat() -> list[Shape]:
    return [
        _alone("slack bot", "xox" + "b-123456789012-1234567890123-", 24, "slack: posting with {}"),
        _alone("slack app", "xapp" + "-1-A012ABCDEF0-1234567890123-", 64, "socket {}", HEXADECIMAL),
        _alone("slack webhook", "https://hooks.slack." + "com/services/T01ABCDEF/B01ABCDEF/", 24, "callback {}"),
        _alone("discord webhook", "https://discord.com/api/" + "webhooks/123456789012345678/", 68, "notify {}"),
        _alone("discord bot", "MTA" + drawn("bot", 23) + ".GhI" + "jkl.", 38, "bot logs in as {}"),
        _alone("telegram", "123456789" + ":AA", 33, "https://api.telegram.org/bot{}/sendMessage"),
        _alone("teams webhook", "https://acme.webhook.office." + "com/webhookb2/", 70, "POST {}"),
    ]


def _services() -> list[Shape]:
    return [
        _alone("stripe", "sk" + "_live_", 24, "stripe {}"),
        _alone("stripe restricted", "rk" + "_test_", 24, "stripe {}"),
        _named("twilio", "twilio auth_token={}", 32, HEXADECIMAL),
        _named("twilio key", "TWILIO: SK{} used", 32, HEXADECIMAL),
        Shape("sendgrid", s := "SG" + "." + drawn("sg", 22) + "." + drawn("sg2", 43), f"sendgrid {s}", alone=True),
        _named("mailgun", "mailgun {} sent", 32, HEXADECIMAL, "key-"),
        _named("mailchimp", "mailchimp {}-us12", 32, HEXADECIMAL),
        _named("datadog", "DD_API_KEY={}", 32, HEXADECIMAL),
        _named("datadog application key", "dd-application-key: {}", 40, HEXADECIMAL),
        _alone("grafana service account", "gls" + "a_", 41, "grafana {}"),
        _alone("grafana cloud", "gl" + "c_eyJ", 80, "grafana {}"),
        _named("pagerduty", "Authorization: Token token={}", 20),
        _named("pagerduty routing", '"routing_key": "{}"', 32, HEXADECIMAL),
        _named("sentry address", "SENTRY_DSN=https://{}@o12345.ingest.sentry.io/678", 32, HEXADECIMAL),
        _alone("sentry token", "sntr" + "ys_", 80, "sentry {}"),
        _named("snowflake", "snowflake.connector.connect(user='etl', password='{}', account='ab1')", 14),
        _alone("new relic", "NR" + "AK-", 27, "newrelic {}", string.ascii_uppercase + string.digits),
        _alone("postman", "PMA" + "K-", 59, "{}", HEXADECIMAL),
        _alone("linear", "lin" + "_api_", 40, "{}"),
        _alone("notion", "nt" + "n_", 46, "{}"),
        _alone("square", "sq0" + "csp-", 43, "{}"),
        _alone("shopify", "shp" + "at_", 32, "{}", HEXADECIMAL),
        _alone("age key", "AGE-SECRET" + "-KEY-1", 58, "{}", string.ascii_uppercase + string.digits),
        _alone("tailscale", "tskey" + "-auth-", 40, "tailscale up --authkey {}"),
        _alone("pulumi", "pul" + "-", 40, "pulumi {}", HEXADECIMAL),
    ]


def _requests() -> list[Shape]:
    basic = base64.b64encode(f"someone:{drawn('basic', 14)}".encode()).decode()
    jwt = web_token("k8s")
    return [
        Shape("web token", jwt, f"Cookie: session={jwt}", alone=True),
        Shape("service account of kubernetes", jwt, f"token:      {jwt}", alone=True),
        Shape("bearer", jwt, f"Authorization: Bearer {jwt}", alone=True),
        _named("token header", "authorization: token {}", 30),
        _named("opaque bearer", "'Authorization': 'Bearer {}'", 40),
        Shape("basic header", basic, f"Authorization: Basic {basic}"),
        Shape("basic header of curl", basic, f"> authorization: Basic {basic}"),
        _named("curl user", "curl -u admin:{} https://x.acme.io/api", 18),
        _named("address with password", "https://bob:{}@mirror.acme.io/simple", 12),
        _named("encoded address", "url=https%3A%2F%2Fbob%3A{}%40mirror.acme.io%2Fsimple", 12),
        _named(
            "presigned s3",
            "https://b.s3.amazonaws.com/w.bin?X-Amz-Expires=3600&X-Amz-Signature={}&x=1",
            64,
            HEXADECIMAL,
        ),
        _named("presigned s3 token", "https://b.s3.amazonaws.com/w?X-Amz-Security-Token={}&x=1", 200),
        _named(
            "presigned s3, version 2", "https://b.s3.amazonaws.com/w?AWSAccessKeyId=x&Signature={}%3D&Expires=1", 27
        ),
        _named(
            "presigned gcs",
            "https://storage.googleapis.com/b/o?X-Goog-Algorithm=G&X-Goog-Signature={}",
            256,
            HEXADECIMAL,
        ),
        _named("query string", "GET /v1/models?access_token={}&limit=10 401", 24),
        _named("query string, api key", "GET /v1/models?limit=10&api_key={} 401", 24),
        _named("jupyter", "http://localhost:8888/lab?token={}", 48, HEXADECIMAL),
        _named("cookie", "Set-Cookie: sessionid={}; HttpOnly; Path=/", 32),
        _named("x-auth-token", "X-Auth-Token: {}", 32),
        _named("private token", "PRIVATE-TOKEN: {}", 22),
    ]


def _databases() -> list[Shape]:
    addresses = {
        "postgres": "postgresql+psycopg2://train:{}@db.acme.io:5432/runs",
        "mysql": "mysql://root:{}@10.0.0.7/optuna",
        "mongodb": "mongodb+srv://svc:{}@cluster0.abcde.mongodb.net/?retryWrites=true",
        "redis": "redis://:{}@cache-01:6379/0",
        "amqp": "amqps://celery:{}@mq.acme.io//",
        "smtp": "smtp://alerts%40acme.io:{}@smtp.acme.io:587",
        "clickhouse": "clickhouse://default:{}@ch.acme.io:9000/x",
        "snowflake address": "snowflake://etl:{}@ab12345/db",
    }
    return [
        *(_named(name, f"connecting to {line}", 11) for name, line in addresses.items()),
        _named("password with signs", "postgresql://train:p%40ss!{}$x@db.acme.io/runs", 9),
        _named("pgpass", "db.acme.io:5432:runs:train:{}", 16),
        _named("odbc", "Driver={ODBC 18};Server=tcp:x;Uid=etl;Pwd={};Encrypt=yes", 16),
        _named("netrc", "machine github.com login bob password {}", 20),
        _named("smtp setting", "smtp_password: {}", 12),
        _named("redis command", "redis-cli -a {} ping", 16),
        _named("mysql command", "mysql -u root -p{} runs", 16),
        _named("pg variable", "PGPASSWORD={} psql -h db", 12),
    ]


def _settings() -> list[Shape]:
    phrase = f"correct horse {drawn('phrase', 8)}"
    return [
        _named("command line", "python train.py --api-key {} --max-steps 10", 32),
        _named("command line with sign", "python train.py --hub_token={} --lr 1", 32),
        _named("command line as list", "['train.py', '--api-key', '{}', '--lr', '1']", 32),
        _named("command line as json", '"args": ["--hub-token", "{}"]', 32),
        _named("password of a command", "sshpass -p {} ssh node", 14),
        _named("yaml password", "  password: {}", 14),
        _named("yaml quoted password", "  db_password: '{}'", 14),
        _named("json password", '"password": "{}", "user": "etl"', 14),
        _named("python password", "'passwd': '{}', 'port': 5432", 14),
        _named("python object", "Settings(db_password=SecretStr('{}'), port=1)", 14),
        Shape("password of words", phrase, f'db_password = "{phrase}"'),
        _named("toml", 'secret_key = "{}"', 32),
        _named("django", "SECRET_KEY = 'django-insecure-{}'", 40),
        _named("hydra override", "+trainer.logger.api_key={}", 32),
        _named("camel case", '"apiKey": "{}", "accessToken": null', 32),
        _named("camel case token", '"accessToken": "{}"', 32),
        _named("client secret", '"client_secret": "{}"', 40),
        _named("short token", "hub_token: {}", 16),
        _named("shell export", "export MY_SERVICE_TOKEN='{}'", 20),
        _named("docker argument", "docker run -e DB_PASS={} image", 12),
        _named("kubeconfig token", "    token: {}", 60),
        _named("kubeconfig key", "    client-key-data: LS0tLS1CRUdJTi{}", 200),
        _named("cluster key of ray", "redis_password='{}'", 16),
        _named("encryption key", "ENCRYPTION_KEY={}", 44),
        _named("fernet", "FERNET_KEY: {}=", 43),
        _named("salt", "salt_secret: {}", 20),
        Shape("rsa key", private_key("RSA "), private_key("RSA ")),
        Shape("openssh key", private_key("OPENSSH "), private_key("OPENSSH ")),
        Shape("plain key", private_key(""), private_key("").replace("\n", "\\n")),
        Shape("pgp key", k := private_key("PGP ").replace("KEY-----", "KEY BLOCK-----"), k),
        Shape("key in json", private_key("EC "), json.dumps({"private_key": private_key("EC ")})),
    ]
