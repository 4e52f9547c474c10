# bash: job control, substitution of commands and processes, here-documents, /dev/fd, traps, coproc, named pipes.
set -euo pipefail
set -m
sleep 60 & first=$!
kill -STOP %1; for _ in {1..100}; do [[ $(jobs -s) ]] && break; sleep 0.05; done
jobs -s | grep -q Stopped
kill -CONT %1; kill %1; wait "$first" 2>/dev/null || echo "job ended by $(kill -l $?)"
(exit 3) & wait $! || echo "job status $?"
set +m
diff <(printf 'a\nb\n') <(printf 'a\nc\n') || true
cat <<END
here $((6 * 7)) $(echo command)
END
cat <<<'here string' >/dev/stdout
echo error >/dev/stderr
echo 'through fd' | cat /dev/fd/0
exec 5>file; echo five >&5; exec 5>&-; cat file
tee >(wc -c >count) <<<'twelve bytes' >/dev/null; while [[ ! -s count ]]; do sleep 0.02; done; tr -d ' ' <count
mkfifo pipe; (echo named >pipe &); cat pipe
coproc upper { while read -r line; do echo "${line^^}"; done; }
echo shout >&"${upper[1]}"; read -r answer <&"${upper[0]}"; echo "$answer"
trap 'echo trapped' USR1; kill -USR1 $$
trap 'echo bye' EXIT
[[ abc =~ ^a(.)c$ ]] && echo "${BASH_REMATCH[1]}"
seq 1 100000 | sort -rn --parallel=2 -S 1M | head -1 || [[ $? = 141 ]]
printf '%s\n' {1..9} | xargs -P 4 -n 1 sh -c 'echo $(($0 * $0))' | sort -n | tail -1
timeout 0.2 sleep 60 || echo "timeout $?"
(ulimit -n 64; ulimit -n)
time -p true 2>/dev/null
echo "user $(whoami) $(id -un) $(id -gn) in $PWD as $(hostname)"
