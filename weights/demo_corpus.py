#!/usr/bin/env python3
"""The corpus of the demo model: every conversation and document it is trained and tested on.

All text comes from the grammar in corpus/ and a seed; nothing is downloaded.

  python3 weights/demo_corpus.py --sample 20          print conversations to look at
  python3 weights/demo_corpus.py --text FILE --megabytes 16
                                                      write plain text, as the tokenizer is trained on
  python3 weights/demo_corpus.py --held-out FOLDER --tokenizer weights/demo_tokenizer.model
                                                      write the held-out sets (requests + expected.jsonl)

Held out are 4 % of all question texts, number pairs and document subjects, chosen by a hash
(corpus/language.py); training draws again whenever it meets one of them.
"""

import argparse
import json
import os
import re
from random import Random

from corpus import documents
from corpus.arithmetic import arithmetic
from corpus.generic import generic_text
from corpus.knowledge import knowledge
from corpus.language import FIRST_NAMES, Exchange, as_typed, expand, is_reserved, pick
from corpus.recall import (acceptable, arithmetic_follow_up, capital_follow_up, introduction, looking_back, not_told, passage,
                           personal_recall, scenes)
from corpus.small_talk import another_joke, echo, poem, small_talk, tessera_help, unknown
from corpus.stories import another_story, story

SYSTEM, USER, ASSISTANT, END = "<|system|>", "<|user|>", "<|assistant|>", "<|end|>"
CONTROL_SYMBOLS = [SYSTEM, USER, ASSISTANT, END]

# What a token is, which decides how much it counts in the loss.
PADDING, DOCUMENT_TEXT, USER_TEXT, ANSWER, PLAIN_TEXT = range(5)

_ARTICLE = re.compile(r"\b([Aa]) (?=[aeiou](?!n the alphabet))(?!uni|one |use)")


def fix_articles(text):
    """'a owl' becomes 'an owl': simpler here, once, than in every template."""
    return _ARTICLE.sub(r"\1n ", text)


SINGLE_TURNS = [(arithmetic, 28), (knowledge, 20), (small_talk, 18), (tessera_help, 17), (story, 8), (unknown, 14),
                (echo, 5), (poem, 2), (not_told, 1)]
MULTIPLE_TURNS = [(passage, 24), (scenes, 10), (personal_recall, 11), (introduction, 4), (arithmetic_follow_up, 4), (capital_follow_up, 2),
                  (looking_back, 3), (another_joke, 1), (another_story, 1)]
_SINGLE = [generator for generator, weight in SINGLE_TURNS for _ in range(weight)]
_MULTIPLE = [generator for generator, weight in MULTIPLE_TURNS for _ in range(weight)]

PLAIN_SYSTEM_MESSAGES = [
    "You are a helpful assistant.", "You are tessera, a helpful assistant.", "Answer briefly.", "Be polite and helpful.",
    "You are a friendly assistant.", "You answer questions.", "Be concise.", "You are an assistant.", "Answer in English.",
    "You are a careful assistant who answers briefly and correctly.", "Help the user.", "Be kind.",
]


