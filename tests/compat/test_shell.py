"""bash, perl, and the small tools that scripts are made of."""

import hashlib

HASH = hashlib.sha256(b"belljar").hexdigest()[:8]


def test_bash(sandbox):
    outcome = sandbox.run("bash", "/programs/shell_work.sh")
    assert outcome.stdout.splitlines() == [
        "job ended by TERM", "job status 3", "2c2", "< b", "---", "> c", "here 42 command", "here string", "through fd",
        "five", "13", "named", "SHOUT", "trapped", "b", "100000", "81", "timeout 124", "64",
        "user guest guest guest in /workspace as belljar", "bye"]
    assert "error" in outcome.stderr.splitlines()


def test_interactive_bash_on_its_own_terminal(sandbox, system):
    """What `script` gives is a real terminal with job control, without a complaint about process groups."""
    system("script", "bsdutils")
    typed = "stty size; sleep 60 &\nkill %1; wait; tty; exit\n"
    outcome = sandbox.run("script", "-qec", "bash --norc -i", "/dev/null", stdin=typed)
    assert "/dev/pts/" in outcome.stdout and "Terminated" in outcome.stdout
    assert "no job control" not in outcome.stdout and "ioctl" not in outcome.stdout, outcome.describe()


def test_perl(sandbox, system):
    system("perl")
    assert sandbox.run("perl", "/programs/perl_work.pl").stdout == f'perl ok 5050 [1,{{"a":2}}] {HASH} socket\n'


def test_dash_and_coreutils(sandbox):
    script = """
mkdir -p a/b && cd a && printf 'three\\none\\ntwo\\n' > b/list
sort b/list | uniq -c | awk '{ n += $1 } END { print "awk", n }'
sed -n 's/^t\\(.*\\)/\\1/p' b/list | paste -sd,
find . -type f -exec sha256sum {} + | cut -c1-4
cp -a b c && mv c d && ln -s d e && ls -l e | grep -c 'e -> d'
install -m 750 b/list prog && stat -c %a prog
dd if=/dev/zero of=zero bs=64k count=16 conv=fsync 2>/dev/null && du -k zero | cut -f1
head -c 10 /dev/urandom | od -An -tx1 | wc -w
split -n 2 zero part. && cat part.* | cmp - zero && echo same
date -u -d @0 +%F; TZ=Asia/Tokyo date -d @0 +%H; nproc >/dev/null; df -h . >/dev/null; free >/dev/null
ps -o comm= -p $$
env -i A=1 sh -c 'echo $A'; nice -n 5 nice; tty || true; mktemp -u | cut -c1-9; truncate -s 1M big; shred -u big
ls | wc -l
flock lock echo locked; yes | head -2 | tail -1; grep -rl two . | sort | head -1; tail -c 4 b/list
sync; uptime >/dev/null; taskset 1 ionice -c3 prlimit --nofile=100 stdbuf -o0 echo tuned
"""
    assert sandbox.run("sh", "-e", "-c", script).stdout.splitlines() == [
        "awk 3", "hree,wo", "4eb8", "1", "750", "1024", "10", "same", "1970-01-01", "09", "sh", "1", "5", "not a tty",
        "/tmp/tmp.", "7", "locked", "y", "./b/list", "two", "tuned"]


def test_parallel_pipes(sandbox):
    script = """
for i in 1 2 3 4; do (seq $i 4 200000 | gzip | gunzip | sort -n | md5sum > s$i) & done; wait; cat s? | wc -l
seq 200000 | wc -c
"""
    assert sandbox.bash(script).stdout.split() == ["4", "1288895"]


def test_gnu_parallel(sandbox, system):
    system("parallel")
    assert sandbox.bash("seq 20 | parallel -k -j4 'echo $(({} * {}))' | tail -1").stdout == "400\n"
