-- bpe.lua: byte-pair encoding: a piece of a text as characters or bytes, of which neighbours are joined to tokens, those of the merge that
-- was learnt first before others, as long as there are any (Sennrich, Haddow and Birch, 2016). Short pieces look through all pairs for each
-- merge; longer ones keep them in a heap, so that the time is in proportion to n log n.
--
-- Pairs of ids are one number, and so are a merge's rank and the id it makes: both are below 2^24 (fields.lua).

local bytes = require "flow.text.bytes"
local fields = require "flow.text.fields"

local floor, byte, sub = math.floor, string.byte, string.sub
local bpe = {}

local SHIFT = 2 ^ 24
local SHORT = 24      -- up to here looking through all pairs is faster than the heap
local MOST_CACHED, LONGEST_CACHED = 100000, 64      -- pieces; bytes

local Model = {}
Model.__index = Model

---- reading --------------------------------------------------------------------------------------------------------------------

-- Ids by token of the file's vocabulary, and tokens by id.
local function vocabulary(record)
  local values = record:object "vocab"
  if not values then record:fail("%s is missing, expected an object of tokens with their ids", record:path "vocab") end
  local ids, tokens, size = {}, {}, 0
  for token in pairs(values.values) do
    if type(token) ~= "string" then record:fail("%s has the key %s, expected tokens", values.place, tostring(token)) end
    local id = values:whole(token)
    if tokens[id] then
      record:fail("%s: the tokens %q and %q have the same id, %d", values.place, tokens[id], token, id)
    end
    ids[token], tokens[id], size = id, token, size + 1
  end
  return ids, tokens, size
end

-- The two tokens of a merge, "a b" or [ "a", "b" ].
local function parts_of(record, value, place)
  local a, b
  if type(value) == "string" then a, b = value:match "^([^ ]+) ([^ ]+)$"
  elseif type(value) == "table" and #value == 2 then a, b = value[1], value[2] end
  if type(a) ~= "string" or type(b) ~= "string" then
    record:fail("%s is %s, expected two tokens, \"a b\" or [ \"a\", \"b\" ]", place, require("flow.errors").describe(value))
  end
  return a, b
end

