-- unicode.lua: texts as code points, and what kind of characters these are.

local native = require "flow.ffi"
local tables = require "flow.text.unicode_tables"

local byte, char, floor = string.byte, string.char, math.floor
local bit = require "bit"
local band, rshift = bit.band, bit.rshift
local unicode = { LAST = 0x10ffff }

---- texts and code points ----------------------------------------------------------------------------------------------------

-- By first byte: how many bytes go on after it, and the range of the next one (Unicode 15, table 3-7).
local function following_bytes(first)
  if first < 0xc2 or first > 0xf4 then return -1, 0, 0 end
  if first < 0xe0 then return 1, 0x80, 0xbf end
  if first < 0xf0 then return 2, first == 0xe0 and 0xa0 or 0x80, first == 0xed and 0x9f or 0xbf end
  return 3, first == 0xf0 and 0x90 or 0x80, first == 0xf4 and 0x8f or 0xbf
end

-- Writes the code points of a text of `size` bytes to cp, and to starts where each begins, from 0, and at last `size`. Returns their
-- number, and whether the text is valid UTF-8. Each longest start of a character that is not completed becomes one U+FFFD.
function unicode.decode(bytes, size, cp, starts)
  local count, at, valid = 0, 0, true
  while at < size do
    local first = bytes[at]
    starts[count] = at
    if first < 0x80 then
      cp[count] = first
      at = at + 1
    else
      local more, low, high = following_bytes(first)
      local value = more > 0 and band(first, rshift(0x3f, more)) or 0
      local ok = more > 0
      at = at + 1
      for _ = 1, more do
        local following = at < size and bytes[at] or 0
        if following < low or following > high then ok = false break end
        value, low, high, at = value * 64 + band(following, 63), 0x80, 0xbf, at + 1
      end
      if not ok then value, valid = 0xfffd, false end
      cp[count] = value
    end
    count = count + 1
  end
  starts[count] = size
  return count, valid
end

-- A code point as UTF-8.
function unicode.encode(value)
  if value < 0x80 then return char(value) end
  if value < 0x800 then return char(0xc0 + floor(value / 64), 0x80 + value % 64) end
  local rest = char(0x80 + floor(value / 64) % 64, 0x80 + value % 64)
  if value < 0x10000 then return char(0xe0 + floor(value / 4096)) .. rest end
  return char(0xf0 + floor(value / 262144), 0x80 + floor(value / 4096) % 64) .. rest
end

