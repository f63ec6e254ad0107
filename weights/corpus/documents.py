"""Reports with facts spread over much ordinary prose, their summaries and questions about them.

A report is about one subject (an observatory, a village, an expedition …). Each fact is one value
of one relation, stated once. The summary names the subject and restates every fact in the order of
RELATIONS, so that a reader who finds one relation after the other can write it.
"""

from dataclasses import dataclass

from .language import (COLORS, MONTHS, capitalized, expand, person, pick, surname, town)


@dataclass(frozen=True)
class Relation:
    label: str          # in a list of key facts
    value: object       # random -> string
    statements: tuple   # how a report says it
    summary: str
    questions: tuple
    answer: str


def _year(random):
    return str(1700 + int(random.random() * 320))


def _count(random):
    return str(12 + int(random.random() * 988)) if random.random() < 0.5 else str(1000 + int(random.random() * 8999))


def _sum_of_money(random):
    return f"{1 + int(random.random() * 899)},{int(random.random() * 10)}00"


def _date(random):
    return f"{1 + int(random.random() * 28)} {pick(random, MONTHS)}"


def _prize(random):
    return expand(random, "[Silver|Golden|Green|Crystal|Northern|Royal|Copper|Blue|Amber|Ivory|White|Iron] "
                  "[Heron|Compass|Lantern|Feather|Crown|Harp|Anchor|Star|Acorn|Bell|Quill|Swan|Key|Oak]")


def _product(random):
    return expand(random, "{material} [lanterns|bowls|chairs|kites|flutes|clocks|toys|boxes|boats|masks|bells|buttons|"
                  "puppets|ladders|baskets|mirrors|vases|candles|drums|umbrellas]")


def _building(random):
    return expand(random, "[new|second|larger|covered|floating|round|wooden|heated|public|open] [bridge|greenhouse|tower|library|"
                  "harbour|swimming pool|theatre|windmill|museum|playground|kitchen|reading room|boathouse|"
                  "concert hall|workshop|footpath|guest house|market hall]")


def _mascot(random):
    return expand(random, "{animal} named {name}")


def _flag(random):
    first, second = random.sample(COLORS, 2)
    return f"{first} and {second}"


def _partner(random):
    return f"the {surname(random)} {pick(random, PARTNER_KINDS)}"


def _archive(random):
    return str(10000 + int(random.random() * 90000))


PARTNER_KINDS = ["Foundation", "Company", "Trust", "Brothers", "Union", "Bank", "Association", "University"]

