-- pattern.lua: the regular expressions of tokenizer files, in the syntax of Oniguruma, which Hugging Face's library uses, as far as such
-- files use it. They are not those of flow.strings: \s, \d and \w are Unicode's, and there are categories and looks ahead:
--
--   literals, . [a-z] [^a-z], \p{L} \P{Lu} \p{^N} \p{Han}, \d \D \w \W \s \S \h \H
--   \n \t \r \f \v \a \e \0 \xHH \x{HHHH} \uHHHH, \ before punctuation
--   x* x+ x? x{n} x{n,} x{n,m}, lazy (x*?) and possessive (x*+), x|y, (x), (?:x), (?>x), (?i:x), (?i)
--   (?=x) (?!x), (?<=x) (?<!x) of one character, ^ $ \A \z \Z \b \B
--
-- A pattern is parsed to a tree here and becomes a function of Lua in pattern_code.lua.

local errors = require "flow.errors"
local unicode = require "flow.text.unicode"

local raise = errors.raise
local pattern = {}

local MOST_REPEATS = 1000      -- of a counted repeat

local CONTROL = { n = 10, t = 9, r = 13, f = 12, v = 11, a = 7, e = 27 }
-- Oniguruma counts some digits above a line and fractions, too.
local WORD = unicode.set { sets = { unicode.word }, ranges = { 0xb2, 0xb3, 0xb9, 0xb9, 0xbc, 0xbe } }
local NAMED = { Space = unicode.white_space, White_Space = unicode.white_space, Digit = unicode.digits, Word = WORD, Punct = "P",
  Letter = "L", Uppercase_Letter = "Lu", Lowercase_Letter = "Ll", Number = "N", Mark = "M",
  Punctuation = "P", Symbol = "S", Separator = "Z", Other = "C", Decimal_Number = "Nd" }

local function complement(set) return unicode.set { sets = { set }, negated = true } end

local PUNCTUATION = unicode.set { sets = {
  unicode.set { categories = unicode.category "P" }, unicode.set { categories = unicode.category "S" } } }
local HEX = unicode.set { ranges = { 48, 57, 65, 70, 97, 102 } }
local CLASSES = { d = unicode.digits, w = WORD, s = unicode.white_space, h = HEX }
for letter, set in pairs { D = unicode.digits, W = WORD, S = unicode.white_space, H = HEX } do CLASSES[letter] = complement(set) end

local Parser = {}
Parser.__index = Parser

function Parser:fail(what) raise("the regular expression %q: %s, at character %d", self.text, what, self.at) end

-- The next character, which stays, or nil.
function Parser:peek() return self.points[self.at] end

-- The next character, which stays, if it is one of ASCII.
function Parser:ascii() return self:peek() and self:peek() < 128 and string.char(self:peek()) or "" end

-- Takes ASCII text if it comes next.
function Parser:take(text)
  for i = 1, #text do
    if self.points[self.at + i - 1] ~= text:byte(i) then return false end
  end
  self.at = self.at + #text
  return true
end

