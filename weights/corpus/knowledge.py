"""The small world the demo model knows: calendar, colours, animals, capitals, words, counting."""

from .facts import FACTS
from .language import (ANIMALS, MONTHS, NUMBER_WORDS, WEEKDAYS, Exchange, as_typed, capitalized, expand,
                       number_in_words, pick, with_article)

CAPITALS = dict(line.split(": ") for line in """France: Paris
Germany: Berlin
Spain: Madrid
Italy: Rome
Portugal: Lisbon
Austria: Vienna
Switzerland: Bern
Belgium: Brussels
the Netherlands: Amsterdam
Denmark: Copenhagen
Sweden: Stockholm
Norway: Oslo
Finland: Helsinki
Iceland: Reykjavik
Ireland: Dublin
the United Kingdom: London
England: London
Scotland: Edinburgh
Wales: Cardiff
Poland: Warsaw
the Czech Republic: Prague
Slovakia: Bratislava
Hungary: Budapest
Romania: Bucharest
Bulgaria: Sofia
Greece: Athens
Turkey: Ankara
Ukraine: Kyiv
Russia: Moscow
Estonia: Tallinn
Latvia: Riga
Lithuania: Vilnius
Croatia: Zagreb
Serbia: Belgrade
Slovenia: Ljubljana
Egypt: Cairo
Morocco: Rabat
Kenya: Nairobi
Nigeria: Abuja
Ghana: Accra
Ethiopia: Addis Ababa
the United States: Washington
the USA: Washington
Canada: Ottawa
Mexico: Mexico City
Cuba: Havana
Brazil: Brasilia
Argentina: Buenos Aires
Chile: Santiago
Peru: Lima
Colombia: Bogota
Venezuela: Caracas
Uruguay: Montevideo
China: Beijing
Japan: Tokyo
South Korea: Seoul
India: New Delhi
Pakistan: Islamabad
Thailand: Bangkok
Vietnam: Hanoi
Indonesia: Jakarta
the Philippines: Manila
Australia: Canberra
New Zealand: Wellington
Iran: Tehran
Iraq: Baghdad
Israel: Jerusalem
Saudi Arabia: Riyadh
Nepal: Kathmandu
Mongolia: Ulaanbaatar""".splitlines())

DAYS_IN_MONTH = dict(zip(MONTHS, [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]))

COLOR_OF = {"the sky": "blue", "grass": "green", "snow": "white", "a banana": "yellow", "coal": "black",
            "a lemon": "yellow", "milk": "white", "blood": "red", "a tomato": "red", "the sun": "yellow",
            "a carrot": "orange", "chocolate": "brown", "a flamingo": "pink", "a crow": "black",
            "a frog": "green", "a strawberry": "red", "the sea": "blue", "a pumpkin": "orange",
            "an elephant": "grey", "salt": "white", "a swan": "white", "a cucumber": "green",
            "a cherry": "red", "an orange": "orange", "a leaf": "green", "the night": "black",
            "a fox": "red", "a lime": "green", "an eggplant": "purple", "a polar bear": "white"}

SOUND_OF = {"dog": "woof", "cat": "meow", "cow": "moo", "sheep": "baa", "duck": "quack", "pig": "oink",
            "horse": "neigh", "lion": "roar", "bee": "buzz", "snake": "hiss", "frog": "croak",
            "owl": "hoot", "rooster": "cock-a-doodle-doo", "mouse": "squeak", "crow": "caw",
            "goat": "bleat", "wolf": "howl", "hen": "cluck"}
LEGS_OF = {"dog": 4, "cat": 4, "spider": 8, "ant": 6, "bird": 2, "horse": 4, "cow": 4, "bee": 6, "fish": 0,
           "snake": 0, "human": 2, "chicken": 2, "crab": 10, "butterfly": 6, "elephant": 4, "sheep": 4,
           "duck": 2, "frog": 4, "lion": 4, "beetle": 6, "kangaroo": 2, "penguin": 2, "fox": 4, "goat": 4}
