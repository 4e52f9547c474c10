"""`belljar policy` from outside: the schema against the profiles, errors with lines, precedence of flags, docs that hold.

BELLJAR names the program; by default the one of the test preset.
"""

import json
import os
import pathlib
import re
import subprocess
import tomllib

import jsonschema
import pytest

import harness

ROOT = pathlib.Path(__file__).resolve().parents[2]
BELLJAR = os.environ.get("BELLJAR", str(ROOT / "build/test/src/cli/belljar"))
PROFILES = sorted((ROOT / "profiles").glob("*.toml"))


def policy(*arguments, cwd=None, env=None):
    return subprocess.run([BELLJAR, "policy", *map(str, arguments)], capture_output=True, text=True, timeout=2 * harness.PATIENCE, cwd=cwd,
                          env={**os.environ, **(env or {})})


def show(*arguments, **options):
    result = policy("show", "--json", *arguments, **options)
    assert result.returncode == 0, result.stdout + result.stderr
    return json.loads(result.stdout)


def refusal(*arguments, **options):
    result = policy("show", *arguments, **options)
    assert result.returncode == 1, result.stdout + result.stderr
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, "an error is one line"
    return result.stderr


@pytest.fixture(scope="module")
def schema():
    result = policy("schema")
    assert result.returncode == 0
    document = json.loads(result.stdout)
    jsonschema.Draft202012Validator.check_schema(document)
    return document


