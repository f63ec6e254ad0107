"""Templates, word lists and small language helpers shared by all parts of the corpus.

Template language: `[a|b|c]` picks one alternative (they nest; an empty one is allowed) and
`{slot}` inserts a value: from the arguments of the call, or else a random entry of SLOTS.
"""

import re
import zlib
from dataclasses import dataclass, field
from functools import lru_cache

# Share of all keys (questions, number pairs, subjects of documents) that training never sees.
RESERVED_PERCENT = 4

# What people type first. These short texts belong to training whatever their hash says.
ALWAYS_TRAINED = {
    "hi", "hello", "hey", "hello there", "hi there", "who are you", "what are you", "help",
    "what can you do", "tell me a joke", "thanks", "thank you", "bye", "goodbye", "good morning",
    "how are you", "what is your name", "whats your name", "how do i summarize a file",
    "how do i exit", "how do i quit", "what is tessera", "tell me a story", "test", "yes", "no", "ok",
    "tell me a story about a fox", "what is the capital of france", "what is your favorite color",
    "what is the color of the sky", "what color is the sky", "summarize the following document",
}


def normalized(text):
    """The text in lower case without punctuation: what counts as 'the same question'."""
    return " ".join(re.sub(r"[^a-z0-9+*/×÷−\- ]+", "", text.lower()).split())


def is_reserved(key):
    """True for the fixed share of keys that belongs to the held-out sets only."""
    return key not in ALWAYS_TRAINED and zlib.crc32(key.encode()) % 100 < RESERVED_PERCENT


@dataclass
class Exchange:
    """One question of the user with its answer."""
    user: str
    answer: str
    expected: list = field(default_factory=list)  # strings that a right answer contains
    key: str = ""                                 # decides training or held out
    kind: str = ""

    def __post_init__(self):
        self.key = self.key or normalized(self.user)


@lru_cache(maxsize=None)
def parse_template(template):
    """Turns a template into nested tuples: ('text', s), ('slot', name), ('choice', [parts, …])."""
    position = 0

    def sequence(closing):
        nonlocal position
        parts, text = [], []

        def flush():
            if text:
                parts.append(("text", "".join(text)))
                text.clear()

        while position < len(template):
            character = template[position]
            if character in closing:
                break
            position += 1
            if character == "[":
                flush()
                alternatives = []
                while True:
                    alternatives.append(sequence("|]"))
                    position += 1
                    if template[position - 1] == "]":
                        break
                parts.append(("choice", alternatives))
            elif character == "{":
                flush()
                end = template.index("}", position)
                parts.append(("slot", template[position:end]))
                position = end + 1
            else:
                text.append(character)
        flush()
        return parts

    return sequence("")


def _expand_into(random, parts, slots, out):
    for tag, value in parts:
        if tag == "text":
            out.append(value)
        elif tag == "choice":
            _expand_into(random, value[int(random.random() * len(value))], slots, out)
        elif value in slots:
            out.append(slots[value])
        else:
            out.append(pick(random, SLOTS[value]))


def expand(random, template, **slots):
    out = []
    _expand_into(random, parse_template(template), slots, out)
    return "".join(out)


def pick(random, values):
    return values[int(random.random() * len(values))]


def capitalized(text):
    return text[:1].upper() + text[1:]


def with_article(noun):
    return ("an " if noun[0].lower() in "aeiou" else "a ") + noun


