"""The runtime's connection in Kopf's words, so that both use one configuration."""

import kopf

from gpufair.cluster.client import Client


async def connection_info(client: Client) -> kopf.ConnectionInfo:
    """Return the server, CA, certificate and present token of the client."""
    configuration = client.configuration
    scheme = token = None
    if configuration.api_key:
        header = await configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        if header:
            scheme, _, token = header.partition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
        scheme=scheme,
        token=token,
        proxy_url=configuration.proxy,
    )
