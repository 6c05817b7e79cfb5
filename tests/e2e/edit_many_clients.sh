#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Many processes edit one mount at once, the same files and others, while it is committed, discarded, listed and asked.
. "$(dirname "$0")/lib.sh"
need_python
"$PYTHON" -W ignore "$HERE/edit_many_clients.py" "$STFS" m.safetensors m "${ROUNDS:-60}"
