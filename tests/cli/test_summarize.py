"""tessera summarize."""

import re

from support import Case


class Summarize(Case):
    def test_file_and_stdin(self):
        path = self.write("document.txt", "A short report.\n")
        from_file = self.check("summarize", *self.model, path, "-n", "8")
        from_stdin = self.check("summarize", *self.model, "-", "-n", "8", stdin=path.read_bytes())
        self.assertEqual(from_file.out, from_stdin.out)
        self.assertIn("gen 8 tok", from_file.err)

    def test_the_prompt_is_instruction_and_document(self):
        path = self.write("document.txt", "A short report.")
        summary = self.check("summarize", *self.model, path, "-n", "8").out
        prompt = "Summarize the following document.\n\nA short report."
        self.assertEqual(self.check("generate", *self.model, "-p", prompt, "-n", "8").out, summary)

    def test_instruction(self):
        path = self.write("document.txt", "A short report.")
        result = self.check("summarize", *self.model, path, "-n", "8", "--instruction", "Shout.")
        prompt = "Shout.\n\nA short report."
        self.assertEqual(
            self.check("generate", *self.model, "-p", prompt, "-n", "8").out, result.out
        )

    def test_too_long_for_the_model(self):
        path = self.write("long.txt", "word " * 200)
        result = self.check("summarize", *self.model, path, code=1)
        self.assert_one_error(result, "512 reserved")
        self.assertIn("longer context", result.err)

    def test_too_long_for_the_context_asked_for(self):
        path = self.write("long.txt", "word " * 1000)
        flags = self.long_model()
        result = self.check("summarize", *flags, path, "-c", "1k", code=1)
        self.assert_one_error(result, "1024")
        needed = re.search(r"hint: -c (\d+)", result.err)[1]
        self.check("summarize", *flags, path, "-c", needed)

    def test_empty(self):
        path = self.write("empty.txt", "\n")
        self.assert_one_error(self.check("summarize", *self.model, path, code=2), "empty")


class Demo(Case):
    def test_the_demo_model_answers(self):
        result = self.check("generate", *self.demo, "-p", "Who are you?")
        self.assertGreater(len(result.out.strip()), 3)