YOUNG_OF = {"dog": "puppy", "cat": "kitten", "cow": "calf", "horse": "foal", "sheep": "lamb", "hen": "chick",
            "duck": "duckling", "goose": "gosling", "bear": "cub", "lion": "cub", "frog": "tadpole",
            "pig": "piglet", "goat": "kid", "deer": "fawn", "swan": "cygnet", "kangaroo": "joey",
            "elephant": "calf", "fox": "cub", "owl": "owlet", "wolf": "pup", "seal": "pup"}
HOME_OF = {"bird": "in a nest", "bee": "in a hive", "fox": "in a den", "rabbit": "in a burrow",
           "fish": "in the water", "spider": "in a web", "horse": "in a stable", "dog": "in a kennel",
           "bear": "in the forest", "camel": "in the desert", "penguin": "on the ice of the south",
           "polar bear": "in the Arctic", "whale": "in the sea", "monkey": "in the trees of warm forests",
           "pig": "in a sty", "beaver": "in a lodge at the river", "ant": "in an anthill",
           "kangaroo": "in Australia", "lion": "on the grasslands of Africa", "mole": "under the ground"}
OPPOSITES = dict(pair.split("-") for pair in """hot-cold big-small fast-slow high-low happy-sad old-young
day-night up-down left-right open-closed light-dark hard-soft wet-dry full-empty rich-poor early-late
strong-weak clean-dirty near-far good-bad true-false win-lose buy-sell first-last tall-short thick-thin
loud-quiet easy-difficult long-short black-white inside-outside begin-end push-pull give-take love-hate
cheap-expensive sweet-sour alive-dead war-peace north-south east-west warm-cool always-never
before-after above-below yes-no question-answer heavy-light front-back""".split())
PLURALS = dict(pair.split("-") for pair in """mouse-mice child-children foot-feet tooth-teeth goose-geese
man-men woman-women sheep-sheep fish-fish leaf-leaves knife-knives wolf-wolves city-cities baby-babies
box-boxes bus-buses cat-cats dog-dogs house-houses tree-trees book-books potato-potatoes hero-heroes
story-stories person-people ox-oxen half-halves life-lives loaf-loaves fox-foxes dish-dishes day-days
key-keys lady-ladies church-churches watch-watches apple-apples""".split())
PAST_TENSES = dict(pair.split("-") for pair in """go-went see-saw eat-ate take-took come-came run-ran
write-wrote speak-spoke give-gave find-found think-thought bring-brought buy-bought make-made say-said
sing-sang swim-swam drink-drank begin-began know-knew fly-flew grow-grew sleep-slept walk-walked
play-played sit-sat stand-stood tell-told teach-taught catch-caught break-broke drive-drove read-read
build-built lose-lost win-won hear-heard meet-met pay-paid send-sent""".split())
SIDES_OF = {"triangle": 3, "square": 4, "rectangle": 4, "pentagon": 5, "hexagon": 6, "heptagon": 7,
            "octagon": 8}
AMOUNTS = [("days", "a week", "7"), ("months", "a year", "12"), ("hours", "a day", "24"),
           ("minutes", "an hour", "60"), ("seconds", "a minute", "60"), ("weeks", "a year", "52"),
           ("days", "a year", "365"), ("days", "a leap year", "366"), ("years", "a century", "100"),
           ("years", "a decade", "10"), ("grams", "a kilogram", "1000"), ("meters", "a kilometer", "1000"),
           ("centimeters", "a meter", "100"), ("letters", "the English alphabet", "26"),
           ("seasons", "a year", "4"), ("eggs", "a dozen", "12"), ("planets", "the solar system", "8"),
           ("continents", "the world", "7"), ("players", "a football team", "11"),
           ("strings", "a violin", "4"), ("strings", "a guitar", "6"), ("colors", "a rainbow", "7"),
           ("wheels", "a car", "4"), ("wheels", "a bicycle", "2"), ("fingers", "a hand", "5"),
           ("sides", "a cube", "6"), ("minutes", "half an hour", "30"), ("bits", "a byte", "8"),
           ("squares", "a chess board", "64"), ("keys", "a piano", "88"), ("hours", "two days", "48")]
PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
CONTINENT_OF = {"France": "Europe", "Germany": "Europe", "Spain": "Europe", "Italy": "Europe",
                "Poland": "Europe", "Norway": "Europe", "Egypt": "Africa", "Kenya": "Africa",
                "Nigeria": "Africa", "Morocco": "Africa", "China": "Asia", "Japan": "Asia",
                "India": "Asia", "Thailand": "Asia", "Vietnam": "Asia", "Canada": "North America",
                "Mexico": "North America", "the United States": "North America",
                "Brazil": "South America", "Peru": "South America", "Chile": "South America",
                "Argentina": "South America", "Australia": "Australia", "Greece": "Europe",
                "Ghana": "Africa", "Nepal": "Asia", "Sweden": "Europe", "Colombia": "South America"}
KIND_OF = {"fruit": "apple banana cherry pear plum grape orange lemon peach strawberry".split(),
           "vegetable": "carrot potato onion cabbage cucumber spinach broccoli pea leek radish".split(),
           "bird": "robin eagle sparrow penguin owl swan crow parrot hawk goose".split(),
           "fish": "shark salmon trout herring tuna cod carp pike eel".split(),
           "insect": "bee ant butterfly beetle fly wasp mosquito moth ladybird".split(),
           "mammal": "dog cat whale horse bat dolphin elephant fox mouse lion".split(),
           "tool": "hammer saw screwdriver spade wrench axe chisel rake".split(),
           "musical instrument": "violin piano guitar flute trumpet drum harp cello".split(),
           "tree": "oak birch willow pine elm maple beech poplar".split(),
           "flower": "rose tulip daisy lily violet sunflower daffodil poppy".split(),
           "metal": "iron gold silver copper lead zinc nickel".split(),
           "color": "red blue green yellow orange purple brown pink".split(),
           "country": "France Spain Japan Brazil Egypt Canada India Norway".split()}


def _ask(random, template, answer, expected, key="", **slots):
    keep_case = any(word in slots for word in ("word",))
    return Exchange(as_typed(random, expand(random, template, **slots), keep_case), answer, [expected], key)


def capital(random):
    country = pick(random, list(CAPITALS))
    city = CAPITALS[country]
    if random.random() < 0.15:
        return _ask(random, "[{city} is the capital of which country|Of which country is {city} the capital|"
                    "Which country has the capital {city}]?",
                    f"{city} is the capital of {'the United Kingdom' if city == 'London' else 'the United States' if city == 'Washington' else country}.",
                    "United" if city in ("London", "Washington") else country, city=city)
    return _ask(random, "[What is|What's|Name|Tell me|Do you know|Which city is|whats] the capital [of|city of] {country}?",
                f"The capital of {country} is {city}.", city, country=country)


def calendar(random):
    names, what = (WEEKDAYS, "day") if random.random() < 0.5 else (MONTHS, "month")
    index = int(random.random() * len(names))
    this = names[index]
    draw = random.random()
    if draw < 0.5:
        following = names[(index + 1) % len(names)]
        return _ask(random, "[What|Which] {what} [comes after|follows|is after|comes next after] {this}?",
                    f"{following} comes after {this}.", following, what=what, this=this)
    if draw < 0.8 or what == "day":
        previous = names[index - 1]
        return _ask(random, "[What|Which] {what} [comes before|is before|comes right before] {this}?",
                    f"{previous} comes before {this}.", previous, what=what, this=this)
    days = DAYS_IN_MONTH[this]
    extra = " In a leap year it has 29." if this == "February" else ""
    return _ask(random, "How many days [does {this} have|are there in {this}|has {this}|are in {this}]?",
                f"{this} has {days} days.{extra}", str(days), this=this)


def colors(random):
    thing = pick(random, list(COLOR_OF))
    color = COLOR_OF[thing]
    return _ask(random, "[What|Which] [color|colour] is {thing}?" if random.random() < 0.6 else
                "[What is|What's|Tell me] the [color|colour] of {thing}?",
                f"{capitalized(thing)} is {color}.", color, thing=thing)


def plural_of(noun):
    return PLURALS.get(noun) or noun + ("es" if noun.endswith(("x", "s", "ch", "sh")) else "s")


