-- trainer.lua: learns a byte-level vocabulary from texts: bytes first, then, again and again, the pair of neighbours that occurs most
-- often, of several the one with the smaller ids. The ids are those of the BpeTrainer of Hugging Face's library for the same texts and
-- options.

local bytes = require "flow.text.bytes"

local floor = math.floor
local SHIFT = 2 ^ 24

---- a queue of pairs -----------------------------------------------------------------------------------------------------------------

-- Entries are { count, pair, words in which it is }.
local function is_before(a, b)
  return a[1] > b[1] or a[1] == b[1] and a[2] < b[2]
end

local function push(heap, entry)
  local at = #heap + 1
  while at > 1 do
    local parent = floor(at / 2)
    if not is_before(entry, heap[parent]) then break end
    heap[at] = heap[parent]
    at = parent
  end
  heap[at] = entry
end

local function pop(heap)
  local top, n = heap[1], #heap
  local entry = heap[n]
  heap[n] = nil
  n = n - 1
  if n == 0 then return top end
  local at = 1
  while true do
    local child = 2 * at
    if child > n then break end
    if child < n and is_before(heap[child + 1], heap[child]) then child = child + 1 end
    if not is_before(heap[child], entry) then break end
    heap[at] = heap[child]
    at = child
  end
  heap[at] = entry
  return top
end

---- merging --------------------------------------------------------------------------------------------------------------------------

-- Joins a and b in a word { ids, lengths } and calls change(left id, right id, by) for pairs of neighbours that go and come. Pairs
-- that are together as long as most, or longer, are not counted.
local function merge(word, a, b, made, most, change)
  local ids, lengths = word[1], word[2]
  local n, count, i = #ids, 0, 1
  while i <= n do
    if ids[i] == a and i < n and ids[i + 1] == b then
      local length = lengths[i] + lengths[i + 1]
      if count > 0 then
        change(ids[count], a, -1)
        if lengths[count] + length < most then change(ids[count], made, 1) end
      end
      if i + 2 <= n then
        change(b, ids[i + 2], -1)
        if lengths[i + 2] + length < most then change(made, ids[i + 2], 1) end
      end
      count, i = count + 1, i + 2
      ids[count], lengths[count] = made, length
    else
      count, i = count + 1, i + 1
      ids[count], lengths[count] = ids[i - 1], lengths[i - 1]
    end
  end
  for k = count + 1, n do ids[k], lengths[k] = nil, nil end
end

-- Ids by token and merges as { "a b" } of counted pieces. options: vocabulary_size, min_frequency, special_tokens, max_token_length.
return function(counts, options)
  local ids, tokens, size = {}, {}, 0
  local function id_of(token)
    if not ids[token] then
      ids[token], tokens[size], size = size, token, size + 1
    end
    return ids[token]
  end
  for _, token in ipairs(options.special_tokens) do id_of(token) end
  local points, of_byte = {}, {}
  for value = 0, 255 do points[value + 1] = bytes.points[value] end
  table.sort(points)
  for _, point in ipairs(points) do of_byte[bytes.byte[point]] = id_of(bytes.char[bytes.byte[point]]) end

  -- The words, in an order that does not depend on the table that counts them.
  local listed, words, weights, totals, where = {}, {}, {}, {}, {}
  for piece in pairs(counts) do listed[#listed + 1] = piece end
  table.sort(listed)
  local function change(at, a, b, by)
    local key = a * SHIFT + b
    totals[key] = (totals[key] or 0) + by * weights[at]
    if by > 0 then
      local list = where[key]
      if not list then where[key] = { at } elseif list[#list] ~= at then list[#list + 1] = at end
    end
  end
  for at, piece in ipairs(listed) do
    local word, lengths = {}, {}
    for i = 1, #piece do word[i], lengths[i] = of_byte[piece:byte(i)], 1 end
    words[at], weights[at] = { word, lengths }, counts[piece]
    for i = 1, #word - 1 do change(at, word[i], word[i + 1], 1) end
  end
  local heap, merges = {}, {}
  local function take_up()
    for key, list in pairs(where) do
      if totals[key] > 0 then push(heap, { totals[key], key, list }) end
    end
    where = {}
  end
  take_up()
  while size < options.vocabulary_size and #heap > 0 do
    local top = pop(heap)
    local key = top[2]
    if top[1] ~= totals[key] then      -- it has fewer by now
      top[1] = totals[key]
      push(heap, top)
    else
      if top[1] < 1 or top[1] < options.min_frequency then break end
      local a, b = floor(key / SHIFT), key % SHIFT
      merges[#merges + 1] = tokens[a] .. " " .. tokens[b]
      local made, at = id_of(tokens[a] .. tokens[b]), 0
      local function count(left, right, by) change(at, left, right, by) end
      for _, place in ipairs(top[3]) do
        at = place
        merge(words[place], a, b, made, options.max_token_length or math.huge, count)
      end
      take_up()
    end
  end
  return ids, merges
end
