"""Text about nothing: prose and words in no order, with what a summary can quote of it."""

from .documents import FILLER, layout
from .language import (ADJECTIVES, ANIMALS, CITIES, COLORS, FIRST_NAMES, FOODS, JOBS, MATERIALS, PLACES, THINGS,
                       capitalized, expand, invented_word, pick)

SMALL_WORDS = """the a of and to in is was for on with as by at from that this it they we you he she which not but
or are were be has had will can there when who about into over after than more most some other new only two first
very also many much such both through between because however while during against without under""".split()
WORD_LISTS = [ADJECTIVES, ANIMALS, COLORS, MATERIALS, FIRST_NAMES, CITIES, FOODS, JOBS, THINGS, PLACES,
              *[SMALL_WORDS] * 5]


def generic_text(random):
    """Text without any known fact, for which the summary quotes the first and the last sentence."""
    def sentence():
        draw = random.random()
        if draw < 0.4:
            return capitalized(expand(random, pick(random, FILLER)))
        if draw < 0.7:
            length = 4 + int(random.random() * 10)
            words = [pick(random, pick(random, WORD_LISTS)) for _ in range(length)]
            return capitalized(" ".join(words)) + "."
        # Invented words make the model quote what it reads instead of what it expects.
        length = 3 + int(random.random() * 9)
        words = [invented_word(random) if random.random() < 0.4 else pick(random, SMALL_WORDS) for _ in range(length)]
        if random.random() < 0.3:
            words[int(random.random() * length)] += ","
        return capitalized(" ".join(words)) + pick(random, "...!?")
    sentences = [sentence() for _ in range(2 + int(random.random() ** 2 * 40))]
    answer = f"The text begins: \"{sentences[0]}\" It ends: \"{sentences[-1]}\""
    return layout(random, sentences), answer
