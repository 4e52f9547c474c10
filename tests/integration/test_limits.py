"""Limits: each ends with its own verdict and names the flag that would have to change; output never grows belljar."""

import json
import signal
import subprocess

import pytest

import harness
from harness import belljar, inside, run_json

both = pytest.mark.parametrize("level", ["kernel", "process"])


@both
def test_wall(level):
    result = run_json("--level", level, "--wall", "0.25s", "--", "/bin/sleep", "600")
    assert (result.verdict, result.status, result["exit_code"]) == ("timed_out", 124, None), result
    assert 240 <= result["duration_ms"]
    assert "limits.wall = 0.25s" in result["message"] and "--wall" in result["message"]


@both
@pytest.mark.parametrize("limit", [0.05, 0.35])
def test_fractional_cpu_time(level, limit):
    result = run_json("--level", level, "--cpu-time", f"{limit}s", "--wall", "300s", "--", "/bin/sh", "-c", "while :; do :; done")
    assert (result.verdict, result.status) == ("cpu_time", 124), result
    assert limit * 1000 * 0.9 <= result["usage"]["cpu_ms"] < limit * 1000 + 2000


@both
def test_cpus(level):
    """Half a CPU: a second of work takes about two."""
    result = run_json("--cpus", "0.5", "--cpu-time", "500ms", "--wall", "300s", *inside(level, "spin", "2"))
    if result.verdict == "refused":
        assert not harness.IS_ROOT and "cpus" in result["message"], result
        return
    line = next((g for g in result["receipt"]["guards"] if "cpus" in g["guard"]), None)
    if line is not None and not line["by"].startswith("cgroup"):
        assert not harness.IS_ROOT and line["reason"], line
        return
    assert result.verdict == "cpu_time", result
    assert result["duration_ms"] > 700, "limits.cpus = 0.5 did not slow it down"


@both
def test_memory(level):
    result = run_json("--level", level, "--memory", "80M", "--", harness.PYTHON, "-c", "x = bytearray(400 << 20)")
    assert (result.verdict, result.status, result["signal"]) == ("out_of_memory", 137, None), result
    assert "limits.memory = 80M" in result["message"]


@both
def test_open_files(level):
    result = run_json("--level", level, "--open-files", "50", "--", "/bin/sh", "-c", "ulimit -n; ulimit -Hn")
    assert result["stdout"].split() == ["50", "50"]


@both
def test_file_size(level):
    result = run_json("--level", level, "--file-size", "1M", "--", "/bin/sh", "-c", "exec head -c 5M /dev/zero > big")
    assert (result.verdict, result.status) == ("file_size", 128 + 25), result
    assert "--file-size" in result["message"]


def test_disk_usage_is_told():
    result = run_json("--", "/bin/sh", "-c", "head -c 3M /dev/zero > three")
    assert 3 << 20 <= result["usage"]["disk_bytes"] < 4 << 20


BURN = """
import os, signal, sys, time
while time.process_time() < 0.3: pass
open(sys.argv[1], "w").close()
signal.pause()
"""


