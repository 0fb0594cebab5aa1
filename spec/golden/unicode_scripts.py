# unicode_scripts.py: writes lua/flow/text/scripts.lua, the ranges of the scripts of Unicode, and unicode_scripts.json, which characters of
# a text the library tokenizers finds by \p{SCRIPT}. Run: pip install regex tokenizers; python spec/golden/unicode_scripts.py
import json
import os
import textwrap

import regex
from tokenizers import Regex, pre_tokenizers

NAMES = """Arabic Armenian Bengali Bopomofo Braille Canadian_Aboriginal Cherokee Common Coptic Cyrillic Devanagari Ethiopic Georgian Gothic
Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Ogham Oriya Runic
Sinhala Syriac Tamil Telugu Thaana Thai Tibetan Tifinagh Yi""".split()

HEADER = r'''
-- scripts.lua: the characters of scripts, for \p{Han} in patterns. Each range, in hexadecimal digits: how many code points lie between
-- it and the one before, and how many follow its first. Written by spec/golden/unicode_scripts.py.
return {
'''
here = os.path.dirname(os.path.abspath(__file__))


def ranges(name):
    is_in, found, first = regex.compile(r"\p{Script=%s}" % name), [], None
    for code in range(0x110000):
        inside = not 0xD800 <= code <= 0xDFFF and is_in.match(chr(code)) is not None
        if inside and first is None:
            first = code
        elif not inside and first is not None:
            found.append((first, code - 1))
            first = None
    return found


def packed(found):      # what is left out before each range, and how many follow its first, in base 16
    at, parts = 0, []
    for first, last in found:
        parts.append(f"{first - at:x}" + (f"-{last - first:x}" if last > first else ""))
        at = last + 1
    return " ".join(parts)


tables = {name: ranges(name) for name in NAMES}
with open(os.path.join(here, "../../lua/flow/text/scripts.lua"), "w") as file:
    file.write(HEADER[1:])
    for name in NAMES:
        lines = textwrap.wrap(packed(tables[name]), 132)
        file.write(f"  {name} = [[\n" + "".join(f"    {line}\n" for line in lines) + "  ]],\n")
    file.write("}\n")

text = "".join(chr(first) for name in NAMES for first, _ in tables[name][:6] if first < 0x10000 and first > 32)
found = {}
for name in NAMES:
    split = pre_tokenizers.Split(Regex(r"\p{%s}+" % name), "removed")
    found[name] = "|".join(piece for piece, _ in split.pre_tokenize_str(text))
with open(os.path.join(here, "unicode_scripts.json"), "w") as file:
    json.dump({"text": text, "left": found}, file, ensure_ascii=True)
    file.write("\n")
