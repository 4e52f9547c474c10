"""Console examples of documents are run and must print what is written there, numbers of milliseconds apart."""
import os
import pathlib
import re
import shutil
import subprocess

import pytest

import harness

README = pathlib.Path(__file__).parents[2] / "README.md"


def examples(*documents):
    text = "".join((README.parent / document).read_text() for document in documents)
    for block in re.findall(r"^```\n(.*?)^```", text, re.M | re.S):
        command, output = None, []
        for line in block.splitlines() + ["$ "]:
            if line.startswith("$ "):
                if command:
                    yield command, "\n".join(output)
                command, output = line[2:], []
            else:
                output.append(line)


def normal(text):
    return re.sub(r"\d+ ms", "N ms", text).strip()


def test_there_are_examples():
    assert len(list(examples("README.md"))) >= 5 and len(list(examples("docs/backends.md"))) >= 2


@pytest.mark.parametrize("command,expected", list(examples("README.md", "docs/backends.md")))
def test_example(command, expected, tmp_path):
    os.symlink(shutil.which(harness.BELLJAR), tmp_path / "belljar")
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120,
                          env={"PATH": f"{tmp_path}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"})
    assert normal(done.stdout + done.stderr) == normal(expected)


@pytest.mark.parametrize("document,count", [("README.md", 4), ("docs/live.md", 5)])
def test_cpp_example(document, count):
    """Compiled from the document (tests/CMakeLists.txt); what it prints is in its comments."""
    path = README.parent / document
    code = re.search(r"^```cpp\n(.*?)^```", path.read_text(), re.M | re.S)[1]
    expected = [word for line in code.splitlines() if "cout" in line for word in line.partition("// ")[2].split(", ")]
    done = subprocess.run([harness.guest(f"{path.stem.lower()}_example")], capture_output=True, text=True, timeout=120)
    assert (done.stdout.split(), done.stderr) == (expected, "")
    assert len(expected) == count
