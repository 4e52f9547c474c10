"""node: files and child processes, the own loopback, workers, crypto, WebAssembly."""

import hashlib

import pytest

HASH = hashlib.sha256(b"belljar").hexdigest()[:8]


@pytest.fixture(autouse=True)
def node(tool):
    tool("node", "nodejs")


def test_files_and_children(sandbox):
    assert sandbox.run("node", "/programs/node_files.js").stdout == "node files ok 42 guest /tmp/home\n"


def test_network_on_own_loopback(sandbox):
    assert sandbox.run("node", "/programs/node_network.js").stdout == "node network ok ENETUNREACH\n"


def test_workers_crypto_wasm(sandbox):
    assert sandbox.run("node", "/programs/node_compute.js").stdout == f"node compute ok 10500000 {HASH} 1.1.1970\n"


def test_modules_and_inspection(sandbox):
    """An ES module from standard input, with top-level await and a dynamic import."""
    source = """const os = await import('node:os');
console.log(os.cpus().length > 0, os.totalmem() > 0, process.memoryUsage().rss > 0)"""
    assert sandbox.run("node", "--input-type=module", stdin=source).stdout == "true true true\n"
