"""Ceph's S3, the RADOS Gateway: a whole cluster on loopback, with one process of each kind.

Objects are in the memory of the one OSD, so that nothing but S3's own behaviour is tested.
"""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bucket import ACCESS_KEY, SECRET_KEY, free_ports
from tests.soak.process import SkipError, run_server, run_tool

_PROGRAMS = (
    "ceph",
    "ceph-authtool",
    "ceph-mon",
    "ceph-osd",
    "monmaptool",
    "radosgw",
    "radosgw-admin",
)
_CONFIGURATION = """
[global]
fsid = {cluster}
mon host = [v2:127.0.0.1:{monitor}]
public addr = 127.0.0.1
cluster addr = 127.0.0.1
admin socket =
pid file =
run dir = {folder}
keyring = {folder}/keyring
log file = {folder}/$name.log
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
mon data avail crit = 1
mon allow pool size one = true
osd objectstore = memstore
memstore device bytes = 8589934592
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
rgw frontends = beast endpoint=127.0.0.1:{gateway}
rgw thread pool size = 64
"""
_KEYS = {
    "mon.": ("mon", "allow *"),
    "client.admin": ("mon", "allow *", "osd", "allow *"),
    "osd.0": ("mon", "allow profile osd", "osd", "allow *"),
}
"""Who takes part in the cluster, and what each may do."""


@contextmanager
def run_ceph(folder: Path) -> Iterator[str]:
    """Run a cluster of Ceph with its gateway; give the gateway's endpoint. Raises SkipError."""
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    if missing:
        raise SkipError(f"{', '.join(missing)} cannot be found: `make soak` installs Ceph as root")
    home = folder / "ceph"
    (home / "osd").mkdir(parents=True)
    environment = {"CEPH_CONF": str(home / "ceph.conf")}
    monitor, gateway = free_ports(2)
    cluster, disk = str(uuid.uuid4()), str(uuid.uuid4())
    (home / "ceph.conf").write_text(
        _CONFIGURATION.format(cluster=cluster, monitor=monitor, gateway=gateway, folder=home)
    )

    def run(*command: str) -> None:
        run_tool(command, environment, home)

    run("ceph-authtool", "--create-keyring", "keyring")
    for name, rights in _KEYS.items():
        pairs = zip(rights[::2], rights[1::2], strict=True)
        given = [part for pair in pairs for part in ("--cap", *pair)]
        run("ceph-authtool", "keyring", "--gen-key", "--name", name, *given)
    address = f"[v2:127.0.0.1:{monitor}]"
    run("monmaptool", "--create", "--fsid", cluster, "--addv", "a", address, "monmap")
    run("ceph-mon", "--id", "a", "--mkfs", "--monmap", "monmap", "--keyring", "keyring")
    with run_server(["ceph-mon", "--id", "a", "--foreground"], environment, home):
        run("ceph", "osd", "new", disk)
        run("ceph-osd", "--id", "0", "--mkfs", "--osd-uuid", disk)
        with run_server(["ceph-osd", "--id", "0", "--foreground"], environment, home):
            run(
                "radosgw-admin",
                "user",
                "create",
                "--uid",
                "soak",
                "--display-name",
                "soak",
                "--access-key",
                ACCESS_KEY,
                "--secret-key",
                SECRET_KEY,
            )
            command = ["radosgw", "--name", "client.admin", "--foreground"]
            with run_server(command, environment, home) as server:
                endpoint = f"http://127.0.0.1:{gateway}"
                server.await_answer(endpoint)
                yield endpoint