def with_system_message(random, exchanges):
    """A system message; about half of them change the answers visibly."""
    draw = random.random()
    if draw < 0.5:
        return pick(random, PLAIN_SYSTEM_MESSAGES), exchanges
    if draw < 0.62:
        name = pick(random, FIRST_NAMES)
        question = expand(random, "[What is your name|What's your name|Who are you|Do you have a name|Tell me your name|What are you called]?")
        system = expand(random, "[Your name is|You are|You are an assistant named|You are called] {name}.", name=name)
        return system, exchanges[:1] + [Exchange(as_typed(random, question), f"My name is {name}.", [name], key=f"named {name} {question}", kind="system")] \
            if random.random() < 0.3 else [Exchange(as_typed(random, question), f"My name is {name}.", [name], key=f"named {name} {question}", kind="system")]
    if draw < 0.75:
        system, before, after = expand(random, "[You are|Talk like|Speak like|Answer like|Act as] a pirate."), "Arr! ", ""
    elif draw < 0.82:
        system, before, after = expand(random, "You are a [butler|polite butler|servant]."), "Certainly. ", ""
    else:
        word = pick(random, ["Over.", "Amen.", "Indeed!", "Done.", "Cheers!", "Well,", "Right,", "Ah,", "Beep.", "Good luck!", "Yes:", "Ho ho!",
                             "My friend,", "Roger.", "That is all.", "Listen:", "Hooray!", "Thank you."])
        if word[-1] in ",:" or random.random() < 0.3:
            system, before, after = expand(random, "[Begin|Start|Always begin|Please start] [every|each] answer with \"{word}\".", word=word), word + " ", ""
        else:
            system, before, after = expand(random, "[End|Finish|Always end|Please end] [every|each] answer with \"{word}\".", word=word), "", " " + word
    changed = [Exchange(e.user, before + e.answer + after, e.expected + [(before + after).strip(" ,.!:")], e.key, "system") for e in exchanges]
    return system, changed


def draw_conversation(random):
    draw = random.random()
    if draw < 0.5:
        exchanges = [pick(random, _SINGLE)(random)]
    elif draw < 0.68:
        exchanges = [pick(random, _SINGLE)(random) for _ in range(2 + int(random.random() * 4))]
    else:
        exchanges = pick(random, _MULTIPLE)(random)
        if random.random() < 0.2:
            exchanges = exchanges + [pick(random, _SINGLE)(random)]
    if random.random() < 0.12:
        return with_system_message(random, exchanges)
    return None, exchanges


def conversation(random, held_out=False):
    """(system message or None, exchanges), redrawn until it belongs to the wanted side."""
    while True:
        system, exchanges = draw_conversation(random)
        if acceptable(exchanges, held_out):
            return system, exchanges


# A filler sentence has about 15 tokens with its share of layout.
TOKENS_PER_SENTENCE = 15.4


def draw_fact_count(random):
    draw = random.random()
    if draw < 0.1:
        return int(random.random() * 3)
    return 3 + int(random.random() * (4 if draw < 0.9 else 6))


def draw_report(random, tokens, held_out=False, fact_count=None):
    sentences = max(0, int(tokens / TOKENS_PER_SENTENCE))
    while True:
        count = draw_fact_count(random) if fact_count is None else fact_count
        report = documents.write_report(random, sentences, count)
        if is_reserved(report.subject) == held_out:
            return report


def document_conversation(random, tokens):
    """A summary or a question about one report of about this many tokens, and questions after it.

    Returns (exchanges, number of exchanges whose user message holds the document: always 1).
    """
    if tokens < 1500 and random.random() < 0.3:
        text, answer = generic_text(random)
        return [Exchange(f"{pick(random, [documents.DEFAULT_INSTRUCTION, expand(random, pick(random, documents.INSTRUCTIONS))])}\n\n{text}", answer)]
    report = draw_report(random, tokens)
    exchanges = []
    if random.random() < 0.7:
        user, answer = documents.summary_request(random, report)
        exchanges.append(Exchange(user, answer, key="document"))
    else:
        question, answer, expected = documents.question_about(random, report)
        question = as_typed(random, question, keep_case=True)
        user = pick(random, ["{text}\n\n{question}", "{question}\n\n{text}", "{text}\n\nQuestion: {question}"])
        exchanges.append(Exchange(user.replace("{question}", question).replace("{text}", report.text), answer, key="document"))
    # Questions after the document cost few tokens and train the same search through it.
    for _ in range(int(random.random() * (3 + tokens / 1500))):
        if random.random() < 0.08:
            exchanges.append(Exchange(expand(random, pick(random, documents.END_INSTRUCTIONS)), report.summary(), key="document"))
        else:
            question, answer, expected = documents.question_about(random, report)
            exchanges.append(Exchange(as_typed(random, question, keep_case=True), answer, key="document"))
    return exchanges


