"""What is in deploy/ is valid by the rules of the programs that read it, and agrees with the code."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import jsonschema_rs
import pytest
import yaml

from api.running import Running, running
from headwater import __version__
from headwater.http.metrics import METRICS, PROCESS, RULES, dashboard, rules_file
from headwater.settings.table import Settings
from support.kafka import kafka_address
from support.ports import free_port
from support.posts import a_post
from support.processes import wait_until
from support.proxy import nginx_before

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").iterdir())
COMPOSE = [DEPLOY / "compose.yaml", DEPLOY / "compose.cluster.yaml"]
CHART = DEPLOY / "helm" / "headwater"
JARS = Path.home() / ".cache" / "headwater-services"
MOST_EXPOSED = 2.0  # of 10, as systemd judges a unit


def tool(*words: str) -> str:
    """Runs a tool that checks; skips the test if it cannot be had here."""
    ran = subprocess.run([ROOT / "scripts" / "deploy-tools", *words], capture_output=True, text=True)
    if ran.returncode == 3:
        pytest.skip(ran.stderr.strip())
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def program(name: str) -> str:
    found = shutil.which(name)
    if not found:
        pytest.skip(f"no {name} here (scripts/services install)")
    return found


def test_every_setting_that_deploy_sets_exists() -> None:
    known = {f"HEADWATER_{name.upper()}" for name in Settings.model_fields}
    also = {"HEADWATER_DATABASE_PASSWORD"}  # of Kafka Connect, for the connector
    for file in DEPLOY.rglob("*"):
        if file.is_file():
            named = {name.removesuffix("_FILE") for name in re.findall(r"HEADWATER_[A-Z_]+", file.read_text())}
            assert named <= known | also, file


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_compose_files_follow_their_specification(file: Path) -> None:
    schema = json.loads(Path(tool("compose-schema").strip()).read_text())
    # The schema is older than these: a name for the project, and a file with settings that may be missing.
    schema["properties"]["name"] = {"type": "string"}
    schema["definitions"]["service"]["properties"]["env_file"] = {
        "type": "array",
        "items": {"type": "object", "required": ["path"], "additionalProperties": False,
                  "properties": {"path": {"type": "string"}, "required": {"type": "boolean"}}},
    }  # fmt: skip
    jsonschema_rs.validator_for(schema).validate(yaml.safe_load(file.read_text()))


@pytest.mark.parametrize("file", COMPOSE, ids=lambda file: file.name)
def test_containers_of_ours_may_do_no_more_than_they_need(file: Path) -> None:
    services = yaml.safe_load(file.read_text())["services"]
    ours = {name: one for name, one in services.items() if one["image"] == "headwater"}
    assert ours
    for one in ours.values():
        assert one["read_only"] is True
        assert one["cap_drop"] == ["ALL"]
        assert one["security_opt"] == ["no-new-privileges:true"]
    for one in services.values():
        assert all(port.startswith("127.0.0.1:") for port in one.get("ports", []))
        assert not one["image"].endswith(":latest")
        unknown = {name for name in one.get("depends_on", {}) if name not in services}
        assert not unknown


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_accepts_the_units(unit: Path, tmp_path: Path) -> None:
    analyze = program("systemd-analyze")
    units = [unit, unit.with_suffix(".service")]
    for one in units:  # the programs are not installed here
        (tmp_path / one.name).write_text(re.sub(r"/opt/headwater/bin/\S+", "/bin/true", one.read_text()))
    ran = subprocess.run([analyze, "verify", "--man=no", tmp_path / unit.name], capture_output=True, text=True)
    said = [line for line in ran.stderr.splitlines() if unit.stem in line]  # other units of the machine may be wrong
    assert (ran.returncode, said) == (0, []), ran.stderr
    if unit.suffix == ".service":
        judged = subprocess.run(
            [analyze, "security", "--offline=true", tmp_path / unit.name],
            capture_output=True,
            text=True,
        )
        assert float(re.findall(r"exposure level for \S+: ([\d.]+)", judged.stdout)[0]) <= MOST_EXPOSED


def chart(*words: str) -> list[dict[str, Any]]:
    """Returns the objects that the chart makes."""
    found = tool("helm", "template", "example", str(CHART), "--kube-version", "1.30.0", *words)
    return [one for one in yaml.safe_load_all(found) if one]


def test_the_chart_deploys_this_version() -> None:
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"] == __version__


def test_helm_accepts_the_chart() -> None:
    assert "0 chart(s) failed" in tool("helm", "lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--set", "web.ingress.enabled=true,web.ingress.tlsSecret=tls,web.ingress.className=nginx"],
        ["--set", "images.existingClaim=images,networkPolicy.enabled=false"],
        ["--set", "secretSettings.HEADWATER_OIDC_CLIENT_SECRET=oidc-client-secret"],
    ],
    ids=["as it is", "ingress", "images", "secrets"],
)
def test_kubernetes_accepts_what_the_chart_makes(words: list[str], tmp_path: Path) -> None:
    objects = chart(*words)
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(objects))
    tool("kubernetes", str(tmp_path / "all.yaml"))
    kinds = {one["kind"] for one in objects}
    assert kinds >= {"Deployment", "Service", "Job", "HorizontalPodAutoscaler", "PodDisruptionBudget", "ConfigMap"}


def test_pods_of_the_chart_are_restricted_and_probed() -> None:
    workloads = [one for one in chart() if one["kind"] in ("Deployment", "Job")]
    pods = {one["metadata"]["name"]: one["spec"]["template"]["spec"] for one in workloads}
    assert pods.keys() == {"example-web", "example-worker", "example-beat", "example-migrate"}
    for pod in pods.values():
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["automountServiceAccountToken"] is False
        [container] = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert container["image"] == f"headwater:{yaml.safe_load((CHART / 'Chart.yaml').read_text())['appVersion']}"
    [web] = pods["example-web"]["containers"]
    assert web["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert web["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_settings_that_are_secrets_come_from_the_secret() -> None:
    objects = chart("--set", "secretSettings.HEADWATER_OIDC_CLIENT_SECRET=oidc-client-secret")
    for one in objects:
        if one["kind"] in ("Deployment", "Job"):
            [container] = one["spec"]["template"]["spec"]["containers"]
            given = {variable["name"]: variable.get("valueFrom") for variable in container["env"]}
            from_secret = {"secretKeyRef": {"name": "headwater", "key": "oidc-client-secret"}}
            assert given["HEADWATER_OIDC_CLIENT_SECRET"] == from_secret
            assert {"HEADWATER_DATABASE_URL", "HEADWATER_SECRET_KEY", "CELERY_BROKER_URL"} <= given.keys()


def test_rules_and_dashboard_are_those_of_the_declaration() -> None:
    assert yaml.safe_load((DEPLOY / "prometheus" / "rules.yaml").read_text()) == rules_file(), "run `make docs`"
    assert json.loads((DEPLOY / "grafana" / "headwater.json").read_text()) == dashboard(), "run `make docs`"


def test_rules_and_dashboard_ask_only_for_metrics_that_exist() -> None:
    known = {"up", *PROCESS}
    for metric in METRICS:
        known |= {metric.name} | {f"{metric.name}_{ending}" for ending in ("total", "bucket", "sum", "count")}
    for query in [rule.query for rule in RULES] + [metric.shown for metric in METRICS]:
        named = set(re.findall(r"\b(?:headwater|process)_[a-z_]+|\bup\b", query))
        assert named <= known, query


def test_prometheus_accepts_the_rules() -> None:
    ran = subprocess.run(
        [program("promtool"), "check", "rules", DEPLOY / "prometheus" / "rules.yaml"], capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert f"{len(RULES)} rules found" in ran.stdout


def test_prometheus_accepts_the_metrics(headwater: Running) -> None:
    text = headwater.program().get("/metrics").text
    ran = subprocess.run([program("promtool"), "check", "metrics"], input=text, capture_output=True, text=True)
    said = [line for line in ran.stderr.splitlines() if line and "no help text" not in line]
    assert (ran.returncode in (0, 3), said) == (True, []), ran.stderr


def test_the_image_is_not_root_and_has_the_command() -> None:
    """There is no Docker engine here, so the file is read; the script that it runs is run by the next test."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    last = [line for line in lines if line.startswith("FROM")][-1]
    after = lines[lines.index(last) :]
    assert "USER 10001:10001" in after
    assert any(line.startswith("HEALTHCHECK") for line in after)
    assert 'ENTRYPOINT ["headwater"]' in after
    assert any("deploy/install /opt/headwater" in line for line in lines)


