"""Models that think before they answer: what is shown, kept and written where."""

import json

from chat_terminal import ChatCase
from support import read_records
from thinking_model import OPEN_TEMPLATE, QUIET_TEMPLATE, TEMPLATE, make_thinking

DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class ThinkingCase(ChatCase):
    def thinking_model(self, template=TEMPLATE):
        return make_thinking(self.copy_model("thinking"), template)

    def generate(self, *arguments, flags=None):
        return self.check("generate", *(flags or self.thinking_model()), "-p", "x", *arguments)


class Generate(ThinkingCase):
    def test_a_pipe_gets_the_answer_alone(self):
        self.assertEqual(self.generate().out, "yes\n")

    def test_thinking_may_be_asked_for(self):
        flags = self.thinking_model()
        self.assertEqual(self.generate("--show-thinking", flags=flags).out, "h m\n\nyes\n")
        result = self.generate("--show-thinking", "--color", "always", flags=flags)
        self.assertIn(f"{DIM}h{PLAIN}", result.out)
        self.assertTrue(result.out.endswith("yes\n"))

    def test_the_prompt_may_begin_the_thought(self):
        flags = self.thinking_model(OPEN_TEMPLATE)
        self.assertEqual(self.generate(flags=flags).out, "yes\n")
        self.assertEqual(self.generate("--show-thinking", flags=flags).out, "h m\n\nyes\n")

    def test_a_thought_that_is_cut(self):
        result = self.generate("-n", "3")
        self.assertEqual(result.out, "")
        self.assertIn("the model was still thinking: there is no answer", result.err)

    def test_a_thought_that_ends_by_itself(self):
        result = self.generate("--stop", "m")
        self.assertEqual(result.out, "")
        self.assertIn("the model was still thinking: there is no answer", result.err)

    def test_no_think(self):
        flags = self.thinking_model()
        for asked in (["--no-think"], ["--template-arg", "enable_thinking=false"]):
            self.assertEqual(self.generate("--show-thinking", *asked, flags=flags).out, "yes\n")

    def test_think(self):
        flags = self.thinking_model(QUIET_TEMPLATE)
        self.assertEqual(self.generate("--show-thinking", flags=flags).out, "yes\n")
        for asked in (["--think"], ["--template-arg", "enable_thinking=true"]):
            result = self.generate("--show-thinking", *asked, flags=flags)
            self.assertEqual(result.out, "h m\n\nyes\n")
        result = self.check("chat", *flags, "--think", "--show-thinking", stdin="x\n/show\n")
        self.assertEqual(result.out, "h m\n\nyes\n")
        self.assertIn("think        on", result.err)
        self.write("doc.txt", "one two")
        result = self.check("summarize", *flags, "doc.txt", "-n", "32", "--think",
                            "--show-thinking")  # fmt: skip
        self.assertEqual(result.out, "h m\n\nyes\n")

    def test_no_switch(self):
        flags = self.thinking_model("{{ messages[-1].content }}~")
        for asked in ("--no-think", "--think"):
            result = self.generate(asked, flags=flags)
            self.assertEqual(result.out, "yes\n")
            self.assertIn("chat template has no switch for thinking (enable_thinking)", result.err)

    def test_raw_text_is_left_alone(self):
        flags = self.thinking_model()
        result = self.check("generate", *flags, "--raw", "-p", "x~")
        self.assertEqual(result.out, "<think>h m</think>yes\n")


class Summarize(ThinkingCase):
    def summarize(self, *arguments, flags, code=0):
        return self.check("summarize", *flags, "doc.txt", *arguments, code=code)

    def test_a_thought_alone_is_no_summary(self):
        flags = self.thinking_model()
        self.write("doc.txt", "one two three four. " * 60)
        kept = self.write("out", "precious")
        for parts in ([], ["--chunk", "--chunk-tokens", "64"]):
            self.assertEqual(self.summarize(*parts, flags=flags).out.split()[-1], "yes")
            for arguments in (["-o", "out"], ["--json"], []):
                result = self.summarize(*parts, "-n", "3", *arguments, flags=flags, code=1)
                self.assert_one_error(result, "the model was still thinking after 3 tokens")
                self.assertIn("--no-think asks for none", result.err)
            self.assertEqual(kept.read_text(), "precious")


