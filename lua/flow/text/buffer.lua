-- buffer.lua: a text on its way through a tokenizer: code points, and for each of them the bytes of the text that was given from which it
-- comes. A piece is a part of a buffer, from code point `first` up to but without `stop`, counted from 0.
--
--   { text =, n = code points, cp = their array, starts = where each begins in text, from 0, with the end after the last one,
--     base = where text begins in what was given, from 0; from, to = arrays of first and last bytes there, from 1; nil: as in text,
--     shift = where the section that this is begins in what was given, from 0 }

local native = require "flow.ffi"
local unicode = require "flow.text.unicode"

local encode = unicode.encode
local buffer = {}

-- The buffer of a text that begins after `base` bytes of what was given. Bytes that are not UTF-8 become U+FFFD.
function buffer.read(text, base)
  local size = #text
  local cp, starts = native.array("int32_t", size + 1), native.array("int32_t", size + 1)
  local n, is_valid = unicode.decode(native.cast("const unsigned char *", text), size, cp, starts)
  local made = { text = text, n = n, cp = cp, starts = starts, base = base, shift = base }
  if is_valid then return made end
  local builder = buffer.builder(made)
  for i = 0, n - 1 do builder:add(cp[i], base + starts[i] + 1, base + starts[i + 1]) end
  return builder:done()
end

-- The first and the last byte, in the text that was given, of the code points from first up to but without stop.
function buffer.span(b, first, stop)
  if b.from then return b.from[first], b.to[stop - 1] end
  return b.base + b.starts[first] + 1, b.base + b.starts[stop]
end

-- The text of a piece.
function buffer.piece(b, first, stop) return b.text:sub(b.starts[first] + 1, b.starts[stop]) end

-- Where a piece begins in what was given, from 0.
function buffer.shift(b, first)
  if first == 0 then return b.shift end
  return buffer.span(b, first, first + 1) - 1
end

local Builder = {}
Builder.__index = Builder

-- Makes a buffer code point by code point; shift is that of another one.
function buffer.builder(like)
  return setmetatable({ n = 0, cp = {}, from = {}, to = {}, shift = like.shift }, Builder)
end

function Builder:add(value, from, to)
  local n = self.n
  self.cp[n + 1], self.from[n + 1], self.to[n + 1] = value, from, to
  self.n = n + 1
end

-- Adds a code point of another buffer, or `value` in its place.
function Builder:copy(b, i, value)
  local from, to = buffer.span(b, i, i + 1)
  self:add(value or b.cp[i], from, to)
end

function Builder:done()
  local n = self.n
  local cp, starts = native.array("int32_t", n + 1), native.array("int32_t", n + 1)
  local from, to = native.array("int32_t", n + 1), native.array("int32_t", n + 1)
  local parts, at = {}, 0
  for i = 0, n - 1 do
    local part = encode(self.cp[i + 1])
    parts[i + 1] = part
    cp[i], starts[i], from[i], to[i], at = self.cp[i + 1], at, self.from[i + 1], self.to[i + 1], at + #part
  end
  starts[n] = at
  return { text = table.concat(parts), n = n, cp = cp, starts = starts, base = 0, from = from, to = to, shift = self.shift }
end

-- Makes a buffer of a piece.
function buffer.slice(b, first, stop)
  if first == 0 and stop == b.n then return b end
  local builder = buffer.builder { shift = buffer.shift(b, first) }
  for i = first, stop - 1 do builder:copy(b, i) end
  return builder:done()
end

-- Where matches of find(cp, n, from) are in [first, stop): a list first, stop, first, stop...; see pattern_code.lua.
function buffer.matches(b, first, stop, find)
  local list, at = {}, 0
  local cp, n = b.cp + first, stop - first      -- patterns do not see what is before the piece
  while at < n do
    local from, to = find(cp, n, at)
    if not from then break end
    list[#list + 1], list[#list + 2], at = first + from, first + to, to
  end
  return list
end

-- find(cp, n, from) for a plain text.
function buffer.finder(text)
  local points = unicode.points(text)
  local count, head = #points, points[1]
  return function(cp, n, from)
    for i = from, n - count do
      if cp[i] == head then
        local k = 1
        while k < count and cp[i + k] == points[k + 1] do k = k + 1 end
        if k == count and count > 0 then return i, i + count end
      end
    end
    return nil
  end
end

return buffer
