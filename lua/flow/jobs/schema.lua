-- schema.lua: reads a tree (document.lua) by a record of its fields, and says of each that it does not know which one is meant.
--
-- A record is { title = "trainingInput", fields = { scaleTier = "text", workerConfig = { ...another record... }, ... } }; values are
-- of the kinds of READERS below, a record, or { list = record }. The name of a transparent record is not part of its fields' names. What
-- is read is a table of plain values in which schema.place(read, field) still knows where a field was written, and
-- schema.path(read, field) what it is called.

local errors = require "flow.errors"
local document = require "flow.jobs.document"

local schema = {}

local ABOUT = {}      -- the key under which a read table keeps its places

-- Where a field was written; without it, or for one that is not there, the place of the whole.
function schema.place(read, field)
  local about = read[ABOUT]
  return field and about.places[field] or about.place
end

-- What a field is called, with what it is in: masterConfig.imageUri.
function schema.path(read, field)
  local about = read[ABOUT]
  if not field then return about.path end
  return (about.path ~= "" and about.path .. "." or "") .. (about.names[field] or field)
end

-- A read table without fields, for what was not written.
function schema.empty(place, path) return { [ABOUT] = { place = place, path = path or "", places = {}, names = {}, meant = {} } } end

-- Reports of a field: the text continues a sentence that begins with its name.
function schema.error(report, read, field, text, ...)
  report:error(schema.place(read, field), "%s " .. text, schema.path(read, field), ...)
end
function schema.warning(report, read, field, text, ...)
  report:warning(schema.place(read, field), "%s " .. text, schema.path(read, field), ...)
end

-- Whether a field was written, be it with a value that is not valid or with a typo in its name: then it is not missing.
function schema.written(read, field)
  local about = read[ABOUT]
  return about.places[field] ~= nil or about.meant[field] ~= nil
end

-- Fields of a read table in the order of their names.
function schema.each(read)
  local names = {}
  for name in pairs(read) do if type(name) == "string" then names[#names + 1] = name end end
  table.sort(names)
  return ipairs(names)
end

local function wrong(context, node, path, expected)
  context.report:error(node.place, "%s is %s, it should be %s", path, document.describe(node), expected)
end

local MOST_COUNT = 16384

local READERS = {}

function READERS.text(context, node, path)
  if node.kind == "scalar" and not document.is_null(node) then return node.text end
  wrong(context, node, path, "a text")
end

function READERS.texts(context, node, path)
  if node.kind ~= "list" then return wrong(context, node, path, "a list of texts: [\"a\", \"b\"]") end
  local texts = {}
  for i, item in ipairs(node.items) do texts[#texts + 1] = READERS.text(context, item, ("%s[%d]"):format(path, i - 1)) end
  return texts
end

-- A whole number from 0, also as a text: JSON has no numbers of 64 bits.
function READERS.count(context, node, path)
  local number = node.kind == "scalar" and node.text:find "^%d+$" and tonumber(node.text)
  if not number then return wrong(context, node, path, "a whole number from 0") end
  if number > MOST_COUNT then
    return context.report:error(node.place, "%s is %s, at most %d are possible", path, node.text:sub(1, 30), MOST_COUNT)
  end
  return number
end

function READERS.flag(context, node, path)
  local value = document.boolean(node)
  if value == nil then wrong(context, node, path, "true or false") end
  return value
end

-- Seconds with an s: "7200s". The value is a number.
function READERS.duration(context, node, path)
  local seconds = node.kind == "scalar" and node.text:match "^(%d+%.?%d*)s$"
  if seconds then return tonumber(seconds) end
  local bare = node.kind == "scalar" and node.text:match "^%d+$"
  context.report:error(node.place, "%s is %s, it should be seconds with an s, such as %s", path, document.describe(node),
    bare and ("%ss"):format(bare) or "7200s")
end

-- Names with texts.
function READERS.labels(context, node, path)
  if node.kind ~= "map" then return wrong(context, node, path, "a map of names and texts") end
  local labels = {}
  for _, key in ipairs(node.keys) do labels[key] = READERS.text(context, node.entries[key], path .. "." .. key) end
  return labels
end

-- Whatever it is: what only the service itself understands.
function READERS.any(_, node) return document.to_value(node) end

-- A key as fields are called: worker_pool_specs is workerPoolSpecs.
function schema.canonical(key)
  return (key:gsub("_(%l)", function(letter) return letter:upper() end))
end

-- A field's name as somebody spells it who writes the other one.
local function spelled(field, key)
  return key:find("_", 1, true) and field:gsub("%u", function(letter) return "_" .. letter:lower() end) or field
end

local read_kind

-- A map as a record: a table of its fields, with what is known about it under ABOUT (places, names). Fields that the record does not have,
-- and those that are said twice in two spellings, are reported; null counts as not given. If the node is not a map, that is reported and
-- the result is nil. path: of the node, for messages.
local function read_record(context, node, record, path)
  if document.is_null(node) then return schema.empty(node.place, path) end
  if node.kind ~= "map" then return wrong(context, node, path ~= "" and path or record.title or "the configuration", "a map") end
  local read = schema.empty(node.place, path)
  local about = read[ABOUT]
  for _, key in ipairs(node.keys) do
    local child = node.entries[key]
    local field = record.fields[key] and key or context.snake and schema.canonical(key) or key
    local kind = record.fields[field]
    local full = (path ~= "" and path .. "." or "") .. key
    if not kind then
      local names = record.fields
      local reason = record.elsewhere and record.elsewhere[key]
      local nearest = errors.nearest(schema.canonical(key), names)
      if nearest then about.meant[nearest] = true end
      context.report:error(child.key_place or child.place, "%s is not known%s", full,
        reason and ": " .. reason
          or nearest and (": %s is meant?"):format(context.snake and spelled(nearest, key) or nearest)
          or (": %s has %s"):format(record.title or "this", schema.listed(names)))
    elseif about.places[field] then
      context.report:error(child.key_place or child.place, "%s says the same as %s: keep one", full, schema.path(read, field))
    elseif not document.is_null(child) then
      about.places[field], about.names[field] = child.place, key
      read[field] = read_kind(context, child, kind, kind.transparent and path or full)
    end
  end
  return read
end

-- The names of a table in order, with commas.
function schema.listed(names)
  local list = require("flow.names").sorted(names)
  return table.concat(list, ", ")
end

-- A node as its kind says: the name of a reader, a record, or { list = record }.
function read_kind(context, node, kind, path)
  if type(kind) == "string" then return READERS[kind](context, node, path) end
  if not kind.list then return read_record(context, node, kind, path) end
  if node.kind ~= "list" then return wrong(context, node, path, "a list") end
  local list = schema.empty(node.place, path)
  for i, item in ipairs(node.items) do list[i] = read_record(context, item, kind.list, ("%s[%d]"):format(path, i - 1)) end
  return list
end

-- report: a findings object. snake: whether fields may be written with underscores, as Python does. Values that are not what their field
-- takes are reported and left out.
function schema.read(node, record, report, snake, path)
  return read_record({ report = report, snake = snake }, node, record, path or "") or schema.empty(node.place, path)
end

return schema