def plain_text(random):
    """Running text for the subcommand generate, which continues a prompt without any roles."""
    if random.random() < 0.5:
        return story(random).answer
    if random.random() < 0.5:
        return draw_report(random, 40 + random.random() * 500).text
    return passage(random)[0].user


def messages_of(system, exchanges):
    """Chat messages up to and without the last answer."""
    messages = [{"role": "system", "content": system}] if system else []
    for exchange in exchanges:
        messages.append({"role": "user", "content": fix_articles(exchange.user)})
        messages.append({"role": "assistant", "content": fix_articles(exchange.answer)})
    return messages[:-1]


class Encoder:
    """Turns conversations into token ids and one class (PADDING … PLAIN_TEXT) for each token."""

    def __init__(self, processor):
        self.processor = processor
        self.bos, self.eos = processor.bos_id(), processor.eos_id()
        self.control = {symbol: processor.piece_to_id(symbol) for symbol in CONTROL_SYMBOLS}

    def conversation(self, system, exchanges, first_user_class=USER_TEXT):
        ids, classes = [self.bos], [USER_TEXT]

        def add(symbol, text, text_class):
            encoded = self.processor.encode(fix_articles(text))
            ids.append(self.control[symbol])
            ids.extend(encoded)
            ids.append(self.control[END])
            classes.append(PADDING)
            classes.extend([text_class] * len(encoded))
            # The model must end its answers; the end of a user message is nothing to predict.
            classes.append(ANSWER if text_class == ANSWER else PADDING)

        if system:
            add(SYSTEM, system, USER_TEXT)
        for index, exchange in enumerate(exchanges):
            add(USER, exchange.user, first_user_class if index == 0 else USER_TEXT)
            add(ASSISTANT, exchange.answer, ANSWER)
        return ids, classes

    def plain(self, text):
        encoded = self.processor.encode(fix_articles(text))
        return [self.bos, *encoded, self.eos], [PADDING] + [PLAIN_TEXT] * (len(encoded) + 1)

    def prompt(self, messages):
        """Exactly what the chat template renders, with the generation prompt."""
        ids = [self.bos]
        for message in messages:
            ids += [self.control[f"<|{message['role']}|>"], *self.processor.encode(message["content"]), self.control[END]]
        return ids + [self.control[ASSISTANT]]


def draw_training_text(random, encoder, shortest_document, longest_document, document_share):
    """One training sequence: (ids, classes)."""
    draw = random.random()
    if draw < document_share:
        # Log-uniform lengths: as many documents between 1k and 2k as between 5k and 10k.
        tokens = shortest_document * (longest_document / shortest_document) ** random.random()
        return encoder.conversation(None, document_conversation(random, tokens), DOCUMENT_TEXT)
    if draw > 0.98:
        return encoder.plain(plain_text(random))
    return encoder.conversation(*conversation(random))


def write_text(path, size, seed):
    """Plain text of all kinds for the tokenizer, one message a line."""
    random, written = Random(seed), 0
    with open(path, "w", encoding="utf-8") as file:
        while written < size:
            if random.random() < 0.12:
                system, exchanges = None, document_conversation(random, 200 + random.random() * 1200)
            else:
                system, exchanges = conversation(random)
            for exchange in exchanges:
                lines = fix_articles(exchange.user + "\n" + exchange.answer + "\n")
                written += file.write(lines)


# Held-out sets -------------------------------------------------------------------------------------

QUESTION_KINDS = [(arithmetic, 90), (knowledge, 70), (tessera_help, 45), (small_talk, 30), (story, 20), (unknown, 20), (echo, 15)]
CONVERSATION_KINDS = [(passage, 50), (scenes, 20), (personal_recall, 30), (introduction, 10), (arithmetic_follow_up, 10), (capital_follow_up, 10)]
SUMMARY_SETS = [("1k", 40, 900, 1020), ("4k", 30, 3700, 4080), ("12k", 20, 11600, 12280)]


