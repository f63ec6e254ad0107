"""Little stories on request: a hero, a wish, a difficulty, a helper and an end."""

from random import Random

from .language import ANIMALS, FIRST_NAMES, JOBS, THINGS, Exchange, as_typed, expand, invented_word, pick, with_article

OPENINGS = [
    "Once upon a time there was {hero} who lived {home}. ",
    "Long ago, {home}, there lived {hero}. ",
    "There once was {hero} that lived {home}. ",
    "In the days of the great forests, {hero} made its home {home}. ",
]
NAMING = ["[Its|The little one's] name was {name}. ", "Everybody called it {name}. ", "The {animal} was called {name}. "]
HOMES = ["at the edge of a quiet wood", "near an old mill", "in a valley full of flowers", "beside a slow river",
         "on a small island", "under the roots of a tall oak", "behind a farmhouse", "not far from the sea",
         "in a garden with a high wall", "on top of a windy hill", "close to a village", "in a hollow tree"]
WISHES = [
    ("wanted to see the sea", "the sea", "had only heard of it in songs"),
    ("dreamed of finding a golden {thing}", "the golden {thing}", "had read about it in an old book"),
    ("wished to learn how to sing", "a teacher of songs", "could only whisper"),
    ("was looking for a true friend", "a friend", "had spent many evenings alone"),
    ("wanted to climb the highest hill", "the top of the hill", "had looked at it from below every day"),
    ("longed to know where the moon goes in the morning", "the place of the moon", "had asked everybody in vain"),
    ("had lost its favourite {thing}", "the {thing}", "missed it very much"),
    ("wished for a warm place for the winter", "a warm place", "was cold every night"),
    ("wanted to bake the best {food} pie", "the best {food}", "had only a little flour"),
]
JOURNEYS = [
    "So one {season} morning {it} packed some {food} and set out. ",
    "One {weekday} {it} put on a {color} scarf and went on its way. ",
    "At last {it} could wait no longer and left home at dawn. ",
    "On a day of {weather} {it} said goodbye to the neighbours and started to walk. ",
]
TROUBLES = [
    "The road was long, and soon a deep {water} blocked the way. ",
    "After a while {weather} came up, and the path was hard to see. ",
    "In the middle of the forest the {animal} lost its way. ",
    "Then night fell, and strange noises came from the trees. ",
    "At the old bridge a grumpy {other} would not let anybody pass. ",
]
HELPERS = [
    "Luckily {helper} came by and asked, \"What are you looking for?\" The {animal} told the whole story. \"Then come with me,\" said the {helper_animal}. ",
    "Just then {helper} looked out of a window. \"Do not be afraid,\" the {helper_animal} said. \"Two find the way better than one.\" ",
    "There it met {helper} who carried a small lantern. \"I know this place,\" said the {helper_animal}, \"and I will help you.\" ",
]
RESOLUTIONS = [
    "Together they walked on, and before the sun went down they had found {goal}. ",
    "They worked side by side, shared their {food}, and in the end they found {goal}. ",
    "It took them {few} days, but with patience and a little luck they found {goal}. ",
]
ENDINGS = [
    "The {animal} was happy and never forgot who had helped. From that day on, the two were the best of friends.",
    "\"The best part was the journey,\" said the {animal}, and they laughed all the way home.",
    "And when the {animal} came home, it told everybody: kindness makes every road shorter.",
    "That evening they sat by the fire, and the {animal} thought that nobody could be luckier.",
]
REQUESTS = [
    "[Tell me|Tell|Write|Write me|Can you tell me|Could you write|Please tell me|I want to hear|I would like|Please write|Make up|Give me|Tell us] a [short |little |nice |small |bedtime |funny |]story about {hero}[| please|, please].",
    "[Do you know|Can you make up|Have you got] a [short |little |]story about {hero}?",
    "[A story|Story|A short story] about {hero}[|, please].",
]
PLAIN_REQUESTS = ["[Tell me|Tell|Write|Write me|Can you tell me|Please tell me|I want to hear|I would like|Read me] a [short |little |nice |bedtime |]story[|, please].",
                  "[Tell me|Write] another story.", "A story, please.", "Do you know a story?", "Another story."]
