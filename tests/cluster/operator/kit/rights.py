"""The manifests of the project, put into force, and a kubeconfig of the operator's account."""

import base64
import json
import subprocess
from pathlib import Path

import yaml

from .kube import Kube

ROOT = Path(__file__).parents[4]
BASE = ROOT / "manifests" / "base"
ACCOUNT = "system:serviceaccount:gpufair-system:gpufair"


def install(kubectl: Path, kubeconfig: Path) -> None:
    """Apply them as a user would, and wait until the policies' kind is served."""
    admin = (kubectl, "--kubeconfig", kubeconfig)
    _run(*admin, "apply", "--server-side", "--force-conflicts", "-k", BASE)
    crd = "crd/gpuschedulingpolicies.gpufair.io"
    _run(*admin, "wait", crd, "--for=condition=Established", "--timeout=30s")


def kubeconfig_of_account(admin: Path, target: Path) -> Path:
    """Write a kubeconfig with a token of the operator's service account (TokenRequest)."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = "/api/v1/namespaces/gpufair-system/serviceaccounts/gpufair/token"
    made = Kube(admin).request("POST", path, request)
    config = yaml.safe_load(admin.read_text())
    config["users"][0]["user"] = {"token": made["status"]["token"]}
    target.write_text(json.dumps(config))
    return target


def credential(kubeconfig: Path) -> str:
    """The id of a kubeconfig's token, as the audit log names it."""
    token = json.loads(kubeconfig.read_text())["users"][0]["user"]["token"]
    payload = token.split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"JTI={claims['jti']}"


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
