"""Help, usage errors and their exit codes."""

import os
import re

from support import Case, raw


class Help(Case):
    COMMANDS = ("chat", "generate", "summarize", "prefill", "batch", "tokenize", "inspect", "bench")

    def test_alone_prints_help(self):
        result = self.check()
        for command in self.COMMANDS:
            self.assertIn(command, result.out)
        self.assertEqual(result.err, "")

    def test_every_command_teaches(self):
        for command in self.COMMANDS:
            result = self.check(command, "--help")
            self.assertIn("Examples:", result.out)
            self.assertIn("--model", result.out)
            self.assertNotIn("-vv", result.out)

    def test_what_else_a_flag_needs_or_excludes(self):
        def described(command, flags):
            text = self.check(*command.split(), "--help").out
            found = re.search(rf"^ +{re.escape(flags)} (.*(\n {{36}}.*)*)", text, re.MULTILINE)
            return " ".join(found.group(1).split())

        self.assertIn("(required)", described("batch", "-i,--input-file,--input"))
        self.assertIn("(required)", described("prefill", "-o,--output"))
        self.assertIn("(required, here", described("chat", "-m,--model"))
        self.assertIn("(only with --resume)", described("batch", "--force"))
        for command, one, other in [
            ("generate", "-p,--prompt", "-f,--file"),
            ("generate", "--raw", "--no-think"),
            ("generate", "--raw", "--think"),
            ("chat", "--think", "--no-think"),
            ("summarize", "--think", "--no-think"),
            ("batch", "--devices", "--device"),
            ("summarize", "--kv", "--chunk-tokens"),
            ("tokenize", "--ids", "--render"),
        ]:
            for flags, excluded in [(one, other), (other, one)]:
                name = excluded.split(",")[-1]
                with self.subTest(command=command, flags=flags):
                    self.assertRegex(described(command, flags), rf"\(not with [^)]*{name}[,)]")

    def test_version(self):
        self.assertRegex(self.check("--version").out, r"^tessera \d+\.\d+\.\d+\n$")

    def test_a_start_loads_no_library_of_the_gpu(self):
        self.environment["LD_TRACE_LOADED_OBJECTS"] = "1"
        libraries = self.run_tessera().out
        self.assertIn("libstdc++", libraries)
        self.assertNotIn("cublas", libraries)

    def test_what_cannot_be_written(self):
        for arguments in ([], ["--help"], ["--version"], ["bench", "--help"],
                          ["bench", "attention", "--help"]):  # fmt: skip
            with open("/dev/full", "wb") as full:
                result = self.check(*arguments, stdout=full, code=1)
            self.assertEqual(
                result.err, "error: standard output: write failed: No space left on device\n"
            )
            reader, writer = os.pipe()
            os.close(reader)
            result = self.check(*arguments, stdout=writer, code=141)
            os.close(writer)
            self.assertEqual(result.err, "")


