"""Rows 1 to 29: weights that are not what a safetensors file must be, and some that are."""

import json
import os
import struct
import time
import zipfile

from rows.contract import Row
from rows.model_files import Safetensors, tensor, with_header


class Length(Row):
    def test_row_001_empty_file(self):
        self.weights_refused(b"", "file is empty; expected a safetensors header")

    def test_row_002_seven_bytes(self):
        self.weights_refused(b"\x01" * 7, ["7 bytes", "too short for the 8-byte header length"])
        self.weights_refused(b"\x01", ["has 1 byte,"])

    def test_row_003_absurd_header_length(self):
        for length in (100_000_001, 2**63, 2**64 - 1):
            self.weights_refused(struct.pack("<Q", length) + b"{}" * 30,
                                 f"header length {length} exceeds limit 100000000")  # fmt: skip

    def test_row_004_header_longer_than_the_file(self):
        content = struct.pack("<Q", 1000) + b"{" * 52
        self.weights_refused(content, ["header claims 1000 bytes", "file has 52"])

    def test_row_010_truncated(self):
        whole = with_header({"w": tensor()}, b"\0" * 8)
        self.weights_refused(whole[:-1], ["1 byte short", "'w' needs bytes up to 8"])
        huge = with_header({"w": tensor("F32", [2**28 + 2], (0, 2**30 + 8))}, b"\0" * 8)
        self.weights_refused(huge, ["1073741824 bytes short", "'w'"])

    def test_row_009_more_than_the_tensors(self):
        whole = with_header({"w": tensor()}, b"\0" * 8)
        self.weights_refused(whole + b"\0", "1 unexpected byte after tensor data")
        archive = self.folder / "a.zip"
        with zipfile.ZipFile(archive, "w") as opened:
            opened.writestr("data", "x")
        self.weights_refused(whole + archive.read_bytes(), "unexpected bytes after tensor data")


class OtherFormats(Row):
    def test_row_005_git_lfs_pointer(self):
        pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
        self.weights_refused(pointer, "Git LFS pointer, not weights", hint="git lfs pull")

    def test_row_006_page_instead_of_a_file(self):
        for page, begin in [(b"<!DOCTYPE html><html></html>", "<!DO"),
                            (b'{"error":"Repository not found"}', '{"er')]:  # fmt: skip
            self.weights_refused(page, [f"starts with '{begin}'", "looks like a failed download"])

    def test_row_007_pytorch(self):
        words = "PyTorch pickle is not supported (unsafe"
        archive = b"PK\x03\x04\0\0\x08\x08" + b"\0" * 56  # as torch.save begins one
        for content in (archive, b"\x80\x02}q\x00." + b"\0" * 60):
            self.weights_refused(content, words, hint="safetensors")
        for name in ("pytorch_model.bin", "model.pt"):
            folder = self.folder_with(name.replace(".", "-"))
            (folder / "model.safetensors").rename(folder / name)
            self.folder_refused(folder, [words, name], hint="safetensors")

    def test_row_008_gguf(self):
        self.weights_refused(b"GGUF\x03\0\0\0" + b"\0" * 56, "this is a GGUF file")
        folder = self.folder_with("gguf")
        (folder / "model.safetensors").rename(folder / "model.gguf")
        self.folder_refused(folder, "GGUF", hint="safetensors")


