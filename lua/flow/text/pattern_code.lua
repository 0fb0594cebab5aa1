-- pattern_code.lua: the tree of a pattern as a function of Lua that finds its matches in code points.
--
-- Each node becomes a function m(cp, n, i) that matches at i, counted from 0, and then what follows it; it returns the end of the whole
-- match, or nil. Of several ways the first one counts, as in Perl; the others are tried when what follows does not match. Sets, repeats and
-- the rest are in tables, so that the text of the pattern is in no source. Tries are counted: a pattern that takes too many for its text,
-- as (a+)+b does, is an error.

local errors = require "flow.errors"
local unicode = require "flow.text.unicode"

local code = {}

local MOST_NODES = 20000
local TRIES, TRIES_A_CHARACTER = 1e6, 2000      -- of one call

-- The set of characters with which a match can begin; nil: any, or none at all.
local function first_of(node)
  if node.kind == "set" then return node.set end
  if node.kind == "atomic" then return first_of(node[1]) end
  if node.kind == "repeat" then return node.low > 0 and first_of(node[1]) or nil end
  if node.kind == "alternatives" then
    local sets = {}
    for i, part in ipairs(node) do
      sets[i] = first_of(part)
      if not sets[i] then return nil end
    end
    return unicode.set { sets = sets }
  end
  if node.kind ~= "sequence" then return nil end
  local sets = {}
  for _, part in ipairs(node) do
    local optional = part.kind == "repeat" and part.low == 0 or part.kind == "atomic" and part[1].kind == "repeat" and part[1].low == 0
    local inner = optional and (part.kind == "atomic" and part[1] or part)[1]
    local set = first_of(inner or part)
    if not set then return nil end
    sets[#sets + 1] = set
    if not optional then return unicode.set { sets = sets } end
  end
  return nil
end

-- Whether a node may match nothing.
local function may_be_empty(node)
  local kind = node.kind
  if kind == "set" then return false end
  if kind == "atomic" then return may_be_empty(node[1]) end
  if kind == "repeat" then return node.low == 0 or may_be_empty(node[1]) end
  for _, part in ipairs(node) do
    if kind == "alternatives" and may_be_empty(part) then return true end
    if kind == "sequence" and not may_be_empty(part) then return false end
  end
  return kind ~= "alternatives"
end

local Writer = {}
Writer.__index = Writer

function Writer:fail(what) errors.raise("the regular expression %q: %s", self.pattern, what) end

-- A number for a set, by which the source names it.
function Writer:set(set)
  self.sets[#self.sets + 1] = set
  return #self.sets
end

-- Adds a function with this body and returns its number.
function Writer:put(body, number)
  number = number or self:reserve()
  self.bodies[number] = ("M[%d] = function(cp, n, i)\n%s\nend"):format(number, body)
  return number
end

function Writer:reserve()
  self.count = self.count + 1
  if self.count > MOST_NODES then self:fail("its repeats make it too long") end
  return self.count
end

local IN_SET = "S[%d][rshift(cp[%s], 8)][band(cp[%s], 255)] == 1"
local function in_set(number, index) return IN_SET:format(number, index, index) end

-- A repeat of one character. k: what follows, 0 for the end of the match.
function Writer:repeat_set(node, k)
  local set = in_set(self:set(node[1].set), "j")
  local stop = node.high == math.huge and "n" or ("min(n, i + %d)"):format(node.high)
  if node.lazy then
    return self:put(([[
  local j, stop = i, %s
  while true do
    if j >= i + %d then
      local r = M[%d](cp, n, j)
      if r then return r end
      try()
    end
    if j >= stop or not (%s) then return nil end
    j = j + 1
  end]]):format(stop, node.low, k, set))
  end
  local run = ("  local j, stop = i, %s\n  while j < stop and %s do j = j + 1 end\n"):format(stop, set)
  if k == 1 then
    return self:put(run .. ("  if j >= i + %d then return j end\n  return nil"):format(node.low))
  end
  return self:put(run .. ([[
  while j >= i + %d do
    local r = M[%d](cp, n, j)
    if r then return r end
    j = j - 1
    try()
  end
  return nil]]):format(node.low, k))
end

function Writer:repeat_node(node, k)
  local inner = node[1]
  if inner.kind == "set" then return self:repeat_set(node, k) end
  if node.high == math.huge and may_be_empty(inner) then self:fail("a repeat of what may match nothing is not supported") end
  local order = node.lazy and { k, "body" } or { "body", k }
  local function choice(body, number)
    order[node.lazy and 2 or 1] = body
    return self:put(([[
  try()
  local r = M[%d](cp, n, i)
  if r then return r end
  return M[%d](cp, n, i)]]):format(order[1], order[2]), number)
  end
  local rest = k
  if node.high == math.huge then
    rest = self:reserve()
    choice(self:node(inner, rest), rest)
  else
    for _ = 1, node.high - node.low do rest = choice(self:node(inner, rest)) end
  end
  for _ = 1, node.low do rest = self:node(inner, rest) end
  return rest
end

local PLACES = {
  first = "i == 0", last = "i == n", last_line = "i == n or i == n - 1 and cp[i] == 10", line_start = "i == 0 or cp[i - 1] == 10",
  line_end = "i == n or cp[i] == 10", edge = "word(cp, n, i) ~= word(cp, n, i - 1)", inside = "word(cp, n, i) == word(cp, n, i - 1)",
}

-- The number of the function that matches a node and then what k does. 1 is the end of a match.
function Writer:node(node, k)
  local kind = node.kind
  if kind == "set" then
    return self:put(("  if i < n and %s then return M[%d](cp, n, i + 1) end\n  return nil"):format(in_set(self:set(node.set), "i"), k))
  elseif kind == "sequence" then
    for i = #node, 1, -1 do k = self:node(node[i], k) end
    return k
  elseif kind == "alternatives" then
    local lines = {}
    for i, part in ipairs(node) do
      local first = first_of(part)
      lines[i] = ("%s r = M[%d](cp, n, i) if r then return r end %s"):format(
        first and ("if i < n and " .. in_set(self:set(first), "i") .. " then") or "do", self:node(part, k), "end")
    end
    return self:put("  local r\n" .. table.concat(lines, "\n") .. "\n  return nil")
  elseif kind == "repeat" then return self:repeat_node(node, k)
  elseif kind == "atomic" then
    return self:put(("  local r = M[%d](cp, n, i)\n  if r then return M[%d](cp, n, r) end\n  return nil"):format(self:node(node[1], 1), k))
  elseif kind == "ahead" then
    return self:put(("  if %s M[%d](cp, n, i) then return M[%d](cp, n, i) end\n  return nil"):format(node.negated and "not" or "",
      self:node(node[1], 1), k))
  elseif kind == "behind" then
    return self:put(("  if %s (i > 0 and %s) then return M[%d](cp, n, i) end\n  return nil"):format(node.negated and "not" or "",
      in_set(self:set(node.set), "i - 1"), k))
  end
  return self:put(("  if %s then return M[%d](cp, n, i) end\n  return nil"):format(PLACES[node.place], k))
end

-- A function find(cp, n, from) that returns where the first match at `from` or after it begins and ends, or nil; all count from 0, the end
-- is the place after it. Matches of nothing are passed over.
function code.compile(pattern, tree)
  local writer = setmetatable({ pattern = pattern, sets = {}, bodies = {}, count = 0 }, Writer)
  writer:put("  return i")
  local root = writer:node(tree, 1)
  local left = 0
  local function try()
    left = left - 1
    if left < 0 then
      writer:fail "it takes too many tries on this text: a repeat in a repeat, as in (a+)+b, has to be written without it"
    end
  end
  local function word(cp, n, i) return i >= 0 and i < n and unicode.has(unicode.word, cp[i]) end
  local bit, M = require "bit", {}
  local source = "local M, S, rshift, band, min, try, word = ...\n" .. table.concat(writer.bodies, "\n")
  loadstring(source, "=[flow pattern]")(M, writer.sets, bit.rshift, bit.band, math.min, try, word)
  local first = first_of(tree)
  local match, has = M[root], unicode.has
  return function(cp, n, from)
    left = TRIES + TRIES_A_CHARACTER * (n - from)
    for i = from, n - 1 do
      if not first or has(first, cp[i]) then
        local stop = match(cp, n, i)
        if stop and stop > i then return i, stop end
      end
    end
    return nil
  end
end

return code
