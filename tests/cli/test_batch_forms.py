"""tessera batch: what a request may ask for, and the form in which it is answered."""

import math
import time

from support import read_records
from test_batch import BatchCase, openai_line, short_line


def completion_line(custom_id, prompt, **body):
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/completions",
            "body": {"prompt": prompt, **body}}  # fmt: skip


class OpenAIForm(BatchCase):
    def test_bodies_have_an_id_and_a_time(self):
        self.write_input(openai_line("a", "x"), openai_line("b", "x"), completion_line("c", "x"))
        before = int(time.time())
        self.batch()
        responses = [record["response"] for record in read_records(self.folder / "out.jsonl")]
        for response, prefix in zip(responses, ("chatcmpl-", "chatcmpl-", "cmpl-"), strict=True):
            body = response["body"]
            self.assertEqual(body["id"], prefix + response["request_id"].removeprefix("req_"))
            self.assertIsInstance(body["created"], int)
            self.assertIn(body["created"], range(before, int(time.time()) + 1))
        self.assertNotEqual(responses[0]["body"]["id"], responses[1]["body"]["id"])


class Completions(BatchCase):
    def test_text_and_token_ids(self):
        text = "one two three"
        ids = self.check("tokenize", *self.model[:2], "-p", text).out.split()
        self.write_input(
            completion_line("text", text, max_tokens=5, ignore_eos=True),
            completion_line("ids", [int(token) for token in ids], max_tokens=5, ignore_eos=True),
            completion_line("more", [1, *map(int, ids)], max_tokens=5, ignore_eos=True),
            completion_line("list", [text], max_tokens=5, ignore_eos=True),
        )
        self.batch("--system", "Only chats have this.")
        answers = self.answers()
        self.assertEqual(answers["text"], answers["ids"])
        self.assertEqual(answers["text"], answers["list"])
        self.assertEqual(set(answers["text"][0]), {"index", "text", "finish_reason"})
        for record, num_more in zip(self.records().values(), (0, 0, 1, 0)):
            body = record["response"]["body"]
            self.assertEqual(body["object"], "text_completion")
            self.assertEqual(body["usage"]["prompt_tokens"], len(ids) + num_more)
            self.assertEqual(body["usage"]["completion_tokens"], 5)
            self.assertEqual(body["usage"]["prompt_tokens_details"], {"cached_tokens": 0})

    def test_a_space_behind_the_prompt_belongs_to_the_answer(self):
        drawn = {"max_tokens": 1, "ignore_eos": True, "temperature": 3, "seed": 3, "n": 128,
                 "logprobs": 0}  # fmt: skip
        self.write_input(completion_line("on", "hello the small", **drawn),
                         completion_line("anew", [1], **drawn))
        self.batch()
        for choice in self.answers()["on"]:
            if choice["text"]:  # a special token has none
                self.assertEqual(choice["logprobs"]["tokens"], [choice["text"]])
        self.assertIn(" small", [choice["text"] for choice in self.answers()["on"]])
        for choice in self.answers()["anew"]:
            self.assertNotRegex(choice["text"], "^ [a-z]")

    def test_need_no_chat_template(self):
        self.write_input(completion_line("a", [5, 6]))
        self.batch(flags=[*self.model[:2], "--device", "cpu"])
        self.write_input(completion_line("a", [5, 6]), short_line("b", "x"))
        self.batch("--overwrite", flags=[*self.model[:2], "--device", "cpu"], code=1)

    def test_bad_prompts(self):
        bad = [
            (completion_line("a", [1, 1_000_000]), "token id 1000000 is outside the vocabulary"),
            (completion_line("b", [1, -2]), "body.prompt must be a text or a list of token ids"),
            (completion_line("c", [1, 2.5]), "[1] is 2.5"),
            (completion_line("d", ["x", "y"]), "[0] is"),
            (completion_line("e", [[1]]), "[0] is an array"),
            (completion_line("f", []), "body.prompt is empty"),
            (completion_line("g", ""), "body.prompt is empty"),
            (completion_line("h", None), "body.prompt must be a string"),
            (completion_line("i", [5] * 400), "> limit"),
            (completion_line("j", "x", messages=[]), "belongs to /v1/chat/completions"),
            (completion_line("k", "x", tools=[]), "body.tools is not supported"),
            ({**completion_line("l", "x"), "body": {}}, "body.prompt is missing"),
        ]
        self.write_input(*[line for line, _ in bad])
        self.batch(code=3)
        for (_, text), record in zip(bad, read_records(self.folder / "out.jsonl"), strict=True):
            self.assertIn(text, record["error"]["message"])


