"""Short passages with questions, and conversations in which a later turn needs an earlier one."""

from . import documents
from .arithmetic import arithmetic, steps_of_product
from .knowledge import CAPITALS
from .language import (ANIMALS, CITIES, COLORS, FIRST_NAMES, FOODS, JOBS, NUMBER_WORDS, PLACES, THINGS, Exchange, as_typed,
                       capitalized, expand, is_reserved, pick, surname, town, with_article)
from .small_talk import small_talk, tessera_help

TRAITS = {
    "age": (lambda random: str(18 + int(random.random() * 70)),
            ("{he} is {value} years old.", "{name} turned {value} this year.", "At the age of {value}, {name} still rides a bicycle."),
            ("How old is {name}?", "What is the age of {name}?", "What age is {name}?"), "{name} is {value} years old."),
    "job": (lambda random: pick(random, JOBS),
            ("{name} works as a {value}.", "{he} earns a living as a {value}.", "By trade {name} is a {value}."),
            ("What is the job of {name}?", "What does {name} do for a living?", "What is {name}'s job?", "What does {name} work as?"), "{name} works as a {value}."),
    "town": (lambda random: pick(random, CITIES) if random.random() < 0.3 else town(random), ("{name} lives in {value}.", "{his} house stands in {value}.", "{he} moved to {value} last year."),
             ("Where does {name} live?", "In which town does {name} live?", "Where is {name}'s house?"), "{name} lives in {value}."),
    "pet": (lambda random: expand(random, "{animal} named {name}"),
            ("{name} has a {value}.", "{he} looks after a {value}.", "At home, a {value} waits for {name}."),
            ("What pet does {name} have?", "Which animal does {name} have?", "Does {name} have a pet?", "What is {name}'s pet?"), "{name} has a {value}."),
    "color": (lambda random: pick(random, COLORS),
              ("{his} favourite colour is {value}.", "{name} likes {value} best of all colours.", "{he} wears {value} almost every day."),
              ("What is {name}'s favourite colour?", "Which colour does {name} like best?", "What is the favorite color of {name}?"), "The favourite colour of {name} is {value}."),
    "food": (lambda random: pick(random, FOODS),
             ("{name} likes to eat {value}.", "{his} favourite food is {value}.", "For supper {he} usually makes {value}."),
             ("What does {name} like to eat?", "What is {name}'s favourite food?", "What is the favorite food of {name}?"), "{name} likes to eat {value}."),
    "weekday": (lambda random: expand(random, "{weekday}"),
                ("{name} plays chess every {value}.", "On {value} {he} meets friends for chess.", "{value} is chess day for {name}."),
                ("When does {name} play chess?", "On which day does {name} play chess?", "What day is chess day for {name}?"), "{name} plays chess on {value}."),
}
PERSON_FILLER = ["{he} [often|sometimes|always] gets up early.", "The neighbours like {name}.", "{he} owns a {adjective} {thing}.",
                 "In {season} {he} [goes hiking|paints the fence|visits the coast].", "{name} [reads a lot|writes long letters|likes to walk by the {place}]."]


def people_passage(random):
    """(passage, [(question, answer, expected)…]) about one to three people."""
    names = random.sample(FIRST_NAMES, 1 + int(random.random() * 3))
    sentences, questions = [], []
    for name in names:
        pronoun, possessive = pick(random, [("he", "his"), ("she", "her")])
        block = []
        for trait in random.sample(list(TRAITS), 2 + int(random.random() * 3)):
            draw, statements, asked, answer = TRAITS[trait]
            value = draw(random)
            slots = {"name": name, "he": pronoun, "his": possessive, "value": value}
            block.append(capitalized(expand(random, pick(random, statements), **slots)))
            questions.append((expand(random, pick(random, asked), **slots), expand(random, answer, **slots), value))
        if random.random() < 0.5:
            block.append(capitalized(expand(random, pick(random, PERSON_FILLER), name=name, he=pronoun)))
        # The name comes first, so that 'he' and 'she' have somebody to point to.
        if name not in block[0]:
            block[0] = f"{name} {surname(random)} is a friend of ours. " + block[0]
        sentences += block
    if random.random() < 0.12:
        name = pick(random, names)
        given = {question for question, _, _ in questions}
        trait = pick(random, list(TRAITS))
        asked = [expand(random, question, name=name) for question in TRAITS[trait][2]]
        if not given & set(asked) and all(TRAITS[trait][3].split("{value}")[0].replace("{name}", name) not in answer
                                          for _, answer, _ in questions):
            questions = [(pick(random, asked), "The text does not say.", "does not say")]
    random.shuffle(questions)
    return " ".join(sentences), questions


