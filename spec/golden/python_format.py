"""python_format.py: what Python's repr and str.format give, for spec/golden/python_format_spec.lua.

    python spec/golden/python_format.py >spec/golden/python_format.lua
"""
FLOATS = [0.0, 1.0, -1.0, 0.1, 0.5, 1 / 3, 2 / 3, 0.45678, 1e-5, 1.5e-5, 0.0001, 123456.789, 1e15, 1e16, 1.2345e17, 5e-324,
          1.7976931348623157e308, 0.1 + 0.2, 100.0, 12.5, -0.00012345, 0.9999, float("inf"), float("-inf"), float("nan"),
          0.42500001192092896]
FLOAT_SPECS = ["", ".2f", ".4f", "f", ".3e", "E", ".3g", "g", "G", ".0f", "#.0f", "%", ".1%", "08.3f", "+.2f", " .2f", ">10.2f", "<10.2f",
               "^11.2f", "*^11.2f", ".2", ".1", ".3", "10", "010", ",.2f", "_.1f", "015,.2f", "=+9.1f", "n",
               "#", "#.1", "#.3", "#.10", "#012_.10"]
INTEGERS = [0, 1, 7, 42, -5, 123, 1234567]
INTEGER_SPECS = ["", "d", "02d", "2d", "03d", "+d", " d", "<4d", "^5d", ">6", "x", "#x", "X", "#b", "o", ",", "_d", "06,d", "08,", ".2f",
                 "e", "5%", "_x", "0>4", "=5d", "+#x", " #b", "=+#9o"]
TEXTS = ["", "a", "abc", "Löwenzahn"]
TEXT_SPECS = ["", "s", "5", ">6s", "^7s", ".2s", "*<5.1", "05"]


def lua(value):
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "0/0"
    if value in (float("inf"), float("-inf")):
        return "1/0" if value > 0 else "-1/0"
    return value.hex()


print("-- python_format.lua: made by python_format.py: kind, value, then pairs of a format and what Python makes of it.")
print("return {")
for kind, values, specs in (("float", FLOATS, FLOAT_SPECS), ("integer", INTEGERS, INTEGER_SPECS), ("text", TEXTS, TEXT_SPECS)):
    for value in values:
        line = "  { %s, %s" % (lua(kind), lua(value))
        for spec in specs:
            pair = ", %s, %s" % (lua(spec), lua(format(value, spec)))
            if len(line) + len(pair) > 135 and len(line) > 10:
                print(line + ",")
                line, pair = "    ", pair[2:]
            while len(line) + len(pair) > 135:      # one long text
                print(line + pair[:130 - len(line)] + '" ..')
                line, pair = '      "', pair[130 - len(line):]
            line += pair
        print(line + " },")
print("}")