class Fields(BatchCase):
    def texts(self, custom_id):
        return [choice["message"]["content"] for choice in self.answers()[custom_id]]

    def test_choices(self):
        self.write_input(openai_line("three", "x", n=3, temperature=100, ignore_eos=True),
                         openai_line("one", "x", temperature=100, ignore_eos=True),
                         openai_line("greedy", "x", n=2, temperature=0, ignore_eos=True))
        self.batch("--seed", "7")
        first = self.answers()
        self.assertEqual([choice["index"] for choice in first["three"]], [0, 1, 2])
        self.assertEqual(len(set(self.texts("three"))), 3, "each has a seed of its own")
        self.assertNotIn(self.texts("one")[0], self.texts("three"), "as has each request")
        self.assertEqual(len(set(self.texts("greedy"))), 1)
        usage = self.records()["three"]["response"]["body"]["usage"]
        self.assertEqual(usage["completion_tokens"], 24)
        self.batch("--seed", "7", "--max-sequences", "1", output="again.jsonl")
        self.assertEqual(self.answers("again.jsonl"), first)

    def test_requests_of_one_prompt_and_one_seed_share_it(self):
        self.write_input(*[short_line(name, "x", temperature=100, ignore_eos=True, seed=3)
                           for name in "ab"])  # fmt: skip
        self.batch("--seed", "7")
        self.assertEqual(self.texts("a"), self.texts("b"))

    def test_fields_win_over_flags(self):
        self.write_input(short_line("a", "x", ignore_eos=True, stop=[]),
                         short_line("b", "x", ignore_eos=False, max_tokens=1))
        self.batch()
        usage = {name: record["response"]["body"]["usage"]["completion_tokens"]
                 for name, record in self.records().items()}  # fmt: skip
        self.assertEqual(usage["a"], 8)
        self.assertLessEqual(usage["b"], 1)

    def test_names_of_one_field_may_not_contradict_each_other(self):
        bad = [
            (openai_line("a", "x", max_tokens=4, max_completion_tokens=3),
             "body.max_completion_tokens is 3, but another name of the same field has 4"),
            (completion_line("b", "x", max_completion_tokens=3, max_tokens=4),
             "body.max_tokens is 4, but another name of the same field has 3"),
            (short_line("c", "x", temp=0.5, temperature=0), "temperature is 0, but another name"),
        ]
        self.write_input(
            *[line for line, _ in bad],
            openai_line("same", "x", max_tokens=3, max_completion_tokens=3),
            openai_line("null", "x", max_tokens=3, max_completion_tokens=None),
        )
        self.batch("--ignore-eos", code=3)
        records = read_records(self.folder / "out.jsonl")
        for (_, text), record in zip(bad, records):
            self.assertIn(text, record["error"]["message"])
        for record in records[len(bad):]:
            self.assertEqual(record["response"]["body"]["usage"]["completion_tokens"], 3)

    def test_min_tokens(self):
        """Answers that ended by themselves are longer: their end tokens are not drawn."""
        prompts = [f"question {i}" for i in range(40)]
        self.write_input(*[short_line(f"{i}", prompt, temperature=100, seed=i)
                           for i, prompt in enumerate(prompts)])  # fmt: skip
        self.batch("-n", "60")
        lengths = {name: record["response"]["body"]["usage"]["completion_tokens"]
                   for name, record in self.records().items()}  # fmt: skip
        short = [int(name) for name, length in lengths.items() if length < 40]
        if not short:
            self.skipTest("the model ended no answer")
        self.write_input(*[short_line(f"{i}", prompts[i], temperature=100, seed=i, min_tokens=40)
                           for i in short])  # fmt: skip
        self.batch("-n", "60", output="longer.jsonl")
        for record in self.records("longer.jsonl").values():
            usage = record["response"]["body"]["usage"]
            self.assertGreaterEqual(usage["completion_tokens"], 40)

    def test_no_stop_strings_win_over_the_flag(self):
        self.write_input(short_line("a", "x", stop=[]), short_line("b", "x"))
        flags = ("-n", "8", "--temp", "0", "--ignore-eos")
        self.batch(*flags)
        text = self.answers()["a"][0]["message"]["content"]
        self.batch(*flags, "--stop", text[0], output="stopped.jsonl")
        answers = self.answers("stopped.jsonl")
        self.assertEqual(answers["a"][0]["message"]["content"], text)
        self.assertEqual(answers["b"][0]["message"]["content"], "")

    def prompt_tokens(self, custom_id, output):
        body = self.records(output)[custom_id]["response"]["body"]
        return body["usage"]["prompt_tokens"]

    def test_a_system_message_wherever_it_stands_wins_over_the_flag(self):
        message = {"role": "system", "content": "Be brief."}
        user = {"role": "user", "content": "x"}
        answer = {"role": "assistant", "content": "y", "annotations": []}  # as OpenAI's API gives it
        self.write_input({"id": "own", "messages": [user, answer, message, user]},
                         {"id": "developer", "messages": [{**message, "role": "developer"}, user]},
                         {"id": "none", "messages": [user]})  # fmt: skip
        self.batch(flags=self.demo)
        self.batch("--system", "Be brief.", output="flag", flags=self.demo)
        for custom_id in ("own", "developer"):
            self.assertEqual(self.prompt_tokens(custom_id, "flag"),
                             self.prompt_tokens(custom_id, "out.jsonl"))  # fmt: skip
        self.assertGreater(self.prompt_tokens("none", "flag"),
                           self.prompt_tokens("none", "out.jsonl"))  # fmt: skip
        self.assertEqual(self.prompt_tokens("developer", "flag"),
                         self.prompt_tokens("none", "flag"))  # fmt: skip

    def test_negative_numbers_where_others_take_them(self):
        drawn = {"temperature": 100, "ignore_eos": True, "max_tokens": 8}
        self.write_input(short_line("a", "x", seed=-2, top_k=-1, **drawn),
                         short_line("b", "x", seed=2**64 - 2, **drawn),
                         short_line("c", "x", seed=-(2**63), **drawn),
                         short_line("d", "x", seed=2**63, **drawn))  # fmt: skip
        self.batch()
        self.assertEqual(self.texts("a"), self.texts("b"))
        self.assertEqual(self.texts("c"), self.texts("d"))
        self.assertNotEqual(self.texts("a"), self.texts("c"))

    def test_the_seed_minus_one_is_none(self):
        drawn = {"temperature": 100, "ignore_eos": True, "max_tokens": 8}
        for seed in ({"seed": -1}, {}):
            self.write_input(short_line("a", "x", **seed, **drawn),
                             short_line("b", "x", **seed, **drawn))  # fmt: skip
            self.batch("--seed", "3", output=f"{len(seed)}.jsonl")
        self.assertEqual(self.answers("0.jsonl"), self.answers("1.jsonl"))
        self.assertNotEqual(*self.answers("1.jsonl").values())

    def test_the_largest_seed(self):
        self.write_input(short_line("a", "x", seed=2**64 - 1), short_line("b", "x"),
                         short_line("c", "x", seed=2**64 - 1))  # fmt: skip
        flags = ("-n", "8", "--temp", "1", "--seed", str(2**64 - 1))
        self.batch(*flags)
        self.assertEqual(self.texts("a"), self.texts("c"))
        self.assertNotEqual(self.texts("a"), self.texts("b"))
        self.batch(*flags, "--max-sequences", "1", output="again.jsonl")
        self.assertEqual(self.answers("again.jsonl"), self.answers())

    def test_a_line_and_flags_that_contradict_each_other(self):
        self.write_input(short_line("a", "x", max_tokens=2), short_line("b", "x", max_tokens=8))
        self.batch("--min-tokens", "5", code=3)
        records = self.records()
        self.assertEqual(records["a"]["error"]["code"], "invalid_request")
        self.assertEqual(records["a"]["error"]["message"], "min_tokens is 5, but max_tokens only 2")
        self.assertIsNone(records["b"]["error"])

    def test_what_is_left_for_later(self):
        later = [
            (openai_line("c", "x", response_format={"type": "json_object"}),
             'only {"type": "text"} is supported yet, got the type "json_object"'),
            (openai_line("d", "x", response_format="text"), "must be an object with a type"),
            (openai_line("e", "x", stream=True), "body.stream is not supported"),
            (openai_line("f", "x", n=1.5), "body.n must be an integer in 1..128"),
            (openai_line("g", "x", min_tokens=-1), "body.min_tokens must be an integer in 0..1073741824, got -1"),
            (openai_line("h", "x", ignore_eos=1), "body.ignore_eos must be true or false"),
            (openai_line("i", "x", max_tokens=0), "body.max_tokens must be an integer in 1..1073741824, got 0"),
            (openai_line("j", "x", min_tokens=5, max_tokens=4), "min_tokens is 5, but max_tokens only 4"),
            (openai_line("k", "x", tool_choice="none", tools=[{}]), "body.tool_choice is not supported"),
            (openai_line("l", "x", best_of=2), "body.best_of is not supported"),
            (openai_line("m", "x", modalities=["text", "audio"]), "body.modalities is not supported"),
        ]
        fine = openai_line("z", "x", response_format={"type": "text"}, logprobs=False, n=None,
                           logit_bias={}, stream=False, best_of=1, service_tier="auto",
                           tool_choice="none", modalities=["text"], safety_identifier="x",
                           prompt_cache_key="x", prompt_cache_retention="24h",
                           max_tokens=4, min_tokens=4)  # fmt: skip
        self.write_input(*[line for line, _ in later], fine)
        self.batch(code=3)
        records = read_records(self.folder / "out.jsonl")
        for (_, text), record in zip(later, records):
            self.assertIn(text, record["error"]["message"])
        self.assertIsNone(records[-1]["error"])