TRAITS = """brave little clever shy lonely friendly young old curious tiny lazy small kind big happy sad
hungry sleepy wise proud""".split()


PEOPLE = """robot king queen prince princess boy girl child knight wizard witch pirate giant ghost fairy dwarf
astronaut mermaid unicorn dinosaur troll elf monster tree cloud star train boat ship toy doll snowman car moon
computer captain hero traveller stranger man woman grandmother grandfather vampire ninja tractor language model
kingdom house mountain book pumpkin river""".split()


def draw_hero(random):
    draw = random.random()
    if draw < 0.65:
        return pick(random, ANIMALS)
    if draw < 0.85:
        return pick(random, PEOPLE)
    return pick(random, JOBS) if draw < 0.92 else pick(random, THINGS) if draw < 0.97 else invented_word(random)


def tell(random, animal, trait, name):
    # One hero mostly has one story: then the likeliest story differs from hero to hero.
    if random.random() < 0.75:
        random = Random(f"{animal} {trait if random.random() < 0.5 else ''}")
    other, helper_animal = random.sample([a for a in ANIMALS if a != animal], 2)
    treasure = {"thing": pick(random, ["bell", "lantern", "key", "ring", "feather", "drum"]),
                "food": pick(random, ["apple", "plum", "cherry", "pumpkin"])}
    wish, goal, because = (expand(random, part, **treasure) for part in pick(random, WISHES))
    slots = {"animal": animal, "other": other, "name": name, "hero": with_article(f"{trait} {animal}" if trait else animal),
             "home": pick(random, HOMES), "goal": goal, "helper_animal": helper_animal,
             "helper": with_article(f"{pick(random, ['wise', 'friendly', 'old', 'cheerful', 'kind'])} {helper_animal}"),
             "it": name if name else "it", "water": pick(random, ["river", "stream", "canal", "lake"])}
    parts = [pick(random, OPENINGS)]
    if name:
        parts.append(pick(random, NAMING))
    parts.append(f"The {animal} {wish} and {because}. ")
    parts += [pick(random, JOURNEYS), pick(random, TROUBLES), pick(random, HELPERS), pick(random, RESOLUTIONS),
              pick(random, ENDINGS)]
    return "".join(expand(random, part, **slots) for part in parts)


def story(random):
    animal = draw_hero(random)
    trait = pick(random, TRAITS) if random.random() < 0.6 else ""
    name = pick(random, FIRST_NAMES) if random.random() < 0.4 else ""
    if random.random() < 0.15:
        return Exchange(as_typed(random, expand(random, pick(random, PLAIN_REQUESTS))),
                        tell(random, animal, trait, name), [], kind="story")
    asked = random.random()
    hero = with_article(f"{trait} {animal}" if trait and asked < 0.5 else animal)
    expected = [animal]
    if name and asked < 0.7:
        hero += pick(random, [" named ", " called "]) + name
        expected.append(name)
    user = as_typed(random, expand(random, pick(random, REQUESTS), hero=hero))
    return Exchange(user, tell(random, animal, trait, name), expected, kind="story")


def another_story(random):
    """A story and then another one."""
    first = story(random)
    hero = pick(random, ANIMALS)
    question = expand(random, "[Another one|One more|Tell me another one|Another story|Again|And another one|Another][| please|, please][.|!|]"
                      if random.random() < 0.6 else "[And|Now|And now] [one|a story] about {hero}.", hero=with_article(hero))
    expected = [hero] if hero in question else []
    return [first, Exchange(as_typed(random, question), tell(random, hero, "", ""), expected, key="another " + question + hero, kind="follow-up")]