def test_the_installer_of_the_image_works_in_a_bare_folder(tmp_path: Path) -> None:
    """From a copy of the checkout as `COPY . /src` makes it, into an empty folder, with an empty environment."""
    source = tmp_path / "src"
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in filter(None, map(os.fsdecode, files)):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, source / name)
    package_index = ("PIP_", "SSL_", "REQUESTS_", "HTTP", "http")
    kept = {name: value for name, value in os.environ.items() if name.startswith(package_index)}
    bare = {**kept, "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "PYTHON": sys.executable}
    subprocess.run([source / "deploy" / "install", tmp_path / "opt"], env=bare, check=True)
    shutil.rmtree(source)  # the image has no sources
    ran = subprocess.run(
        [tmp_path / "opt" / "bin" / "headwater", "doctor", "--json"],
        env={"PATH": "/usr/bin:/bin", "HEADWATER_DATA_DIR": str(tmp_path / "data"), "HEADWATER_PORT": "18999"},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    findings = {one["what"]: one for one in map(json.loads, ran.stdout.splitlines())}
    assert findings["parsing process"]["ok"]
    assert findings["settings"]["ok"]
    assert "not" not in findings["compiled parts"]["detail"]


@pytest.fixture(scope="module")
def services_script() -> ModuleType:
    """`scripts/services` as a module."""
    loader = SourceFileLoader("services_script", str(ROOT / "scripts" / "services"))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec
    script = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = script  # dataclasses look there
    loader.exec_module(script)
    return script


def test_the_image_of_connect_has_the_versions_that_tests_run(services_script: ModuleType) -> None:
    declared = ElementTree.parse(DEPLOY / "debezium" / "pom.xml").findall(".//dependency")
    jars = tuple(tuple(part.text for part in dependency) for dependency in declared)
    assert jars == services_script.JARS
    assert services_script.MAVEN_COPY in (DEPLOY / "debezium" / "Dockerfile").read_text()
    kafka = yaml.safe_load((DEPLOY / "compose.cluster.yaml").read_text())["services"]["kafka"]["image"]
    assert kafka == f"apache/kafka:{services_script.JARS[0][2]}"


def test_connect_starts_with_the_files_of_its_image_and_has_debezium(
    services_script: ModuleType, tmp_path: Path
) -> None:
    """Runs the last line of the Dockerfile, on the jars that the tests have, with other names and addresses."""
    brokers, jars, port = kafka_address("kafka"), services_script.jar_folder(), free_port()
    (tmp_path / "jars").symlink_to(jars)
    shutil.copy(DEPLOY / "debezium" / "log4j2.properties", tmp_path)
    settings = (DEPLOY / "debezium" / "worker.properties").read_text()
    for ours, here in (
        ("kafka:9092", brokers), ("0.0.0.0:8083", f"127.0.0.1:{port}"),
        ("=headwater-connect", f"={tmp_path.name}"), ("=connect-", f"={tmp_path.name}-"),
    ):  # fmt: skip
        assert ours in settings
        settings = settings.replace(ours, here)
    (tmp_path / "worker.properties").write_text(settings)
    _, _, command = (DEPLOY / "debezium" / "Dockerfile").read_text().replace("\\\n", "").partition("\nCMD ")
    with (tmp_path / "log").open("wb") as log:
        connect = subprocess.Popen(json.loads(command), cwd=tmp_path, stdout=log, stderr=subprocess.STDOUT)
    try:
        wait_until(lambda: connect.poll() is not None or "PostgresConnector" in plugins_at(port))
        assert connect.poll() is None, (tmp_path / "log").read_text()[-3000:]
    finally:
        connect.kill()
        connect.wait()


def plugins_at(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/connector-plugins", timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def with_our_configuration(folder: Path, behind: int) -> Callable[[int], str]:
    """Returns what makes deploy/nginx/headwater.conf usable here: a port, a certificate, and what is behind it."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=news.example"]
    subprocess.run(
        [program("openssl"), *words, "-keyout", key, "-out", certificate], check=True, stderr=subprocess.DEVNULL
    )
    text = (DEPLOY / "nginx" / "headwater.conf").read_text()

    def servers(port: int) -> str:
        changed = text.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl").replace(
            "listen 80", f"listen 127.0.0.1:{free_port()}"
        )
        changed = changed.replace("server 127.0.0.1:8080", f"server 127.0.0.1:{behind}")
        changed = changed.replace("/etc/ssl/news.example.pem", str(certificate))
        return changed.replace("/etc/ssl/news.example.key", str(key))

    return servers


def test_nginx_serves_pages_by_tls_and_passes_every_event_at_once(sqlite_url: str, tmp_path: Path) -> None:
    with (
        running(sqlite_url, HEADWATER_PUBLIC_URL="https://news.example") as headwater,
        nginx_before(headwater.port, tmp_path, with_our_configuration(tmp_path, headwater.port)) as port,
    ):
        trusting = ssl._create_unverified_context()
        sent = {"Host": "news.example", "Authorization": f"Bearer {headwater.token()}"}
        pages = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=60)
        pages.request("GET", "/api/stream", headers=sent)
        answer = pages.getresponse()
        assert (answer.status, json.loads(answer.read())["items"]) == (200, [])
        assert answer.headers["Strict-Transport-Security"]
        pages.close()
        live = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=60)
        live.request("GET", "/api/live?kinds=post.stored", headers=sent)
        lines = live.getresponse()
        assert any(line.startswith(b"id:") for line in iter(lines.readline, b""))
        headwater.publish(headwater.source(), a_post("1", "Lithium is found"))
        assert any(b"Lithium is found" in line for line in iter(lines.readline, b""))
        lines.close()
        live.close()