RELATIONS = (
    Relation("Location", town,
             ("{Subject} [is|lies|stands] in {value}.", "[You find|Visitors find|One finds] {subject} in {value}.",
              "The home of {subject} is {value}.", "{Subject} has its seat in {value}.", "The map shows {subject} in {value}."),
             "It is located in {value}.",
             ("Where is {it}?", "Where is {subject}?", "In which town is {it}?", "Where is it located?", "Where does one find {subject}?"),
             "It is located in {value}."),
    Relation("Founder", person,
             ("{Subject} was founded by {value}.", "The founder of {subject} was {value}.", "It was {value} who founded {subject}.",
              "{value} founded {subject} [with a few friends|against all advice|with borrowed money|after a long journey].",
              "{Subject} owes its existence to its founder {value}."),
             "It was founded by {value}.",
             ("Who founded {it}?", "Who founded {subject}?", "Who was the founder?", "Who is the founder of {it}?", "Who started {it}?"),
             "It was founded by {value}."),
    Relation("Opened", _year,
             ("{Subject} was opened in {value}.", "The opening of {subject} took place in {value}.", "{Subject} has existed since {value}.",
              "The year of the opening was {value}.", "Since the opening in {value}, much has changed at {subject}."),
             "It was opened in {value}.",
             ("When was {it} opened?", "In which year was {subject} opened?", "Since when does {it} exist?", "What year did {it} open?", "When did it start?"),
             "It was opened in {value}."),
    Relation("Director", person,
             ("{Subject} is led by {value}.", "The director of {subject} is {value}.", "At the head of {subject} stands {value}.",
              "Today {value} leads {subject}.", "{value} has been the director of {subject} for [some|several|many] years."),
             "It is led by {value}.",
             ("Who leads {it}?", "Who is the director of {subject}?", "Who is in charge?", "Who is the director?", "Who runs {it}?"),
             "It is led by {value}."),
    Relation("Members", _count,
             ("{Subject} counts {value} members.", "There are {value} members at {subject}.", "The number of members is {value}.",
              "{value} members belong to {subject}.", "The list of members holds {value} names."),
             "It has {value} members.",
             ("How many members does {it} have?", "How many members belong to {subject}?", "How many members are there?", "What is the number of members?"),
             "It has {value} members."),
    Relation("Known for", _product,
             ("{Subject} is best known for its {value}.", "What made {subject} famous are its {value}.", "People come from far away for the {value} of {subject}.",
              "The fame of {subject} rests on its {value}.", "Nothing is as famous here as the {value}."),
             "It is known for its {value}.",
             ("What is {it} known for?", "What is {subject} famous for?", "What is it best known for?", "Why is {it} famous?"),
             "It is known for its {value}."),
    Relation("Prize", _prize,
             ("{Subject} won the {value} Prize.", "The {value} Prize went to {subject}.", "The jury gave {subject} the {value} Prize.",
              "[On one wall|In the entrance] hangs the certificate of the {value} Prize, won by {subject}."),
             "It won the {value} Prize.",
             ("Which prize did {it} win?", "What prize did {subject} win?", "Which prize did it win?", "What award did {it} receive?"),
             "It won the {value} Prize."),
    Relation("Yearly budget", _sum_of_money,
             ("The yearly budget of {subject} is {value} crowns.", "{Subject} has a yearly budget of {value} crowns.",
              "Every year {subject} may spend a budget of {value} crowns.", "The budget comes to {value} crowns a year."),
             "Its yearly budget is {value} crowns.",
             ("What is the yearly budget?", "How large is the budget of {subject}?", "What is the budget of {it}?", "How much money does {it} have each year?"),
             "Its yearly budget is {value} crowns."),
    Relation("Open day", _date,
             ("The open day of {subject} is held on {value}.", "On {value} {subject} holds its open day.",
              "Every year the open day falls on {value}.", "The calendar marks {value} as the open day of {subject}."),
             "Its open day is on {value}.",
             ("When is the open day?", "On which date is the open day of {subject}?", "What is the date of the open day?", "When does {it} hold its open day?"),
             "Its open day is on {value}."),
    Relation("Mascot", _mascot,
             ("The mascot of {subject} is a {value}.", "As a mascot, {subject} keeps a {value}.", "{Subject} has a mascot, a {value}.",
              "Nobody is greeted as warmly as the mascot, a {value}."),
             "Its mascot is a {value}.",
             ("What is the mascot?", "What is the mascot of {subject}?", "Does {it} have a mascot?", "Which mascot does {it} have?"),
             "Its mascot is a {value}."),
    Relation("Flag", _flag,
             ("The flag of {subject} is {value}.", "{Subject} flies a flag in {value}.", "A flag in {value} flies above {subject}.",
              "The colours of the flag are {value}."),
             "Its flag is {value}.",
             ("What colours does the flag have?", "What does the flag look like?", "What is the flag of {subject}?", "Which colors has the flag of {it}?"),
             "Its flag is {value}."),
    Relation("Partner", _partner,
             ("{Subject} works together with {value}.", "The partner of {subject} is {value}.", "An old friendship ties {subject} to its partner, {value}.",
              "{Subject} signed a contract as a partner of {value}."),
             "Its partner is {value}.",
             ("Who is the partner?", "Who does {it} work with?", "Who is the partner of {subject}?", "With whom does {it} work together?"),
             "Its partner is {value}."),
    Relation("Archive number", _archive,
             ("The archive number of {subject} is {value}.", "In the national register {subject} has the archive number {value}.",
              "The papers are kept under the archive number {value}.", "Whoever writes to {subject} should give the archive number {value}."),
             "Its archive number is {value}.",
             ("What is the archive number?", "What is the archive number of {subject}?", "Under which archive number is it kept?", "Which archive number does {it} have?"),
             "Its archive number is {value}."),
    Relation("Plan", _building,
             ("{Subject} plans to build a {value}.", "The next plan of {subject} is to build a {value}.", "There is a plan to build a {value}.",
              "In the coming years {subject} wants to build a {value}, as planned."),
             "It plans to build a {value}.",
             ("What does {it} plan to build?", "What are the plans of {subject}?", "What is planned?", "What will {it} build next?"),
             "It plans to build a {value}."),
)

