#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# NumPy and Python edit tensors: tofile, memmap, save, replace; a commit takes in what is only in a map.
. "$(dirname "$0")/lib.sh"
. "$HERE/edit.sh"
need_python numpy

py() {
	"$PYTHON" -W error -W ignore::ResourceWarning - || fail "python"
}

begin
py <<-'END'
	import numpy as np, os, shutil
	np.arange(24, dtype="<f4").tofile("m/model/a/w/data")
	with open("m/model/a/b/data", "r+b") as file:
	    file.seek(2)
	    np.frombuffer(b"XY", "u1").tofile(file)
	a = np.memmap("m/model/big/data", "u1", "r+")
	assert a.shape == (3000000,)
	a[1000000:1000005] = [1, 2, 3, 4, 5]
	a.flush()
	del a
	with open("m/model/scale/dtype.tmp", "w") as file:
	    file.write("F16\n")
	    file.flush()
	    os.fsync(file.fileno())
	os.replace("m/model/scale/dtype.tmp", "m/model/scale/dtype")
	os.fsync(os.open("m/model/scale", os.O_RDONLY))
	shutil.copytree("m/model/a", "m/model/tree")
	shutil.copy2("m/model/a/b/data", "m/model/tree/b/data")
	shutil.move("m/lm_head", "m/model/head")
END
commit
meant <<-'END'
	import struct
	put("model.a.w", data=struct.pack("<24f", *range(24)))
	put("model.a.b", data=b"byXYs")
	big = t["model.big"].data
	put("model.big", data=big[:1000000] + bytes([1, 2, 3, 4, 5]) + big[1000005:])
	put("model.scale", "F16")
	put("model.tree.w", *t["model.a.w"][1:])
	put("model.tree.b", *t["model.a.b"][1:])
	move("lm_head.weight", "model.head.weight")
END
finish

# A new tensor of a map, and a map of a wrong length, which must open to be mended.
begin
py <<-'END'
	import numpy as np, os
	os.makedirs("m/made/map")
	a = np.memmap("m/made/map/data", "<f8", "w+", shape=(3, 1000))
	assert not a.any()
	a[1] = 2.5
	del a
	open("m/made/map/dtype", "w").write("F64\n")
	open("m/made/map/shape", "w").write("(3, 1000)")
	os.truncate("m/model/a/w/data", 40)
	b = np.memmap("m/model/a/w/data", "<f4", "r+")
	assert b.shape == (10,)
	b[9] = -1
	del b
	with open("m/model/a/w/data", "ab") as file:
	    file.write(bytes(56))
END
commit
meant <<-'END'
	import struct
	row = bytes(8000)
	put("made.map", "F64", [3, 1000], row + struct.pack("<d", 2.5) * 1000 + row)
	put("model.a.w", data=t["model.a.w"].data[:36] + struct.pack("<f", -1) + bytes(56))
END
finish

# Stores that nobody flushed, while the map lives on, are in the commit; later ones are staged, and in the next.
begin
py <<-'END'
	import mmap, os
	def commit():
	    fd = os.open("m/.safetensors/commit", os.O_WRONLY)
	    assert os.write(fd, b"commit\n") == 7
	    os.close(fd)
	fd = os.open("m/model/big/data", os.O_RDWR)
	map = mmap.mmap(fd, 3000000)
	os.close(fd)
	map[5:10] = b"first"
	map[2999995:] = b"last!"
	commit()
	with open("m.safetensors", "rb") as file:
	    model = file.read()
	assert b"first" in model and b"last!" in model
	map[5:10] = b"again"
	commit()
	with open("m.safetensors", "rb") as file:
	    model = file.read()
	assert b"again" in model and b"first" not in model
	assert open("m/model/big/data", "rb").read(10)[5:] == b"again"
	map.close()
END
meant <<-'END'
	big = t["model.big"].data
	put("model.big", data=big[:5] + b"again" + big[10:2999995] + b"last!")
END
finish

# data.npy sets bytes, dtype and shape at once, however it is written.
begin
py <<-'END'
	import numpy as np, os
	np.save("m/model/a/w/data.npy", np.arange(6, dtype="<i8").reshape(2, 3))
	assert open("m/model/a/w/dtype").read() == "I64\n" and open("m/model/a/w/shape").read() == "2 3\n"
	assert np.load("m/model/a/w/data.npy").tolist() == [[0, 1, 2], [3, 4, 5]]
	os.mkdir("m/fresh")
	np.save("m/fresh/data.npy", np.arange(3000, dtype="<u2"))
	assert sorted(os.listdir("m/fresh")) == ["data", "dtype", "shape"]
	np.save("ten.npy", np.array(10, dtype="?"))
	a = np.load("m/model/big/data.npy", mmap_mode="r+")
	a[7:10] = 7
	del a
	assert np.fromfile("m/model/big/data", "u1")[7:10].tolist() == [7, 7, 7]
END
quiet mkdir m/scalar
quiet cp ten.npy m/scalar/data.npy
cmp ten.npy m/scalar/data.npy || fail "data.npy of a new tensor"
mkdir m/tools m/tools/install m/tools/shutil m/tools/rsync
quiet install -m 644 ten.npy m/tools/install/data.npy
"$PYTHON" -c 'import shutil; shutil.copy("ten.npy", "m/tools/shutil/data.npy")' || fail "shutil.copy of a NumPy file"
! command -v rsync >/dev/null || quiet rsync -a ten.npy m/tools/rsync/data.npy
for name in install shutil; do
	cmp ten.npy m/tools/$name/data.npy || fail "data.npy after $name"
