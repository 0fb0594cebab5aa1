-- stream.lua: the text of ids that come one after the other. What they add is what decoding the last of them with and without the new one
-- differs by, since decoders look at neighbours; bytes of a character that is not finished are held back.

local object = require "flow.object"
local signature = require "flow.signature"

local takes = signature.takes
local Stream = object.class("DecodeStream", nil, "stream")
local REPLACEMENT = "\239\191\189"
local MOST_HELD = 4      -- ids: a character has at most four bytes, so that what is held longer is not going to be one

-- _ids: those that are decoded again; _done: how many of them have been given out; _prefix: their text.
local function new(tokenizer, skips)
  return object.new(Stream, { _tokenizer = tokenizer, _skips = skips, _ids = {}, _done = 0, _prefix = "" })
end

local function text_of(self, ids) return self._tokenizer._decode(self._tokenizer:_tokens(ids, self._skips)) end

local function set(self, ids, done, prefix)
  rawset(self, "_ids", ids)
  rawset(self, "_done", done)
  rawset(self, "_prefix", prefix)
end

-- Gives out what the ids say beyond the prefix. The ids that were new become those that the next ones are decoded with.
local function give(self, text)
  local kept = {}
  for i = self._done + 1, #self._ids do kept[#kept + 1] = self._ids[i] end
  local added = text:sub(#self._prefix + 1)
  set(self, kept, #kept, text_of(self, kept))
  return added
end

takes "id: whole"
function Stream:step(id)
  self._ids[#self._ids + 1] = id
  local ok, text = pcall(text_of, self, self._ids)
  if not ok then
    self._ids[#self._ids] = nil      -- as if it had not been called
    error(text, 0)
  end
  local is_unfinished = text:sub(-3) == REPLACEMENT and #self._ids - self._done < MOST_HELD
  if is_unfinished or #text <= #self._prefix then return "" end
  return give(self, text)
end

-- What is held back, with U+FFFD for bytes that are no character; the stream begins anew.
function Stream:finish()
  local text = text_of(self, self._ids):sub(#self._prefix + 1)
  set(self, {}, 0, "")
  return text
end

return { new = new }
