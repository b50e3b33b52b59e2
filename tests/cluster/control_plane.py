"""The control plane: etcd, API server, controller manager, scheduler. Objects live in it; pods need a node as well."""

from __future__ import annotations

import http
import http.client
import ssl
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.certificates import Authority, write_key
from cluster.kubeconfig import write_kubeconfig
from cluster.ports import free_port
from cluster.wait import HANG_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.build import Binaries
    from cluster.processes import Processes

__all__ = ["LOOPBACK", "ControlPlane", "start_control_plane"]

LOOPBACK = "127.0.0.1"
SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
SERVER_NAMES = (SERVICE_ADDRESS, "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADMINISTRATORS = "system:masters"
# With the default of 20 requests a second, 500 Jobs take 149 s to complete; with these, 6.9 s.
CLIENT_LIMITS = ("--kube-api-qps=1000", "--kube-api-burst=2000")


@dataclass(frozen=True)
class ControlPlane:
    """What a node needs to join: where the server is, who vouches for whom."""

    server: str
    authority: Authority
    kubeconfig: Path


def start_control_plane(directory: Path, programs: Binaries, processes: Processes, address: str) -> ControlPlane:
    """Start the control plane with its state in the directory, and return once it serves and schedules.

    The API server listens on the address, all else on the loopback.
    Raises `ComponentError` with the log of a component that ended, `ClusterError` when one is not ready in time.
    """
    authority = Authority(directory / "pki")
    write_key(directory / "pki" / "service-accounts.key")
    server = f"https://{address}:{free_port()}"
    admin = authority.client("accelbench-tests-admin", ADMINISTRATORS)
    kubeconfig = write_kubeconfig(directory / "kubeconfig", server=server, authority=authority.certificate, user=admin)
    etcd = _start_etcd(directory, programs, processes)
    _start_server(directory, programs, processes, authority, etcd=etcd, server=server)
    as_admin = ssl.create_default_context(cafile=authority.certificate)
    as_admin.load_cert_chain(admin.certificate, admin.key)
    _wait_until_served("kube-apiserver", processes, f"{server}/readyz", as_admin)

    key = directory / "pki" / "service-accounts.key"
    signing = (f"--root-ca-file={authority.certificate}", f"--service-account-private-key-file={key}")
    manager = _start_client("kube-controller-manager", signing, directory, programs, processes, authority, server)
    scheduler = _start_client("kube-scheduler", (), directory, programs, processes, authority, server)
    # These two sign their serving certificates themselves.
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    _wait_until_served("kube-controller-manager", processes, f"https://{LOOPBACK}:{manager}/healthz", anyone)
    _wait_until_served("kube-scheduler", processes, f"https://{LOOPBACK}:{scheduler}/healthz", anyone)
    # Without its default service account a namespace takes no pods.
    account = f"{server}/api/v1/namespaces/default/serviceaccounts/default"
    _wait_until_served("kube-controller-manager", processes, account, as_admin)
    return ControlPlane(server=server, authority=authority, kubeconfig=kubeconfig)


def _start_etcd(directory: Path, programs: Binaries, processes: Processes) -> str:
    client, peer = (f"http://{LOOPBACK}:{free_port()}" for _ in range(2))
    processes.start(
        "etcd",
        [
            programs.component("etcd"),
            f"--data-dir={directory / 'etcd'}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # Nothing here has to survive a power cut.
            "--unsafe-no-fsync",
        ],
    )
    return client


def _start_server(
    directory: Path, programs: Binaries, processes: Processes, authority: Authority, *, etcd: str, server: str
) -> None:
    address, _, port = urllib.parse.urlsplit(server).netloc.partition(":")
    serving = authority.server("kube-apiserver", (address, *SERVER_NAMES))
    to_kubelet = authority.client("kube-apiserver-kubelet-client", ADMINISTRATORS)
    service_accounts = directory / "pki" / "service-accounts.key"
    processes.start(
        "kube-apiserver",
        [
            programs.component("kube-apiserver"),
            f"--etcd-servers={etcd}",
            f"--bind-address={address}",
            f"--advertise-address={address}",
            f"--secure-port={port}",
            f"--tls-cert-file={serving.certificate}",
            f"--tls-private-key-file={serving.key}",
            f"--client-ca-file={authority.certificate}",
            f"--kubelet-client-certificate={to_kubelet.certificate}",
            f"--kubelet-client-key={to_kubelet.key}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={service_accounts}",
            f"--service-account-signing-key-file={service_accounts}",
            f"--service-cluster-ip-range={SERVICE_RANGE}",
            "--authorization-mode=Node,RBAC",
            # Nothing here routes the address of a Service.
            "--endpoint-reconciler-type=none",
        ],
    )


def _start_client(
    component: str,
    extra: tuple[str, ...],
    directory: Path,
    programs: Binaries,
    processes: Processes,
    authority: Authority,
    server: str,
) -> int:
    port = free_port()
    user = authority.client(f"system:{component}", ADMINISTRATORS)
    kubeconfig = write_kubeconfig(
        directory / "pki" / f"{component}.kubeconfig", server=server, authority=authority.certificate, user=user
    )
    processes.start(
        component,
        [
            programs.component(component),
            f"--kubeconfig={kubeconfig}",
            f"--bind-address={LOOPBACK}",
            f"--secure-port={port}",
            "--leader-elect=false",
            *CLIENT_LIMITS,
            *extra,
        ],
    )
    return port


def _wait_until_served(component: str, processes: Processes, url: str, context: ssl.SSLContext) -> None:
    place = urllib.parse.urlsplit(url)

    def served() -> bool:
        connection = http.client.HTTPSConnection(place.netloc, timeout=HANG_SECONDS, context=context)
        try:
            connection.request("GET", place.path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except OSError:
            return False
        finally:
            connection.close()

    processes.wait_for(component, served, what=f"{component} to serve {place.path}")