done
rm -r m/tools
quiet cp m/model/a/w/data.npy w.npy
quiet cp -r m/lm_head m/copied
quiet cp w.npy m/copied/weight/data.npy.tmp
quiet mv m/copied/weight/data.npy.tmp m/copied/weight/data.npy
commit
meant <<-'END'
	import struct
	w = struct.pack("<6q", *range(6))
	put("model.a.w", "I64", [2, 3], w)
	put("fresh", "U16", [3000], struct.pack("<3000H", *range(3000)))
	put("scalar", "BOOL", [], b"\1")
	put("copied.weight", "I64", [2, 3], w)
	big = t["model.big"].data
	put("model.big", data=big[:7] + b"\7\7\7" + big[10:])
END
finish

# Who has data mapped sees what is written to data.npy; and who had the NumPy file mapped before it took effect goes on writing to
# the tensor, also after a commit.
begin
py <<-'END'
	import numpy as np, os, time
	def commit():
	    fd = os.open("m/.safetensors/commit", os.O_WRONLY)
	    assert os.write(fd, b"commit\n") == 7
	    os.close(fd)
	def comes(what):
	    for i in range(50):
	        if what():
	            return
	        time.sleep(0.1)
	    raise AssertionError("the map still shows what was there before")
	seen = np.memmap("m/model/big/data", "u1", "r")
	assert seen[7] == np.fromfile("m/model/big/data", "u1")[7]
	a = np.load("m/model/big/data.npy", mmap_mode="r+")
	a[7] = ~a[7]
	new = a[7]
	a.flush()
	comes(lambda: seen[7] == new)
	os.mkdir("m/late")
	b = np.lib.format.open_memmap("m/late/data.npy", "w+", "u1", (9000,))
	assert sorted(os.listdir("m/late")) == ["data", "dtype", "shape"]
	seen = np.memmap("m/late/data", "u1", "r")
	assert not seen.any()
	b[:] = 3
	b.flush()
	comes(lambda: (seen == 3).all())
	commit()
	b[5000] = 4
	b.flush()
	comes(lambda: seen[5000] == 4)
	assert open("m/.safetensors/status").read().startswith("M late (data)\n")
	commit()
END
meant <<-'END'
	big = t["model.big"].data
	put("model.big", data=big[:7] + bytes([~big[7] & 255]) + big[8:])
	put("late", "U8", [9000], b"\3" * 5000 + b"\4" + b"\3" * 3999)
END
finish

# A NumPy file comes by any tool that puts one file in the place of another.
begin
py <<-'END'
	import numpy as np
	np.save("x.npy", np.arange(6, dtype="<i2").reshape(2, 3))
END
cp x.npy /dev/shm/stfs-e2e.$$
tar -cf x.tar --transform 's,.*,model/a/b/data.npy,' x.npy
quiet install -m 644 x.npy m/model/a/w/data.npy
quiet mv /dev/shm/stfs-e2e.$$ m/model/scale/data.npy
quiet tar -C m -xf x.tar
quiet cp --remove-destination x.npy m/model/big/data.npy
rm m/lm_head/weight/data.npy
[ ! -e m/lm_head/weight/data.npy ] && [ -e m/lm_head/weight/data ] || fail "rm of a data.npy that nobody wrote"
commit
[ -e m/lm_head/weight/data.npy ] || fail "a commit does not bring data.npy back"
meant <<-'END'
	for name in "model.a.w", "model.scale", "model.a.b", "model.big":
	    put(name, "I16", [2, 3], b"\0\0\1\0\2\0\3\0\4\0\5\0")
END
finish

# Listed, it is in nobody's way.
begin npy=list
tar -cf whole.tar -C m .
quiet tar -C m -xf whole.tar
echo all >m/.safetensors/discard
quiet rm -r m/model/a
printf 21 >m/model/scale/data
quiet rm -r m/model/scale
quiet mv m/lm_head out
quiet find m/empty -delete
commit
meant m.safetensors <<-'END'
	for name in "model.a.w", "model.scale", "model.a.b", "lm_head.weight", "empty":
	    take(name)
END
finish

# What NumPy makes of the types it does not have.
if "$PYTHON" -c 'import ml_dtypes' 2>/dev/null; then
	begin
	py <<-'END'
		import numpy as np, ml_dtypes, os
		for name in "bfloat16", "float8_e4m3fn", "float8_e5m2":
		    os.mkdir("m/" + name)
		    np.save("m/%s/data.npy" % name, np.arange(4).astype(getattr(ml_dtypes, name)))
		assert open("m/bfloat16/dtype").read() == "BF16\n"
		np.save("m/model/scale/data.npy", np.array(3).astype(ml_dtypes.bfloat16))
	END
	for name in float8_e4m3fn float8_e5m2; do
		[ -e m/$name/dtype ] || echo F8_E4M3 >m/$name/dtype
	done
	commit
	meant <<-'END'
		put("bfloat16", "BF16", [4], bytes.fromhex("0000803f00404040"))
		put("float8_e4m3fn", "F8_E4M3", [4], bytes.fromhex("00384044"))
		put("float8_e5m2", "F8_E5M2", [4], bytes.fromhex("003c4042"))
		put("model.scale", data=bytes.fromhex("4040"))
	END
	finish
fi
