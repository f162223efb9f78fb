"""Where the cluster is and who we are there: kubeconfig files or the pod's service account.

`kubernetes.aio` reads both, runs exec plugins and re-reads rotated service account tokens; this
module adds the choice between them, expiry of exec credentials and errors for people.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kubernetes.aio.client.configuration import Configuration
from kubernetes.aio.config import incluster_config
from kubernetes.aio.config.config_exception import ConfigException
from kubernetes.aio.config.kube_config import load_kube_config

from gpufair.cluster.errors import NoClusterError

Load = Callable[[], Awaitable[Configuration]]

_EXPIRY_MARGIN = timedelta(seconds=30)
_NOTHING = (
    "No cluster is configured: pass --kubeconfig, set KUBECONFIG, "
    "or start a cluster with `gpufair local up`."
)


def from_kubeconfig(path: str | os.PathLike[str] | None = None, context: str | None = None) -> Load:
    """Credentials of a kubeconfig: `path` (several joined by the path separator, as kubectl takes
    them), KUBECONFIG or ~/.kube/config. Raises NoClusterError when there is no such file."""
    files = str(path or os.environ.get("KUBECONFIG") or "") or str(_home_config())
    candidates = [part for part in files.split(os.pathsep) if part]
    present = [part for part in candidates if Path(part).expanduser().is_file()]
    if not present:
        raise NoClusterError(f"There is no kubeconfig at {files}.")

    async def load() -> Configuration:
        configuration = _new_configuration()
        try:
            loader = await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=os.pathsep.join(present),
                context=context,
                client_configuration=configuration,
                persist_config=False,
            )
        except (ConfigException, ValueError, TypeError, KeyError, OSError) as error:
            raise NoClusterError(
                f"The kubeconfig {files} cannot be used: {_line(error)}."
            ) from error
        except Exception as error:
            # A YAML error is none of the above, and its class is the loader's business.
            raise NoClusterError(
                f"The kubeconfig {files} cannot be read: {_line(error)}."
            ) from error
        _refresh_exec_credentials(configuration, loader)
        return configuration

    return load


def in_cluster(
    token_file: str | None = None,
    ca_file: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Load:
    """Credentials of the pod's service account; its token is read again every minute."""

    async def load() -> Configuration:
        configuration = _new_configuration()
        try:
            loader: Any = incluster_config.InClusterConfigLoader(  # type: ignore[no-untyped-call]
                token_filename=token_file or incluster_config.SERVICE_TOKEN_FILENAME,
                cert_filename=ca_file or incluster_config.SERVICE_CERT_FILENAME,
                environ=os.environ if environ is None else environ,
            )
            loader.load_and_set(configuration)
        except (ConfigException, OSError) as error:
            raise NoClusterError(
                f"The pod's service account cannot be used: {_line(error)}."
            ) from error
        return configuration

    return load


def auto(kubeconfig: str | os.PathLike[str] | None = None, context: str | None = None) -> Load:
    """The given kubeconfig, else KUBECONFIG, else the service account, else ~/.kube/config.

    Raises NoClusterError when there is none of them.
    """
    if kubeconfig or os.environ.get("KUBECONFIG") or context:
        return from_kubeconfig(kubeconfig, context)
    if (
        os.environ.get(incluster_config.SERVICE_HOST_ENV_NAME)
        and Path(incluster_config.SERVICE_TOKEN_FILENAME).is_file()
    ):
        return in_cluster()
    if _home_config().is_file():
        return from_kubeconfig(_home_config())
    raise NoClusterError(_NOTHING)


def _new_configuration() -> Configuration:
    # Configuration() would be a copy of a process-wide default; every client has its own here.
    made: Configuration = type.__call__(Configuration)
    return made


def _home_config() -> Path:
    return Path("~/.kube/config").expanduser()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _refresh_exec_credentials(configuration: Configuration, loader: Any) -> None:
    """Run an exec plugin again shortly before the credentials that it gave expire."""
    if getattr(loader, "exec_plugin_expiry", None) is None:
        return
    lock = asyncio.Lock()

    def stale() -> bool:
        expiry = loader.exec_plugin_expiry
        if expiry.tzinfo is None:
            expiry = expiry.replace(tzinfo=UTC)
        return bool(expiry - _EXPIRY_MARGIN <= datetime.now(UTC))

    async def refresh(current: Configuration) -> None:
        if not stale():
            return
        async with lock:
            if stale():
                del loader.exec_plugin_expiry
                await loader.load_from_exec_plugin()
                if not hasattr(loader, "exec_plugin_expiry"):
                    # Without a new expiry, ask again in a minute rather than at every request.
                    loader.exec_plugin_expiry = datetime.now(UTC) + timedelta(minutes=1.5)
                current.api_key["BearerToken"] = getattr(loader, "token", "")

    hooked: Any = configuration
    hooked.refresh_api_key_hook = refresh