def report_passage(random):
    report = documents.write_report(random, int(random.random() * 8), 2 + int(random.random() * 4))
    questions, seen = [], set()
    for _ in range(4):
        question, answer, expected = documents.question_about(random, report)
        if answer not in seen:
            seen.add(answer)
            questions.append((question, answer, expected))
    return report.text, questions


def passage(random):
    """A conversation about a passage: the passage with a first question, then perhaps more questions."""
    text, questions = people_passage(random) if random.random() < 0.6 else report_passage(random)
    questions = questions[:1 + int(random.random() * 3)]
    first = as_typed(random, questions[0][0], keep_case=True)
    shape = random.random()
    if shape < 0.3:
        user = f"{text}\n\n{first}"
    elif shape < 0.5:
        user = f"{first}\n\n{text}"
    elif shape < 0.65:
        user = f"Read this text and answer the question.\n\n{text}\n\nQuestion: {first}"
    elif shape < 0.75:
        user = f"{text} {first}"
    elif shape < 0.85:
        user = f"Answer the question about the text.\n\nText: {text}\n\nQuestion: {first}"
    else:
        user = f"{text}\n{first}"
    exchanges = [Exchange(user, questions[0][1], [questions[0][2]], kind="passage")]
    for question, answer, expected in questions[1:]:
        exchanges.append(Exchange(as_typed(random, question, keep_case=True), answer, [expected], key=user + question, kind="passage"))
    return exchanges