class Batch(ThinkingCase):
    def test_thoughts_beside_the_content(self):
        lines = [{"id": "a", "prompt": "x"},
                 {"id": "b", "prompt": "x", "chat_template_kwargs": {"enable_thinking": False}},
                 {"id": "c", "prompt": "x", "chat_template_kwargs": {"enable_thinking": True}},
                 {"id": "d", "prompt": "x", "chat_template_kwargs": {"enable_thonking": True}}]  # fmt: skip
        self.write("in.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.check("batch", *self.thinking_model(), "-i", "in.jsonl", "-o", "out.jsonl", code=3)
        records = read_records(self.folder / "out.jsonl")
        messages = [record["response"]["body"]["choices"][0]["message"] for record in records[:3]]
        thoughtful = {"role": "assistant", "content": "yes", "reasoning_content": "h m"}
        self.assertEqual(messages[0], thoughtful)
        self.assertEqual(messages[1], {"role": "assistant", "content": "yes"})
        self.assertEqual(messages[2], thoughtful)
        self.assertIn("no variable 'enable_thonking'", records[3]["error"]["message"])
        self.assertEqual(records[3]["error"]["line"], 4)


class Chat(ThinkingCase):
    def test_a_pipe_gets_the_answers_alone(self):
        saved = self.folder / "saved.json"
        result = self.check("chat", *self.thinking_model(), stdin=f"x\nx\n/save {saved}\n")
        self.assertEqual(result.out, "yes\nyes\n")
        answer = json.loads(saved.read_text())["messages"][1]
        self.assertEqual((answer["content"], answer["reasoning_content"]), ("yes", "h m"))
        again = self.check("chat", *self.thinking_model_again(), stdin=f"/load {saved}\n/save 2\n")
        self.assertEqual(again.out, "")
        self.assertEqual((self.folder / "2").read_text(), saved.read_text())

    def thinking_model_again(self):
        return ["-m", str(self.folder / "thinking"), "--device", "cpu"]

    def test_the_template_sees_older_thoughts_apart(self):
        # Without its thoughts in the content, an answer in the history says just "yes".
        template = ("{{ raise_exception(messages[1].content ~ '/' ~ messages[1].reasoning_content) "
                    "if messages | length > 1 }}~")  # fmt: skip
        flags = self.thinking_model(template)
        result = self.check("chat", *flags, stdin="x\nx\n", code=3)
        self.assertIn("refuses this conversation: yes/h m", result.err)

    def test_set_think(self):
        flags = self.thinking_model()
        text = "/set think off\nx\n/show\n/set think on\nx\n/set think maybe\n"
        result = self.check("chat", *flags, "--show-thinking", stdin=text, code=3)
        self.assertEqual(result.out, "yes\nh m\n\nyes\n")
        self.assertIn("think        off", result.err)
        self.assertIn("think must be on or off, got 'maybe'", result.err)
        flags = self.thinking_model_again()
        self.assertEqual(self.check("chat", *flags, "--no-think", "--show-thinking",
                                    stdin="x\n").out, "yes\n")  # fmt: skip

    def test_dim_on_a_terminal(self):
        terminal = self.terminal("chat", *self.thinking_model())
        terminal.expect_prompt()
        terminal.send("x\r")
        terminal.expect(r"\x1b\[2mh\x1b\[0m")
        terminal.expect(r"\x1b\[2m m\r\n\r\n\x1b\[0myes\r\n")
        terminal.expect_prompt()
        terminal.send("/exit\r")
        self.assertEqual(terminal.exit_code(), 0)
