"""Fixtures of the containment tests: directories of the host to mount, and one that must stay out of reach."""

import pytest


@pytest.fixture
def project(shared):
    directory = shared / "project"
    directory.mkdir()
    return directory


@pytest.fixture
def data(shared):
    directory = shared / "data"
    directory.mkdir()
    (directory / "file").write_text("DATA")
    return directory


@pytest.fixture
def victim(shared):
    directory = shared / "victim"
    (directory / "sub").mkdir(parents=True)
    (directory / "sub/file").write_text("SECRET")
    (directory / "file").write_text("SECRET")
    return directory