# What a user may say about himself: (statements, reply, questions, answer, value)
PERSONAL_FACTS = [
    ("[My name is|I am|I'm|Call me|My name's|Hi, I am|Hello, my name is|Hi, my name is|Hello, I'm|You can call me] {value}.",
     "[Nice to meet you, {value}!|Hello {value}, nice to meet you!]", "[What is my name|What's my name|Do you remember my name|Who am I|What am I called|Do you know my name|Can you tell me my name|Say my name|What was my name]?",
     "Your name is {value}.", lambda random: pick(random, FIRST_NAMES)),
    ("[My favorite color is|My favourite colour is|I like the color|The color I like most is|My favorite colour is] {value}.",
     "{Value} is a nice color.", "[What is my favorite color|What's my favourite colour|Which color do I like|Do you remember my favorite color|What color do I like[| best]|What is my favourite colour|Which colour do I like best]?",
     "Your favorite color is {value}.", lambda random: pick(random, COLORS)),
    ("[I live in|I am from|I come from|My home is|My town is|I moved to] {value}.", "{value} sounds like a nice place.",
     "[Where do I live|Where am I from|Do you remember where I live|What is my home town|In which town do I live|Where is my home]?", "You live in {value}.", lambda random: pick(random, CITIES) if random.random() < 0.6 else town(random)),
    ("[I have|I've got|I own|At home I have] a {value}.", "That is lovely.", "[What pet do I have|Which animal do I have|Do you remember my pet|What is my pet|What animal do I have|Do I have a pet]?",
     "You have a {value}.", lambda random: expand(random, "{animal} named {name}")),
    ("[I work as a|I am a|My job is|I'm a] {value}.", "That is an interesting job.", "[What is my job|What do I do[| for a living]|Do you remember my job|What do I work as|What's my job]?",
     "You work as a {value}.", lambda random: pick(random, JOBS)),
    ("[I am|I'm] {value} years old.", "Thank you for telling me.", "[How old am I|What is my age|Do you remember my age|What's my age|Do you know how old I am]?",
     "You are {value} years old.", lambda random: str(7 + int(random.random() * 85))),
    ("[My favorite food is|I like to eat|I love to eat|My favourite food is|I really like] {value}.", "That sounds tasty.", "[What is my favorite food|What do I like to eat|Do you remember my favorite food|What's my favourite food|Which food do I like]?",
     "You like to eat {value}.", lambda random: pick(random, FOODS)),
    ("[My birthday is on|I was born on|My birthday is|I have my birthday on] {value}.", "I will keep that in mind for this conversation.", "[When is my birthday|When was I born|Do you remember my birthday|On which day is my birthday]?",
     "Your birthday is on {value}.", lambda random: f"{1 + int(random.random() * 28)} " + expand(random, "{month}")),
    ("[Remember the number|Please remember the number|Keep in mind the number|The secret number is|My number is|Remember this number:|The code is] {value}.", "All right, I will remember {value}.",
     "[What was the number|Which number did I give you|What is the number|What is the secret number|What number should you remember|Tell me the number|What is my number|What was the code|What number did I tell you]?", "The number is {value}.", lambda random: str(int(random.random() * 10 ** (2 + int(random.random() * 4))))),
    ("[Remember the word|Please remember the word|The secret word is|The password is|Keep in mind the word|My secret word is] {value}.", "All right, I will remember the word {value}.",
     "[What was the word|Which word did I give you|What is the secret word|What is the password|Tell me the word|What word should you remember|What was the password]?", "The word is {value}.",
     lambda random: pick(random, [pick(random, ANIMALS), pick(random, COLORS), town(random).lower(), pick(random, FOODS)])),
]


def personal_recall(random):
    """The user tells one to three things, talks about something else and asks for them later."""
    told = random.sample(PERSONAL_FACTS, 1 + int(random.random() * 3))
    exchanges, questions = [], []
    asked_before = random.random() < 0.1
    for statements, reply, question, answer, draw in told:
        value = draw(random)
        keep_case = random.random() < 0.6
        user = as_typed(random, expand(random, statements, value=value), keep_case=keep_case)
        exchanges.append(Exchange(user, expand(random, reply, value=value, Value=capitalized(value)), [], kind="recall", key="told"))
        if random.random() < 0.3:
            exchanges.append(pick(random, [small_talk, arithmetic, tessera_help])(random))
        questions.append(Exchange(as_typed(random, expand(random, question)), expand(random, answer, value=value), [value],
                                  key=f"recall {value}", kind="recall"))
    for _ in range(int(random.random() * 3)):
        exchanges.append(pick(random, [small_talk, arithmetic, tessera_help])(random))
    random.shuffle(questions)
    if asked_before:
        return [not_told(random)] + exchanges + questions[:1]
    return exchanges + questions[:1 + int(random.random() * len(questions))]


def introduction(random):
    """A name and a second fact in one message, asked for one by one."""
    name, other = pick(random, FIRST_NAMES), pick(random, [1, 2, 2, 2, 4, 5])
    statements, _, question, answer, draw = PERSONAL_FACTS[other]
    value = draw(random)
    tail = expand(random, statements, value=value).rstrip(".")
    tail = tail if tail.startswith("I") else tail[0].lower() + tail[1:]
    user = as_typed(random, expand(random, "[My name is|I am|I'm|Hi, I am|Hello, my name is|Hi, my name is] {name}", name=name) +
                    pick(random, [" and ", " and ", ". ", ", "]) + tail + ".", keep_case=random.random() < 0.6)
    exchanges = [Exchange(user, f"Nice to meet you, {name}!", [name], kind="recall", key="told")]
    if random.random() < 0.3:
        exchanges.append(pick(random, [small_talk, arithmetic, tessera_help])(random))
    asked = [Exchange(as_typed(random, expand(random, PERSONAL_FACTS[0][2])), f"Your name is {name}.", [name], key=f"recall {name}", kind="recall"),
             Exchange(as_typed(random, expand(random, question)), expand(random, answer, value=value), [value], key=f"recall {value}", kind="recall")]
    random.shuffle(asked)
    return exchanges + asked[:1 + int(random.random() * 2)]