# name of the subject, short way to speak of it
SUBJECT_KINDS = [(f"the {{stem}} {kind}", "the " + kind.split()[-1].lower()) for kind in (
    "Observatory,Museum,Library,Orchestra,School,Shipyard,Bakery,Theatre,Lighthouse,Mill,Clinic,Academy,Railway,"
    "Expedition,Institute,Cooperative,Society,Workshop,Choir,Printing House,Glassworks,Foundry,Botanical Garden,"
    "Sailing Club,Chess Club,Archive,Harbour,Weather Station,Farm,Company,Laboratory,Circus,Hospital,Market,Zoo,"
    "Art Gallery,Music School,Fire Brigade,Film Studio,Radio Station,Post Office,Travel Agency,Football Club").split(",")
] + [("the town of {stem}", "the town"), ("the village of {stem}", "the village"), ("the island of {stem}", "the island"),
     ("the castle of {stem}", "the castle"), ("the ship {stem}", "the ship"), ("the festival of {stem}", "the festival")]

FILLER = [
    "[In|During|Throughout] {season}, the {place} is full of {people}, and [the smell of {food} hangs in the air|somebody always plays music|there is hardly room to sit].",
    "The {adjective} {thing} near the {place} was [made|repaired|painted|given away|found] by [a|an old|a young] {job} [many years ago|last {season}|one {weekday}|during a storm].",
    "{name} [remembers|likes to tell|often says|once wrote] that the {place} [used to be|was once|had always been] [quieter|larger|darker|more colourful|less crowded].",
    "On {weekday}s {people} [bring|sell|exchange|collect|repair] {trade} in the {place}.",
    "The walls are [built|made] of {material} and {material}, and the roof [keeps out the {weather}|was replaced after the {weather}|shines in the light of the {daytime}].",
    "{weekday} is a [quiet|busy|special|long] day: [nobody works after noon|the {place} stays closed|the {job} rings the bell|everyone helps in the {place}].",
    "{name} and {name} [share|look after|argue about|take turns with] the {adjective} {thing}, [which nobody else may touch|as they have done since they were young|though it hardly works].",
    "A {adjective} path leads from the {place} to the {place}, past {few} {trees}.",
    "[Sometimes|Now and then|From time to time|Once in a while] a {animal} [comes to|runs across|sleeps in|is seen near] the {place}, [to the joy of the {people}|and nobody minds|which always causes a little noise].",
    "The {food} [is served|is eaten|is prepared] with {food}, [and seconds are allowed|as the custom wants it|on {adjective} plates], and {people} sit together until [late|dark|the {daytime}].",
    "[It is said|People say|The old {people} say] that {weather} in {month} [means|brings|promises] {weather} in {month}.",
    "[Much|A great deal|Not everything|Little] has changed since then, but the {place} [still looks as it did|is kept with care|has a new floor of {material}].",
    "{few} {people} [met|gathered|waited|sat down] in the {place} and [talked about|planned|discussed|described] the {adjective} {thing}.",
    "The {thing} [is cleaned|is checked|is oiled|is carried outside] every {weekday}, [a duty that falls to the {job}|whatever the weather|usually before breakfast].",
    "[When|Whenever|As soon as] {weather} [comes|sets in], the {people} [close the windows|move to the {place}|light the lamps|bring in the {trade}].",
    "A {job} from [the next valley|far away|the coast|the mountains] [stayed|worked here|helped out] for {few} [weeks|months|years] and left behind a {color} {thing}.",
    "The {trees} by the {place} [were planted|are cut|turn {color}|lose their leaves] in {month}.",
    "{name} [keeps|writes|reads] a diary, and [most pages|some lines|a few entries] [speak of|are about|describe] the {weather} and the {place}.",
    "There is [no|little|always some] hurry here; [a letter may wait for {few} days|even the {thing} seems to move slowly|people finish one thing before they begin another].",
    "[The younger|The older|Some|Most] {people} prefer {food}, while the others would rather have {food}.",
    "The {daytime} begins with [a bell|a song|a cup of tea|a walk to the {place}], and ends with [a story|a game of cards|a look at the sky|{food}].",
    "[Repairs|Lessons|Meetings|Rehearsals] take place in the {place}, where a {adjective} {thing} of {material} stands [by the window|in the corner|next to the door].",
    "Among the {trade} there is a {color} {thing} that belonged to a {job}.",
    "[Visitors|Guests|Newcomers] are asked to [leave their shoes at the door|speak softly|bring their own {thing}|write their names in a book|feed the {animal}].",
    "The {place} floods [every few years|when the snow melts|after heavy rain], and then the {people} walk on planks of {material}.",
    "[Long ago|In earlier times|Before the road came], {trade} were [carried|sent|brought] here by [boat|cart|mule|train], which took {few} days.",
    "{name}, a {job}, [taught|showed] the {people} how to [mend|use|build|clean|draw] a {thing}.",
    "The light in the {daytime} makes the {material} look {color}, and [painters come to see it|nobody can say why|it lasts only {few} minutes].",
    "[Nobody knows|It is not known|Opinions differ on] why the {thing} is {color}, but [{name} has a theory|everyone likes it|it will stay that way].",
    "If the {thing} breaks, {name} is called, who [lives near the {place}|has the right tools|never charges anything|arrives within the hour].",
    "The cellar holds {few} barrels, a {thing}, and {trade} that [nobody has counted|wait to be sorted|were left by earlier {people}].",
    "A [narrow|steep|shady] stair leads to the {place}, from where [one sees the {trees}|the view is wide|the river looks like a ribbon].",
    "In {month} the {people} [hold a small market|clean the {place}|paint the {thing}|go on a short trip], and {name} [brings {food}|takes photographs|carries the {thing}].",
    "The {animal} and the {animal} in the {place} [get along well|avoid each other|belong to {name}].",
    "[Some years|Some winters] are hard: {weather} [comes early|stays long|blocks the road], and the {place} is [empty|cold|silent] for weeks.",
    "Every {thing} has its place, [says|writes|repeats] {name}, and every place has its {thing}.",
    "[Tickets|Seats|Keys|Maps] are [free|cheap|handed out at the gate|kept by the {job}], but one has to ask before {weekday}.",
    "The {job} and the {job} [have known each other since school|share a small room|take their lunch in the {place}].",
    "After the meal there is {food} with {food}, and [the talk turns to the {weather}|someone opens a window|{name} plays the piano].",
    "{few} [steps|rooms|windows|pages] further on, [one comes to|there is|a visitor sees] a {adjective} {place} with {trees}.",
    "A [storm|fire|flood] once damaged the {place}; the {people} rebuilt it with {material} within {few} months.",
    "The sound of the {thing} can be heard [across the {place}|as far as the {place}|on calm days], especially in {season}.",
    "[Letters|Postcards|Parcels] arrive on {weekday} and {weekday}, and {name} sorts them by [size|colour|date].",
    "The {place} was painted {color}, then {color}, and [in the end|finally|after a vote] {color} again.",
    "[Children|Students|Beginners] learn [to swim in the {place}|to count with the {trade}|the names of the {trees}|to bake {food}] before anything else.",
    "[A rule|An old rule|A custom] says that no {thing} may be moved [on {weekday}s|without two witnesses|after dark].",
    "The road was widened [some time ago|for the carts|by hand], so that {few} {people} can now walk side by side.",
    "[Without|But for] the help of the {people}, the {place} [would have been lost|could not be kept open|would look quite different].",
    "There are {few} {trees} behind the {place}, and under the largest one {name} [reads|sleeps|sells {food}|waits for the bus].",
    "A small exhibition shows {trade}, a {thing} of {material} and [a picture of a {animal}|a model of the {place}|drawings by {name}].",
]
INTRODUCTIONS = [
    "This report is about {subject}.", "{Subject} is the subject of these pages.", "The following pages describe {subject}.",
    "This is an account of {subject} and of life there.", "Whoever wants to understand the region should look at {subject}.",
]
CLOSINGS = [
    "So much for {subject}; the rest can be seen on a visit.", "With this the account ends.",
    "The author thanks the {people} for their help.", "More can be learned on the spot, best of all in {season}.", "", "",
]
HEADINGS = ["Introduction", "Daily life", "The surroundings", "People", "The seasons", "Work", "The buildings", "Memories",
            "Customs", "Small things", "A walk", "Food and guests", "From the diary", "What visitors say"]