-- Takes a run of characters of ASCII that match a class of Lua's patterns.
function Parser:run(class)
  local list = {}
  while self:ascii():find(class) do
    list[#list + 1] = self:ascii()
    self.at = self.at + 1
  end
  return table.concat(list)
end

function Parser:hexadecimal(digits)
  local text = self:run "%x"
  if #text > digits then
    self.at, text = self.at - (#text - digits), text:sub(1, digits)
  end
  local value = tonumber(text, 16)
  if not value or value > unicode.LAST then self:fail "a code point in hexadecimal digits is expected" end
  return value
end

-- \p{...}, after the p.
function Parser:property(negated)
  local name
  if self:take "{" then
    if self:take "^" then negated = not negated end
    name = self:run "[%w_]"
    if not self:take "}" then self:fail "\\p{ is not closed" end
  else
    name = self:run "%u"
    if #name ~= 1 then self:fail "\\p is followed by a category in braces" end
  end
  local known = NAMED[name]
  local categories = unicode.category(type(known) == "string" and known or name)
  if not known and not categories then known = unicode.script(name) end
  if type(known) ~= "table" and not categories then
    self:fail(("\\p{%s} is not supported: categories of Unicode, such as \\p{Lu}, and scripts, such as \\p{Han}, are"):format(name))
  end
  local set = type(known) == "table" and known or unicode.set { categories = categories }
  return negated and complement(set) or set
end

-- What follows a backslash: a code point, or nil and a set.
function Parser:escape()
  local value = self:peek()
  if not value then self:fail "a backslash ends it" end
  self.at = self.at + 1
  if value >= 128 then return value end
  local letter = string.char(value)
  if CLASSES[letter] then return nil, CLASSES[letter] end
  if letter == "p" or letter == "P" then return nil, self:property(letter == "P") end
  if CONTROL[letter] then return CONTROL[letter] end
  if letter == "x" then
    if not self:take "{" then return self:hexadecimal(2) end
    local found = self:hexadecimal(8)
    if not self:take "}" then self:fail "\\x{ is not closed" end
    return found
  elseif letter == "u" then return self:hexadecimal(4)
  elseif letter == "0" and not self:ascii():find "%d" then return 0 end
  if letter:find "%w" then self:fail(("\\%s is not supported"):format(letter)) end
  return value
end

-- Adds the other case of the letters of ASCII in ranges, and the two characters beyond it that fold to such letters.
local function without_case(ranges)
  local made = { unpack(ranges) }
  local function add(first, last)
    made[#made + 1] = first
    made[#made + 1] = last
  end
  for i = 1, #ranges, 2 do
    for _, start in ipairs { 65, 97 } do
      local low, high = math.max(ranges[i], start), math.min(ranges[i + 1], start + 25)
      local other = start == 65 and 32 or -32
      if low <= high then
        add(low + other, high + other)
        if low <= start + 18 and high >= start + 18 then add(0x17f, 0x17f) end      -- long s
        if low <= start + 10 and high >= start + 10 then add(0x212a, 0x212a) end      -- the sign of Kelvin
      end
    end
    if ranges[i] > 127 and ranges[i] == ranges[i + 1] then
      local lower = unicode.lower(ranges[i])
      add(lower, lower)
    end
  end
  return made
end

local function set_node(ranges, sets, negated, parser)
  return { kind = "set", set = unicode.set { ranges = parser.flags.i and without_case(ranges) or ranges, sets = sets, negated = negated } }
end

-- [...], after the bracket.
function Parser:brackets()
  local negated, ranges, sets, first = self:take "^", {}, {}, true
  while first or self:peek() ~= 93 do
    local value, set = self:peek(), nil
    if not value then self:fail "a bracket is not closed" end
    if self:take "[:" then
      local inverse, name = self:take "^", self:run "%a"
      local known = ({ digit = unicode.digits, space = unicode.white_space, punct = PUNCTUATION, word = WORD, xdigit = HEX })[name]
      if not known or not self:take ":]" then self:fail(("the class [:%s:] is not supported"):format(name)) end
      set = inverse and complement(known) or known
    elseif self:take "[" then set = self:brackets().set
    elseif self:take "&&" then self:fail "&& in brackets is not supported"
    else
      self.at = self.at + 1
      if value == 92 then value, set = self:escape() end
    end
    first = false
    if set then sets[#sets + 1] = set
    else
      local last = value
      if self:peek() == 45 and self.points[self.at + 1] and self.points[self.at + 1] ~= 93 then
        self.at = self.at + 2
        last = self.points[self.at - 1]
        if last == 92 then last = self:escape() or self:fail "a range ends in a character" end
        if last < value then self:fail "a range has its ends in the wrong order" end
      end
      ranges[#ranges + 1] = value
      ranges[#ranges + 1] = last
    end
  end
  self.at = self.at + 1
  return set_node(ranges, sets, negated, self)
end

-- What is between parentheses, after the first one, with the last one.
function Parser:group()
  local node, before = nil, self.flags
  local function inside()
    local tree = self:alternatives()
    if not self:take ")" then self:fail "a parenthesis is not closed" end
    return tree
  end
  if not self:take "?" then return inside() end
  if self:take ":" then node = inside()
  elseif self:take ">" then node = { kind = "atomic", inside() }
  elseif self:take "=" then node = { kind = "ahead", inside() }
  elseif self:take "!" then node = { kind = "ahead", negated = true, inside() }
  elseif self:take "<=" or self:take "<!" then
    local negated = self.points[self.at - 1] == 33
    local tree = inside()
    if tree.kind ~= "set" then self:fail "a look behind is supported for one character" end
    node = { kind = "behind", negated = negated, set = tree.set }
  elseif self:take "i:" then
    self.flags = { i = true }
    node = inside()
  elseif self:take "-i:" then
    self.flags = {}
    node = inside()
  elseif self:take "i)" then      -- for the rest of the group around it
    self.flags = { i = true }
    return self:alternatives()
  elseif self:take "<" and self:run "[%w_]" ~= "" and self:take ">" then node = inside()
  else self:fail "this kind of group is not supported" end
  self.flags = before
  return node
end

local PLACES = { A = "first", z = "last", Z = "last_line", b = "edge", B = "inside" }

-- A character, a set, a group or a place.
function Parser:atom()
  if self:take "(" then return self:group() end
  if self:take "[" then return self:brackets() end
  if self:take "." then return set_node({ 10, 10 }, {}, true, { flags = {} }) end
  if self:take "^" then return { kind = "place", place = "line_start" } end
  if self:take "$" then return { kind = "place", place = "line_end" } end
  local value, set = self:peek(), nil
  self.at = self.at + 1
  if value == 92 then
    local place = PLACES[self:ascii()]
    if place then
      self.at = self.at + 1
      return { kind = "place", place = place }
    end
    value, set = self:escape()
  elseif value == 42 or value == 43 or value == 63 then self:fail "there is nothing to repeat" end
  if set then return { kind = "set", set = set } end
  return set_node({ value, value }, {}, false, self)
end

-- The bounds of a repeat, if one follows; { that begins none is a character.
function Parser:bounds()
  if self:take "*" then return 0, math.huge elseif self:take "+" then return 1, math.huge elseif self:take "?" then return 0, 1 end
  local start = self.at
  if not self:take "{" then return nil end
  local low, comma = self:run "%d", self:take ","
  local high = comma and self:run "%d" or low
  if not self:take "}" or low == "" and (not comma or high == "") then
    self.at = start
    return nil
  end
  local least, most = tonumber(low) or 0, tonumber(high) or math.huge
  if least > MOST_REPEATS or most ~= math.huge and most > MOST_REPEATS then self:fail(("a repeat counts to %d"):format(MOST_REPEATS)) end
  if most < least then self:fail "a repeat has its bounds in the wrong order" end
  return least, most, true
end

-- An atom with what repeats it.
function Parser:repeated()
  local node = self:atom()
  while true do
    local low, high, counted = self:bounds()
    if not low then return node end
    node = { kind = "repeat", low = low, high = high, node }
    if self:take "?" then node.lazy = true
    elseif not counted and self:take "+" then node = { kind = "atomic", node } end
  end
end

-- Parts up to | or ) or the end. Alternatives of one character each are one set.
function Parser:alternatives()
  self.depth = errors.deeper("a regular expression", self.depth)
  local list, all_sets = {}, true
  repeat
    local parts = {}
    while self:peek() and self:peek() ~= 124 and self:peek() ~= 41 do parts[#parts + 1] = self:repeated() end
    list[#list + 1] = #parts == 1 and parts[1] or { kind = "sequence", unpack(parts) }
    all_sets = all_sets and list[#list].kind == "set"
  until not self:take "|"
  self.depth = self.depth - 1
  if #list == 1 then return list[1] end
  if all_sets then
    for i, node in ipairs(list) do list[i] = node.set end
    return { kind = "set", set = unicode.set { sets = list } }
  end
  return { kind = "alternatives", unpack(list) }
end

-- The function of a pattern: see pattern_code.compile. Raises for what is not supported, with its place.
function pattern.compile(text)
  local parser = setmetatable({ text = text, points = unicode.points(text), at = 1, flags = {} }, Parser)
  local tree = parser:alternatives()
  if parser:peek() then parser:fail "a parenthesis is closed that was not opened" end
  return require("flow.text.pattern_code").compile(text, tree)
end

return pattern