# statement, [(question, answer, expected)…] over the slots of scenes()
SCENES = [
    ("The {a} [sat|slept|waited|hid|stood] {where}.",
     [("Where [is|was] the {a}?", "The {a} was {where}.", "{where}"), ("Who was {where}?", "The {a} was {where}.", "{a}"),
      ("Where did the {a} [sit|sleep|wait|hide|stand]?", "The {a} was {where}.", "{where}")]),
    ("The {t} is {c}.", [("What [color|colour] is the {t}?", "The {t} is {c}.", "{c}"), ("What is {c}?", "The {t} is {c}.", "{t}")]),
    ("{n} gave {m} [a|the] {t}.",
     [("Who gave {m} [a|the] {t}?", "{n} gave {m} the {t}.", "{n}"), ("What did {n} give [to |]{m}?", "{n} gave {m} the {t}.", "{t}"),
      ("Who got the {t}?", "{m} got the {t}.", "{m}")]),
    ("{n} has {k} {i}.", [("How many {i} does {n} have?", "{n} has {k} {i}.", "{k}"), ("What does {n} have?", "{n} has {k} {i}.", "{i}"),
                          ("Who has {k} {i}?", "{n} has {k} {i}.", "{n}")]),
    ("{n} [went|walked|drove|travelled] to {p}.", [("Where did {n} go?", "{n} went to {p}.", "{p}"), ("Who went to {p}?", "{n} went to {p}.", "{n}")]),
    ("{n} is {j}.", [("What does {n} do?", "{n} is {j}.", "{j}"), ("What is {n}'s job?", "{n} is {j}.", "{j}"), ("Who is {j}?", "{n} is {j}.", "{n}")]),
    ("{n} likes {f}.", [("What does {n} like?", "{n} likes {f}.", "{f}"), ("Who likes {f}?", "{n} likes {f}.", "{n}")]),
    ("The [meeting|party|concert|train|market] is on {d}.", [("When is it?", "It is on {d}.", "{d}"), ("On which day is it?", "It is on {d}.", "{d}")]),
    ("The {t} costs {k} [dollars|euros|crowns].", [("How much [does the {t} cost|is the {t}]?", "The {t} costs {k}.", "{k}"), ("What costs {k}?", "The {t} costs {k}.", "{t}")]),
]
POSSESSIONS = "dogs cats books apples sisters brothers cars friends coins children".split()


def scenes(random):
    """Plain sentences of daily life with one question about one of them."""
    names, things = random.sample(FIRST_NAMES, 14), random.sample(THINGS, 7)
    sentences, questions = [], []
    for index, (statement, asked) in enumerate(random.sample(SCENES, 1 + int(random.random() * 5))):
        slots = {"a": pick(random, ANIMALS), "t": things[index], "c": pick(random, COLORS), "n": names[2 * index],
                 "m": names[2 * index + 1], "where": expand(random, "[on|under|behind|near|next to] the [{thing}|mat|bed|roof|floor]"),
                 "k": pick(random, [str(2 + int(random.random() * 90)), pick(random, NUMBER_WORDS[2:13])]), "i": pick(random, POSSESSIONS),
                 "p": pick(random, [pick(random, CITIES), town(random), "the " + pick(random, PLACES)]), "f": pick(random, FOODS),
                 "d": expand(random, "{weekday}"), "j": with_article(pick(random, JOBS))}
        sentences.append(expand(random, statement, **slots))
        question, answer, expected = pick(random, asked)
        questions.append((expand(random, question, **slots), expand(random, answer, **slots), expand(random, expected, **slots)))
    text, (question, answer, expected) = " ".join(sentences), pick(random, questions)
    question = as_typed(random, question, keep_case=random.random() < 0.7)
    user = pick(random, [f"{text} {question}", f"{text}\n{question}", f"{text}\n\n{question}", f"{question}\n\n{text}", f"Text: {text}\nQuestion: {question}"])
    return [Exchange(user, capitalized(answer), [expected], kind="passage")]


