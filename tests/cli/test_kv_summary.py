"""tessera summarize --kv, and what --kv says of a prompt that is not its own."""

import json

from test_kv import DOCUMENT, PAGES, KvCase


class Summary(KvCase):
    def test_a_summary_is_as_long_as_one_of_a_file(self):
        self.prefill()
        flags = ["--kv", "document.kv", "--ignore-eos", "--stats-json", "stats.json"]
        model = [*self.long_model(), *PAGES, "-c", "2048"]
        self.check("prefill", *model, "document.txt", "-o", "document.kv")
        result = self.check("summarize", *model, *flags)
        self.assertEqual(self.stats()["completion_tokens"], 512)
        self.assertIn("the summary was cut at 512 tokens; -n allows more", result.err)
        # It takes no more than the document leaves, unless more was asked for.
        result = self.check("summarize", *model, *flags, "-c", "300")
        left = 300 - self.stats()["prompt_tokens"]
        self.assertEqual(self.stats()["completion_tokens"], left)
        self.check("summarize", *model, *flags, "-c", "300", "--min-tokens", "500")
        self.assertEqual(self.stats()["completion_tokens"], left)
        self.check("summarize", *model, *flags, "-c", "300", "-n", str(left + 1), code=1)

    def test_a_question_is_followed_by_no_instruction(self):
        question = {"role": "user", "content": DOCUMENT}
        answered = [question, {"role": "assistant", "content": "I see."}]
        self.write("answered", json.dumps({"messages": answered}))
        self.write("asked", json.dumps({"messages": [question]}))
        self.check("chat", *self.flags(), "-n", "2",
                   stdin="/load answered\nhi\n/load asked\n/save kept\n")  # fmt: skip
        for command in (["summarize"], ["generate", "-p", "Who?"]):
            result = self.check(*command, *self.flags(), "--kv", "kept.kv", code=1)
            self.assert_one_error(result, "kept.kv: its conversation ends with a question")
            self.assertIn("hint: tessera chat answers it: /load it, then /regen", result.err)
        self.check("chat", *self.flags(), "-n", "2", stdin="/load kept\n/regen\n/save kept\n")
        self.check("generate", *self.flags(), "--kv", "kept.kv", "-p", "Who?", "-n", "2")

    def test_what_is_computed_all_the_same_is_said(self):
        self.prefill()
        flags = ["--kv", "document.kv", "-n", "2", "--stats-json", "stats.json"]
        for command in (["summarize"], ["generate", "-p", "Who?"]):
            own = self.check(*command, *self.flags(), *flags)
            self.assertNotIn("the prompt begins with", own.err)
            other = self.check(*command, *self.flags(), "--chat-template", "zephyr",
                               *flags)  # fmt: skip
            cached = self.stats()["cached_prompt_tokens"]
            self.assertRegex(
                other.err,
                rf"document\.kv: the prompt begins with {cached} of its \d+ tokens, "
                "and is computed from there on",
            )

    def test_a_chat_says_so_too(self):
        self.prefill()
        chat = ["chat", *self.flags(), "-n", "6"]
        self.check(*chat, stdin=f"{DOCUMENT}\nWho?\n/save kept.json\n")
        said = r"{}: the prompt begins with 0 of its \d+ tokens, and is computed from there on\n"
        for flags, text, path in [(["--kv", "document.kv"], "", "document.kv"),
                                  ([], "/load kept.json\n", "kept.json.kv")]:  # fmt: skip
            own = self.check(*chat, *flags, stdin=f"{text}When?\n")
            self.assertNotIn("computed from", own.err)
            other = self.check(*chat, *flags, "--chat-template", "zephyr", stdin=f"{text}When?\n")
            self.assertRegex(other.err, said.format(path))
