#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# put: tensors from raw bytes and from NumPy files, new ones and in the place of others.
. "$(dirname "$0")/common.sh"

cp small.safetensors m.safetensors
python3 - <<'END'
import random
open("small.bin", "wb").write(bytes(range(24)))
open("large.bin", "wb").write(random.Random(1).randbytes(5 << 20))
open("none.bin", "wb").close()

def npy(name, descr, shape, data, fortran=False):
    text = repr({"descr": descr, "fortran_order": fortran, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    open(name, "wb").write(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data)

npy("f4.npy", "<f4", (2, 3), bytes(range(24)))
npy("big.npy", "<i8", (1 << 16, 5), random.Random(2).randbytes(5 << 19))
npy("scalar.npy", "<f8", (), bytes(range(8)))
npy("bf16.npy", "<V2", (3,), bytes(range(6)))
npy("byte.npy", "|V1", (4,), bytes(range(4)))
npy("fortran.npy", "<f4", (2, 3), bytes(24), True)
npy("endian.npy", ">f4", (2, 3), bytes(24))
npy("short.npy", "<f4", (2, 3), bytes(20))
npy("text.npy", "<U4", (2,), bytes(32))
END

code 0 put m.safetensors new.raw small.bin --dtype F32 --shape 2,3
code 0 put m.safetensors new/scalar small.bin --dtype F64 --shape '[3]'
code 0 put m.safetensors new.large large.bin --dtype BF16 --shape '(1024, 2560)'
code 0 put m.safetensors model.layers.0.w f4.npy
code 0 put m.safetensors new.i8 big.npy
code 0 put m.safetensors new.0d scalar.npy
code 0 put m.safetensors new.bf16 bf16.npy
code 0 put m.safetensors new.f16 bf16.npy --dtype F16
code 0 put m.safetensors new.e4m3 byte.npy --dtype F8_E4M3
code 0 put m.safetensors 日本.w byte.npy
code 0 put m.safetensors none none.bin --dtype F4 --shape '0 3'
code 0 put m.safetensors ./a%2Fb small.bin --dtype U8 --shape 24
code 0 put m.safetensors params/dense/kernel small.bin --shape 24
code 0 put m.safetensors scalar scalar.npy
code 0 put m.safetensors model small.bin --dtype I16 --shape 2x6
code 0 put m.safetensors __metadata__.x small.bin --dtype U8 --shape 24
code 0 status m.safetensors
has out "M model.layers.0.w (data, dtype)"
has out "A new.large"
has out "M scalar (data)"
has out "# 16 changes, 0 incomplete, 0 scratch files"
code 0 commit m.safetensors
has out "wrote 1 file"
unstaged m.safetensors
sound m.safetensors
witness "what was put" <<'END'
def data(name, skip=0):
    return open(name, "rb").read()[skip:]
old, new = read("small.safetensors"), committed("m.safetensors")
want = dict(old.tensors)
want.update({
    "model.layers.0.w": Tensor("F32", (2, 3), bytes(range(24))), "scalar": Tensor("F64", (), bytes(range(8))),
    "日本.w": Tensor("F8_E4M3", (4,), bytes(range(4))), "params/dense/kernel": Tensor("U8", (24,), bytes(range(24))),
    "new.raw": Tensor("F32", (2, 3), bytes(range(24))), "new.scalar": Tensor("F64", (3,), bytes(range(24))),
    "new.large": Tensor("BF16", (1024, 2560), data("large.bin")), "new.i8": Tensor("I64", (1 << 16, 5), data("big.npy", 128)),
    "new.0d": Tensor("F64", (), bytes(range(8))), "new.bf16": Tensor("BF16", (3,), bytes(range(6))),
    "new.f16": Tensor("F16", (3,), bytes(range(6))), "new.e4m3": Tensor("F8_E4M3", (4,), bytes(range(4))),
    "__metadata__.x": Tensor("U8", (24,), bytes(range(24))), "none": Tensor("F4", (0, 3), b""), "a/b": Tensor("U8", (24,), bytes(range(24))),
    "model": Tensor("I16", (2, 6), bytes(range(24)))})
assert new.metadata == old.metadata
assert new.tensors == want, [name for name in want if new.tensors.get(name) != want[name]]
assert list(new.tensors)[:len(old.tensors)] == list(old.tensors), list(new.tensors)
END

# A name that looks like the path of another one does not stand in its way.
cp small.safetensors n.safetensors
code 0 put n.safetensors odd.%64ata small.bin --dtype U8 --shape 24
code 0 put n.safetensors odd.data f4.npy --commit -q
witness "a name that looks like a path" <<'END'
new = committed("n.safetensors").tensors
assert new["odd.%64ata"] == Tensor("U8", (24,), bytes(range(24))) and new["odd.data"] == Tensor("F32", (2, 3), bytes(range(24)))
END

# Replaced in the same kind: dtype and shape are those there are.
code 0 put --commit -q m.safetensors new.raw small.bin
code 0 status m.safetensors
has out "# nothing is staged"
unstaged m.safetensors

# Nothing is staged when it does not fit.
code 2 put m.safetensors x small.bin
has err "say --dtype and --shape"
code 2 put m.safetensors x small.bin --dtype F32
code 2 put m.safetensors x small.bin --dtype f32 --shape 6
has err '"f32"'
code 2 put m.safetensors x small.bin --dtype F32 --shape a
code 2 put m.safetensors x small.bin --dtype F32 --shape 7
has err '"small.bin" has 24 bytes, but F32 [7] needs 28'
code 2 put m.safetensors x small.bin --dtype F4 --shape 3
code 2 put m.safetensors x small.bin --dtype F32 --shape 9999999999,9999999999
code 2 put m.safetensors x f4.npy --shape 6
code 2 put m.safetensors x f4.npy --dtype BF16
has err "elements of 32 bits"
code 2 put m.safetensors x byte.npy
has err "say which with --dtype"
code 2 put m.safetensors new.0d byte.npy
code 2 put m.safetensors x short.npy
has err "20 bytes"
for file in fortran endian text; do
	code 3 put m.safetensors x $file.npy
done
code 3 put m.safetensors x nowhere --dtype F32 --shape 6
code 3 put m.safetensors x . --dtype F32 --shape 6
code 2 put m.safetensors '' small.bin --dtype F32 --shape 6
code 2 put m.safetensors __metadata__ small.bin --dtype F32 --shape 6
code 2 put m.safetensors a//b small.bin --dtype F32 --shape 6
code 2 put m.safetensors $'\xff' small.bin --dtype F32 --shape 6
code 2 put m.safetensors x
unstaged m.safetensors

# A new tensor goes to the shard of its nearest sibling.
code 0 put --commit shards part1.c small.bin --dtype F32 --shape 6
has out "wrote 2 files"
witness "a tensor of a shard" <<'END'
assert "part1.c" in read_file("shards/model-00001-of-00002.safetensors").tensors
assert read("shards").tensors["part1.c"] == Tensor("F32", (6,), bytes(range(24)))
END
finish
