"""The folder of this file is where tests import shared problems, references and certificates from."""

import signal

import pytest


@pytest.fixture
def heard():
    """Ctrl-C as in a terminal: a shell leaves it ignored in what it starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
