"""strings.py: what TensorFlow's tf.strings gives, with which spec/golden/strings_spec.lua compares flow.strings.

    python spec/golden/strings.py         writes spec/golden/strings.lua
    python spec/golden/strings.py 5000    the same with as many random regular expressions
"""
import os
import random
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

HERE = os.path.dirname(os.path.abspath(__file__))
ATOMS = ["a", "b", "c", "1", " ", r"\.", r"\d", r"\w", r"\s", ".", "[ab]", "[^a]", "[a-c1]", "[[:punct:]]", "[[:alpha:]]", "é", r"\b",
         "(a|b)", "(ab)", "(?:bc|1)", "(a)(b)", "^", "$", r"\W", r"[\]x-]", "(?P<n>a+)", r"\x41"]
REPEATS = ["", "", "", "", "*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "+?", "??"]
LETTERS = ["a", "b", "c", "A", "B", "1", "2", " ", ".", "!", "é", "x", "]", "-", "\n"]
DAMAGED = [b"\xff\xfe", b"a\xc3", b"\xe2\x82x", b"\xed\xa0\x80", b"\xc0\x80", b"\xf0\x9f\x98\x80", b"\xf5\x80\x80", b"\xf0\x80", b"\xe2"]
TEXTS = ["Hi, W!", "  two\t", "", "Ä g,,c"]


def pattern():
    parts = []
    for _ in range(random.randint(1, 4)):
        atom = random.choice(ATOMS)
        parts.append(atom + ("" if atom in ("^", "$", r"\b") else random.choice(REPEATS)))
    found = "".join(parts)
    if random.random() < 0.25:
        found += "|" + random.choice(ATOMS)
    return "(?i)" + found if random.random() < 0.1 else found


def nested(depth):
    """A pattern of groups in groups, of which many match nothing."""
    ways = []
    for _ in range(random.choice([1, 1, 2, 3])):
        way = ""
        for _ in range(random.choice([0, 1, 1, 2])):
            inner = nested(depth - 1) if depth and random.random() < 0.6 else None
            atom = random.choice(["a", "b", "c", "[ab]", "."]) if inner is None else random.choice(["(%s)", "(?:%s)"]) % inner
            way += atom + random.choice(["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,3}?", "{2,}"])
        ways.append(way)
    return "|".join(ways)


def text():
    return "".join(random.choice(LETTERS) for _ in range(random.randint(0, 14)))


def lua(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(map(lua, value)) + " }"
    data = value if isinstance(value, bytes) else value.encode()
    return '"' + "".join(chr(b) if 32 <= b < 127 and b not in (34, 92) else "\\%03d" % b for b in data) + '"'


def regular_expressions(count):
    while count:
        found, given, rewrite, everywhere = pattern(), text(), random.choice(["", "_", r"<\0>"]), random.random() < 0.7
        try:
            replaced = tf.strings.regex_replace(given, found, rewrite, replace_global=everywhere).numpy()
        except tf.errors.InvalidArgumentError:      # **, say
            continue
        matches = bool(tf.strings.regex_full_match(given, found).numpy())
        if len(lua([found, given, replaced])) > 110:
            continue
        yield [found, given, rewrite, everywhere, replaced, matches]
        count -= 1


def groups(count):
    while count:
        found, given = nested(2), "".join(random.choice("aaabbbcc\n") for _ in range(random.randint(1, 12)))
        number = len(re.findall(r"\((?!\?)", found))
        rewrite = "<" + "|".join("\\%d" % i for i in range(1, min(number, 9) + 1)) + ">"
        replaced = tf.strings.regex_replace(given, found, rewrite).numpy()
        if number == 0 or len(lua([found, given, rewrite, replaced])) > 120:
            continue
        yield [found, given, rewrite, True, replaced, bool(tf.strings.regex_full_match(given, found).numpy())]
        count -= 1


def dense(value):
    value = value.to_tensor() if isinstance(value, tf.RaggedTensor) else value
    found = value.numpy()
    return found if isinstance(found, bytes) else found.tolist()


def calls():
    """Name, arguments, result: positions count from 1 in Lua."""
    s = tf.strings
    for name in ("lower", "upper", "strip", "length", "bytes_split", "split"):
        yield name, [TEXTS], dense(getattr(s, name)(TEXTS))
    yield "length", [TEXTS, "UTF8_CHAR"], dense(s.length(TEXTS, "UTF8_CHAR"))
    yield "unicode_split", [TEXTS], dense(s.unicode_split(TEXTS, "UTF-8"))
    yield "unicode_split", [DAMAGED], dense(s.unicode_split(DAMAGED, "UTF-8"))
    yield "length", [DAMAGED, "UTF8_CHAR"], dense(s.length(DAMAGED, "UTF8_CHAR"))
    yield "substr", [DAMAGED, 1, 1, "UTF8_CHAR"], dense(s.substr(DAMAGED, 0, 1, unit="UTF8_CHAR"))
    yield "split", [TEXTS, ","], dense(s.split(TEXTS, ","))
    yield "split", [TEXTS, ",", 1], dense(s.split(TEXTS, ",", maxsplit=1))
    yield "split", [TEXTS, "", 1], dense(s.split(TEXTS, maxsplit=1))
    yield "split", ["a b  c"], dense(s.split("a b  c"))
    yield "split", ["a--b", "--"], dense(s.split("a--b", "--"))
    for position, size in ((0, 3), (2, 2), (-2, 1), (-3, 9)):
        yield "substr", [["hello", "wörld"], position + 1 if position >= 0 else position, size], dense(
            s.substr(["hello", "wörld"], position, size))
        yield "substr", [["hello", "wörld"], position + 1 if position >= 0 else position, size, "UTF8_CHAR"], dense(
            s.substr(["hello", "wörld"], position, size, unit="UTF8_CHAR"))
    yield "join", [[["a", "b"], ["c", "d"]], "-"], dense(s.join([["a", "b"], ["c", "d"]], "-"))
    yield "join", [["x", ["c", "d"]]], dense(s.join(["x", ["c", "d"]]))
    table = [["a", "b", "c"], ["d", "e", "f"]]
    yield "reduce_join", [table], dense(s.reduce_join(table))
    yield "reduce_join", [table, 1], dense(s.reduce_join(table, axis=0))
    yield "reduce_join", [table, -1, True, "+"], dense(s.reduce_join(table, axis=-1, keepdims=True, separator="+"))
    yield "to_number", [["3.5", "-2", "1e3"]], dense(s.to_number(["3.5", "-2", "1e3"]))
    yield "to_number", [["7", "-12"], "int32"], dense(s.to_number(["7", "-12"], tf.int32))
    yield "as_string", [[1.5, -2.25]], dense(s.as_string(tf.constant([1.5, -2.25])))
    yield "as_string", [[1.5, -2.26], 1], dense(s.as_string(tf.constant([1.5, -2.26]), precision=1))


def wrapped(line):
    """The line in lines of at most 140 characters, cut after commas outside of texts."""
    indent, lines, quoted, cut = " " * (len(line) - len(line.lstrip()) + 2), [], False, 0
    at = 0
    while len(line) > 140 and at < len(line):
        quoted ^= line[at] == '"' and line[at - 1] != "\\"
        if line[at] == "," and not quoted and at < 139:
            cut = at + 1
        if at == 139 and cut:
            lines.append(line[:cut])
            line, at, quoted, cut = indent + line[cut:].lstrip(), -1, False, 0
        at += 1
    return "\n".join(lines + [line])


def main(count):
    random.seed(5)
    lines = ["-- strings.lua: what TensorFlow %s's tf.strings gives. Made by strings.py." % tf.__version__, "return {", "  calls = {"]
    for name, arguments, result in calls():
        lines += [wrapped("    { %s, %s," % (lua(name), lua(arguments))), "      %s }," % lua(result).replace("}, {", "},\n        {")]
    lines += ["  },", "  regular_expressions = {"]
    lines += ["    %s," % lua(case) for case in regular_expressions(count)]
    lines += ["    %s," % lua(case) for case in groups(count // 4)]
    lines += ["  },", "}"]
    with open(os.path.join(HERE, "strings.lua"), "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
