"""Whatever people and files hold, tessera answers in words of its own: no exception of a library
comes through, not even by way of the last catch in main."""

import json
import subprocess

from support import TIMEOUT_SECONDS, Case

NOT_UTF8 = "\udcff\udcfe"  # the bytes FF FE of an argument
NUMBERS = ["1e999", "-1e400", "99999999999999999999999", "nan", "", " ", "0x", "1,2", "-"]
NAMES = ["a" * 5000, "a/" * 3000, NOT_UTF8, "\x1b[2J", "a\n", "/dev/null", "/proc/self/mem", "."]
JSON_TEXTS = [
    "", "{", "[]", "null", "5", '"x"', "{}{}", "\0", "[" * 100_000, '{"a":' * 1000, "{} //",
    '{"messages": 1e999}', '{"results": [1e999]}', '{"messages": [{"role": -1e400}]}',
    '{"messages": {"role": 5}}', '{"messages": [5]}', '{"messages": [{"role": 5}]}',
    '{"messages": [{"role": "user"}]}', '{"messages": [{"role": "user", "content": {}}]}',
    '{"messages": [], "messages": []}', '{"model": 5}', '{"model": "a", "results": {}}',
    '{"a": "\\ud800"}',
]  # fmt: skip
FOREIGN = ["did not expect", "exception", "filesystem error", "terminate called", "std::"]


class HostileInput(Case):
    def setUp(self):
        super().setUp()
        self.write("in", '{"id": "a", "prompt": "b"}')
        self.write("text", "x")

    def assert_plain(self, *arguments, stdin=b"", codes=(1, 2)):
        """Ends with one of `codes` and nothing foreign on standard error, which is returned."""
        with self.subTest(arguments=arguments, stdin=stdin[:80]):
            process = self.start(*arguments, stdin=subprocess.PIPE)
            _, err = process.communicate(stdin, timeout=TIMEOUT_SECONDS)
            text = err.decode(errors="replace")
            self.assertIn(process.returncode, codes, text)
            for foreign in FOREIGN:
                self.assertNotIn(foreign, text)
            return text

    def test_numbers(self):
        for number in NUMBERS:
            for flag in ("--temp", "--seed", "-n", "-c", "--threads", "--verbose", "--raw"):
                self.assert_plain("generate", *self.model, "-p", "x", "-n", "1", f"{flag}={number}",
                                  codes=(0, 1, 2))  # fmt: skip
            self.assert_plain("bench", *self.model, f"--batch-sizes={number}x")
            self.assert_plain("bench", "attention", f"--decode-cases={number}")
            self.assert_plain("chat", *self.model, stdin=b"/set top_p " + number.encode(),
                              codes=(3,))  # fmt: skip

    def test_names_of_models(self):
        for name in NAMES:
            for command in (["generate", "-p", "x"], ["inspect", "--json"], ["chat"],
                            ["summarize", "text"], ["batch", "-i", "in", "-o", "out"]):  # fmt: skip
                self.assert_plain(*command, "-m", name)

    def test_names_of_files(self):
        for name in NAMES:
            for flag in ("-f", "--system-file", "--stats-json"):
                self.assert_plain("generate", *self.model, "-n", "1", flag, name, codes=(0, 1, 2))
            self.assert_plain("batch", *self.model, "-o", "out", "--overwrite", "-i", name,
                              codes=(0, 1, 2))  # fmt: skip
            self.assert_plain("batch", *self.model, "-i", "in", "-n", "1", "-o", name,
                              codes=(0, 1, 2))  # fmt: skip
            for command in ("/load", "/read"):
                line = f"{command} {name}".encode(errors="surrogateescape")
                self.assert_plain("chat", *self.model, "-n", "1", stdin=line, codes=(0, 3))

    def test_text_that_is_not_utf8(self):
        model = self.copy_model("model").rename(self.folder / NOT_UTF8)
        odd_model = ["-m", str(model), *self.model[2:], "-n", "1"]
        stop = [*self.model, "-n", "1", "--stop", NOT_UTF8]
        for flags in (odd_model, stop):
            self.assert_plain("generate", *flags, "-p", "x", "--stats-json", "stats", codes=(0, 1))
            self.assert_plain("batch", *flags, "-i", "in", "-o", "out", "--overwrite",
                              "--stats-json", "stats", codes=(0, 1))  # fmt: skip
            self.write("more", '{"id": "a", "prompt": "b"}\n{"id": "c", "prompt": "d"}')
            self.assert_plain("batch", *flags, "-i", "more", "-o", "out", "--resume", codes=(0, 1))
        self.assert_plain("inspect", *odd_model[:2], "--json", codes=(0,))
        self.assert_plain("generate", *odd_model, "-p", "x", "--stats-json", "stats", codes=(0,))
        stats = json.loads((self.folder / "stats").read_text())
        self.assertTrue(stats["model"].endswith("\ufffd\ufffd"))

    def test_json(self):
        for text in JSON_TEXTS:
            self.write("hostile", text)
            self.assert_plain("chat", *self.model, stdin=b"/load hostile", codes=(0, 3))
            self.assert_plain("bench", *self.model, "--compare", "hostile", codes=(1,))
            self.assert_plain("batch", *self.model, "-i", "hostile", "-o", "out", "--overwrite",
                              codes=(0, 3))  # fmt: skip

    def test_json_of_models(self):
        for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
            folder = self.copy_model(name)
            for text in JSON_TEXTS:
                (folder / name).write_text(text)
                self.assert_plain("generate", "-m", folder, *self.model[2:], "-p", "x", "-n", "1",
                                  codes=(0, 1))  # fmt: skip
