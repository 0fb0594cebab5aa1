-- bytes.lua: the characters that stand for bytes in vocabularies of byte-level tokenizers, as GPT-2 chose them: bytes that print stand for
-- themselves, the others, in order, for U+0100 and those after it.

local unicode = require "flow.text.unicode"

local bytes = { points = {}, char = {}, byte = {} }      -- by byte: code point, text; by code point: byte

local following = 256
for value = 0, 255 do
  local point = value
  if value < 33 or value > 126 and value < 0xa1 or value == 0xad then
    point = following
    following = following + 1
  end
  bytes.points[value], bytes.char[value], bytes.byte[point] = point, unicode.encode(point), value
end

-- The bytes that a token stands for; nil if it has characters that stand for none.
function bytes.decoded(token)
  if not token:find "[\128-\255]" and not token:find "[%c ]" then return token end
  local list = {}
  for i, point in ipairs(unicode.points(token)) do
    local value = bytes.byte[point]
    if not value then return nil end
    list[i] = string.char(value)
  end
  return table.concat(list)
end

-- A text in the characters that stand for its bytes.
function bytes.encoded(text)
  return (text:gsub(".", function(one) return bytes.char[one:byte()] end))
end

return bytes
