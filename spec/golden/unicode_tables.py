"""Writes lua/flow/text/unicode_tables.lua and normal_form_tables.lua: what tokenizers need to know of Unicode's characters.

pip install unicodedata2==16.0.0 regex; python spec/golden/unicode_tables.py lua/flow/text
"""

import os
import sys
import textwrap

import regex
import unicodedata2 as ucd

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
CATEGORIES = ("Cn Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Cs Co").split()
ALL = range(0x110000)


def runs(values):
    """Equal values in a row as a letter and their number, which is left out where it is 1."""
    text, previous, count = "", None, 0
    for value in list(values) + [None]:
        if value != previous and previous is not None:
            text += LETTERS[previous] + (str(count) if count > 1 else "")
            count = 0
        previous, count = value, count + 1
    return text


def lines(text, separator=""):
    """A long text as lines of a Lua string."""
    if separator:
        return "\n".join(textwrap.wrap(text, 138))
    return "\n".join(text[i : i + 138] for i in range(0, len(text), 138))


def lower():
    """Ranges "first count step difference" of characters and what is added for lower case; one, U+0130, becomes two: it is not here."""
    pairs = [
        (c, ord(chr(c).lower()) - c) for c in ALL if not 0xD800 <= c < 0xE000 and chr(c).lower() != chr(c) and len(chr(c).lower()) == 1
    ]
    made, at = [], 0
    while at < len(pairs):
        first, difference = pairs[at]
        best = 1
        step = 1
        for width in (1, 2):
            count = 1
            while at + count < len(pairs) and pairs[at + count] == (first + width * count, difference):
                count += 1
            if count > best:
                best, step = count, width
        made.append(f"{first} {best} {step} {difference}")
        at += best
    return ";".join(made)


def decompositions():
    """ "character:parts" in hexadecimal, with < where it is a compatible one; *n: so have the next n - 1, of one part that follows."""
    listed = []
    for c in ALL:
        parts = ucd.decomposition(chr(c)) if not 0xD800 <= c < 0xE000 and not 0xAC00 <= c < 0xD7A4 else ""
        if parts:
            listed.append((c, "<" if parts.startswith("<") else "", [int(p, 16) for p in parts.split() if not p.startswith("<")]))
    made, at = [], 0
    while at < len(listed):
        c, mark, parts = listed[at]
        count = 1
        while len(parts) == 1 and at + count < len(listed) and listed[at + count] == (c + count, mark, [parts[0] + count]):
            count += 1
        made.append(f"{c:x}:{mark}" + ",".join(f"{p:x}" for p in parts) + (f"*{count}" if count > 1 else ""))
        at += count
    return " ".join(made)


def classes():
    """ "first count class" of the characters that are put in order after a base."""
    made, at = [], 0
    listed = [(c, ucd.combining(chr(c))) for c in ALL if not 0xD800 <= c < 0xE000 and ucd.combining(chr(c))]
    while at < len(listed):
        count = 1
        while at + count < len(listed) and listed[at + count] == (listed[at][0] + count, listed[at][1]):
            count += 1
        made.append(f"{listed[at][0]:x},{count},{listed[at][1]}")
        at += count
    return " ".join(made)


def excluded():
    """Characters with a decomposition of two that are not composed again."""
    made = []
    for c in ALL:
        parts = ucd.decomposition(chr(c)) if not 0xD800 <= c < 0xE000 else ""
        if parts and not parts.startswith("<") and " " in parts and ucd.normalize("NFC", chr(c)) != chr(c):
            made.append(f"{c:x}")
    return " ".join(made)


def alphabetic():
    """Alphabetic characters that are neither letters nor marks nor numbers of letters, as "first,count"."""
    found = regex.compile(r"\p{Alphabetic}")
    listed = [
        c
        for c in ALL
        if not 0xD800 <= c < 0xE000
        and ucd.category(chr(c))[0] not in "LM"
        and ucd.category(chr(c)) not in ("Nl", "Cn")
        and found.match(chr(c))
    ]
    made, at = [], 0
    while at < len(listed):
        count = 1
        while at + count < len(listed) and listed[at + count] == listed[at] + count:
            count += 1
        made.append(f"{listed[at]:x},{count}")
        at += count
    return " ".join(made)


def write(name, text):
    with open(os.path.join(sys.argv[1], name), "w", encoding="ascii") as file:
        file.write(text)


write(
    "unicode_tables.lua",
    f"""-- unicode_tables.lua: categories and lower case of the characters of Unicode {ucd.unidata_version}; unicode.lua reads it.
-- Written by spec/golden/unicode_tables.py.
local tables = {{}}

-- By code point: a letter for the category, in the order of `names`, and for how many characters.
tables.names = "{' '.join(CATEGORIES)}"
tables.categories = [[
{lines(runs(CATEGORIES.index(ucd.category(chr(c))) for c in ALL))}]]

-- Alphabetic characters of other categories than letters, marks and Nl: "first,count", the first in hexadecimal.
tables.alphabetic = [[
{lines(alphabetic(), " ")}]]

-- Lower case: "first,count,step,difference".
tables.lower = [[
{lines(lower().replace(" ", ",").replace(";", " "), " ")}]]

return tables
""",
)
write(
    "normal_form_tables.lua",
    f"""-- normal_form_tables.lua: how characters of Unicode {ucd.unidata_version} are taken apart and joined; normal_forms.lua reads it.
-- Written by spec/golden/unicode_tables.py.
local tables = {{}}

-- Decompositions "character:parts" in hexadecimal, with < those of compatibility; *n: those of n characters, in steps of 1.
tables.decompositions = [[
{lines(decompositions(), " ")}]]

-- Combining classes: "first,count,class", the first in hexadecimal.
tables.classes = [[
{lines(classes(), " ")}]]

-- Characters with two parts that no composition gives.
tables.excluded = [[
{lines(excluded(), " ")}]]

return tables
""",
)
