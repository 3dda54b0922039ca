"""Device names that Windows reserves, with any extension."""

_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    head + digit for head in ("com", "lpt") for digit in "123456789¹²³"
}


def is_device(name: str) -> bool:
    """Return whether a file's name is a device on Windows; it ignores text after the first dot."""
    return name.partition(".")[0].rstrip(" ").casefold() in _DEVICES
