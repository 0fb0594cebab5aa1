-- regex.lua: regular expressions in the syntax of RE2 (github.com/google/re2/wiki/Syntax), which tf.strings uses, as far as it is common:
--
--   literals, . [a-z] [^a-z] [[:punct:]], \d \D \w \W \s \S \b \B, \n \t \r \f \v \a \xHH \x{HHHH}, \ before punctuation
--   x* x+ x? x{n} x{n,} x{n,m}, also lazy (x*?), x|y, (x), (?:x), (?P<name>x), (?i) (?s) at the start, ^ $ \A \z
--
-- Texts are UTF-8; an invalid byte counts as a character. Of several matches at a place the first way to match counts, as in RE2 and
-- Perl. regex_machine.lua finds them, with work for one match that is in proportion to the text. The work of all matches in a text is
-- counted together: it is an error after MOST_STEPS.
--
--   local find = regex.compile("(a+)b")      local first, last, groups = find("xaab", 1)      groups[1] = { first, last }

local errors = require "flow.errors"
local machine = require "flow.tensor.text.regex_machine"

local raise = errors.raise
local byte, sub = string.byte, string.sub
local regex = {}

local MOST_STEPS = 1e9      -- half a minute: that of matches each of which looks ahead to the end of the text

---- characters -------------------------------------------------------------------------------------------------------------

-- The character at a position, as a number, and the position after it; nil at the end.
local function character(text, at)
  local first = byte(text, at)
  if not first or first < 0x80 then return first, at + 1 end
  local more = first >= 0xf0 and 3 or first >= 0xe0 and 2 or first >= 0xc2 and 1 or 0
  local value = first % 2 ^ (6 - more)
  for i = 1, more do
    local following = byte(text, at + i)
    if not following or following < 0x80 or following > 0xbf then return first, at + 1 end
    value = value * 64 + following % 64
  end
  if more == 0 then return first, at + 1 end
  return value, at + 1 + more
end
regex.character = character

-- A code point as UTF-8.
local function encode(value)
  if value < 0x80 then return string.char(value) end
  if value < 0x800 then return string.char(0xc0 + math.floor(value / 64), 0x80 + value % 64) end
  local rest = string.char(0x80 + math.floor(value / 64) % 64, 0x80 + value % 64)
  if value < 0x10000 then return string.char(0xe0 + math.floor(value / 4096)) .. rest end
  return string.char(0xf0 + math.floor(value / 262144), 0x80 + math.floor(value / 4096) % 64) .. rest
end

-- Sets of characters: lists of ranges { first, last }, and whether it is what is not in them.
local CLASSES = {
  d = { { 48, 57 } }, w = { { 48, 57 }, { 65, 90 }, { 95, 95 }, { 97, 122 } }, s = { { 9, 10 }, { 12, 13 }, { 32, 32 } },
}
local NAMED = {
  alnum = { { 48, 57 }, { 65, 90 }, { 97, 122 } }, alpha = { { 65, 90 }, { 97, 122 } }, ascii = { { 0, 127 } },
  blank = { { 9, 9 }, { 32, 32 } },
  cntrl = { { 0, 31 }, { 127, 127 } }, digit = CLASSES.d, graph = { { 33, 126 } }, lower = { { 97, 122 } }, print = { { 32, 126 } },
  punct = { { 33, 47 }, { 58, 64 }, { 91, 96 }, { 123, 126 } }, space = { { 9, 13 }, { 32, 32 } }, upper = { { 65, 90 } }, word = CLASSES.w,
  xdigit = { { 48, 57 }, { 65, 70 }, { 97, 102 } },
}
local ESCAPES = { n = 10, t = 9, r = 13, f = 12, v = 11, a = 7 }
local LAST = 0x10ffff

