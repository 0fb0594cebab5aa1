-- decoders.lua: how a tokenizer's file makes a text of tokens: its "decoder". A record becomes a function of a list of tokens, which
-- returns a list of texts; these are joined.

local bytes = require "flow.text.bytes"
local fields = require "flow.text.fields"
local unicode = require "flow.text.unicode"

local decoders = {}
local kinds = {}

local function each(f)
  return function(list)
    local made = {}
    for i, token in ipairs(list) do made[i] = f(token, i, #list) end
    return made
  end
end

-- A text with each match of find(cp, n, from) replaced.
local function replaced(text, find, content)
  local points, made, at = unicode.points(text), {}, 0
  local cp = {}
  for i, value in ipairs(points) do cp[i - 1] = value end
  while at < #points do
    local from, to = find(cp, #points, at)
    if not from then break end
    for i = at, from - 1 do made[#made + 1] = unicode.encode(cp[i]) end
    made[#made + 1], at = content, to
  end
  if at == 0 then return text end
  for i = at, #points - 1 do made[#made + 1] = unicode.encode(cp[i]) end
  return table.concat(made)
end

function kinds.Sequence(record)
  local list = {}
  for i, own in ipairs(record:records "decoders") do list[i] = fields.kind(own, kinds, "decoder") end
  return function(tokens)
    for _, f in ipairs(list) do tokens = f(tokens) end
    return tokens
  end
end

-- A token with characters that stand for no bytes, as added ones have, is its own text.
function kinds.ByteLevel()
  return function(tokens)
    local made = {}
    for i, token in ipairs(tokens) do made[i] = bytes.decoded(token) or token end
    return { unicode.valid(table.concat(made)) }
  end
end

function kinds.Metaspace(record)
  local mark = record:text("replacement", "▁")
  local scheme = record:choice("prepend_scheme", { "first", "never", "always" }, "always")
  if not record:boolean("add_prefix_space", true) then scheme = "never" end
  local find = require("flow.text.buffer").finder(mark)
  return each(function(token, i) return replaced(token, find, i == 1 and scheme ~= "never" and "" or " ") end)
end

-- <0xE6> and the like are bytes; those of a run that is not UTF-8 are U+FFFD each.
function kinds.ByteFallback()
  return function(tokens)
    local made, run = {}, {}
    local function flush()
      if #run == 0 then return end
      local text = table.concat(run)
      made[#made + 1] = unicode.valid(text) == text and text or ("\239\191\189"):rep(#text)
      run = {}
    end
    for _, token in ipairs(tokens) do
      local digits = token:match "^<0x(%x%x)>$"
      if digits then run[#run + 1] = string.char(tonumber(digits, 16))
      else
        flush()
        made[#made + 1] = token
      end
    end
    flush()
    return made
  end
end

function kinds.Fuse() return function(tokens) return { table.concat(tokens) } end end

function kinds.Replace(record)
  local find, content = record:pattern "pattern", record:text "content"
  return each(function(token) return replaced(token, find, content) end)
end

function kinds.Strip(record)
  local content, start, stop = record:text "content", record:whole("start", 0), record:whole("stop", 0)
  return each(function(token)
    for _ = 1, start do
      if token:sub(1, #content) ~= content then break end
      token = token:sub(#content + 1)
    end
    for _ = 1, stop do
      if token == "" or token:sub(-#content) ~= content then break end
      token = token:sub(1, -#content - 1)
    end
    return token
  end)
end

function kinds.BPEDecoder(record)
  local find = require("flow.text.buffer").finder(record:text("suffix", "</w>"))
  return each(function(token, i, n) return replaced(token, find, i < n and " " or "") end)
end

-- The text of a list of tokens. record: of the file, or nil: tokens with spaces between them.
function decoders.of(record)
  local f = record and fields.kind(record, kinds, "decoder")
  return function(tokens)
    if not f then return table.concat(tokens, " ") end
    return table.concat(f(tokens))
  end
end

return decoders
