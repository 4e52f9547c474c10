"""Fixtures of all suites; harness.py has the functions that they hand out."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402


def pytest_report_header(config):
    return f"belljar: {harness.BELLJAR}, as {'root' if harness.IS_ROOT else f'uid {os.geteuid()}'}, guests: {harness.GUESTS}"


@pytest.fixture(autouse=True)
def no_zombies():
    yield
    harness.reap_janitors()


@pytest.fixture
def leftovers():
    """Whatever the test does, nothing of it is left on the host 5 s later."""
    found = harness.Leftovers()
    yield found
    found.check()


@pytest.fixture
def shared(tmp_path):
    """A directory of the host to mount; open to every user, so that controls can use it too."""
    tmp_path.chmod(0o755)
    directory = tmp_path / "shared"
    directory.mkdir()
    directory.chmod(0o777)
    return directory
