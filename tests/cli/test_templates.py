"""Chat templates as models bring them: their variables, names and tools."""

import json

from support import Case, edit_json, read_json_lines

TOOL = {"type": "function", "function": {"name": "add", "parameters": {"z": 1, "a": "</s>"}}}
CALL = {"id": "c1", "type": "function",
        "function": {"name": "add", "arguments": '{"y": 2, "x": 1}'}}  # fmt: skip


class Templates(Case):
    """Templates that refuse every conversation show in the error what they were given."""

    def model_with(self, template):
        folder = self.copy_model("model")
        edit_json(folder / "tokenizer_config.json", chat_template=template)
        return ["-m", str(folder), "--device", "cpu"]

    def shown(self, flags, *arguments):
        result = self.check("generate", *flags, "-p", "hello", *arguments, code=1)
        return result.err.split("refuses this conversation: ")[1].splitlines()[0]

    def test_arguments(self):
        flags = self.model_with("{{ raise_exception([a, b, c] | tojson) }}")
        shown = self.shown(flags, "--template-arg", 'a={"y": 1, "x": null}', "--template-arg",
                           "b=false", "--template-arg", "c=plain text")  # fmt: skip
        self.assertEqual(shown, '[{"y": 1, "x": null}, false, "plain text"]')

    def test_arguments_that_are_wrong(self):
        flags = self.model_with("{{ messages[0].content }}{{ a }}")
        for argument, words, code in [("a", "must be NAME=VALUE, got 'a'", 2),
                                      ("1=2", "must be NAME=VALUE, got '1=2'", 2),
                                      ("b=1", "the chat template has no variable 'b'", 1),
                                      ("messages=[]", "messages is not an argument", 1),
                                      (f'a={{"b": {10**30}}}',
                                       f"--template-arg a: b: the integer {10**30} does not fit", 2),
                                      (f"a={2**64 - 1}",
                                       f"a: the integer {2**64 - 1} does not fit", 1)]:  # fmt: skip
            with self.subTest(argument=argument):
                result = self.check("generate", *flags, "-p", "x", "--template-arg", argument,
                                    code=code)  # fmt: skip
                self.assert_one_error(result, words)
        result = self.check("generate", *self.model, "-p", "x", "--template-arg", "a=1", code=1)
        self.assert_one_error(result, "llama2: the chat template has no variable 'a'")

    def test_named_templates(self):
        flags = self.model_with([{"name": "default", "template": "{{ raise_exception('plain') }}"},
                                 {"name": "rag", "template": "{{ raise_exception('rag') }}"}])  # fmt: skip
        self.assertEqual(self.shown(flags), "plain")
        self.assertEqual(self.shown([*flags, "--chat-template", "rag"]), "rag")
        result = self.check("generate", *flags, "-p", "x", "--chat-template", "nope", code=1)
        self.assert_one_error(result, "unknown chat template 'nope' for --chat-template: no file of "
                              "that name, and there are default, rag, ")  # fmt: skip

    def batch(self, flags, *bodies, code=3):
        lines = [{"custom_id": str(i), "body": body} for i, body in enumerate(bodies)]
        self.write("in.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
        self.check("batch", *flags, "-n", "2", "-i", "in.jsonl", "-o", "out.jsonl", code=code)
        return [record["error"] for record in read_json_lines(self.folder / "out.jsonl")]

    def test_tools_as_the_request_gives_them(self):
        # Errors are cut to one line that can be read.
        flags = self.model_with("{{ raise_exception(([tools, messages] | tojson)[begin:begin + 50]"
                                " ~ '$') }}{{ 'tool_calls' }}")  # fmt: skip
        user = {"role": "user", "content": "x"}
        messages = [user, {"role": "assistant", "content": None, "tool_calls": [CALL]},
                    {"role": "tool", "tool_call_id": "c1", "name": "add", "content": "3"}]  # fmt: skip
        bodies = [{"messages": messages, "tools": [TOOL], "chat_template_kwargs": {"begin": begin}}
                  for begin in range(0, 500, 50)]  # fmt: skip
        errors = self.batch(flags, *bodies)
        parts = [error["message"].split("conversation: ")[1].removesuffix("$") for error in errors]
        tools, given = json.loads("".join(parts))
        self.assertEqual(json.dumps(tools), json.dumps([TOOL]))
        function = {"name": "add", "arguments": {"y": 2, "x": 1}}
        messages[1]["tool_calls"] = [{**CALL, "function": function}]
        del messages[1]["content"]  # what is null is left out, as transformers does
        messages[2] = {key: messages[2][key] for key in ("role", "content", "tool_call_id", "name")}
        self.assertEqual(json.dumps(given), json.dumps(messages))

    def test_integers_of_tools_are_exact_or_refused(self):
        flags = self.model_with("{{ raise_exception(tools | tojson) }}")
        body = {"messages": [{"role": "user", "content": "x"}]}
        numbers = [2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**64, -(2**63) - 1, 10**30]
        errors = self.batch(flags, *({**body, "tools": [{"maximum": n}]} for n in numbers))
        for number, error in zip(numbers[:2], errors):
            self.assertIn(f'[{{"maximum": {number}}}]', error["message"])
        for number, error in zip(numbers[2:], errors[2:]):
            self.assertIn(f"the integer {number} does not fit in 64 bits", error["message"])
        self.assertTrue(errors[3]["message"].startswith("tools: the integer"), errors[3])

    def test_tools_have_a_template_of_their_own(self):
        named = [{"name": "default", "template": "{{ raise_exception('plain') }}"},
                 {"name": "tool_use", "template": "{{ raise_exception(tools | length) }}"}]  # fmt: skip
        user = {"role": "user", "content": "x"}
        errors = self.batch(self.model_with(named), {"messages": [user]},
                            {"messages": [user], "tools": [TOOL]})  # fmt: skip
        self.assertEqual([error["message"].split()[-1] for error in errors], ["plain", "1"])

    def test_tools_that_the_template_does_not_know(self):
        user = {"role": "user", "content": "x"}
        call = {"role": "assistant", "tool_calls": [CALL]}
        errors = self.batch(self.model, {"messages": [user], "tools": [TOOL]},
                            {"messages": [user, call]}, {"messages": [user], "tools": []})  # fmt: skip
        self.assertIn("does not mention tools", errors[0]["message"])
        self.assertEqual(errors[1]["line"], 2)
        self.assertIn("message 2 has tool_calls", errors[1]["message"])
        self.assertIsNone(errors[2])

    def test_tools_that_are_none(self):
        user = {"role": "user", "content": "x"}
        wrong = [
            ({"tools": {}}, "body.tools must be an array"),
            ({"tools": ["x"]}, "body.tools[0] must be an object"),
            ({"chat_template_kwargs": []}, "body.chat_template_kwargs must be an object"),
            ({"tool_choice": "required"}, "body.tool_choice is not supported"),
            ({"messages": [{**user, "tool_calls": [CALL]}]}, "belongs to the role assistant"),
            ({"messages": [{**user, "tool_call_id": "c"}]}, "belongs to the role tool"),
            ({"messages": [{"role": "assistant", "content": None}]}, "got null"),
            ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "must be a call"),
            ({"messages": [{"role": "assistant", "tool_calls": [
                {"function": {"name": "f", "arguments": "{"}}]}]}, "arguments: invalid JSON"),
        ]  # fmt: skip
        bodies = [{"messages": [user], **body} for body, _ in wrong]
        for error, (_, words) in zip(self.batch(self.model, *bodies), wrong):
            self.assertIn(words, error["message"])

    def test_special_tokens_in_requests_stay_text(self):
        template = ("{% for m in messages %}{{ m.content ~ m.name ~ m.tool_calls }}{% endfor %}"
                    "{{ tools | tojson }}{{ mark }}")  # fmt: skip
        flags = self.model_with(template)

        def prompt_tokens(text):
            call = {"function": {"name": text, "arguments": {text: text}}}
            body = {"messages": [{"role": "assistant", "name": text, "tool_calls": [call]}],
                    "tools": [{text: text}], "chat_template_kwargs": {"mark": text}}  # fmt: skip
            self.write("in.jsonl", json.dumps({"custom_id": "a", "body": body}) + "\n")
            self.check("batch", *flags, "-n", "2", "-i", "in.jsonl", "-o", "out.jsonl",
                       "--overwrite")  # fmt: skip
            (record,) = read_json_lines(self.folder / "out.jsonl")
            return record["response"]["body"]["usage"]["prompt_tokens"]

        # Four bytes each, or one token each where it were special.
        self.assertEqual(prompt_tokens("</s>"), prompt_tokens("<%s>"))