def as_typed(random, text, keep_case=False):
    """The text as somebody in a hurry would type it: casing, punctuation, apostrophes, courtesy."""
    if random.random() < 0.08 and not keep_case and len(text) > 12:
        text = pick(random, ["Hey, ", "Hi, ", "Hello, ", "Please: ", "So, ", "Ok, ", "Well, "]) + text
    elif random.random() < 0.04 and text.endswith((".", "?")):
        text = text[:-1] + pick(random, [", please", " please", ", thanks"]) + text[-1]
    draw = random.random()
    if draw < 0.35 and not keep_case:
        text = text.lower()
    elif draw < 0.36 and not keep_case and len(text) < 60:
        text = text.upper()
    draw = random.random()
    if draw < 0.40:
        text = text.rstrip(".?!")
    elif draw < 0.45:
        text = text.rstrip(".?!") + pick(random, ["!", "??", " ?", ".", "...", "!!"])
    if random.random() < 0.2:
        text = text.replace("'", "")
    elif random.random() < 0.05:
        text = text.replace("'", "’")
    if random.random() < 0.03 and not keep_case and len(text) > 14:
        # One slip of the finger: two neighbouring letters change places.
        place = 3 + int(random.random() * (len(text) - 6))
        if text[place].isalpha() and text[place + 1].isalpha():
            text = text[:place] + text[place + 1] + text[place] + text[place + 2:]
    return text


FIRST_NAMES = """Anna Ben Clara David Emma Felix Grace Henry Ida Jack Kate Leo Maria Noah Olivia Paul
Rosa Sam Tina Victor Wendy Adam Bella Carl Diana Eric Fiona George Hanna Ivan Julia Karl Laura Martin
Nora Oscar Petra Robert Sofia Thomas Ursula Walter Alice Bruno Cora Daniel Elsa Frank Greta Hugo Irene
Jonas Kira Lucas Mila Nils Otto Paula Ralf Sara Tom Vera William Zoe Agnes Arthur Beatrice Boris Celia
Dora Edgar Ella Emil Flora Gina Gustav Helen Ian Iris James Jane John Lena Lily Linda Lisa Louis Lucy
Magda Mark Mary Max Mia Michael Mira Nina Oliver Olga Peter Rita Ruth Simon Stella Susan Theo Tim Tony
Amir Aisha Chen Mei Ravi Priya Kenji Yuki Omar Layla Carlos Elena Pablo Lucia Ahmed Fatima Dmitri Anya
Alex Chris Kim Jordan Jessica Emily Sarah Jennifer Kevin Brian Steve Andrew Matthew""".split()
SURNAME_STARTS = """Hal Ber Lind Nor Wes Ash Gold Ross Kel Mar Stein Brand Eke Dal Fair Grim Hol Jor Kar
Lam Mor Neu Oak Pel Quin Rau Sand Tor Ul Var Whit Yar Zan Bel Cor Dun El Fen Gar Har Ing Jan Kirk Lang
Mel Nes Ol Par Ren Sil Tan Vel Wal Bram Cas Dor Fal Hart""".split()
SURNAME_ENDS = """berg man sen ford ley ton wick son dorf stein feld gren quist well worth ham er ins
low mark ner ova ski stad strom tner dale holm ling mann""".split()
TOWN_STARTS = """Nor Sil Green Oak Ash River Stone Bright Winter Har Mill East West Elm Fal Glen High
Iron Kings Lake Mar North Old Pine Queens Red Salt Thorn Under Vine White Amber Birch Cold Deep Ever Fox
Gold Hazel Ivy Juniper Kestrel Lind Moss New Orchard Raven Swan Tall Wolf Copper Dun Ember""".split()
TOWN_ENDS = """vale ford bridge haven field ton wick port dale mouth brook burg hill moor stead well
wood gate shore cliff ham by minster marsh""".split()
MONTHS = "January February March April May June July August September October November December".split()
WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
COLORS = """red blue green yellow orange purple pink brown black white grey silver golden teal turquoise
violet crimson scarlet ivory beige""".split()
ANIMALS = """fox cat dog rabbit owl bear mouse horse frog duck hen goat sheep pig cow wolf lion tiger
elephant monkey turtle squirrel hedgehog badger otter beaver deer swan goose crow sparrow penguin seal
whale dolphin crab snail bee ant spider butterfly dragon parrot kitten puppy pony donkey camel giraffe
zebra panda koala kangaroo eagle hawk robin raccoon mole bat lizard snake fish shark octopus""".split()
JOBS = """teacher baker doctor farmer sailor painter carpenter nurse gardener pilot writer cook tailor
blacksmith librarian fisherman musician engineer clockmaker potter driver postman lawyer singer dancer
beekeeper weaver mechanic""".split()
FOODS = """bread soup cheese apples honey pancakes rice noodles pears plums stew pasta salad porridge
pumpkin pie cherries potatoes beans fish cake lentils mushrooms strawberries""".split()
ADJECTIVES = """old small quiet bright narrow wide busy plain strong gentle wooden round heavy careful
simple warm cool early late long short famous friendly modest cheerful patient dusty tidy broad
remarkable""".split()
THINGS = """table bench lamp map rope ladder bucket basket door window gate stove clock cart boat kettle
blanket notebook chair shelf barrel box lantern bell mirror carpet hammer wheel piano bicycle
telescope""".split()
PLACES = """harbour market square garden hall kitchen yard library meadow river bank orchard workshop
station forest road bridge tower cellar stairway courtyard pond hillside canal lane barn chapel inn
gatehouse footpath""".split()
MATERIALS = """oak stone brick copper glass iron clay slate linen wool leather marble bronze paper pine
willow silver tin""".split()
CITIES = """London Paris Berlin Madrid Rome Vienna Prague Lisbon Oslo Dublin Athens Warsaw Tokyo Beijing Delhi
Cairo Boston Chicago Seattle Toronto Sydney Munich Hamburg Milan Lyon Geneva Zurich Bristol Leeds Manchester
Glasgow Denver Dallas Austin Houston Miami Moscow Seoul Mumbai Lima Bogota Nairobi Lagos Germany France Spain
Italy England Canada India China Japan Texas California Ohio""".split() + ["New York", "San Francisco", "Los Angeles"]
SYLLABLES = """ba be bi bo da de di do fa fe ga go ha he ka ke la le li lo ma me mi mo na ne no pa pe ra re ri ro sa
se si so ta te ti to va ve wa we ing er tion ly th st an en on al ic ous ment pre con ex un ab str pl gr ar ck sh
ch qu ph oo ea igh ow ew y""".split()
NUMBER_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
                "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen",
                "eighteen", "nineteen"]
