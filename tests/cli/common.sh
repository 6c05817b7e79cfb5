# SPDX-License-Identifier: Apache-2.0
# For the tests of commands that need no mount: sourced by each, with the program as its first argument.
set -u
export LC_ALL=C.UTF-8 TERM=xterm
unset NO_COLOR COLUMNS LINES

if ! command -v python3 >/dev/null; then
	echo "skipped: python3, the witness, is not here"
	exit 77
fi

here=$(cd "$(dirname "$0")" && pwd)
program=$(realpath "$1")
models=$(mktemp -d)
trap 'rm -rf "$models"' EXIT
failures=0
# How bytes may have got into a new file, as the line about a commit says it.
# shellcheck disable=SC2034
ways='([0-9.]+ [kM]?B (cloned|copied in the kernel|copied|left as holes)(, )?)+'

python3 "$here/model.py" make "$models" || exit 1
cd "$models" || exit 1

fail() {
	echo "FAIL: $*"
	failures=$((failures + 1))
}

# code WANT COMMAND...: runs it, keeps stdout and stderr in files, compares the exit status.
code() {
	local want=$1 got
	shift
	"$program" "$@" >out 2>err
	got=$?
	[ "$got" -eq "$want" ] || fail "$*: exit $got instead of $want: $(head -c 300 err)"
	if grep -q "runtime error\|AddressSanitizer\|LeakSanitizer" err; then
		fail "$*: $(cat err)"
	fi
}

# same WANT-FILE GOT-FILE WHAT
same() {
	cmp -s "$1" "$2" || { fail "$3 differ:"; diff "$1" "$2" | head -10; }
}

# has FILE TEXT
has() {
	grep -qF -- "$2" "$1" || { fail "no '$2' in $1:"; head -20 "$1"; }
}

# lacks FILE TEXT
lacks() {
	! grep -qF -- "$2" "$1" || { fail "'$2' in $1:"; head -20 "$1"; }
}

# On a terminal of so many rows and columns: the program's output goes to the file `out`.
on_terminal() {
	python3 "$here/terminal.py" "$1" "$2" "$program" "${@:3}" >out 2>err || fail "terminal: ${*:3}: $(head -c 300 err)"
}

# witness WHAT [ARG...]: Python on the standard input, with all of witness.py; the arguments are in `args`.
witness() {
	"${PYTHON:-python3}" -c '
import sys
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/../models"]
from witness import *
args = sys.argv[2:]
exec(sys.stdin.read())' "$here" "${@:2}" || fail "$1"
}

# sound FILE...: it passes `check`, without more warnings than the model it was made from had.
sound() {
	code 0 check -q "$@"
}

# unstaged FILE: no staging area is left beside it.
unstaged() {
	[ ! -e ".$1.stage" ] || fail "a staging area of $1 is left: $(ls -A ".$1.stage")"
}

finish() {
	[ "$failures" -eq 0 ] || exit 1
	echo "ok"
}
