"""Sums to two digits: plain, in words and as word problems. Number pairs are reserved by value."""

from .language import FIRST_NAMES, Exchange, as_typed, expand, number_in_words, pick

QUESTIONS = [
    "[What is|What's|How much is|Calculate|Compute|What does|Work out|Solve|Can you calculate|"
    "Could you tell me what|Tell me|Do you know what] {sum}?",
    "{sum}", "{sum} = ?", "{sum}=", "{sum}?", "[What's|What is] the [result|answer|value] of {sum}?",
    "[I need to know|Please calculate|Please compute|Help me with] {sum}.",
]
WORDS = {"+": ["plus", "and"], "-": ["minus", "less"], "×": ["times", "multiplied by"],
         "÷": ["divided by", "over"]}
SIGNS = {"+": ["+"], "-": ["-", "-", "−"], "×": ["*", "x", "×", "*"], "÷": ["/", "÷", ":", "/"]}

ADDITION_PROBLEMS = [
    "{name} has {a} {items} and [buys|finds|gets] {b} more. How many {items} does {name} have [now|in total|altogether]?",
    "There are {a} {items} in [one|a] basket and {b} in [another|the other]. How many {items} are there [in total|altogether]?",
    "I have {a} {items}. [My friend|{other}] gives me {b} more. How many {items} do I have now?",
    "{name} has {a} {items}. {other} has {b} {items}. How many do they have together?",
]
SUBTRACTION_PROBLEMS = [
    "{name} has {a} {items} and [loses|eats|sells|gives away] {b}. How many {items} [are left|does {name} have left]?",
    "There are {a} {items} on the table. {name} takes {b} [away|of them]. How many {items} are left?",
    "I had {a} {items} and gave {b} to {name}. How many {items} do I have [left|now]?",
]
MULTIPLICATION_PROBLEMS = [
    "There are {a} boxes with {b} {items} each. How many {items} are there [in total|altogether]?",
    "{name} buys {a} bags of {b} {items}. How many {items} is that?",
]
ITEMS = """apples pears books coins stamps marbles eggs pencils cookies shells flowers cards plums
buttons stickers balloons nuts cherries""".split()


def steps_of_product(a, b):
    """The written method for two factors: partial products, then a running sum."""
    parts_a = [p for p in (a // 10 * 10, a % 10) if p]
    parts_b = [p for p in (b // 10 * 10, b % 10) if p]
    if len(parts_a) == 1 and len(parts_b) == 1 or max(a, b) <= 12 or 0 in (a, b):
        return ""
    products = [(p, q, p * q) for p in parts_a for q in parts_b]
    lines = ", ".join(f"{p} × {q} = {r}" for p, q, r in products)
    total, sums = products[0][2], []
    for _, _, product in products[1:]:
        sums.append(f"{total} + {product} = {total + product}")
        total += product
    return lines + ". " + ", ".join(sums) + ". "


def draw(random):
    """Draws (a, operator, b, result, key)."""
    operator = pick(random, "+++---××÷")
    if operator in "+-":
        top = pick(random, [10, 20, 100, 100, 100, 100, 100, 1000])
        a, b = int(random.random() * top), int(random.random() * top)
        if operator == "-" and b > a and random.random() < 0.8:
            a, b = b, a
        return a, operator, b, a + b if operator == "+" else a - b, \
            f"{min(a, b)}+{max(a, b)}" if operator == "+" else f"{a}-{b}"
    if operator == "×":
        shape = random.random()
        if shape < 0.35:
            a, b = int(random.random() * 13), int(random.random() * 13)
        elif shape < 0.7:
            a, b = int(random.random() * 100), int(random.random() * 10)
        else:
            a, b = 10 + int(random.random() * 90), 10 + int(random.random() * 90)
        if random.random() < 0.5:
            a, b = b, a
        # The multiplication table is a set of facts to be known, so none of it is reserved by value.
        return a, operator, b, a * b, "" if max(a, b) <= 12 else f"{min(a, b)}*{max(a, b)}"
    b, result = 1 + int(random.random() * 12), int(random.random() * 13)
    return b * result, operator, b, result, ""


def answer_text(random, a, operator, b, result):
    steps = steps_of_product(a, b) if operator == "×" else ""
    return f"{steps}{a} {operator} {b} = {result}."


def chain(random):
    """Three numbers, one step after the other; a product is worked out before a sum."""
    a, b, c = (1 + int(random.random() * pick(random, [10, 30])) for _ in range(3))
    first, second = pick(random, ["++", "++", "+-", "-+", "+×", "-×", "×+", "×-"])
    if "×" in (first, second):
        b, c = 1 + b % 10, 1 + c % 10
    if first == "×":
        a = 1 + a % 10
    steps, total = [], 0

    def work_out(x, operator, y):
        result = {"+": x + y, "-": x - y, "×": x * y}[operator]
        steps.append(f"{x} {operator} {y} = {result}")
        return result

    if second == "×":
        total = work_out(a, first, work_out(b, second, c))
    else:
        total = work_out(work_out(a, first, b), second, c)
    signs = {operator: pick(random, SIGNS[operator]) for operator in "+-×"}
    gap = pick(random, [" ", " ", ""])
    text = gap.join([str(a), signs[first], str(b), signs[second], str(c)])
    user = as_typed(random, expand(random, pick(random, QUESTIONS), sum=text))
    return Exchange(user, ", ".join(steps) + ".", [str(total)], f"{a}{first}{b}{second}{c}", "chain")


def arithmetic(random):
    if random.random() < 0.08:
        return chain(random)
    a, operator, b, result, key = draw(random)
    if random.random() < 0.25 and operator != "÷" and max(a, b) < 100 and result >= 0:
        return word_problem(random, a, operator, b, result, key)
    style = random.random()
    if style < 0.15 and max(a, b) < 100:
        text = f"{number_in_words(a)} {pick(random, WORDS[operator])} {number_in_words(b)}"
    elif style < 0.35:
        text = f"{a} {pick(random, WORDS[operator])} {b}"
    else:
        sign = pick(random, SIGNS[operator])
        text = f"{a}{sign}{b}" if random.random() < 0.3 else f"{a} {sign} {b}"
    user = as_typed(random, expand(random, pick(random, QUESTIONS), sum=text))
    return Exchange(user, answer_text(random, a, operator, b, result), [str(result)], key, "arithmetic")


def word_problem(random, a, operator, b, result, key):
    problems = {"+": ADDITION_PROBLEMS, "-": SUBTRACTION_PROBLEMS, "×": MULTIPLICATION_PROBLEMS}[operator]
    items = pick(random, ITEMS)
    slots = {"a": str(a), "b": str(b), "items": items}
    slots["name"], slots["other"] = random.sample(FIRST_NAMES, 2)
    user = as_typed(random, expand(random, pick(random, problems), **slots))
    steps = answer_text(random, a, operator, b, result)
    ending = f"{result} {items}" if result != 1 else f"1 of the {items}"
    return Exchange(user, f"{steps} So the answer is {ending}.", [str(result)], key, "word problem")