def animal_facts(random):
    draw = random.random()
    if draw < 0.25:
        animal = pick(random, list(SOUND_OF))
        return _ask(random, "[What sound does {one} make|What does {one} say|Which sound does {one} make|How does {one} sound]?",
                    f"{capitalized(with_article(animal))} says {SOUND_OF[animal]}.", SOUND_OF[animal], one=with_article(animal))
    if draw < 0.5:
        animal = pick(random, list(LEGS_OF))
        legs = LEGS_OF[animal]
        amount = "no" if legs == 0 else str(legs)
        return _ask(random, "How many legs [does {one} have|has {one}|are there on {one}]?",
                    f"{capitalized(with_article(animal))} has {amount} legs.", amount, one=with_article(animal))
    if draw < 0.75:
        animal = pick(random, list(YOUNG_OF))
        return _ask(random, "[What is a baby {animal} called|What do you call a baby {animal}|What is a young {animal} called|What is the name of a baby {animal}]?",
                    f"A baby {animal} is called {with_article(YOUNG_OF[animal])}.", YOUNG_OF[animal], animal=animal)
    animal = pick(random, list(HOME_OF))
    return _ask(random, "Where [does {one} live|do {animals} live]?",
                f"{capitalized(with_article(animal))} lives {HOME_OF[animal]}.", HOME_OF[animal].split()[-1],
                one=with_article(animal), animals=plural_of(animal))


def words(random):
    draw = random.random()
    if draw < 0.3:
        word = pick(random, list(OPPOSITES))
        opposite = OPPOSITES[word]
        return _ask(random, "[What is|What's|Tell me|Give me|Name] the opposite of {quoted}?",
                    f"The opposite of {word} is {opposite}.", opposite, quoted=pick(random, [word, f'"{word}"']))
    if draw < 0.5:
        word = pick(random, list(PLURALS))
        return _ask(random, "[What is|What's|Tell me|Give me] the plural of {quoted}?",
                    f"The plural of {word} is {PLURALS[word]}.", PLURALS[word], quoted=pick(random, [word, f'"{word}"']))
    if draw < 0.7:
        word = pick(random, list(PAST_TENSES))
        return _ask(random, "[What is|What's|Tell me|Give me] the past [tense |form |]of {quoted}?",
                    f"The past tense of {word} is {PAST_TENSES[word]}.", PAST_TENSES[word], quoted=pick(random, [word, f'"{word}"']))
    if draw < 0.85:
        word = pick(random, ANIMALS + [pick(random, KIND_OF[kind]) for kind in KIND_OF]).lower()
        spelled = "-".join(word)
        return _ask(random, "[How do you spell|Spell|Spell the word|Please spell|Can you spell] {word}?",
                    f"{capitalized(word)} is spelled {spelled}.", spelled, word=word)
    kind = pick(random, list(KIND_OF))
    word = pick(random, KIND_OF[kind])
    thing = word if kind in ("color", "country", "metal") else with_article(word)
    if random.random() < 0.5:
        return _ask(random, "What [kind of thing |]is {thing}?", f"{capitalized(thing)} is {with_article(kind)}.", kind, thing=thing)
    other = pick(random, [k for k in KIND_OF if k != kind and word not in KIND_OF[k]])
    first, second = (kind, other) if random.random() < 0.5 else (other, kind)
    return _ask(random, "Is {thing} {first} or {second}?", f"{capitalized(thing)} is {with_article(kind)}.", kind,
                thing=thing, first=with_article(first), second=with_article(second))


def lists(random):
    kind = pick(random, list(KIND_OF))
    plural = {"country": "countries", "fish": "fish"}.get(kind, kind + "s")
    count = 1 + int(random.random() * 4)
    examples = random.sample(KIND_OF[kind][:6], count)
    if count == 1:
        return _ask(random, "[Name|Tell me|Give me] {one}.", f"{capitalized(examples[0])}.", "", one=with_article(kind))
    listed = ", ".join(examples[:-1]) + " and " + examples[-1]
    return _ask(random, "[Name|List|Tell me|Give me] {count} {plural}.",
                f"{capitalized(NUMBER_WORDS[count])} {plural} are {listed}.", plural,
                count=pick(random, [str(count), NUMBER_WORDS[count]]), plural=plural)


