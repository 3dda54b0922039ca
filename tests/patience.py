"""Tests in real time: what they look at takes a second or so, and no clock of theirs can stand in.

A machine that stands still for that long spoils such a test, and says nothing about the program.
"""

import pytest

in_real_time = pytest.mark.flaky(reruns=3)
"""Marks a test that is made again, up to three times, before it has failed."""