-- The code points of a text as a list.
function unicode.points(text)
  local cp, starts = native.array("int32_t", #text + 1), native.array("int32_t", #text + 1)
  local list = {}
  for i = 1, unicode.decode(native.cast("const unsigned char *", text), #text, cp, starts) do list[i] = cp[i - 1] end
  return list
end

-- A text with U+FFFD for what is not UTF-8.
function unicode.valid(text)
  if not text:find "[\128-\255]" then return text end
  local list = unicode.points(text)
  for i, value in ipairs(list) do list[i] = unicode.encode(value) end
  return table.concat(list)
end

-- How many bytes at the end of a text begin a character that further bytes could finish.
function unicode.unfinished(text)
  for back = 1, math.min(3, #text) do
    local first = byte(text, #text - back + 1)
    if first >= 0xc0 then
      local more, low, high = following_bytes(first)
      local second = back > 1 and byte(text, #text - back + 2)
      return more >= back and (not second or second >= low and second <= high) and back or 0
    elseif first < 0x80 then return 0 end
  end
  return 0
end

---- categories -----------------------------------------------------------------------------------------------------------------

local names = {}
for name in tables.names:gmatch "%a+" do names[#names + 1] = name end
-- By code point the number of its category.
local categories = native.array("unsigned char", unicode.LAST + 1)
do
  local at = 0
  for letter, count in tables.categories:gsub("%s", ""):gmatch "(%a)(%d*)" do
    local code = byte(letter)
    local category = code < 97 and code - 65 or code - 97 + 26
    for i = at, at + (tonumber(count) or 1) - 1 do categories[i] = category end
    at = at + (tonumber(count) or 1)
  end
end

-- The categories that a name stands for, "L" for all letters, as a table by number; nil: there is none.
function unicode.category(name)
  local found
  for i, own in ipairs(names) do
    if own == name or own:sub(1, 1) == name then
      found = found or {}
      found[i - 1] = true
    end
  end
  return found
end

---- sets of characters ---------------------------------------------------------------------------------------------------------

-- A set is a table of pages: set[c / 256][c % 256] is 1 for what is in it. A page is made when a character of it is looked up. Its parts:
-- The characters of a script of Unicode, "Han", as a set; nil: it is not known.
function unicode.script(name)
  local text, ranges, at = require("flow.text.scripts")[name], {}, 0
  if not text then return nil end
  for before, more in text:gmatch "(%x+)%-?(%x*)" do
    local first = at + tonumber(before, 16)
    at = first + (tonumber(more, 16) or 0) + 1
    ranges[#ranges + 1], ranges[#ranges + 2] = first, at - 1
  end
  return unicode.set { ranges = ranges }
end

-- { ranges = { first, last, ... }, categories = by number, sets = other ones, negated = }.
local Set = {}

local function contains(parts, value)
  for i = 1, #parts.ranges, 2 do
    if value >= parts.ranges[i] and value <= parts.ranges[i + 1] then return true end
  end
  if parts.categories[categories[value]] then return true end
  for _, set in ipairs(parts.sets) do
    if set[rshift(value, 8)][band(value, 255)] == 1 then return true end
  end
  return false
end

function Set.__index(set, page)
  local made, parts = native.array("unsigned char", 256), getmetatable(set).parts
  for i = 0, 255 do
    if contains(parts, page * 256 + i) ~= parts.negated then made[i] = 1 end
  end
  rawset(set, page, made)
  return made
end

function unicode.set(parts)
  return setmetatable({}, { __index = Set.__index, parts = { ranges = parts.ranges or {}, categories = parts.categories or {},
    sets = parts.sets or {}, negated = parts.negated or false } })
end

function unicode.has(set, value)
  return set[rshift(value, 8)][band(value, 255)] == 1
end

local function of(name) return unicode.set { categories = unicode.category(name) } end

unicode.white_space = unicode.set { ranges = { 9, 13, 32, 32, 0x85, 0x85, 0xa0, 0xa0, 0x1680, 0x1680, 0x2000, 0x200a, 0x2028, 0x2029,
  0x202f, 0x202f, 0x205f, 0x205f, 0x3000, 0x3000 } }
unicode.digits, unicode.numeric, unicode.marks = of "Nd", of "N", of "M"
do
  local ranges = {}
  for first, count in tables.alphabetic:gmatch "(%x+),(%d+)" do
    ranges[#ranges + 1] = tonumber(first, 16)
    ranges[#ranges + 1] = tonumber(first, 16) + tonumber(count) - 1
  end
  local alphabetic = unicode.set { ranges = ranges }
  unicode.word = unicode.set { sets = { alphabetic, of "L", of "M", of "Nd", of "Nl", of "Pc" } }
  -- With the joiners, as the expressions of Rust have it.
  unicode.joined_word = unicode.set { sets = { unicode.word }, ranges = { 0x200c, 0x200d } }
end
unicode.punctuation = unicode.set { ranges = { 33, 47, 58, 64, 91, 96, 123, 126 }, categories = unicode.category "P" }

---- lower case -----------------------------------------------------------------------------------------------------------------

local lower

-- The lower-case form of a code point; U+0130, which has two, gives both.
function unicode.lower(value)
  if not lower then
    lower = {}
    for first, count, step, difference in tables.lower:gmatch "(%d+),(%d+),(%d+),(-?%d+)" do
      for i = 0, count - 1 do lower[first + i * step] = first + i * step + difference end
    end
  end
  if value == 0x130 then return 105, 0x307 end
  return lower[value] or value
end

return unicode
