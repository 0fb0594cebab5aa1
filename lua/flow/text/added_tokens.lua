-- added_tokens.lua: tokens of a file that are found in texts before the model sees them: its "added_tokens", such as "<|endoftext|>". Those
-- that are not normalized are looked for in the text as it is given, the others in what the normalizer makes of it, after it changed
-- them, too. Of several at one place the longest one counts.

local buffer = require "flow.text.buffer"
local unicode = require "flow.text.unicode"

local added_tokens = {}

local Tokens = {}
Tokens.__index = Tokens

-- list: { id =, content =, special =, single_word =, lstrip =, rstrip = }; text_of(token): what is looked for.
local function tree_of(list, text_of)
  local root, is_empty = {}, true
  for _, token in ipairs(list) do
    local node, points = root, unicode.points(text_of(token))
    for _, value in ipairs(points) do
      node[value] = node[value] or {}
      node = node[value]
    end
    if #points > 0 then node.token, is_empty = token, false end
  end
  return not is_empty and root or nil
end

-- The tokens of a file; normalize(buffer): its normalizer, or nil.
function added_tokens.new(list, normalize)
  local plain, normalized = {}, {}
  for _, token in ipairs(list) do table.insert(token.normalized and normalized or plain, token) end
  return setmetatable({
    plain = tree_of(plain, function(token) return token.content end),
    normalized = tree_of(normalized, function(token)
      token.decoded = normalize and normalize(buffer.read(token.content, 0)).text or token.content
      return token.decoded
    end),
    normalize = normalize }, Tokens)
end

-- The longest token of a tree at i, and where it stops.
local function token_at(tree, cp, n, i)
  local node, token, stop = tree[cp[i]], nil, nil
  while node do
    i = i + 1
    if node.token then token, stop = node.token, i end
    node = i < n and node[cp[i]]
  end
  return token, stop
end

local function is(set, b, i) return i >= 0 and i < b.n and unicode.has(set, b.cp[i]) end

-- Calls give(token, first, stop) for tokens of a tree in a buffer, and give(nil, first, stop) for what is between. skips: special tokens
-- are not looked for.
local function cut(tree, b, skips, give)
  local cp, n, at, i = b.cp, b.n, 0, 0
  while i < n do
    local token, stop
    if tree[cp[i]] then token, stop = token_at(tree, cp, n, i) end
    if not token then i = i + 1
    else
      local first = i
      i = stop
      local is_inside = token.single_word and (is(unicode.joined_word, b, first - 1) or is(unicode.joined_word, b, stop))
      if not is_inside and not (skips and token.special) then
        while token.lstrip and first > at and is(unicode.white_space, b, first - 1) do first = first - 1 end
        while token.rstrip and is(unicode.white_space, b, stop) do stop = stop + 1 end
        if first > at then give(nil, at, first) end
        give(token, math.max(first, at), stop)
        at = stop
      end
    end
  end
  if at < n then give(nil, at, n) end
end

-- Splits a text at its added tokens, in order. Calls section(buffer) for each normalized part between them, and found(token, first, last,
-- text) for each token: its bytes in the text, and the characters that were matched, with the white space that belongs to the token.
function Tokens:cut(text, skips, section, found)
  local function of_normalized(b)
    if self.normalize then b = self.normalize(b) end
    if not self.normalized then return section(b) end
    cut(self.normalized, b, skips, function(token, first, stop)
      if token then
        local from, to = buffer.span(b, first, stop)
        return found(token, from, to, buffer.piece(b, first, stop))
      end
      section(buffer.slice(b, first, stop))
    end)
  end
  local whole = buffer.read(text, 0)
  if not self.plain then return of_normalized(whole) end
  cut(self.plain, whole, skips, function(token, first, stop)
    if token then
      local from, to = buffer.span(whole, first, stop)
      return found(token, from, to, buffer.piece(whole, first, stop))
    end
    if first == 0 and stop == whole.n then return of_normalized(whole) end
    if whole.from then return of_normalized(buffer.slice(whole, first, stop)) end
    of_normalized(buffer.read(buffer.piece(whole, first, stop), whole.starts[first]))
  end)
end

return added_tokens