@both
def test_usage_of_a_run_that_its_caller_ends(level, shared):
    """Init is asked to end it, since it alone knows what its children have used."""
    process = subprocess.Popen([harness.BELLJAR, "run", "--json", "--level", level, "--rw", str(shared), "--", harness.PYTHON,
                                "-c", BURN, str(shared / "burnt")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert harness.wait_until((shared / "burnt").exists)
    process.send_signal(signal.SIGINT)
    result = json.loads(process.communicate(timeout=harness.PATIENCE)[0])
    assert result["verdict"] == "cancelled" and result["usage"]["cpu_ms"] >= 300, result


@both
def test_usage(level):
    # Both live until the end; a watcher, where there is one, has time to look.
    script = "sleep 600 & a=$!; sleep 600 & b=$!; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; sleep 0.2; kill $a $b; wait"
    result = run_json("--level", level, "--", "/bin/sh", "-c", script)
    assert result["usage"]["cpu_ms"] > 5
    assert result["usage"]["processes_peak"] >= 3
    assert result["usage"]["memory_peak_bytes"] > 100_000


@both
@pytest.mark.parametrize("flag, argv, verdict", [
    ("--wall=100ms", ["/bin/sleep", "600"], "timed_out"),
    ("--cpu-time=50ms", ["/bin/sh", "-c", "while :; do :; done"], "cpu_time"),
    ("--file-size=10K", ["/bin/sh", "-c", "exec head -c 1M /dev/zero > f"], "file_size"),
    ("--disk=64K", ["/bin/sh", "-c", "head -c 9M /dev/zero > f"], "disk_limit"),
    ("--memory=40M", [harness.PYTHON, "-c", "x = bytearray(200 << 20)"], "out_of_memory"),
])
def test_one_line_explains(level, flag, argv, verdict):
    done = belljar("--level", level, flag, "--", *argv)
    lines = [line for line in done.stderr.splitlines() if line.startswith("belljar:")]
    assert len(lines) == 1 and verdict in lines[0] and flag.split("=")[0] in lines[0], done.stderr
    quiet = belljar("--quiet", "--level", level, flag, "--", *argv)
    assert "belljar:" not in quiet.stderr and quiet.returncode == done.returncode


def peak_of(path, *arguments, **options):
    """Runs belljar and returns (the peak memory of it and its children in KiB, its standard output)."""
    done = subprocess.run([harness.guest("peak"), str(path), harness.BELLJAR, "run", *map(str, arguments)],
                          stdin=subprocess.DEVNULL, check=True, timeout=2 * harness.PATIENCE, **options)
    return int(path.read_text()), done.stdout


@both
@pytest.mark.parametrize("kind", ["text", "binary", "both"])
def test_output_flood_does_not_grow_belljar(level, kind, tmp_path):
    quiet, _ = peak_of(tmp_path / "peak", "--json", *inside(level, "flood", kind, 1), stdout=subprocess.PIPE)
    peak, text = peak_of(tmp_path / "peak", "--json", *inside(level, "flood", kind, 300_000_000), stdout=subprocess.PIPE)
    result = json.loads(text)
    print(f"{level} {kind}: peak {peak} KiB, {quiet} KiB with no output")
    assert quiet < 20_000, "this measures something else than belljar"
    assert result["stdout_bytes"] + result["stderr_bytes"] == 300_000_000
    assert result["stdout_bytes"] - result["stdout_dropped"] == 65536, "64K are kept by default"
    assert peak - quiet < 2048, "300 MB of output made belljar grow by 2 MB or more"


def test_the_scale_sees_growth(tmp_path):
    quiet, _ = peak_of(tmp_path / "peak", "--json", *inside("kernel", "flood", "text", 1), stdout=subprocess.DEVNULL)
    kept, _ = peak_of(tmp_path / "peak", "--json", "--output", "20M", *inside("kernel", "flood", "text", 30_000_000),
                      stdout=subprocess.DEVNULL)
    assert kept - quiet > 15_000, "20 MB that are kept on demand must show"


def test_streamed_flood_does_not_grow_belljar(tmp_path):
    flood = ["--output", "unlimited", *inside("kernel", "flood", "text", 300_000_000)]
    quiet, _ = peak_of(tmp_path / "peak", *inside("kernel", "flood", "text", 1), stdout=subprocess.DEVNULL)
    peak, _ = peak_of(tmp_path / "peak", *flood, stdout=subprocess.DEVNULL)
    print(f"streamed: peak {peak} KiB, {quiet} KiB with no output")
    assert peak - quiet < 2048


def test_denial_flood_does_not_hurt():
    """A guest that makes refused calls without end is slowed down by nobody but itself."""
    code = "import ctypes; c = ctypes.CDLL(None)\nfor i in range(30000): c.mount(0, 0, 0, 0, 0)\nprint('done')"
    result = run_json("--wall", "300s", "--", harness.PYTHON, "-c", code)
    assert result.verdict == "exited" and result["stdout"] == "done\n", result
    mount = next(d for d in result["denials"] if d["operation"] == "mount")
    assert mount["count"] > 1000
