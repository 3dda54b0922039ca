"""Devices: names that Windows takes for them, whatever a file is meant."""

_DEVICES = {"con", "prn", "aux", "nul", "conin$", "conout$"} | {
    head + digit for head in ("com", "lpt") for digit in "123456789¹²³"
}


def is_device(name: str) -> bool:
    """Tell whether Windows takes a file's name for a device; what follows the first dot is none."""
    return name.partition(".")[0].rstrip(" ").casefold() in _DEVICES
