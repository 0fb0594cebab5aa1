-- stream.lua: decodes ids that come one after the other. Decoders look at neighbouring tokens, so the last ids are decoded with and without
-- the new one, and the difference is the new text. Bytes of an unfinished character are held back.

local object = require "flow.object"
local signature = require "flow.signature"

local takes = signature.takes
local Stream = object.class("DecodeStream", nil, "stream")
local REPLACEMENT = "\239\191\189"
local MOST_HELD = 4      -- ids: a character has at most four bytes, so more ids cannot be one that is unfinished

-- _ids: the last ids, which are decoded again; _done: the number of them whose text was returned; _prefix: that text.
local function new(tokenizer, skips)
  return object.new(Stream, { _tokenizer = tokenizer, _skips = skips, _ids = {}, _done = 0, _prefix = "" })
end

local function text_of(self, ids) return self._tokenizer._decode(self._tokenizer:_tokens(ids, self._skips)) end

local function set(self, ids, done, prefix)
  rawset(self, "_ids", ids)
  rawset(self, "_done", done)
  rawset(self, "_prefix", prefix)
end

-- Returns the text of the ids after the prefix. The new ids stay, as the left neighbours of the next ones.
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

-- Returns the text that was held back, with U+FFFD for incomplete characters, and resets the stream.
function Stream:finish()
  local text = text_of(self, self._ids):sub(#self._prefix + 1)
  set(self, {}, 0, "")
  return text
end

return { new = new }