class Layout(Row):
    def test_row_011_hole(self):
        header = {"a": tensor(), "b": tensor(offsets=(12, 20))}
        self.header_refused(header, ["4 unused bytes", "'a' (bytes 0..8)", "'b' (bytes 12..20)"],
                            b"\0" * 20)  # fmt: skip
        self.header_refused({"a": tensor(), "b": tensor(offsets=(9, 17))}, "1 unused byte ",
                            b"\0" * 17)  # fmt: skip

    def test_row_012_overlap(self):
        for second in ((4, 12), (0, 8)):
            header = {"a": tensor(), "b": tensor(offsets=second)}
            self.header_refused(header, ["overlaps", "'a' (bytes 0..8)",
                                         f"'b' (bytes {second[0]}..{second[1]})"],
                                b"\0" * 12)  # fmt: skip

    def test_row_013_reversed_or_late_offsets(self):
        self.header_refused({"w": tensor(offsets=(8, 0))}, ["'w'", "[8, 0] are reversed"],
                            b"\0" * 8)  # fmt: skip
        self.header_refused({"w": tensor(offsets=(4, 12))}, ["'w' (bytes 4..12)", "byte 0"],
                            b"\0" * 12)  # fmt: skip

    def test_row_014_size_is_not_that_of_the_shape(self):
        self.header_refused({"w": tensor(offsets=(0, 4))}, ["needs 8 bytes", "header gives 4"],
                            b"\0" * 4)  # fmt: skip

    def test_row_015_shape_overflows(self):
        shape = [4194305, 4194305, 211106198978564]
        self.header_refused({"w": tensor(shape=shape)}, ["'w'", "too large"], b"\0" * 8)

    def test_row_016_dimension_too_large(self):
        for shape in ([0, 2**64 - 1, 2**64 - 1], [2**63, 0]):
            self.header_refused({"w": tensor(shape=shape, offsets=(0, 0))},
                                ["'w'", "dimension", "too large"])  # fmt: skip

    def test_row_017_shape_is_no_list_of_small_integers(self):
        for shape in ("[-1]", "[1.0]", '["1"]', f"[{2**64}]", "[%s]" % ",".join(["1"] * 100_000),
                      "2", "null"):  # fmt: skip
            header = '{"w":{"dtype":"F32","data_offsets":[0,8],"shape":%s}}' % shape
            self.header_refused(header, ["'w'", "shape must be a list of at most 8 non-negative"],
                                b"\0" * 8)  # fmt: skip

    def test_row_027_what_is_odd_but_allowed_works(self):
        folder = self.folder_with()
        expected = self.answer(folder)
        weights = Safetensors(folder / "model.safetensors")
        content = weights.content()
        length = struct.unpack("<Q", content[:8])[0]
        for spaces in (1, 7):  # tensors are no longer aligned
            header = b" " * spaces + content[8 : 8 + length]
            weights.path.write_bytes(with_header(header, content[8 + length :]))
            self.assertEqual(self.answer(folder), expected)