-- The model of a file's "model". by_bytes: pieces are taken byte by byte.
function bpe.new(record, by_bytes)
  local kind = record:text("type", "BPE")
  if kind ~= "BPE" then
    record:fail("%s: the model %q is not supported, \"BPE\" is: byte-pair encoding", record.place, kind)
  end
  if record:get "dropout" ~= nil and record:get "dropout" ~= 0 then
    record:fail("%s is %s: merges that are left out at random are not supported, null is", record:path "dropout",
      tostring(record:get "dropout"))
  end
  local self = setmetatable({ merges = {}, by_bytes = by_bytes, cache = {}, cached = 0 }, Model)
  self.ids, self.tokens, self.size = vocabulary(record)
  self.prefix, self.suffix = record:text("continuing_subword_prefix", ""), record:text("end_of_word_suffix", "")
  self.fuses, self.falls_back = record:boolean("fuse_unk", false), record:boolean("byte_fallback", false)
  self.ignores_merges = record:boolean("ignore_merges", false)
  local unknown = record:text("unk_token", "")
  if unknown ~= "" then
    self.unknown = self.ids[unknown] or record:fail("%s is %q, which the vocabulary lacks", record:path "unk_token", unknown)
  end
  local rank = 0
  record:list("merges", function(value, place)
    local a, b = parts_of(record, value, place)
    local whole = a .. (self.prefix ~= "" and sub(b, #self.prefix + 1) or b)
    for _, token in ipairs { a, b, whole } do
      if not self.ids[token] then record:fail("%s: the vocabulary lacks the token %q", place, token) end
    end
    -- A pair that is there twice, as trainers write it now and then, has its last rank, as in Hugging Face's library.
    self.merges[self.ids[a] * SHIFT + self.ids[b]] = rank * SHIFT + self.ids[whole]
    rank = rank + 1
    if rank > fields.MOST then record:fail("%s has more than %d entries", record:path "merges", fields.MOST) end
  end)
  if self.falls_back then
    self.of_byte = {}
    for value = 0, 255 do self.of_byte[value] = self.ids[("<0x%02X>"):format(value)] end
  end
  return self
end

---- merging --------------------------------------------------------------------------------------------------------------------

-- Joins pairs in ids[1..n]; starts and stops: of each in the piece. Returns how many are left.
local function merge_short(merges, ids, starts, stops, n)
  while n > 1 do
    local best, at = math.huge, 0
    for i = 1, n - 1 do
      local merge = merges[ids[i] * SHIFT + ids[i + 1]]
      if merge and merge < best then best, at = merge, i end
    end
    if at == 0 then return n end
    ids[at], stops[at] = best % SHIFT, stops[at + 1]
    for i = at + 1, n - 1 do ids[i], starts[i], stops[i] = ids[i + 1], starts[i + 1], stops[i + 1] end
    ids[n], n = nil, n - 1
  end
  return n
end

-- Heaps of numbers, the smallest one first: heap.n of them. trainer.lua has heaps of records: one function that calls a comparison for both
-- makes long pieces 6 % slower.
local function push(heap, value)
  local at = heap.n + 1
  heap.n = at
  while at > 1 do
    local parent = floor(at / 2)
    if heap[parent] <= value then break end
    heap[at] = heap[parent]
    at = parent
  end
  heap[at] = value
end

local function pop(heap)
  local top, n = heap[1], heap.n
  local value = heap[n]
  heap.n, n = n - 1, n - 1
  local at = 1
  while true do
    local child = 2 * at
    if child > n then break end
    if child < n and heap[child + 1] < heap[child] then child = child + 1 end
    if heap[child] >= value then break end
    heap[at] = heap[child]
    at = child
  end
  heap[at] = value
  return top
end

local PLACES = 2 ^ 29      -- a rank and a place are one number in the heap

-- The same for long pieces: neighbours are linked. A pair in the heap may no longer exist when it is taken out; it is then skipped.
local function merge_long(merges, ids, starts, stops, n)
  local before, after, heap = {}, {}, { n = 0 }
  local function offer(i)
    local next_one = after[i]
    local merge = next_one and merges[ids[i] * SHIFT + ids[next_one]]
    if merge then push(heap, floor(merge / SHIFT) * PLACES + i) end
  end
  for i = 1, n do before[i], after[i] = i > 1 and i - 1, i < n and i + 1 end
  for i = 1, n - 1 do offer(i) end
  while heap.n > 0 do
    local top = pop(heap)
    local i, rank = top % PLACES, floor(top / PLACES)
    local next_one = ids[i] and after[i]
    local merge = next_one and merges[ids[i] * SHIFT + ids[next_one]]
    if merge and floor(merge / SHIFT) == rank then
      ids[i], stops[i], after[i] = merge % SHIFT, stops[next_one], after[next_one]
      ids[next_one] = false
      if after[i] then before[after[i]] = i end
      if before[i] then offer(before[i]) end
      offer(i)
    end
  end
  local count = 0
  for i = 1, n do
    if ids[i] then
      count = count + 1
      ids[count], starts[count], stops[count] = ids[i], starts[i], stops[i]
    end
  end
  for i = count + 1, n do ids[i] = nil end
  return count
end

---- pieces -----------------------------------------------------------------------------------------------------------------------

-- Ids of bytes or characters of a piece, with where each starts and stops in it.
function Model:units(piece, ids, starts, stops)
  local n, size, at, unknown_from = 0, #piece, 1, nil
  local own, by_bytes = self.ids, self.by_bytes
  local prefix, suffix, has_ends = self.prefix, self.suffix, self.prefix ~= "" or self.suffix ~= ""
  local function flush(stop)
    if unknown_from then
      n = n + 1
      ids[n], starts[n], stops[n], unknown_from = self.unknown, unknown_from, stop, nil
    end
  end
  while at <= size do
    local first = byte(piece, at)
    local length = (by_bytes or first < 0x80) and 1 or first < 0xe0 and 2 or first < 0xf0 and 3 or 4
    local text = by_bytes and bytes.char[first] or sub(piece, at, at + length - 1)
    if has_ends then text = (at > 1 and prefix or "") .. text .. (at + length > size and suffix or "") end
    local id, known = own[text], 0
    if id then
      flush(at - 1)
      n = n + 1
      ids[n], starts[n], stops[n] = id, at, at + length - 1
    else
      if self.falls_back then
        for i = 1, #text do known = known + (self.of_byte[byte(text, i)] and 1 or 0) end
      end
      if known > 0 and known == #text then
        flush(at - 1)
        for i = 1, #text do
          n = n + 1
          local place = math.min(at + i - 1, at + length - 1)
          ids[n], starts[n], stops[n] = self.of_byte[byte(text, i)], place, place
        end
      elseif self.unknown then
        if not self.fuses then flush(at - 1) end
        unknown_from = unknown_from or at
      end
    end
    at = at + length
  end
  flush(size)
  return n
end

-- The tokens of a piece: { ids..., starts = , stops = : bytes of the piece from 1 }. It is shared: callers do not change it. Characters
-- that the vocabulary lacks are left out where there is no unk_token.
function Model:encode(piece)
  local found = self.cache[piece]
  if found then return found end
  local starts, stops = {}, {}
  found = { starts = starts, stops = stops }
  local whole = self.ignores_merges and self.ids[self.by_bytes and bytes.encoded(piece) or piece]
  if whole then found[1], starts[1], stops[1] = whole, 1, #piece
  else
    local n = self:units(piece, found, starts, stops)
    if n > SHORT then merge_long(self.merges, found, starts, stops, n) else merge_short(self.merges, found, starts, stops, n) end
  end
  if #piece <= LONGEST_CACHED then
    if self.cached >= MOST_CACHED then self.cache, self.cached = {}, 0 end
    self.cache[piece], self.cached = found, self.cached + 1
  end
  return found
end

return bpe