DEFAULT_INSTRUCTION = "Summarize the following document."
INSTRUCTIONS = [
    "[Summarize|Summarise] [the following|this] [document|text|report|article|file][.|:|]",
    "[Please|Could you|Can you|Please could you] [summarize|summarise] [this|the following] [document|text|report|article|file][.|:|]",
    "[Give|Write] [me |][a|a short] summary of [the following|this] [document|text|report|article][.|:]",
    "[What is this [document|text|report] about?|What does this [document|text|report] say?|What are the main points of this text?|TL;DR|Sum this up.|Summary please|Briefly: what is in this document?]",
    "Summarize the [following|] [document|text] in a few sentences.", "[Summarize|Summarise|summarize|Summary|TLDR][:| this:]",
]
LIST_INSTRUCTIONS = [
    "List the key facts of [the following|this] [document|text|report].", "[Summarize|Summarise] [the following|this] [document|text|report] in bullet points.",
    "[What are the key facts in|Give me a list of the facts in|Extract the key facts from] [this|the following] [document|text|report]?",
]
END_INSTRUCTIONS = [
    "[Summarize|Summarise] the [document|text|report] above.", "[Please|Now please|Please now] [summarize|summarise] [this|the text above|the document].",
    "[Write|Give me] a [short |]summary[| of this| of the text above].", "What [is this text about|does the text say|are the main points]?",
    "Summarize this.",
]


