#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What every command does when its output fails, when its words are wrong, and when help is wanted.
. "$(dirname "$0")/common.sh"

commands=("ls -l small.safetensors" "info layers.safetensors" "check layers.safetensors" "cat small.safetensors big"
	"cat small.safetensors __metadata__/format" "ls --json layers.safetensors" "ls --help" "--help" "--version")

if [ -c /dev/full ]; then
	for words in "${commands[@]}"; do
		# shellcheck disable=SC2086
		"$program" $words >/dev/full 2>err
		got=$?
		[ "$got" -eq 6 ] || fail "$words >/dev/full: exit $got"
		has err "cannot write the output: No space left on device"
	done
fi

# So does an output that the caller closed; it is not one of the model's descriptors either.
for words in "${commands[@]}"; do
	# shellcheck disable=SC2086
	"$program" $words >&- 2>err
	got=$?
	[ "$got" -eq 6 ] || fail "$words >&-: exit $got"
	has err "cannot write the output: Bad file descriptor"
done
"$program" ls small.safetensors >want
"$program" ls small.safetensors <&- >out 2>&- || fail "ls <&- 2>&-: exit $?"
same want out "with closed descriptors"

# A reader that leaves early is no reason to speak, and nothing to hang on.
for words in "${commands[@]}"; do
	# shellcheck disable=SC2086
	timeout 10 "$program" $words 2>err | head -c 1 >/dev/null
	status=${PIPESTATUS[0]}
	[ "$status" -eq 0 ] || [ "$status" -eq 141 ] || fail "$words | head -c 1: exit $status"
	# shellcheck disable=SC2086
	(trap '' PIPE; timeout 10 "$program" $words 2>>err) | head -c 1 >/dev/null
	lacks err "Broken pipe"
done

edits="status diff commit discard mv rm put convert set-metadata rm-metadata"
for command in $edits; do
	code 0 "$command" --help
	has out "stage=DIR"
done
code 2 ls -o stage=x small.safetensors
code 2 mv -o stage= small.safetensors a b
code 2 commit -o format=tf small.safetensors
code 0 --version
cp out version
for command in ls info cat check $edits; do
	code 0 "$command" --help
	has out "Usage: safetensorsfs $command"
	has out "index=NAME"
	cp out want
	code 0 "$command" small.safetensors --help
	same want out "help at the end"
	code 0 help "$command"
	same want out "help of help"
	code 0 "$command" --version
	same version out "$command --version"
	code 2 "$command"
	has err "Try 'safetensorsfs $command --help'"
	code 2 "$command" --nonsense small.safetensors
	has err '"--nonsense"'
	code 2 "$command" small.safetensors -o
	code 2 "$command" -o lax=1 small.safetensors x
	code 2 "$command" -o index= small.safetensors x
done

# What comes after -- is no switch.
cp layers.safetensors -- -l
code 0 ls -- -l
code 0 check -- -l
finish