-- The code points that are in none of the ranges { first, last }, as ranges in order.
local function complement(ranges)
  local sorted, made, at = { unpack(ranges) }, {}, 0
  table.sort(sorted, function(a, b) return a[1] < b[1] end)
  for _, range in ipairs(sorted) do
    if range[1] > at then made[#made + 1] = { at, range[1] - 1 } end
    at = math.max(at, range[2] + 1)
  end
  if at <= LAST then made[#made + 1] = { at, LAST } end
  return made
end

local function without_case(ranges)
  local made = { unpack(ranges) }
  for _, range in ipairs(ranges) do
    local low, high = math.max(range[1], 65), math.min(range[2], 90)
    if low <= high then made[#made + 1] = { low + 32, high + 32 } end
    low, high = math.max(range[1], 97), math.min(range[2], 122)
    if low <= high then made[#made + 1] = { low - 32, high - 32 } end
  end
  return made
end

-- A node that matches one character of the ranges.
local function set_of(ranges)
  local ascii = {}
  for _, range in ipairs(ranges) do
    for value = range[1], math.min(range[2], 127) do ascii[value] = true end
  end
  return { kind = "set", ranges = ranges, ascii = ascii }
end

local function in_set(set, value)
  if value < 128 then return set.ascii[value] end
  for _, range in ipairs(set.ranges) do
    if value >= range[1] and value <= range[2] then return true end
  end
  return false
end

---- patterns to trees --------------------------------------------------------------------------------------------------------

local Parser = {}
Parser.__index = Parser

function Parser:fail(what) raise("regular expression %q: %s, at position %d", self.text, what, self.at) end

function Parser:take(plain)
  if sub(self.text, self.at, self.at + #plain - 1) ~= plain then return false end
  self.at = self.at + #plain
  return true
end

-- What follows a backslash: a character, or the ranges of a class.
function Parser:escape()
  local letter = sub(self.text, self.at, self.at)
  self.at = self.at + 1
  local class = CLASSES[letter:lower()]
  if class then return nil, letter:lower() == letter and class or complement(class) end
  if ESCAPES[letter] then return ESCAPES[letter] end
  if letter == "x" then
    local digits = self.text:match("^%x%x", self.at)
    local longer = self.text:match("^{(%x+)}", self.at)
    if not digits and not longer then self:fail("\\x is followed by two digits, or by digits in braces") end
    self.at = self.at + (longer and #longer + 2 or 2)
    return tonumber(longer or digits, 16)
  end
  if letter == "" or letter:find("%w") then self:fail(("\\%s is not supported"):format(letter)) end
  self.at = self.at - 1
  local value
  value, self.at = character(self.text, self.at)
  return value
end

-- [...], after the bracket.
function Parser:brackets()
  local negated, ranges, first = self:take "^", {}, true
  while first or sub(self.text, self.at, self.at) ~= "]" do
    first = false
    if self.at > #self.text then self:fail("a bracket is not closed") end
    local name = self.text:match("^%[:(%^?%a+):%]", self.at)
    local low, more
    if name then
      local class = NAMED[(name:gsub("^%^", ""))] or self:fail("there is no class [:" .. name .. ":]")
      self.at, more = self.at + #name + 4, name:find("^%^") and complement(class) or class
    elseif self:take "\\" then low, more = self:escape()
    else low, self.at = character(self.text, self.at) end
    if more then
      for _, range in ipairs(more) do ranges[#ranges + 1] = range end
    else
      local high = low
      if self.text:find("^%-[^%]]", self.at) then
        self.at = self.at + 1
        if self:take "\\" then high = self:escape() or self:fail("a range ends in a character")
        else high, self.at = character(self.text, self.at) end
        if high < low then self:fail("a range has its ends in the wrong order") end
      end
      ranges[#ranges + 1] = { low, high }
    end
  end
  self.at = self.at + 1
  if self.flags.i then ranges = without_case(ranges) end
  return set_of(negated and complement(ranges) or ranges)
end

-- What is between parentheses, after the first one: a group with a number, also a named one, (?:...), (?i), (?s), or these flags for a
-- group only. It leaves the last parenthesis to the caller.
function Parser:group()
  if not self:take "?" then
    self.groups = self.groups + 1
    local number = self.groups
    return { kind = "group", number = number, self:alternatives() }
  end
  if self.text:find("^P?<[%w_]+>", self.at) then
    self.at = self.text:find(">", self.at, true) + 1
    self.groups = self.groups + 1
    local number = self.groups
    return { kind = "group", number = number, self:alternatives() }
  end
  local flags, stop = self.text:match("^([is]*)([:)])", self.at)
  if not flags then self:fail("this kind of group is not supported") end
  self.at = self.at + #flags + 1
  local before = self.flags
  self.flags = { i = before.i or flags:find("i", 1, true) ~= nil, s = before.s or flags:find("s", 1, true) ~= nil }
  if stop == ")" then
    self.at = self.at - 1      -- the flags hold for the rest of the group around
    return { kind = "empty" }
  end
  local node = self:alternatives()
  self.flags = before
  return node
end

-- A character, a set, a group or a place.
function Parser:atom()
  local text = self.text
  if self:take "(" then
    local node = self:group()
    if not self:take ")" then self:fail("a parenthesis is not closed") end
    return node
  end
  if self:take "[" then return self:brackets() end
  if self:take "." then return set_of(self.flags.s and { { 0, LAST } } or complement { { 10, 10 } }) end
  if self:take "^" then return { kind = "start" } end
  if self:take "$" then return { kind = "stop" } end
  if self:take "\\" then
    local letter = sub(text, self.at, self.at)
    local special = ({ A = "start", z = "stop", b = "border", B = "inside" })[letter]
    if special then
      self.at = self.at + 1
      return { kind = special }
    end
    local value, ranges = self:escape()
    ranges = ranges or { { value, value } }
    return set_of(self.flags.i and without_case(ranges) or ranges)
  end
  if text:find("^[*+?]", self.at) then self:fail("there is nothing to repeat") end
  local value
  value, self.at = character(text, self.at)
  return set_of(self.flags.i and without_case { { value, value } } or { { value, value } })
end

local MOST_REPEATS = 1000      -- as RE2

-- An atom with all the repeats after it: a** is (a*)*.
function Parser:repeated()
  local node = self:atom()
  while true do
    local low, high, length
    local letter = sub(self.text, self.at, self.at)
    local counts = self.text:match("^{%d+,?%d*}", self.at)
    if letter == "*" then low, high, length = 0, math.huge, 1
    elseif letter == "+" then low, high, length = 1, math.huge, 1
    elseif letter == "?" then low, high, length = 0, 1, 1
    elseif counts then
      local comma
      low, comma, high = counts:match("^{(%d+)(,?)(%d*)}")
      low, high, length = tonumber(low), comma == "" and tonumber(low) or tonumber(high) or math.huge, #counts
      if low > high or low > MOST_REPEATS or high ~= math.huge and high > MOST_REPEATS then self:fail("repeats are at most 1000") end
    else return node end
    self.at = self.at + length
    node = { kind = "repeat", low = low, high = high, lazy = self:take "?", node }
  end
end

function Parser:sequence()
  local list = { kind = "sequence" }
  while self.at <= #self.text and not self.text:find("^[|)]", self.at) do list[#list + 1] = self:repeated() end
  return list
end

-- Sequences between "|". Flags that a sequence sets hold up to the end of the last one.
function Parser:alternatives()
  local flags, list = self.flags, { kind = "either", self:sequence() }
  while self:take "|" do list[#list + 1] = self:sequence() end
  self.flags = flags
  return #list == 1 and list[1] or list
end

---- what others call ---------------------------------------------------------------------------------------------------------

local WORD = set_of(CLASSES.w)
local function at_border(text, at)
  local before, here = at > 1 and byte(text, at - 1), byte(text, at)
  return (before and WORD.ascii[before] or false) ~= (here and WORD.ascii[here] or false)
end
local compiled, count = {}, 0
local PLACES = {
  start = function(_, at) return at == 1 end,
  stop = function(text, at) return at == #text + 1 end,
  border = at_border,
  inside = function(text, at) return not at_border(text, at) end,
}
local TOOLS = { character = character, in_set = in_set, places = PLACES }

-- Two results: f(text, from, goes_on) -> first, last, groups of the first match from that position on, or nil, where groups[n] is
-- { first, last } of group n, or nil, and goes_on says that an earlier match in this text was asked for; and the number of groups.
-- anchored: only a match that begins there and ends at the end of the text. wanted: the number of groups that are looked for.
function regex.compile(pattern, anchored, wanted)
  wanted = wanted or 0
  local key = (anchored and "=" or "~") .. wanted .. ":" .. pattern
  if compiled[key] then return compiled[key].find, compiled[key].groups end
  local parser = setmetatable({ text = pattern, at = 1, groups = 0, flags = {} }, Parser)
  local tree = parser:alternatives()
  if parser.at <= #pattern then parser:fail("a parenthesis is not open") end
  local steps, length
  local function count_steps(more)
    steps = steps + more
    if steps > MOST_STEPS then raise("the regular expression %q takes too long on a text of %d bytes", pattern, length) end
  end
  local search = machine.compile(pattern, tree, math.min(wanted, parser.groups), TOOLS, anchored, count_steps)
  local function find(text, from, goes_on)
    steps, length = goes_on and steps or 0, #text
    return search(text, from)
  end
  count = count + 1
  if count > 64 then compiled, count = {}, 1 end
  compiled[key] = { find = find, groups = parser.groups }
  return find, parser.groups
end

-- The text with matches replaced by `rewrite`, in which \0 to \9 stand for the match and its groups: all of them, or the first one.
function regex.replace(text, pattern, rewrite, all)
  local wanted = 0
  for digit in rewrite:gsub("\\\\", ""):gmatch "\\(%d)" do wanted = math.max(wanted, tonumber(digit)) end
  local find, groups = regex.compile(pattern, false, wanted)
  for digit in rewrite:gsub("\\\\", ""):gmatch "\\(.)" do
    if not tonumber(digit) or tonumber(digit) > groups then
      raise("regex_replace: \\%s in the rewrite %q: the pattern %q has %d groups", digit, rewrite, pattern, groups)
    end
  end
  local parts, at, last = {}, 1, nil
  while at <= #text + 1 do
    local first, stop, found = find(text, at, #parts > 0)
    if not first then break end
    parts[#parts + 1] = sub(text, at, first - 1)
    if stop < first and last == first - 1 then      -- nothing, where the match before ended: goes on with the next character
      if first > #text then at = first break end
      local _
      _, at = character(text, first)
      parts[#parts + 1] = sub(text, first, at - 1)
      last = nil
    else
      parts[#parts + 1] = rewrite:gsub("\\(.)", function(digit)
        if digit == "\\" then return "\\" end
        local group = digit == "0" and { first, stop } or found[tonumber(digit)]
        return group and sub(text, group[1], group[2]) or ""
      end)
      at, last = stop + 1, stop
      if not all then break end
    end
  end
  parts[#parts + 1] = sub(text, at)
  return table.concat(parts)
end

regex.encode = encode
return regex