@dataclass
class Report:
    text: str
    subject: str
    it: str
    facts: list  # (relation, value) in the order of RELATIONS

    def summary(self):
        sentences = [f"The document is about {self.subject}."]
        sentences += [relation.summary.replace("{value}", value) for relation, value in self.facts]
        if not self.facts:
            sentences.append("It describes daily life there and gives no key facts.")
        return " ".join(sentences)

    def fact_list(self):
        lines = [f"- Subject: {self.subject}"]
        lines += [f"- {relation.label}: {value}" for relation, value in self.facts]
        return "\n".join(lines)

    def values(self):
        return [value for _, value in self.facts]


def draw_subject(random):
    name, it = pick(random, SUBJECT_KINDS)
    stem = town(random) if name.endswith("of {stem}") or random.random() < 0.6 else surname(random)
    return name.replace("{stem}", stem), it


def draw_facts(random, count):
    chosen = sorted(random.sample(range(len(RELATIONS)), count))
    return [(RELATIONS[index], RELATIONS[index].value(random)) for index in chosen]


def statement(random, report_slots, relation, value):
    text = expand(random, pick(random, relation.statements), value=value, **report_slots)
    return capitalized(text)


def write_report(random, filler_sentences, fact_count):
    """A report of about 20 tokens for each filler sentence, its facts spread evenly at random."""
    subject, it = draw_subject(random)
    facts = draw_facts(random, fact_count)
    # Once named, the subject is often only 'the museum'; some facts keep the full name.
    full = {"subject": subject, "Subject": capitalized(subject)}
    short = {"subject": it, "Subject": capitalized(it)}
    sentences = [capitalized(expand(random, FILLER[int(random.random() * len(FILLER))])) for _ in range(filler_sentences)]
    order = facts[:]
    random.shuffle(order)
    # One fact falls into each equal part of the report, so facts occur at every depth.
    places = sorted((int((index + random.random()) * (filler_sentences + 1) / max(1, len(order))), index)
                    for index in range(len(order)))
    for place, index in reversed(places):
        relation, value = order[index]
        sentences.insert(place, statement(random, full if random.random() < 0.4 else short, relation, value))
    title = random.random() < 0.5
    if not title or random.random() < 0.5:
        sentences.insert(0, capitalized(expand(random, pick(random, INTRODUCTIONS), **full)))
    closing = expand(random, pick(random, CLOSINGS), **full)
    if closing:
        sentences.append(capitalized(closing))
    text = layout(random, sentences)
    if title:
        text = capitalized(subject) + pick(random, ["\n\n", "\n\n", ": a report\n\n", "\n"]) + text
    return Report(text, subject, it, facts)