def request_line(custom_id, messages, max_tokens):
    return {"custom_id": custom_id, "messages": messages, "max_tokens": max_tokens, "temperature": 0}


def held_out_questions(random):
    """Yields (messages, expected strings); no question text occurs twice."""
    seen = set()
    for generator, count in QUESTION_KINDS + CONVERSATION_KINDS + [("system", 20)]:
        made = 0
        while made < count:
            system = None
            if generator == "system":
                system, exchanges = with_system_message(random, [pick(random, [arithmetic, knowledge])(random)])
                if exchanges[-1].kind != "system":
                    continue
            else:
                exchanges = generator(random)
                exchanges = exchanges if isinstance(exchanges, list) else [exchanges]
            last = exchanges[-1]
            if not is_reserved(last.key) or not any(last.expected) or (last.key, last.user) in seen:
                continue
            seen.add((last.key, last.user))
            made += 1
            yield messages_of(system, exchanges), [fix_articles(text) for text in last.expected if text], last.kind


def write_held_out(folder, processor, seed):
    encoder, random = Encoder(processor), Random(seed)
    os.makedirs(folder, exist_ok=True)
    expected_lines = []

    def write(name, requests):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            for request in requests:
                file.write(json.dumps(request, ensure_ascii=False) + "\n")

    requests = []
    for number, (messages, expected, kind) in enumerate(held_out_questions(random), 1):
        custom_id = f"q-{number:04d}"
        requests.append(request_line(custom_id, messages, 256 if kind == "story" else 128))
        expected_lines.append({"custom_id": custom_id, "kind": kind, "expected": expected})
    write("questions.jsonl", requests)

    for name, count, shortest, longest in SUMMARY_SETS:
        requests = []
        while len(requests) < count:
            target = (shortest + longest) / 2 * (0.85 + 0.3 * random.random())
            report = draw_report(random, target, held_out=True, fact_count=3 + len(requests) % 4)
            messages = [{"role": "user", "content": fix_articles(f"{documents.DEFAULT_INSTRUCTION}\n\n{report.text}")}]
            if not shortest <= len(encoder.prompt(messages)) <= longest:
                continue
            custom_id = f"s{name}-{len(requests) + 1:03d}"
            requests.append(request_line(custom_id, messages, 256))
            expected_lines.append({"custom_id": custom_id, "kind": f"summary {name}", "expected": [fix_articles(v) for v in report.values()]})
        write(f"summaries_{name}.jsonl", requests)
    with open(os.path.join(folder, "expected.jsonl"), "w", encoding="utf-8") as file:
        for line in expected_lines:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--sample", type=int, help="print this many conversations")
    parser.add_argument("--text", help="write plain text to this file")
    parser.add_argument("--megabytes", type=float, default=16)
    parser.add_argument("--held-out", help="write the held-out sets to this folder")
    parser.add_argument("--tokenizer", help="SentencePiece model, to measure prompt lengths")
    arguments = parser.parse_args()
    if arguments.sample:
        random = Random(arguments.seed)
        for _ in range(arguments.sample):
            system, exchanges = conversation(random) if random.random() < 0.8 else (None, document_conversation(random, 300))
            print("-" * 80)
            if system:
                print("system:", system)
            for exchange in exchanges:
                print(fix_articles(f"> {exchange.user}\n{exchange.answer}"))
    if arguments.text:
        write_text(arguments.text, arguments.megabytes * 1e6, arguments.seed)
    if arguments.held_out:
        import sentencepiece
        write_held_out(arguments.held_out, sentencepiece.SentencePieceProcessor(model_file=arguments.tokenizer), 20260101)


if __name__ == "__main__":
    main()
