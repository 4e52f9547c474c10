"""Fixtures of all suites, and what decides which tests run; harness.py has the functions that they hand out.

A test with `@pytest.mark.long` is for `./test --long` alone: campaigns, stops and jumps of clocks, whatever takes more than a
few seconds. Everything else is the gate.
"""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import harness  # noqa: E402


def pytest_report_header(config):
    return f"belljar: {harness.BELLJAR}, as {'root' if harness.IS_ROOT else f'uid {os.geteuid()}'}, guests: {harness.GUESTS}"


def pytest_configure(config):
    config.addinivalue_line("markers", "long: only in ./test --long")


def pytest_collection_modifyitems(config, items):
    for item in items:
        item.user_properties.append(("id", item.nodeid))  # Into the JUnit file: what tests/run_all.py tries again.
    if harness.LONG:
        return
    kept = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=kept)
    items[:] = [item for item in items if item not in set(kept)]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Says in the JUnit file which failures are final. Containment is judged once: what held at the second try did not hold."""
    if call.excinfo is None or call.excinfo.errisinstance(pytest.skip.Exception):
        return
    if "containment" in item.path.parts or call.excinfo.errisinstance((harness.LeftBehind, harness.Escape)):
        item.user_properties.append(("final", "yes"))


@pytest.fixture(autouse=True)
def no_zombies():
    yield
    harness.reap_janitors()


@pytest.fixture
def leftovers():
    """Whatever the test does, nothing of it is left on the host."""
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