@pytest.fixture
def write(tmp_path):
    def write_file(text, name="policy.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write_file


def valid(document, schema):
    return jsonschema.Draft202012Validator(schema).is_valid(document)


def test_there_are_profiles():
    names = [line.split()[0] for line in policy("profiles").stdout.splitlines()]
    assert names == ["default", "tool", "strict-tool", "build", "open"]
    assert sorted(names) == [path.stem for path in PROFILES]


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_profiles_fit_the_schema(path, schema):
    jsonschema.validate(tomllib.loads(path.read_text()), schema, jsonschema.Draft202012Validator)
    assert policy("check", path).returncode == 0
    assert policy("profiles", path.stem).stdout == path.read_text()
    as_json = json.loads(policy("profiles", path.stem, "--json").stdout)
    jsonschema.validate(as_json, schema, jsonschema.Draft202012Validator)
    assert as_json == show("--profile", path.stem)


# Documents that the schema and the reader must judge alike.
RIGHT = [
    {},
    {"limits": {"memory": "512M", "wall": 1.5, "cpus": 0.5, "processes": 64}},
    {"limits": {"memory": 1048576, "wall": "unlimited", "files": "unlimited", "cpu_time": "300ms"}},
    {"limits": {"memory": "1.5G", "disk": "64KiB", "file_size": 0}},
    {"level": "process", "min_level": "process", "profile": "tool"},
    {"files": {"mounts": [{"source": "/srv"}, {"source": "/a", "target": "/b", "access": "rw"}], "hide": ["/x"]}},
    {"environment": {"set": {"A": "x=y", "B": ""}, "pass": ["TERM"]}},
    {"network": {"mode": "none", "allow": []}},
]
WRONG = [
    {"limit": {}},
    {"memory": "512M"},
    {"limits": {"memroy": "512M"}},
    {"limits": {"memory": "512MB"}},
    {"limits": {"memory": "12 parsecs"}},
    {"limits": {"memory": -1}},
    {"limits": {"memory": 0}},
    {"limits": {"memory": True}},
    {"limits": {"memory": None}},
    {"limits": {"memory": ["1G"]}},
    {"limits": {"memory": 1.5}},
    {"limits": {"wall": "5d"}},
    {"limits": {"wall": 0}},
    {"limits": {"wall": "Unlimited"}},
    {"limits": {"processes": "64"}},
    {"limits": {"processes": 1.5}},
    {"limits": {"cpus": "2"}},
    {"limits": {"cpus": 0}},
    {"limits": {"disk": 0}},
    {"limits": 4},
    {"level": "kernal"},
    {"level": 2},
    {"profile": "tol"},
    {"files": {"mounts": ["/srv"]}},
    {"files": {"mounts": [{"target": "/b"}]}},
    {"files": {"mounts": [{"source": "/a", "targt": "/b"}]}},
    {"files": {"mounts": [{"source": "/a", "access": "wr"}]}},
    {"files": {"mounts": [{"source": "relative"}]}},
    {"files": {"hide": "/x"}},
    {"files": {"hide": ["x"]}},
    {"files": {"workdir": "x"}},
    {"files": {"system": "all"}},
    {"network": {"mode": "open"}},
    {"environment": {"set": {"A": 1}}},
    {"environment": {"set": {"A=B": "x"}}},
    {"environment": {"set": {"": "x"}}},
    {"environment": {"pass": [""]}},
    [],
]


@pytest.mark.parametrize("document", RIGHT, ids=json.dumps)
def test_right_documents(document, schema, write):
    assert valid(document, schema)
    result = policy("check", write(json.dumps(document), "policy.json"))
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("document", WRONG, ids=json.dumps)
def test_wrong_documents(document, schema, write):
    assert not valid(document, schema)
    path = write(json.dumps(document), "policy.json")
    result = policy("check", path)
    assert result.returncode == 1
    assert str(path) in result.stderr


def test_check_names_file_line_key_and_nearest(write):
    path = write('profile = "tool"\n\n[limits]\nmemroy = "1G"\n')
    result = policy("check", path)
    assert result.returncode == 1
    assert result.stderr == (f'belljar: {path}:4: there is no key "limits.memroy"; did you mean "limits.memory"?\n')


def test_check_names_the_line_of_a_contradiction(write):
    path = write('level = "process"\nmin_level = "kernel"\n')
    assert policy("check", path).stderr.startswith(f"belljar: {path}:2: min_level: kernel is above level process; ")


def test_check_takes_many_files_and_speaks_json(write):
    good, bad = write("", "a.toml"), write("x = 1\n", "b.toml")
    result = policy("check", "--json", good, bad)
    assert result.returncode == 1
    answer = json.loads(result.stdout)
    assert answer["ok"] is False
    assert answer["files"][0] == {"file": str(good), "ok": True}
    assert answer["files"][1]["error"]["step"] == f"{bad}:1"
    assert policy("check", good).stdout == f"{good}: ok\n"
    assert policy("check", good.parent / "missing.toml").returncode == 1


def test_usage_errors_are_status_2():
    for arguments in [[], ["check"], ["shwo"], ["show", "--memroy", "1G"], ["show", "stray"]]:
        assert policy(*arguments).returncode == 2, arguments
    assert policy("--help").returncode == 0
    assert "Examples:" in policy("--help").stdout


def test_every_flag_teaches_by_example():
    text = policy("show", "--help").stdout
    for flag in ("level min-level profile policy wall cpu-time cpus memory processes open-files file-size disk files output "
                 "ro rw tmp hide workdir system net allow env pass-env dangerously-share-host-network").split():
        line = re.search(rf"^  --{flag}\b.*?(?=^  --|^\S|\Z)", text, re.M | re.S)
        assert line, f"--{flag} is missing"
        assert "e.g." in line[0] or flag.startswith("dangerously"), line[0]


def test_flags_beat_the_file_and_the_file_beats_the_profile(write):
    path = write('profile = "tool"\n[limits]\nmemory = "100M"\nwall = "7s"\n')
    answer = show("--policy", path, "--wall", "9s")["limits"]
    assert (answer["memory"], answer["wall"], answer["processes"]) == ("100M", "9s", 64)
    answer = show("--policy", path, "--profile", "build")
    assert (answer["profile"], answer["limits"]["memory"], answer["limits"]["processes"]) == ("build", "100M", 4096)
    assert show("--memory", "1G", "--memory", "2G")["limits"]["memory"] == "2G"


def test_shown_policy_is_a_policy_file(write):
    first = policy("show", "--profile", "strict-tool", "--cpus", "1.5", "--env", "A=b c", "--rw", "/srv:/out", "--hide", "/x")
    path = write(first.stdout)
    assert policy("show", "--policy", path).stdout == first.stdout
    as_json = write(policy("show", "--json", "--policy", path).stdout, "policy.json")
    assert policy("show", "--policy", as_json).stdout == first.stdout


def test_mounts(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "a:b").mkdir()
    here = str(tmp_path)

    def mounts(*arguments):
        return [(m["source"], m["target"], m["access"])
                for m in show(*arguments, cwd=tmp_path, env={"HOME": "/home/me"})["files"]["mounts"]]

    assert mounts("--ro", "data") == [(f"{here}/data", f"{here}/data", "ro")]
    assert mounts("--ro", "./data/:/data/") == [(f"{here}/data", "/data", "ro")]
    assert mounts("--rw", ".") == [(here, here, "rw")]
    assert mounts("--rw", "data/..:/x") == [(here, "/x", "rw")]
    assert mounts("--ro", "~/docs") == [("/home/me/docs", "/home/me/docs", "ro")]
    assert mounts("--ro", "~:/h") == [("/home/me", "/h", "ro")]
    assert mounts("--ro", "a:b:/ab") == [(f"{here}/a:b", "/ab", "ro")]
    assert mounts("--ro", "/a", "--rw", "/b", "--ro", "/c:/d") == [("/a", "/a", "ro"), ("/c", "/d", "ro"), ("/b", "/b", "rw")]
    assert "must start with /" in refusal("--ro", "data:data")
    assert "is not SRC[:DST]" in refusal("--ro", ":/x")
    assert "two mounts" in refusal("--ro", "/a:/x", "--rw", "/b:/x")
    assert "not a plain absolute path" in refusal("--ro", "/a:/x/../y")
    assert "$HOME" in refusal("--ro", "~/x", env={"HOME": ""})


def test_a_list_flag_takes_one_value():
    assert policy("show", "--hide", "/a", "/b").returncode == 2


def test_environment_flags_beat_the_file(write):
    path = write('[environment]\nset = {A = "1", B = "2"}\npass = ["C"]\n')
    answer = show("--policy", path, "--env", "C=3", "--pass-env", "B", "--env", "A=9")["environment"]
    assert answer == {"set": {"A": "9", "C": "3"}, "pass": ["B"]}
    assert "both set and passed on" in refusal("--env", "A=1", "--pass-env", "A")
    assert "is not NAME=VALUE" in refusal("--env", "A")


def test_network(write):
    assert "egress broker" in refusal("--net", "full")
    assert "egress broker" in refusal("--allow", "pypi.org")
    assert "--dangerously-share-host-network" in refusal("--net", "host")
    assert show("--dangerously-share-host-network")["network"]["mode"] == "host"
    assert show("--dangerously-share-host-network", "--net", "host")["network"]["mode"] == "host"
    assert "contradicts --net none" in refusal("--net", "none", "--dangerously-share-host-network")
    path = write('[network]\nmode = "host"\n')
    assert "--dangerously-share-host-network" in refusal("--policy", path)
    assert policy("check", path).returncode == 1
    assert policy("check", "--dangerously-share-host-network", path).returncode == 0


def test_levels():
    assert "not in this version" in refusal("--level", "container")
    assert "use process" in refusal("--level", "none")
    assert show("--level", "process")["min_level"] == "process"
    assert "did you mean \"kernel\"?" in refusal("--level", "kernal")


def test_errors_name_the_flag():
    assert refusal("--memory", "12 parsecs").startswith('belljar: --memory: "12 parsecs" is not a size; ')
    assert refusal("--profile", "tol") == 'belljar: --profile: there is no profile "tol"; did you mean "tool"?\n'
    answer = json.loads(policy("show", "--json", "--memory", "x").stdout)
    assert answer["error"]["step"] == "--memory"


# --- documentation ---


def blocks(name, language):
    text = (ROOT / "docs" / name).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.M | re.S)


