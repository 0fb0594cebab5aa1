-- normalizers.lua: what a tokenizer's file changes in texts before they are cut: its "normalizer". Each record gives a function of a
-- buffer (buffer.lua) that returns another one. fields: see fields.lua.

local buffer = require "flow.text.buffer"
local fields = require "flow.text.fields"
local unicode = require "flow.text.unicode"

local normalizers = {}
local kinds = {}

for _, form in ipairs { "NFC", "NFD", "NFKC", "NFKD" } do
  kinds[form] = function() return function(b) return require "flow.text.normal_forms" (form, b) end end
end

function kinds.Sequence(record)
  local list = {}
  for i, own in ipairs(record:records "normalizers") do list[i] = normalizers.of(own) end
  return function(b)
    for _, f in ipairs(list) do b = f(b) end
    return b
  end
end

function kinds.Lowercase()
  return function(b)
    local builder = buffer.builder(b)
    for i = 0, b.n - 1 do
      local first, second = unicode.lower(b.cp[i])
      builder:copy(b, i, first)
      if second then builder:copy(b, i, second) end
    end
    return builder:done()
  end
end

-- Marks that stand apart; NFD before it takes them off their letters.
function kinds.StripAccents()
  return function(b)
    if not b.text:find "[\128-\255]" then return b end
    local builder = buffer.builder(b)
    for i = 0, b.n - 1 do
      if not unicode.has(unicode.marks, b.cp[i]) then builder:copy(b, i) end
    end
    return builder:done()
  end
end

-- What stands for a match is said to come from its last character.
function kinds.Replace(record)
  local find = record:pattern "pattern"
  local content = unicode.points(record:text "content")
  return function(b)
    local matches = buffer.matches(b, 0, b.n, find)
    if #matches == 0 then return b end
    local builder, at = buffer.builder(b), 0
    for m = 1, #matches, 2 do
      for i = at, matches[m] - 1 do builder:copy(b, i) end
      at = matches[m + 1]
      for _, value in ipairs(content) do builder:copy(b, at - 1, value) end
    end
    for i = at, b.n - 1 do builder:copy(b, i) end
    return builder:done()
  end
end

-- What is put in front is said to come from the first character.
function normalizers.prepended(b, content)
  if b.n == 0 then return b end
  local builder = buffer.builder(b)
  for _, value in ipairs(content) do builder:copy(b, 0, value) end
  for i = 0, b.n - 1 do builder:copy(b, i) end
  return builder:done()
end

function kinds.Prepend(record)
  local content = unicode.points(record:text "prepend")
  return function(b) return normalizers.prepended(b, content) end
end

function kinds.Strip(record)
  local left, right = record:boolean("strip_left", true), record:boolean("strip_right", true)
  return function(b)
    local first, stop = 0, b.n
    while left and first < stop and unicode.has(unicode.white_space, b.cp[first]) do first = first + 1 end
    while right and stop > first and unicode.has(unicode.white_space, b.cp[stop - 1]) do stop = stop - 1 end
    local builder = buffer.builder(b)
    for i = first, stop - 1 do builder:copy(b, i) end
    return builder:done()
  end
end

-- The function of a record, or nil of none.
function normalizers.of(record)
  return record and fields.kind(record, kinds, "normalizer")
end

return normalizers
