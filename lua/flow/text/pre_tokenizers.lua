-- pre_tokenizers.lua: how a tokenizer's file cuts texts into pieces before the model sees them: its "pre_tokenizer". A record becomes a
-- list of stages f(b, first, stop, add), which call add(b, first, stop) for the parts of a piece; see buffer.lua.

local buffer = require "flow.text.buffer"
local bytes = require "flow.text.bytes"
local fields = require "flow.text.fields"
local normalizers = require "flow.text.normalizers"
local unicode = require "flow.text.unicode"

local pre_tokenizers = {}
local kinds = {}

-- The regular expression by which GPT-2 cuts.
local GPT2 = [['s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+]]
local BEHAVIOURS = { "Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous" }
local SPACE = 32

---- cutting at matches ---------------------------------------------------------------------------------------------------------

-- Joins part i to the one before where joins(flag, flag of the one before). Returns how many parts are left.
local function merge(firsts, stops, flags, joins)
  local n, before = 0, false
  for i = 1, #firsts do
    local flag = flags[i]
    if n > 0 and joins(flag, before) then stops[n] = stops[i]
    else
      n = n + 1
      firsts[n], stops[n] = firsts[i], stops[i]
    end
    before = flag
  end
  return n
end

-- A match joins what is before it, but not a match before it.
local function follows_other(flag, before) return flag and not before end
local function is_equal(flag, before) return flag == before end

-- Gives the parts of a piece to add: what find(cp, n, from) finds in it, and what is between.
local function cut(b, first, stop, find, behaviour, invert, add)
  local cp, n, at = b.cp + first, stop - first, 0
  if behaviour == "Isolated" or behaviour == "Removed" then
    local keeps_matches, keeps_others = behaviour == "Isolated" or invert, behaviour == "Isolated" or not invert
    while at < n do
      local from, to = find(cp, n, at)
      if not from then break end
      if from > at and keeps_others then add(b, first + at, first + from) end
      if keeps_matches then add(b, first + from, first + to) end
      at = to
    end
    if at < n and keeps_others then add(b, first + at, stop) end
    return
  end
  local firsts, stops, flags = {}, {}, {}
  local function put(from, to, flag)
    if from < to then
      firsts[#firsts + 1], stops[#stops + 1], flags[#flags + 1] = first + from, first + to, flag ~= invert
    end
  end
  while at < n do
    local from, to = find(cp, n, at)
    if not from then break end
    put(at, from, false)
    put(from, to, true)
    at = to
  end
  put(at, n, false)
  local count = #firsts
  if behaviour == "Contiguous" then count = merge(firsts, stops, flags, is_equal)
  elseif behaviour == "MergedWithPrevious" then count = merge(firsts, stops, flags, follows_other)
  else      -- the same from the end on
    local starts = {}
    for i = 1, count do starts[i] = true end
    local before = false
    for i = count, 1, -1 do
      if flags[i] and not before and i < count then starts[i + 1] = false end
      before = flags[i]
    end
    local made = 0
    for i = 1, count do
      if starts[i] then
        made = made + 1
        firsts[made] = firsts[i]
      end
      stops[made] = stops[i]
    end
    count = made
  end
  for i = 1, count do add(b, firsts[i], stops[i]) end
end

local function finder_of_set(set)
  local has = unicode.has
  return function(cp, n, from)
    for i = from, n - 1 do
      if has(set, cp[i]) then return i, i + 1 end
    end
    return nil
  end
end

local function stage(find, behaviour, invert)
  return { f = function(b, first, stop, add) cut(b, first, stop, find, behaviour, invert or false, add) end }
end

---- the kinds ------------------------------------------------------------------------------------------------------------------

function kinds.Sequence(record)
  local list = {}
  for _, own in ipairs(record:records "pretokenizers") do
    for _, one in ipairs(fields.kind(own, kinds, "pre-tokenizer")) do list[#list + 1] = one end
  end
  return list
end

function kinds.Split(record)
  return { stage(record:pattern "pattern", record:choice("behavior", BEHAVIOURS), record:boolean("invert", false)) }
end

-- A piece with code points in front.
local function with_prefix(b, first, stop, content)
  b = normalizers.prepended(buffer.slice(b, first, stop), content)
  return b, 0, b.n
end

function kinds.ByteLevel(record)
  local prefix, find = record:boolean("add_prefix_space", true), nil
  if record:boolean("use_regex", true) then find = require("flow.text.pattern").compile(GPT2) end
  return { { bytes = true, f = function(b, first, stop, add)
    if prefix and b.cp[first] ~= SPACE then b, first, stop = with_prefix(b, first, stop, { SPACE }) end
    if find then cut(b, first, stop, find, "Isolated", false, add) else add(b, first, stop) end
  end } }
end

-- What a stage of bytes does where others follow it: each piece in the characters that stand for its bytes.
local function convert(b, first, stop, add)
  local builder = buffer.builder { shift = buffer.shift(b, first) }
  for i = first, stop - 1 do
    for at = b.starts[i] + 1, b.starts[i + 1] do builder:copy(b, i, bytes.points[b.text:byte(at)]) end
  end
  local made = builder:done()
  add(made, 0, made.n)
end

function kinds.Metaspace(record)
  local replacement = unicode.points(record:text("replacement", "▁"))
  if #replacement ~= 1 then record:fail("%s is %q, expected one character", record:path "replacement", record:get "replacement") end
  local scheme = record:choice("prepend_scheme", { "first", "never", "always" }, "always")
  if not record:boolean("add_prefix_space", true) then scheme = "never" end
  local is_cut, mark = record:boolean("split", true), replacement[1]
  local find = finder_of_set(unicode.set { ranges = { mark, mark } })
  return { { f = function(b, first, stop, add)
    local builder = buffer.builder { shift = buffer.shift(b, first) }
    for i = first, stop - 1 do builder:copy(b, i, b.cp[i] == SPACE and mark or nil) end
    b = builder:done()
    if b.cp[0] ~= mark and (scheme == "always" or scheme == "first" and b.shift == 0) then b = normalizers.prepended(b, replacement) end
    if is_cut then cut(b, 0, b.n, find, "MergedWithNext", false, add) else add(b, 0, b.n) end
  end } }
end

local space = finder_of_set(unicode.white_space)

-- Words, and runs of what is neither in words nor white space.
function kinds.Whitespace()
  local neither = unicode.set { sets = { unicode.joined_word, unicode.white_space }, negated = true }
  return { stage(function(cp, n, from)
    while from < n and unicode.has(unicode.white_space, cp[from]) do from = from + 1 end
    if from == n then return nil end
    local set, stop = unicode.has(neither, cp[from]) and neither or unicode.joined_word, from + 1
    while stop < n and unicode.has(set, cp[stop]) do stop = stop + 1 end
    return from, stop
  end, "Removed", true) }
end

function kinds.WhitespaceSplit() return { stage(space, "Removed") } end
function kinds.BertPreTokenizer() return { stage(space, "Removed"), stage(finder_of_set(unicode.punctuation), "Isolated") } end

function kinds.Digits(record)
  return { stage(finder_of_set(unicode.numeric), record:boolean("individual_digits", false) and "Isolated" or "Contiguous") }
end

function kinds.Punctuation(record)
  return { stage(finder_of_set(unicode.punctuation), record:choice("behavior", BEHAVIOURS, "Isolated")) }
end

function kinds.CharDelimiterSplit(record) return { stage(buffer.finder(record:text "delimiter"), "Removed") } end

---- all stages -----------------------------------------------------------------------------------------------------------------

-- A piece's parts as lists { b =, first =, stop =, n = }, from 1.
local function pieces()
  local list = { b = {}, first = {}, stop = {}, n = 0 }
  function list.add(b, first, stop)
    if first == stop then return end
    local n = list.n + 1
    list.b[n], list.first[n], list.stop[n], list.n = b, first, stop, n
  end
  return list
end

-- A function of a buffer that returns its pieces, and whether the model has to take them byte by byte. record: of the file, or nil.
function pre_tokenizers.of(record)
  local stages = record and fields.kind(record, kinds, "pre-tokenizer") or {}
  local list, by_bytes = {}, false
  for i, one in ipairs(stages) do
    list[#list + 1] = one.f
    if one.bytes and i < #stages then list[#list + 1] = convert elseif one.bytes then by_bytes = true end
  end
  return function(b)
    local found = pieces()
    if b.n > 0 then found.add(b, 0, b.n) end
    for _, f in ipairs(list) do
      local next_ones = pieces()
      local add = next_ones.add
      for i = 1, found.n do f(found.b[i], found.first[i], found.stop[i], add) end
      found = next_ones
    end
    return found
  end, by_bytes
end

return pre_tokenizers
