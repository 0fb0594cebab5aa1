-- post_processors.lua: what a tokenizer's file adds to the ids of a text, or of a pair of them, such as "[CLS]" before them: its
-- "post_processor". A record becomes { process = f(list of one or two encodings, adds special tokens) that returns such a list,
-- added = how many tokens it adds to one or two }. Encodings are { ids =, tokens =, first =, last =, type_ids =, special = }, lists of
-- equal length, and text =; first and last are the bytes of the text.

local describe = require("flow.errors").describe
local fields = require "flow.text.fields"
local unicode = require "flow.text.unicode"

local post_processors = {}
local kinds = {}

function post_processors.empty()
  return { ids = {}, tokens = {}, first = {}, last = {}, type_ids = {}, special = {} }
end

-- Adds one token at the end; special: it comes from no text.
local function append(to, id, token, first, last, type_id, special)
  local n = #to.ids + 1
  to.ids[n], to.tokens[n], to.first[n], to.last[n], to.type_ids[n], to.special[n] = id, token, first, last, type_id, special
end
post_processors.append = append

-- Adds an encoding at the end of another; type_id: what they get, or nil: their own.
local function add_all(to, from, type_id)
  for i, id in ipairs(from.ids) do
    append(to, id, from.tokens[i], from.first[i], from.last[i], type_id or from.type_ids[i], from.special[i])
  end
end

---- offsets without white space ----------------------------------------------------------------------------------------------------

local SPACE = 0x120      -- what stands for a space in byte-level tokens

local function is_space(point) return point == SPACE or unicode.has(unicode.white_space, point) end

-- How many characters of white space a token begins and ends with.
local function spaces_around(token)
  if token:find "^[!-\127]" and token:find "[!-\127]$" then return 0, 0 end
  local points = unicode.points(token)
  local before, after = 0, 0
  while before < #points and is_space(points[before + 1]) do before = before + 1 end
  while after < #points and is_space(points[#points - after]) do after = after + 1 end
  return before, after
end

-- The range of bytes first to last without `before` characters at its start and `after` at its end.
local function shortened(text, first, last, before, after)
  for _ = 1, before do
    if first > last then break end
    repeat first = first + 1 until first > #text or not text:find("^[\128-\191]", first)
  end
  for _ = 1, after do
    if last < first then break end
    while text:find("^[\128-\191]", last) do last = last - 1 end
    last = last - 1
  end
  return first, last
end

-- Leaves white space out of the bytes of each token. prefix: a space was put in front of the text, which is not in its bytes.
local function trim(encoding, prefix)
  for i, token in ipairs(encoding.tokens) do
    local before, after = spaces_around(token)
    local first, last = encoding.first[i], encoding.last[i]
    if (i == 1 or first <= 1) and prefix and before == 1 then before = 0 end
    encoding.first[i], encoding.last[i] = shortened(encoding.text, first, last, before, after)
  end
end

---- the kinds ------------------------------------------------------------------------------------------------------------------------

local function none() return 0 end

function kinds.ByteLevel(record)
  local trims, prefix = record:boolean("trim_offsets", true), record:boolean("add_prefix_space", true)
  return { added = none, process = function(list)
    for _, encoding in ipairs(trims and list or {}) do trim(encoding, prefix) end
    return list
  end }
end

function kinds.Sequence(record)
  local parts = {}
  for i, own in ipairs(record:records "processors") do parts[i] = fields.kind(own, kinds, "post-processor") end
  return {
    added = function(count)
      local sum = 0
      for _, part in ipairs(parts) do sum = sum + part.added(count) end
      return sum
    end,
    process = function(list, adds)
      for _, part in ipairs(parts) do list = part.process(list, adds) end
      return list
    end,
  }
end