def layout(random, sentences):
    """Paragraphs of a few sentences, sometimes with headings, sometimes with hard line breaks."""
    gap = pick(random, ["\n\n", "\n\n", "\n"])
    headings = random.random() < 0.2 and len(sentences) > 20
    paragraphs, start = [], 0
    longest = pick(random, [4, 6, 9, 14])
    while start < len(sentences):
        size = 2 + int(random.random() * longest)
        paragraph = " ".join(sentences[start:start + size])
        if headings and random.random() < 0.3:
            paragraph = pick(random, ["", "# ", "## "]) + pick(random, HEADINGS) + "\n" + paragraph
        paragraphs.append(paragraph)
        start += size
    text = gap.join(paragraphs)
    if random.random() < 0.07:
        text = "\n".join(_wrapped(line, 72) for line in text.split("\n"))
    return text


def _wrapped(line, width):
    lines, current = [], ""
    for word in line.split(" "):
        if current and len(current) + len(word) + 1 > width:
            lines.append(current)
            current = word
        else:
            current = f"{current} {word}" if current else word
    return "\n".join(lines + [current])


def summary_request(random, report):
    """(user message, answer) with the instruction before or after the report."""
    draw = random.random()
    if draw < 0.45:
        return f"{DEFAULT_INSTRUCTION}\n\n{report.text}", report.summary()
    if draw < 0.70:
        gap = pick(random, ["\n\n", "\n\n", "\n"])
        return expand(random, pick(random, INSTRUCTIONS)) + gap + report.text, report.summary()
    if draw < 0.85:
        return report.text + "\n\n" + expand(random, pick(random, END_INSTRUCTIONS)), report.summary()
    instruction = expand(random, pick(random, LIST_INSTRUCTIONS))
    if random.random() < 0.7:
        return f"{instruction}\n\n{report.text}", report.fact_list()
    return f"{report.text}\n\n{instruction}", report.fact_list()


def question_about(random, report, allow_missing=True):
    """(question, answer, expected) about one fact, or about a fact that the report does not give."""
    if not report.facts or (allow_missing and random.random() < 0.12):
        given = {relation.label for relation, _ in report.facts}
        relation = pick(random, [r for r in RELATIONS if r.label not in given])
        answer, expected = "The text does not say.", "does not say"
    else:
        relation, value = pick(random, report.facts)
        answer, expected = relation.answer.replace("{value}", value), value
    question = expand(random, pick(random, relation.questions), subject=report.subject, it=report.it)
    return question, answer, expected
