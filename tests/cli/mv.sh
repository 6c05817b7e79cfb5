#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# mv: tensors and modules, by name, path, expression and map; nothing is lost, and nothing is replaced.
. "$(dirname "$0")/common.sh"

fresh() {
	rm -rf m.safetensors .m.safetensors.stage
	cp small.safetensors m.safetensors
}
# renamed WHAT: the standard input is a Python dict of old name to new name; everything else is as it was, in its order.
renamed() {
	local map
	map=$(cat)
	code 0 commit -q m.safetensors
	unstaged m.safetensors
	witness "$1" "$map" <<'END'
old, new, names = read("small.safetensors"), committed("m.safetensors"), eval(f"({args[0]})")
assert set(names) <= set(old.tensors)
assert new.metadata == old.metadata
want = [(names.get(name, name), tensor) for name, tensor in old.tensors.items()]
assert list(new.tensors.items()) == want, [name for name in new.tensors]
END
	sound m.safetensors
}

fresh
code 0 mv --dry-run m.safetensors model.layers.0.w a.b.c
echo "model.layers.0.w -> a.b.c" >want
same want out "dry run"
unstaged m.safetensors
code 0 mv m.safetensors model.layers.0.w a.b.c
code 0 status m.safetensors
has out "R model.layers.0.w -> a.b.c"
renamed "a tensor" <<<'{"model.layers.0.w": "a.b.c"}'

# A module in one step, by path; names with slots, escapes and other alphabets.
fresh
code 0 mv m.safetensors model/layers/ stack
code 0 mv m.safetensors data shape.data
code 0 mv m.safetensors 日本 ./x%2Fy/%64type
code 0 mv m.safetensors packed/ deep/er/packed
renamed "a module" <<'END'
{f"model.layers.{i}.w": f"stack.{i}.w" for i in (0, 1, 10)} |
{"data": "shape.data", "日本.w": "x/y.dtype.w", "packed": "deep.er.packed"}
END

# Names with slashes: a prefix that is no directory of the tree; what has slashes keeps them.
fresh
code 0 mv m.safetensors params/dense params/sparse
renamed "a name with slashes" <<<'{"params/dense/kernel": "params/sparse/kernel"}'

# A module into a module that is there, as long as no names meet.
fresh
code 0 mv m.safetensors model.layers big
code 0 mv m.safetensors scalar model
renamed "into a module" <<'END'
{f"model.layers.{i}.w": f"big.{i}.w" for i in (0, 1, 10)} | {"scalar": "model"}
END

# Refused as a whole.
fresh
code 1 mv m.safetensors model.layers.0 model.layers.1
has err 'there is a tensor "model.layers.1.w" already'
code 1 mv m.safetensors model.lay x
has err 'no tensor or module "model.lay"'
code 1 mv m.safetensors __metadata__ x
code 1 mv m.safetensors --regex 's/nothing/x/'
has err "matches"
code 1 mv m.safetensors --regex 's/^model\..*$/same/'
has err 'would both be called "same"'
code 1 mv m.safetensors scalar __metadata__
code 1 mv m.safetensors scalar $'\xff'
code 2 mv m.safetensors scalar 'a//b'
code 2 mv m.safetensors scalar ''
code 2 mv m.safetensors --regex 's/a/b'
code 2 mv m.safetensors --regex 's/(/b/'
code 2 mv m.safetensors --regex 's/a/\1/'
code 2 mv m.safetensors --regex 's/a/b/x'
code 2 mv m.safetensors --regex s/a/b/ scalar x
code 2 mv m.safetensors scalar
code 2 mv m.safetensors --regex s/a/b/ --map map
unstaged m.safetensors
code 0 mv m.safetensors scalar scalar
unstaged m.safetensors

# Expressions: groups, &, g, i, another delimiter, matches of nothing.
fresh
code 0 mv --dry-run m.safetensors --regex 's/^model\.layers\.([0-9]+)\.(.)$/h.\1.&.\2/'
printf '%s\n' "model.layers."{0,1,10}".w" | sed -E 's/^model\.layers\.([0-9]+)\.(.)$/& -> h.\1.&.\2/' >want
same want out "groups"
expressions=('s/e/E/' 's/E/_/gi' 's,a/,b/,' 's/x*/-/g' 's/a*/x/g' 's/[0-9]*/<&>/g' 's/\//\&/' 's/.$//' 's|^|pre.|' 's/l+/\\/g'
	's/(m)(o)/\2\1/' 's/\./\n/g')
