"""hdfs:// by the native client of Hadoop (libhdfs), which pyarrow loads.

The client needs Java and the cluster's configuration on each machine: JAVA_HOME, HADOOP_HOME or
ARROW_LIBHDFS_DIR, and CLASSPATH. It knows Kerberos, from `kinit`.
"""

from dataclasses import dataclass
from functools import lru_cache

from pyarrow import fs

from builder.errors import UsageError
from builder.ingest.remote.hadoop_files import HadoopStatus

_PORT = 8020


@dataclass(frozen=True, slots=True)
class NativeHdfs:
    """Implements HadoopClient over a file system of pyarrow."""

    files: fs.FileSystem

    def status(self, path: str) -> HadoopStatus:
        """Return the status of a path (see HadoopClient)."""
        found = self.files.get_file_info(path)
        if found.type == fs.FileType.NotFound:
            raise FileNotFoundError(path)
        return _describe(path, found)

    def list(self, path: str) -> list[HadoopStatus]:
        """Return the files and folders in a folder."""
        found = self.files.get_file_info(fs.FileSelector(path))
        return [_describe(f"{path.rstrip('/')}/{one.base_name}", one) for one in found]

    def read(self, path: str, start: int, length: int) -> bytes:
        """Return bytes of a file (see HadoopClient)."""
        with self.files.open_input_file(path) as file:
            return bytes(file.read_at(length, start))


@lru_cache(maxsize=8)
def connect(place: str, user: str) -> NativeHdfs:
    """Return the client of a cluster; hdfs:// without a host is that of the configuration.

    Raises UsageError if the native client is missing or cannot connect.
    """
    host, _, port = place.removeprefix("hdfs://").partition(":")
    number = int(port or _PORT) if host else 0
    try:
        return NativeHdfs(fs.HadoopFileSystem(host or "default", number, user=user or None))
    except OSError as error:
        reason = str(error).splitlines()[0]
        raise UsageError(
            f"{place} cannot be reached by Hadoop's native client: {reason}; set JAVA_HOME, "
            "HADOOP_HOME and CLASSPATH, or use webhdfs://host:9870/path"
        ) from error


def _describe(path: str, found: fs.FileInfo) -> HadoopStatus:
    is_folder = found.type == fs.FileType.Directory
    return HadoopStatus(path, is_folder, found.size or 0, found.mtime_ns or 0)