def amounts(random):
    if random.random() < 0.15:
        shape = pick(random, list(SIDES_OF))
        return _ask(random, "How many [sides|corners] does {one} have?",
                    f"{capitalized(with_article(shape))} has {SIDES_OF[shape]} sides and {SIDES_OF[shape]} corners.",
                    str(SIDES_OF[shape]), one=with_article(shape))
    what, where, amount = pick(random, AMOUNTS)
    return _ask(random, "How many {what} [are there in {where}|does {where} have|are in {where}|has {where}]?",
                f"There are {amount} {what} in {where}.",
                amount, what=what, where=where)


def counting(random):
    draw = random.random()
    if draw < 0.3:
        start = int(random.random() * 40) if random.random() < 0.6 else 1
        end = start + 2 + int(random.random() * 12)
        return _ask(random, "[Count|Please count|Can you count] from {start} to {end}.",
                    ", ".join(str(n) for n in range(start, end + 1)) + ".", str(end), start=str(start), end=str(end))
    if draw < 0.4:
        end = 3 + int(random.random() * 18)
        return _ask(random, "[Count|Please count|Can you count|Count up] to {end}.",
                    ", ".join(str(n) for n in range(1, end + 1)) + ".", str(end),
                    end=pick(random, [str(end), number_in_words(end)]))
    if draw < 0.6:
        a, b = random.sample(range(100), 2)
        larger = random.random() < 0.6
        result = max(a, b) if larger else min(a, b)
        word = pick(random, ["larger", "bigger", "greater"] if larger else ["smaller", "less"])
        return _ask(random, "[Which|What] [number |]is {word}, {a} or {b}?", f"{result} is {word} than {min(a, b) if larger else max(a, b)}.",
                    str(result), f"compare {min(a, b)} {max(a, b)}", word=word, a=str(a), b=str(b))
    if draw < 0.75:
        number = int(random.random() * 200)
        parity = "odd" if number % 2 else "even"
        return _ask(random, "Is {number} [even or odd|odd or even|an even number|an odd number]?",
                    f"{number} is {parity}.", parity, f"parity {number}", number=str(number))
    if draw < 0.9:
        number = int(random.random() * 120)
        after = random.random() < 0.6
        result = number + 1 if after else number - 1
        return _ask(random, "[What|Which] number comes " + ("[after|next after]" if after else "[before|right before]") + " {number}?",
                    f"{result} comes {'after' if after else 'before'} {number}.", str(result),
                    f"neighbour {number} {after}", number=str(number))
    index = int(random.random() * 25)
    letter, following = chr(65 + index), chr(66 + index)
    return _ask(random, "[What|Which] letter [comes after|follows] {letter}[| in the alphabet]?",
                f"{following} comes after {letter}.", f"{following} comes", f"letter {letter} {int(random.random() * 9)}", letter=letter)


def sorting(random):
    values = random.sample(range(1, 60), 3 + int(random.random() * 3))
    ordered = ", ".join(str(v) for v in sorted(values))
    return _ask(random, "[Sort|Please sort|Put in order|Order] [these numbers|the numbers|]: {values}.",
                f"{ordered}.", ordered, values=", ".join(str(v) for v in values))


def fixed_fact(random):
    template, answer, expected = pick(random, FACTS)
    return _ask(random, template, answer, expected)


def continent(random):
    if random.random() < 0.25:
        index = int(random.random() * 7)
        return _ask(random, "[What|Which] planet comes after {this}?", f"{PLANETS[index + 1]} comes after {PLANETS[index]}.",
                    PLANETS[index + 1], this=PLANETS[index])
    country = pick(random, list(CONTINENT_OF))
    return _ask(random, "[[On|In] [which|what] continent is|Which continent is] {country}[| in| on]?",
                f"{capitalized(country)} is in {CONTINENT_OF[country]}.", CONTINENT_OF[country], country=country)


GENERATORS = [capital, capital, calendar, colors, animal_facts, animal_facts, words, words, lists, amounts,
              counting, counting, sorting, fixed_fact, fixed_fact, fixed_fact, continent]


def knowledge(random):
    exchange = pick(random, GENERATORS)(random)
    exchange.kind = "knowledge"
    return exchange
