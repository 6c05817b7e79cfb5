#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# NumPy reads tensors as files: fromfile, memmap, and data.npy with and without mapping.
. "$(dirname "$0")/lib.sh"
need_python numpy

"$PYTHON" "$HERE/numpy_make.py" dtypes.safetensors
for options in io=map io=pread npy=list; do
	for model in "$MODEL" dtypes.safetensors; do
		start "$model" m -o ro,$options
		"$PYTHON" "$HERE/numpy_check.py" m "$model"
		stop m
	done
done