class Header(Row):
    def test_row_018_duplicate_tensor(self):
        entry = json.dumps(tensor(offsets=(0, 0), shape=[0]))
        for second in ('"w"', '"\\u0077"'):
            self.header_refused('{"w":%s,%s:%s}' % (entry, second, entry), "duplicate tensor 'w'")

    def test_row_019_dtype(self):
        for dtype in ("Q4_0", "f32", "F8_E4M3FN", "I64"):
            words = [f"dtype '{dtype}'", "supported: F32 F16 BF16"]
            self.header_refused({"w": tensor(dtype)}, words, b"\0" * 8)

    def test_row_020_quantised(self):
        folder = self.folder_with(quantization_config={"quant_method": "gptq", "bits": 4})
        self.folder_refused(folder, "quantised checkpoints (gptq) are not supported",
                            "config.json")  # fmt: skip
        self.header_refused({"model.layers.0.mlp.up_proj.qweight": tensor("I32")},
                            "quantised checkpoints are not supported", b"\0" * 8)  # fmt: skip

    def test_row_021_invalid_utf8(self):
        for name in (b"\xff", b"\xc0\xaf", b"\xe2\x82", b"\\ud800"):
            header = b'{"%s":%s}' % (name, json.dumps(tensor()).encode())
            self.header_refused(header, "invalid JSON at header byte ", b"\0" * 8)

    def test_row_022_not_quite_json(self):
        good = json.dumps({"w": tensor()})
        for header in ("\ufeff" + good, good + "\0", good + "x", "/* */" + good, good[:-1] + ",}",
                       "{", good[:-1]):  # fmt: skip
            self.header_refused(header, "invalid JSON at header byte ", b"\0" * 8)

    def test_row_023_nested(self):
        for text in ("[" * 100_000, '{"a":' * 100_000):
            self.header_refused(text, "JSON nesting too deep")

    def test_row_024_a_million_empty_tensors(self):
        folder = self.weights_file(b"")
        entry = b'"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},'
        count, block = 1_500_000, 1000
        length = count * len(entry % 0) + 1
        # In blocks: what this process holds when it starts tessera counts as tessera's.
        with open(folder / "model.safetensors", "wb") as file:
            file.write(struct.pack("<Q", length) + b"{")
            for first in range(0, count, block):
                file.write(b"".join(entry % i for i in range(first, first + block)))
            file.seek(-1, os.SEEK_CUR)
            file.write(b"}")
        self.assertGreater(length, 80_000_000)
        self.folder_refused(folder, ["more than", "tensors"], "model.safetensors")

    def test_row_025_metadata(self):
        for value in ('{"a":1}', '{"a":null}', '{"a":{}}', '{"a":["b"]}'):
            self.header_refused('{"__metadata__":%s}' % value, "__metadata__ values must be strings")

    def test_row_026_names_that_steer_a_terminal(self):
        for name, shown in [("a\x1b]0;x\x07", "a\\x1b]0;x\\x07"), ("a\x00b", "a\\x00b"),
                            ("\u202egnp.x", "\\xe2\\x80\\xaegnp.x"), ("\u009b2J", "\\xc2\\x9b2J"),
                            ("x" * 10_000, "x" * 120 + "...'")]:  # fmt: skip
            self.header_refused({name: tensor("Q4_0")}, ["'" + shown, "dtype"], b"\0" * 8)
            result = self.header_refused({"w": tensor(name)}, "'" + shown, b"\0" * 8)
            self.assertLess(len(result.err), 1000)


class Values(Row):
    def test_row_028_not_finite(self):
        folder = self.folder_with()
        weights = Safetensors(folder / "model.safetensors")
        for value, shown in [(b"\0\0\xc0\x7f", "nan"), (b"\0\0\x80\xff", "-inf")]:
            values = bytearray(weights.tensors["model.norm.weight"][2])
            values[12:16] = value
            weights.tensors["model.norm.weight"][2] = bytes(values)
            weights.save()
            self.refused("generate", *self.flags(folder), "--raw", "-p", "x", "--check-weights",
                         words=["'model.norm.weight'", shown, "flat index 3"],
                         path=weights.path)  # fmt: skip

    def test_row_029_file_shrinks_while_it_is_loaded(self):
        folder = self.folder_with()
        weights = folder / "model.safetensors"
        reader, writer = os.pipe()
        # Full, so that tessera waits at its first log line, between the header and the weights.
        os.set_blocking(writer, False)
        filling = 0
        try:
            while True:
                filling += os.write(writer, b"." * 4096)
        except BlockingIOError:
            os.set_blocking(writer, True)
        process = self.start("generate", *self.flags(folder), "--raw", "-p", "x", "-v",
                             stderr=writer)  # fmt: skip
        self.addCleanup(process.stdout.close)
        os.close(writer)
        if not waits_in_write(process.pid, descriptor=2):
            process.kill()
            process.wait()
            os.close(reader)
            self.skipTest("/proc does not tell what a process waits for")
        os.truncate(weights, weights.stat().st_size // 2)
        with os.fdopen(reader, "rb") as stream:
            said = stream.read()[filling:].decode()
        self.assertEqual(process.wait(), 1, said)
        self.assertEqual(process.stdout.read(), b"")
        self.assertIn(f"error: {weights}: file changed during load", said)


def waits_in_write(pid, descriptor, seconds=30):
    """Waits until the process is inside write(descriptor, ...); false when that cannot be known."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with open(f"/proc/{pid}/syscall") as file:
                call = file.read().split()
        except OSError:
            return False
        if call[:2] == ["1", hex(descriptor)]:
            return True
        time.sleep(0.002)
    return False