class UsageErrors(Case):
    def assert_usage_error(self, *arguments, text="", help="tessera generate --help"):
        result = self.check(*arguments, code=2)
        self.assert_one_error(result, text)
        self.assertIn(f"see '{help}'", result.err)

    def test_command_lines_that_mean_nothing(self):
        for arguments, text in [
            (["--bogus"], "--bogus"),
            (["-p"], "--prompt"),
            (["-p", "x", "--temp", "abc"], "abc"),
            (["-p", "x", "--top-k", "1.5"], "1.5"),
            (["-p", "x", "-f", "y"], "--prompt"),
            (["-p", "x", "--device", "gpu"], "cuda:N"),
            (["-p", "x", "--dtype", "int3"], "bfloat16"),
            (["-p", "x", "--prompt-lookup", "on"], "auto or off"),
            (["-p", "x", "-c", "5q"], "5q"),
            (["-p", "x", "--color", "pink"], "always"),
            ([], "no prompt"),
            (["-p", ""], "prompt is empty"),
            (["-p", " \n\t"], "prompt is empty"),
        ]:
            with self.subTest(arguments=arguments):
                self.assert_usage_error("generate", *self.model, *arguments, text=text)

    def test_a_file_has_a_name(self):
        for command, name, arguments in [
            ("summarize", "file", [""]),
            ("summarize", "file", ["x", ""]),
            ("prefill", "file", ["", "-o", "x.kv"]),
            ("prefill", "--output", ["x", "-o", ""]),
            ("generate", "--file", ["-f", ""]),
            ("generate", "--kv", ["-p", "x", "--kv", ""]),
            ("chat", "--stats-json", ["--stats-json", ""]),
            ("batch", "--input-file", ["-i", "", "-o", "x"]),
            ("bench attention", "--json", ["--json", ""]),
        ]:
            with self.subTest(command=command, arguments=arguments):
                self.assert_usage_error(*command.split(), *arguments,
                                        text=f"{name}: the name of a file must not be empty",
                                        help=f"tessera {command} --help")  # fmt: skip

    def test_raw_text_has_no_messages(self):
        for flags in (["--system", "S"], ["--system-file", "S"], ["--template-arg", "a=1"],
                      ["--chat-template", "chatml"], ["--no-think"], ["--think"]):  # fmt: skip
            with self.subTest(flags=flags):
                self.assert_usage_error("generate", *raw(self.model), "-p", "x", *flags,
                                        text=f"{flags[0]} excludes --raw")  # fmt: skip

    def test_slips_are_guessed(self):
        folder = self.model[1]
        for arguments, text, hint in [
            (["genrate", "-p", "x"], "no command 'genrate'", "perhaps you mean generate"),
            (["bench", "atention"], "no command 'atention'", "perhaps you mean attention"),
            (["answer"], "no command 'answer'", ""),
            (["-m", folder], "no flag -m", "perhaps you mean tessera chat -m"),
            (["--prompt", "x"], "no flag --prompt", "perhaps you mean tessera generate --prompt"),
            (["generate", "--temprature", "1"], "no flag --temprature", "perhaps you mean --temperature"),
            (["generate", "--top_p=0.5"], "no flag --top_p", "perhaps you mean --top-p"),
            (["generate", "--max-token", "9"], "no flag --max-token", "perhaps you mean --max-tokens"),
            (["generate", "--prompt-lookp"], "no flag --prompt-lookp", "perhaps you mean --prompt-lookup"),
            (["chat", "--stats-jsn", "x"], "no flag --stats-jsn", "perhaps you mean --stats-json"),
            (["generate", "--max", "9"], "no flag --max", "perhaps you mean --max-tokens"),
            (["generate", *self.model, "--", "hello"], "'hello'", "perhaps you mean -p TEXT"),
            (["bogus", "chat"], "did not expect 'bogus'", ""),
            (["generate", "--zzz"], "no flag --zzz", ""),
            (["generate", *self.model, "hello", "you"], "'hello'", "perhaps you mean -p TEXT"),
            (["chat", folder], f"'{folder}'", f"perhaps you mean -m {folder}"),
            (["chat", "/nowhere"], "'/nowhere'", ""),
            # A command's name behind another command is an argument like any other.
            (["generate", *self.model, "-p", "x", "inspect"], "'inspect'", "perhaps you mean -p TEXT"),
            (["generate", *self.model, "-p", "x", "--", "chat"], "'chat'", "perhaps you mean -p TEXT"),
            (["generate", "-n"], "--max-tokens: a value is missing", ""),
            (["generate", "--verbose=2"], "--verbose takes no value", ""),
        ]:
            with self.subTest(arguments=arguments):
                result = self.check(*arguments, code=2)
                self.assert_one_error(result, text)
                if hint:
                    self.assertIn(f"hint: {hint}; see 'tessera", result.err)
                else:
                    self.assertIn("hint: see 'tessera", result.err)

    def test_names_of_other_programs_are_translated(self):
        for arguments, text, hint in [
            (["help"], "no command 'help'", "--help"),
            (["help", "chat"], "no command 'help'", "--help"),
            (["-V"], "no flag -V", "--version"),
            (["run", "org/name"], "no command 'run'", "chat"),
            (["bench", "attn"], "no command 'attn'", "attention"),
            (["chat", "--max-new-tokens", "9"], "no flag --max-new-tokens", "--max-tokens"),
            (["chat", "--n-gpu-layers=9"], "no flag --n-gpu-layers", "--device cuda"),
            (["bench", "-ngl", "99"], "no flag -ngl", "--device cuda"),
            # Read as -n gl, -s ys and -h.
            (["chat", "-ngl", "99"], "--max-tokens must be", "--device cuda"),
            (["generate", "-sys", "Be kind."], "--seed must be", "--system"),
            (["chat", "-hf", "org/name"], "no flag -hf", "-m REPO"),
            (["chat", "--hf-repo", "org/name"], "no flag --hf-repo", "-m REPO"),
            (["bench", "-p", "512"], "no flag -p", "--prompt-lengths"),
            (["bench", "-n", "128"], "no flag -n", "--decode-lengths"),
            # Not where the command has no such flag.
            (["tokenize", "--max-new-tokens", "9"], "no flag --max-new-tokens", ""),
            (["generate", "-n", "gl"], "--max-tokens must be", ""),
        ]:
            with self.subTest(arguments=arguments):
                result = self.check(*arguments, code=2)
                self.assert_one_error(result, text)
                expected = f"perhaps you mean {hint}; see 'tessera" if hint else "see 'tessera"
                self.assertIn(f"hint: {expected}", result.err)

    def test_a_flag_given_again_overrides(self):
        result = self.check("generate", *self.model, "-p", "x", "-n", "9", "-n", "2")
        self.assertIn("gen 2 tok", result.err)

    def test_no_model(self):
        self.assert_usage_error("generate", "-p", "x", text="no model")

    def test_unknown_command(self):
        self.assert_usage_error("frobnicate", text="frobnicate", help="tessera --help")

    def test_missing_file(self):
        self.assert_usage_error("summarize", *self.model, text="file",
                                help="tessera summarize --help")

    def test_model_from_environment(self):
        self.environment["TESSERA_MODEL"] = self.model[1]
        self.check("generate", *self.model[2:], "-p", "x", "-n", "1")

    def test_where_the_hugging_face_cache_is(self):
        # The folders are those of huggingface_hub.constants.HF_HUB_CACHE 2.4.0.
        home = self.environment["HOME"]
        for variables, folder in [
            ({}, f"{home}/.cache/huggingface/hub"),
            ({"XDG_CACHE_HOME": "~/x"}, f"{home}/x/huggingface/hub"),
            ({"HF_HOME": "~/h", "XDG_CACHE_HOME": "/x"}, f"{home}/h/hub"),
            ({"HF_HOME": "~"}, f"{home}/hub"),
            ({"HF_HOME": "$DISK/h", "DISK": "/f"}, "/f/h/hub"),
            ({"HF_HOME": "${DISK}/h$NO/${NO}$", "DISK": "/f"}, "/f/h$NO/${NO}$/hub"),
            ({"HUGGINGFACE_HUB_CACHE": "~/old", "HF_HOME": "/h"}, f"{home}/old"),
            ({"HF_HUB_CACHE": "/a/$D_1-y", "D_1": "q", "HUGGINGFACE_HUB_CACHE": "/b"}, "/a/q-y"),
        ]:
            with self.subTest(variables):
                before = dict(self.environment)
                self.environment.update(variables)
                result = self.check("inspect", "-m", "org/name", code=1)
                self.assertIn(f"tried 'org/name' '{folder}/models--org--name/refs/main'",
                              result.err)  # fmt: skip
                self.environment = before


class Errors(Case):
    def test_where_it_was_thrown_only_when_asked(self):
        arguments = ["generate", "-m", "absent", "-p", "x"]
        self.assertNotIn(".cpp:", self.check(*arguments, code=1).err)
        self.assertIn(".cpp:", self.check(*arguments, "-v", code=1).err)