@pytest.mark.parametrize("name", ["policy.md", "profiles.md"])
def test_documented_policies_are_right(name, schema, write):
    examples = blocks(name, "toml")
    assert examples
    for example in examples:
        jsonschema.validate(tomllib.loads(example), schema, jsonschema.Draft202012Validator)
        result = policy("check", write(example))
        assert result.returncode == 0, result.stderr + example
    for example in blocks(name, "json"):
        assert policy("check", write(example, "policy.json")).returncode == 0, example


def test_every_key_is_documented(schema):
    text = (ROOT / "docs/policy.md").read_text()
    for name, value in schema["properties"].items():
        if "properties" not in value:
            assert f"| `{name}` |" in text, name
        for leaf in value.get("properties", {}):
            assert f"| `{name}.{leaf}` |" in text, f"{name}.{leaf}"


def test_documented_sessions_are_real(tmp_path):
    """Each command of docs/policy.md gives the output that stands beneath it, run in one directory."""
    sessions = blocks("policy.md", "console")
    assert sessions
    for session in sessions:
        for command, output in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", session, re.M):
            command = re.sub(r"\bbelljar (?=policy|run)", f"{BELLJAR} ", command)
            result = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=2 * harness.PATIENCE)
            assert result.stdout + result.stderr == output, command


def test_profile_table_is_true():
    text = (ROOT / "docs/profiles.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    names = rows[0][1:]
    assert set(names) == {path.stem for path in PROFILES}
    shown = {name: show("--profile", name) for name in names}
    checked = 0
    for row in rows[2:]:
        section, leaf = row[0].strip("`").split(".")
        for name, cell in zip(names, row[1:]):
            assert str(shown[name][section].get(leaf, "–")) == cell, (row[0], name)
            checked += 1
    assert checked == len(names) * 11


def test_result_document_names_every_field():
    text = (ROOT / "docs/result.md").read_text()
    example = json.loads(blocks("result.md", "json")[0])
    header = (ROOT / "include/belljar/result.h").read_text()
    verdicts = re.findall(r"^  k([A-Z]\w+),", re.search(r"enum class Verdict .*?};", header, re.S)[0], re.M)
    assert len(verdicts) >= 13
    for verdict in verdicts:
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", verdict).lower()
        assert f"| `{name}` |" in text, name
    for field in example:
        assert f"`{field}`" in text, field