for e in "${expressions[@]}"; do
	"$program" ls m.safetensors 2>/dev/null | grep -v '^lines$\|^two$\|^esc' >names
	sed -E "${e/\\n/%}" names | paste -d '\t' names - | awk -F '\t' '$1 != $2 { print $1 " -> " $2 }' | grep -v 日本 | sort >want
	"$program" mv --dry-run m.safetensors --regex "${e/\\n/%}" 2>err | sed 's/\\\\/\\/g' | grep -v '^two\|^esc\|^日本' | sort >out
	same want out "expression $e"
done
LC_ALL=C code 0 mv --dry-run m.safetensors --regex 's/^(.)(.)\.w$/\2\1-\2.w/'
has out "日本.w -> 本日-本.w"
code 0 mv m.safetensors --regex 's/^model\.//'
renamed "a prefix off" <<'END'
{name: name[6:] for name in read("small.safetensors").tensors if name.startswith("model.")}
END

# Maps: chains and swaps, modules, both forms.
fresh
printf 'scalar\tempty\nempty\tpacked\npacked\tscalar\n\nmodel.layers\tL\n' >map
code 0 mv m.safetensors --map map
code 0 status m.safetensors
lacks out "mv-"
renamed "a map with a ring" <<'END'
{"scalar": "empty", "empty": "packed", "packed": "scalar"} | {f"model.layers.{i}.w": f"L.{i}.w" for i in (0, 1, 10)}
END
fresh
echo '{"scalar": "safetensorsfs-mv-0", "empty": "safetensorsfs-mv-1.x", "packed": "scalar", "data": "empty"}' >map
code 0 mv m.safetensors --map map
renamed "names that a tensor on its way might have" <map
fresh
echo '{"scalar": "sc\u0061lar.x", "data": "日本.data", "two\nlines": "two.lines"}' >map
code 0 mv --commit -q m.safetensors --map - <map
renamed "a map in JSON" <<<'{"scalar": "scalar.x", "data": "日本.data", "two\nlines": "two.lines"}'
fresh
# A map that renames nothing.
fresh
echo '{"scalar": "scalar"}' >map
code 0 mv --dry-run m.safetensors --map map
[ ! -s out ] || fail "a tensor that keeps its name is renamed: $(cat out)"
code 0 mv m.safetensors --map map
unstaged m.safetensors
printf 'scalar\tx\nnope\ty\nmodel\tz\nno\tw\n' >map
code 1 mv m.safetensors --map map
has err '"nope"'
has err '"no"'
printf 'model\tx\nmodel.layers\ty\n' >map
code 1 mv m.safetensors --map map
has err 'would get two names'
printf 'scalar x\n' >map
code 2 mv m.safetensors --map map
has err "line 1"
echo '{"scalar": 1}' >map
code 2 mv m.safetensors --map map
has err "expected a string, a new name, found '1'"
lacks err "expected expected"
echo '{"scalar": "a\u0000b"}' >map
code 2 mv m.safetensors --map map
has err "expected a name without a NUL in it, found '}'"
code 6 mv m.safetensors --map nowhere
unstaged m.safetensors

# A tensor that has others below it: only it moves, by expression and by map; and they may trade places.
python3 - "$here" <<'END'
import sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import model
model.write("nest.safetensors", *model.layout([("a", "U8", (3,)), ("a.b", "U8", (4,)), ("c", "U8", (5,))]))
END
nest() {
	rm -rf n.safetensors .n.safetensors.stage
	cp nest.safetensors n.safetensors
	code 0 mv n.safetensors "${@:2}"
	code 0 commit -q n.safetensors
	witness "$1" "$1" <<'END'
old, new, names = read("nest.safetensors").tensors, committed("n.safetensors").tensors, eval(f"({args[0]})")
assert list(new.items()) == [(names.get(name, name), tensor) for name, tensor in old.items()], new
END
}
nest '{"a": "x"}' --regex 's/^a$/x/'
nest '{"a": "a.b.c"}' --regex 's/^a$/a.b.c/'
nest '{"a": "x", "a.b": "x.b"}' a x
nest '{"a": "a.x", "a.b": "a.x.b"}' a a.x
printf 'c\ta\n' >map
rm -rf n.safetensors
cp nest.safetensors n.safetensors
code 1 mv n.safetensors --map map
has err 'already'
printf 'c\td\n' >map
nest '{"c": "d"}' --map map
echo '{"a": "c", "c": "a.b", "a.b": "a"}' >map
nest "$(cat map)" --map map
finish