def not_told(random):
    _, _, question, _, _ = pick(random, PERSONAL_FACTS)
    return Exchange(as_typed(random, expand(random, question)), "You have not told me that yet.", ["not told"], kind="recall")


def arithmetic_follow_up(random):
    """'Add 5 to that': the result of the turn before goes on."""
    first = arithmetic(random)
    while not first.expected[0].isdigit() or int(first.expected[0]) > 90:
        first = arithmetic(random)
    exchanges, result = [first], int(first.expected[0])
    for _ in range(1 + int(random.random() * 2)):
        step = 1 + int(random.random() * 30)
        factor, draw = 2 + int(random.random() * 8), random.random()
        if draw < 0.2 and result < 100:
            user = expand(random, "[[And|Now|] times {factor}|Multiply [that|it] by {factor}|Now multiply by {factor}][?|.]", factor=str(factor))
            answer = f"{steps_of_product(result, factor)}{result} × {factor} = {result * factor}."
            result *= factor
        elif draw < 0.6:
            user = expand(random, "[[Add|Now add|And add|Please add] {step}[| to that| to it].|[And plus|Plus|and +] {step}?]", step=str(step))
            answer, result = f"{result} + {step} = {result + step}.", result + step
        else:
            step = min(step, result)
            user = expand(random, "[[Subtract|Now subtract|Take away|Now take away] {step}[| from that].|[And minus|Minus] {step}?]", step=str(step))
            answer, result = f"{result} - {step} = {result - step}.", result - step
        exchanges.append(Exchange(as_typed(random, user), answer, [str(result)], key=first.key + user, kind="follow-up"))
    return exchanges


def capital_follow_up(random):
    countries = random.sample(list(CAPITALS), 2 + int(random.random() * 2))
    exchanges = []
    for index, country in enumerate(countries):
        question = "What is the capital of {country}?" if index == 0 else "[And of {country}|What about {country}|And {country}|How about {country}|And that of {country}]?"
        exchanges.append(Exchange(as_typed(random, expand(random, question, country=country)), f"The capital of {country} is {CAPITALS[country]}.",
                                  [CAPITALS[country]], kind="follow-up", key="" if index == 0 else f"{countries[index - 1]} then {country}"))
    return exchanges


def looking_back(random):
    """Questions about the conversation itself."""
    exchanges = [pick(random, [small_talk, arithmetic, tessera_help])(random) for _ in range(1 + int(random.random() * 3))]
    index = pick(random, [0, len(exchanges) - 1])
    question = "[What was my first question|What did I say first|What did I ask first|What was the first thing I said]?" if index == 0 and len(exchanges) > 1 \
        else "[What did I just say|What did I just ask|What was my last message|Repeat my last message|What was my last question]?"
    said = exchanges[index].user
    exchanges.append(Exchange(as_typed(random, expand(random, question)), f"You said: \"{said}\"", [said.rstrip(".?! ")], kind="recall", key="back " + said))
    return exchanges


def acceptable(exchanges, held_out):
    """Training takes only conversations without a reserved key; held-out sets only reserved last questions."""
    if held_out:
        return is_reserved(exchanges[-1].key)
    return not any(is_reserved(exchange.key) for exchange in exchanges)
