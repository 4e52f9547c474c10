"""Databases, archives and text tools."""

import pytest


def test_sqlite3(sandbox, system):
    system("sqlite3")
    statements = """pragma journal_mode=wal;
create table t (n integer, text);
with recursive c(n) as (select 1 union all select n+1 from c where n < 1000)
  insert into t select n, hex(n) from c;
create index i on t(text); select count(*), sum(n) from t;
select json_extract('{"a":[1,2]}', '$.a[1]'); vacuum; pragma integrity_check;"""
    assert sandbox.run("sqlite3", "test.db", stdin=statements).stdout.splitlines() == ["wal", "1000|500500", "2", "ok"]


def test_jq(sandbox, system):
    system("jq")
    program = "[.[] | select(.n > 1) | .n * 2] | {sum: add}"
    assert sandbox.run("jq", "-c", program, stdin='[{"n":1},{"n":2},{"n":3}]').stdout == '{"sum":10}\n'


PACKERS = [("gzip", "-z", "gzip"), ("xz", "-J", "xz-utils"), ("bzip2", "-j", "bzip2"), ("zstd", "--zstd", "zstd")]


@pytest.mark.parametrize("name, flag, package", PACKERS, ids=[packer[0] for packer in PACKERS])
def test_tar(sandbox, system, name, flag, package):
    system(name, package)
    script = """
mkdir -p tree/deep && seq 50000 > tree/deep/numbers
ln -s numbers tree/deep/link && ln tree/deep/numbers tree/hard && chmod 750 tree/deep
mkfifo tree/pipe && touch -d @86400 tree/old
tar -c $1 -f archive tree && mkdir out && tar -x $1 -pf archive -C out && diff -r --exclude pipe tree out/tree
stat -c '%a %Y' out/tree/deep out/tree/old | cut -d' ' -f1,2 | tail -1
readlink out/tree/deep/link; stat -c %h out/tree/hard
test -p out/tree/pipe; tar -c tree | "$2" -c | "$2" -dc | tar -t | wc -l
"""
    lines = sandbox.bash(script, flag, name).stdout.splitlines()
    assert lines[0].endswith(" 86400") and lines[1:] == ["numbers", "2", "7"]


def test_tar_as_if_by_root(sandbox):
    """An archive with foreign owners unpacks: the guest is no root, so tar does not try to give files away."""
    script = """
echo x > f; tar -c --owner=nobody:65534 --group=games:60 -f a.tar f; mkdir o; tar -xf a.tar -C o; stat -c %U o/f
"""
    assert sandbox.bash(script).stdout == "guest\n"


def test_zip(sandbox, system):
    system("zip")
    system("unzip")
    script = "mkdir d; seq 1000 > d/n; zip -qr a.zip d; unzip -q a.zip -d out; cmp d/n out/d/n; unzip -Z1 a.zip | wc -l"
    assert sandbox.bash(script).stdout == "2\n"


def test_openssl(sandbox, system):
    system("openssl")
    script = """
openssl req -x509 -newkey rsa:2048 -keyout key -out cert -nodes -days 2 -subj /CN=compat 2>/dev/null
echo secret | openssl enc -aes-256-cbc -pbkdf2 -pass pass:x -out enc
openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:x -in enc
openssl x509 -in cert -noout -subject; openssl verify -CAfile cert cert
echo -n belljar | openssl dgst -sha256 -r | cut -c1-8
"""
    lines = sandbox.bash(script).stdout.splitlines()
    assert lines[:3] == ["secret", "subject=CN = compat", "cert: OK"]


def test_file_and_text_tools(sandbox, system):
    for name in ("file", "patch", "diff"):
        system(name, {"diff": "diffutils"}.get(name, name))
    script = """
printf 'a\\nb\\n' > old; printf 'a\\nc\\n' > new; diff -u old new > p || true; patch -s old p; cmp old new
file -b /usr/bin/env | cut -d, -f1; iconv -f latin1 -t utf8 <<< $'\\xfc'; LC_ALL=C.UTF-8 locale charmap
"""
    assert sandbox.bash(script).stdout.splitlines() == ["ELF 64-bit LSB pie executable", "ü", "UTF-8"]
