#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Makes the corpus anew and asks about it: the program (verdicts BINARY), or the official library (official).
# Or gives the program big hostile headers (hostile BINARY), or holds the small model to the script that makes it (tiny).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-python3}
export PYTHONDONTWRITEBYTECODE=1
if ! command -v "$python" >/dev/null; then
	echo "skip: $python, which makes the corpus, is not here"
	exit 77
fi

case $1 in
hostile) exec "$python" "$here/bounds.py" "$2" ;;
tiny)
	"$python" "$here/../models/make_tiny_llama.py" /dev/stdout | cmp - "$here/../models/tiny-llama.safetensors"
	exit
	;;
esac

corpus=$(mktemp -d "${TMPDIR:-/tmp}/stfs-corpus.XXXXXX")
trap 'rm -rf "$corpus"' EXIT
"$python" "$here/generate.py" "$corpus"
case $1 in
verdicts) "$python" "$here/verdicts.py" "$2" "$corpus" ;;
official) "$python" "$here/official.py" "$corpus" ;;
*) exit 2 ;;
esac
