"""Network backend of the HTTP client: sockets to checked addresses only, within a budget.

The budget of a request arrives as its timeout, which httpcore2 passes on unchanged.
"""

import re
import select
import socket
import ssl
from collections.abc import Iterable
from typing import Any

import httpcore2

from builder.http.addresses import Addresses
from builder.http.errors import FetchError
from builder.http.limits import Budget

_STEP = 1.0
"""Seconds between two checks of the stop event during a wait."""
_BLANKS = re.compile(r"\s+")


def one_line(error: BaseException) -> str:
    """Return the message of an error in one line."""
    return _BLANKS.sub(" ", str(error)).strip()[:200] or type(error).__name__


class AddressBackend(httpcore2.NetworkBackend):
    """Connects only to addresses that pass the check."""

    def __init__(self, addresses: Addresses) -> None:
        self._addresses = addresses

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first checked address that answers. Raises FetchError, Deferred."""
        budget: Budget = timeout
        budget.dial()
        addresses = self._addresses.addresses(host, port)
        failed: OSError | None = None
        for left, (family, address) in zip(range(len(addresses), 0, -1), addresses, strict=True):
            plain = socket.socket(family, socket.SOCK_STREAM)
            try:
                plain.settimeout(budget.remaining() / left)
                plain.connect(address)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            except OSError as error:
                plain.close()
                failed = error
            except BaseException:
                plain.close()
                raise
            else:
                return _BoundStream(plain)
        code = "connect-timeout" if isinstance(failed, TimeoutError) else "connect"
        reason = (failed and failed.strerror) or failed
        raise FetchError(code, f"{host}:{port}: {reason}") from failed


class _BoundStream(httpcore2.NetworkStream):
    """A connection whose waits end with the budget of the current request."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        budget: Budget = timeout
        while True:
            self._socket.settimeout(min(budget.remaining(), _STEP))
            try:
                return self._socket.recv(max_bytes)
            except TimeoutError:
                continue
            except ssl.SSLEOFError:
                return b""
            except OSError as error:
                raise httpcore2.ReadError(error) from error

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        budget: Budget = timeout
        budget.send()
        view = memoryview(buffer)
        while view:
            self._socket.settimeout(min(budget.remaining(), _STEP))
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.WriteError(error) from error

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: Any = None,
    ) -> httpcore2.NetworkStream:
        budget: Budget = timeout
        self._socket.settimeout(budget.remaining())
        try:
            secured = ssl_context.wrap_socket(self._socket, server_hostname=server_hostname)
        except TimeoutError as error:
            self.close()
            raise FetchError("connect-timeout", f"{server_hostname}: TLS") from error
        except (OSError, ValueError) as error:
            self.close()
            raise FetchError("tls", f"{server_hostname}: {one_line(error)}") from error
        return _BoundStream(secured)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":  # an idle connection is readable when the server closed it
            return bool(select.select([self._socket], [], [], 0)[0])
        return None