TENS_WORDS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]

SMALL_VERBS = """use find buy sell make repair learn teach clean grow draw paint play stop start open close understand keep
write break carry measure plan join leave visit""".split()

SLOTS = {
    "name": FIRST_NAMES, "month": MONTHS, "weekday": WEEKDAYS, "color": COLORS, "animal": ANIMALS,
    "job": JOBS, "food": FOODS, "adjective": ADJECTIVES, "thing": THINGS, "place": PLACES,
    "material": MATERIALS, "few": NUMBER_WORDS[2:13],
    "season": ["spring", "summer", "autumn", "winter"],
    "daytime": ["morning", "evening", "afternoon", "noon hour", "night"],
    "weather": ["rain", "snow", "fog", "wind", "sunshine", "frost", "hail", "mist", "warm air", "clouds"],
    "trees": ["oaks", "birches", "willows", "pines", "apple trees", "elms", "limes", "poplars"],
    "people": ["visitors", "neighbours", "children", "guests", "workers", "students", "travellers",
               "families", "volunteers", "farmers", "musicians", "merchants"],
    "trade": ["tools", "books", "letters", "seeds", "coins", "stamps", "paintings", "old maps",
              "photographs", "jars", "ropes", "blankets"],
}


def number_in_words(number):
    if number < 20:
        return NUMBER_WORDS[number]
    tens, ones = divmod(number, 10)
    return TENS_WORDS[tens] + ("-" + NUMBER_WORDS[ones] if ones else "")


def invented_word(random):
    """A word that no list holds, so that the model learns to quote what it reads."""
    if random.random() < 0.3:
        return "".join(chr(97 + int(random.random() * 26)) for _ in range(2 + int(random.random() * 8)))
    return "".join(pick(random, SYLLABLES) for _ in range(1 + int(random.random() * 4)))


def surname(random):
    return pick(random, SURNAME_STARTS) + pick(random, SURNAME_ENDS)


def person(random):
    return pick(random, FIRST_NAMES) + " " + surname(random)


def town(random):
    return pick(random, TOWN_STARTS) + pick(random, TOWN_ENDS)