class Logprobs(BatchCase):
    """Of greedy answers: the token drawn is the most probable one."""

    def setUp(self):
        super().setUp()
        text = "Who are you?"
        self.write_input(
            openai_line("chat", text, temperature=0, logprobs=True, top_logprobs=3, n=2),
            openai_line("bare", text, temperature=0, logprobs=True),
            openai_line("none", text, temperature=0),
            completion_line("completion", text, temperature=0, logprobs=2, ignore_eos=True),
        )

    def test_of_a_chat(self):
        self.batch()
        answers = self.answers()
        self.assertNotIn("logprobs", answers["none"][0])
        self.assertEqual(answers["chat"][0]["logprobs"], answers["chat"][1]["logprobs"])
        choice = answers["chat"][0]
        content = choice["logprobs"]["content"]
        text = b"".join(bytes(entry["bytes"]) for entry in content)
        self.assertEqual(text.decode(errors="replace"), choice["message"]["content"])
        usage = self.records()["bare"]["response"]["body"]["usage"]
        self.assertEqual(len(content), usage["completion_tokens"])
        for entry, bare in zip(content, answers["bare"][0]["logprobs"]["content"], strict=True):
            self.assertEqual(bytes(entry["bytes"]).decode(errors="replace"), entry["token"])
            best = entry["top_logprobs"]
            self.assertEqual(len(best), 3)
            self.assertEqual((best[0]["token"], best[0]["logprob"]),
                             (entry["token"], entry["logprob"]))  # fmt: skip
            values = [other["logprob"] for other in best]
            self.assertEqual(values, sorted(values, reverse=True))
            self.assertLessEqual(sum(map(math.exp, values)), 1 + 1e-6)
            self.assertEqual(bare, {**entry, "top_logprobs": []})

    def test_of_a_completion(self):
        self.batch()
        choice = self.answers()["completion"][0]
        logprobs = choice["logprobs"]
        offsets = logprobs["text_offset"]
        self.assertEqual(offsets[0], 0)
        self.assertEqual(offsets, sorted(offsets))
        for i, token in enumerate(logprobs["tokens"]):
            if "\ufffd" not in token:
                self.assertTrue(choice["text"][offsets[i]:].startswith(token), (i, token))
            best = logprobs["top_logprobs"][i]
            self.assertIn(len(best), (1, 2), "tokens that look alike share an entry")
            self.assertEqual(best[token], logprobs["token_logprobs"][i])
            self.assertEqual(max(best.values()), logprobs["token_logprobs"][i])

    def test_what_was_drawn_is_among_the_likeliest_whatever_its_place(self):
        self.write_input(*[completion_line(f"{k}", "Who?", temperature=5, seed=1, logprobs=k,
                                           max_tokens=20, ignore_eos=True) for k in (0, 1)])
        self.batch()
        for k in (0, 1):
            logprobs = self.answers()[f"{k}"][0]["logprobs"]
            for token, own, best in zip(logprobs["tokens"], logprobs["token_logprobs"],
                                        logprobs["top_logprobs"], strict=True):  # fmt: skip
                self.assertEqual(best[token], own)
                self.assertLessEqual(len(best), k + 1)

    def test_are_the_same_alone(self):
        digest = self.digest(self.batch("--batch-invariant"))
        alone = self.batch("--batch-invariant", "--max-sequences", "1", output="alone")
        self.assertEqual(self.digest(alone), digest)
        self.assertEqual(self.answers("alone"), self.answers())

    def test_bad_fields(self):
        bad = [
            (openai_line("a", "x", logprobs=5), "body.logprobs of a chat must be true or false"),
            (openai_line("b", "x", top_logprobs=5), "top_logprobs needs logprobs to be true"),
            (openai_line("c", "x", logprobs=True, top_logprobs=21),
             "body.top_logprobs must be an integer in 0..20, got 21"),
            (short_line("d", "x", logprobs=False, top_logprobs=1), "needs logprobs to be true"),
            (completion_line("e", "x", logprobs=True), "body.logprobs must be an integer in 0..20"),
            (completion_line("f", "x", top_logprobs=2), "body.top_logprobs is not supported"),
        ]
        self.write_input(*[line for line, _ in bad])
        self.batch(code=3)
        for (_, text), record in zip(bad, read_records(self.folder / "out.jsonl"), strict=True):
            self.assertIn(text, record["error"]["message"])