-- The parts of a template: { id =, token = } lists of special tokens, or the number of a text, each with its type.
local function template_of(record, name, specials)
  local entries = {}
  for i, own in ipairs(record:records(name)) do
    local special, sequence = own:object "SpecialToken", own:object "Sequence"
    local part = special or sequence or own:fail("%s is neither a SpecialToken nor a Sequence", own.place)
    entries[i] = { type_id = part:whole("type_id", 0) }
    if special then
      local token = special:text "id"
      entries[i].tokens = specials[token] or special:fail("%s: special_tokens lacks %q", special.place, token)
    else
      entries[i].sequence = sequence:choice("id", { "A", "B" }) == "A" and 1 or 2
    end
  end
  return entries
end

function kinds.TemplateProcessing(record)
  local specials, listed = {}, record:object "special_tokens"
  for name in pairs(listed and listed.values or {}) do
    local own = listed:object(name)
    local ids = own:list("ids", function(id, place)
      if type(id) ~= "number" or id < 0 or id % 1 ~= 0 or id > fields.MOST then
        own:fail("%s is %s, expected a whole number from 0 to %d", place, describe(id), fields.MOST)
      end
      return id
    end)
    local tokens = own:list("tokens", function(token, place)
      if type(token) ~= "string" then own:fail("%s is %s, expected a string", place, describe(token)) end
      return token
    end)
    if #ids ~= #tokens then own:fail("%s has %d ids and %d tokens", own.place, #ids, #tokens) end
    specials[name] = { ids = ids, tokens = tokens }
  end
  local templates = { template_of(record, "single", specials), template_of(record, "pair", specials) }
  return {
    added = function(count)
      local sum = 0
      for _, entry in ipairs(templates[count]) do sum = sum + (entry.tokens and #entry.tokens.ids or 0) end
      return sum
    end,
    process = function(list, adds)
      local made = post_processors.empty()
      for _, entry in ipairs(templates[#list]) do
        if entry.sequence then
          if list[entry.sequence] then add_all(made, list[entry.sequence], entry.type_id) end
        elseif adds then
          for i, id in ipairs(entry.tokens.ids) do append(made, id, entry.tokens.tokens[i], 0, 0, entry.type_id, 1) end
        end
      end
      return { made }
    end,
  }
end

-- A token and its id in a list of two.
local function pair_of(record, name)
  local list = record:list(name, function(value) return value end)
  if type(list[1]) ~= "string" or type(list[2]) ~= "number" then
    record:fail("%s is %s, expected a list [ token, id ]", record:path(name), describe(record:get(name)))
  end
  return { token = list[1], id = list[2] }
end

local function framed(record, between, second_type, before)
  local start, stop = pair_of(record, "cls"), pair_of(record, "sep")
  return {
    added = function(count) return count == 1 and 2 or 3 + between - 1 end,
    process = function(list, adds)
      before(list)
      if not adds then return list end
      local made = post_processors.empty()
      append(made, start.id, start.token, 0, 0, 0, 1)
      for i, encoding in ipairs(list) do
        local type_id = i == 2 and second_type or 0
        for _ = 1, i == 2 and between - 1 or 0 do append(made, stop.id, stop.token, 0, 0, type_id, 1) end
        add_all(made, encoding, type_id)
        append(made, stop.id, stop.token, 0, 0, type_id, 1)
      end
      return { made }
    end,
  }
end

function kinds.BertProcessing(record) return framed(record, 1, 1, none) end

function kinds.RobertaProcessing(record)
  local trims, prefix = record:boolean("trim_offsets", true), record:boolean("add_prefix_space", true)
  return framed(record, 2, 0, function(list)
    for _, encoding in ipairs(list) do
      if trims then trim(encoding, prefix) end
      for i = 1, #encoding.ids do encoding.type_ids[i] = 0 end
    end
  end)
end

-- The processor of a record, or of none. Encodings that it leaves apart are joined.
function post_processors.of(record)
  local own = record and fields.kind(record, kinds, "post-processor") or { added = none, process = function(list) return list end }
  return { added = own.added, process = function(list, adds)
    list = own.process(list, adds)
    for i = 2, #list do add_all(list[1], list[i]) end
    return list[1]
  end }
end

return post_processors
