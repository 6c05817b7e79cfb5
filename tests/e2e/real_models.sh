#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Models as they are published: real_models.sh MODEL... Each is mounted, and every tensor compared with what the official
# library reads. Not one of the registered tests, since the models must be fetched first.
models=()
for model; do models+=("$(realpath "$model")"); done
. "$(dirname "$0")/lib.sh"
need_python numpy
need_python safetensors
[ ${#models[@]} -gt 0 ] || skip "no models were given"

for model in "${models[@]}"; do
	expect 0 "" "$STFS" check "$model"
	for options in io=map io=pread; do
		start "$model" m -o $options
		"$PYTHON" "$HERE/real_models.py" m "$model"
		stop m
	done
done
