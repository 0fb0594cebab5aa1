-- init.lua: flow.help: for each public function, class and method what it takes, what it does, and an example. All of it comes from one
-- record for each: what it takes is above the function (signature.lua) or in C, the sentence and the example are in
-- texts.lua. Pages (manual.lua), completions (shells.lua) and annotations for editors (annotations.lua) are made from these records.
--
-- The room: what is said of public functions. May use: nothing.

local errors = require "flow.errors"
local signature = require "flow.signature"
local names = require "flow.reference.names"

local reference = { flow = nil }      -- what require "flow" returns; its init.lua sets it

local items, by_name, by_value      -- of walk.lua, with doc and example added when they are asked for

local function load()
  if items then return end
  items, by_name, by_value = require "flow.reference.walk"(reference.flow), {}, {}
  for _, item in ipairs(items) do
    if item.f then by_value[item.f] = item end
    for _, name in ipairs(item.names) do by_name[name] = by_name[name] or item end
  end
  for _, item in ipairs(items) do by_name[item.name] = item end
end

local function complete(item)
  if item and not item.read then
    local text = require("flow.reference.texts").of(item.name)
    item.doc, item.example, item.read = text.doc, text.example, true
  end
  return item
end

-- The list of all: { name =, names =, f =, kind =, doc =, example = }, sorted by name.
function reference.all()
  load()
  for _, item in ipairs(items) do complete(item) end
  return items
end

---- finding a name -------------------------------------------------------------------------------------------------------------

-- Those whose name is the text, or ends in it after a dot or a colon; letters may be capital or small, ":" and "." are the same.
local function candidates(text)
  local found, wanted = {}, text:gsub(":", "."):lower()
  for name, item in pairs(by_name) do
    local plain = name:gsub(":", "."):lower()
    local rank = plain == wanted and 1 or plain == "flow." .. wanted and 2 or plain:sub(-#wanted - 1) == "." .. wanted and 3
    if rank then found[#found + 1] = { name = name, item = item, rank = rank, exact = name:find(text, 1, true) and 0 or 1 } end
  end
  table.sort(found, function(a, b)
    if a.rank ~= b.rank then return a.rank < b.rank end
    if a.exact ~= b.exact then return a.exact < b.exact end
    if #a.name ~= #b.name then return #a.name < #b.name end
    return a.name < b.name
  end)
  return found
end

-- The item of a value or of a name, nil if there is none; then the list of the other names that the text may mean.
function reference.find(what)
  load()
  if type(what) ~= "string" then
    local metatable = type(what) == "table" and getmetatable(what)
    local class = type(metatable) == "table" and rawget(metatable, "class")
    local item = by_value[what] or class and by_value[class]
    if not item and class then item = by_name["flow.layers." .. class.name] or by_name["flow." .. class.name] end
    return complete(item), {}
  end
  local found, others, seen = candidates(what), {}, {}
  local first = found[1]
  for _, candidate in ipairs(found) do
    if candidate.item ~= first.item and not seen[candidate.item] then
      others[#others + 1], seen[candidate.item] = candidate.item.name, true
    end
  end
  return complete(first and first.item), others
end

---- pages ----------------------------------------------------------------------------------------------------------------------

local INDENT, WIDTH = "  ", 100

-- "units: a whole number" for each parameter of a list.
local function parameter_lines(list, lines)
  for _, parameter in ipairs(list) do
    local default = parameter.default_text and parameter.default_text ~= "nil" and " = " .. parameter.default_text:gsub("'", '"') or ""
    local kind = signature.kind_text(parameter)
    lines[#lines + 1] = INDENT .. parameter.name .. (parameter.variadic and "..." or "") .. default .. (kind and ": " .. kind or "")
  end
end

local function joined(prefix, list, width)
  local lines, line = {}, prefix
  for i, text in ipairs(list) do
    local piece = text .. (i < #list and "," or "")
    if #line + #piece + 1 > width and line ~= prefix then
      lines[#lines + 1] = line
      line = INDENT .. piece
    else
      line = line .. (line == "" and "" or " ") .. piece
    end
  end
  lines[#lines + 1] = line
  return table.concat(lines, "\n")
end

-- The page of an item as a text; style(kind, text) colours headings, or nil.
function reference.page(item, style)
  style = style or function(_, text) return text end
  local record, lines = item.f and signature.of(item.f), {}
  local usage = record and signature.usage(record) or type(item.f) == "function" and "(...)" or ""
  local heading = item.name .. (usage == "no arguments" and "()" or usage)
  local parts = {}
  for part in (heading .. ", "):gmatch("(.-), ") do parts[#parts + 1] = part end
  lines[#lines + 1] = style("heading", joined("", parts, WIDTH))
  lines[#lines + 1] = ""
  lines[#lines + 1] = item.doc or "There is no description of it."
  local others = {}
  for _, name in ipairs(item.names) do
    if name ~= item.name and not name:find("^symbolic:") and not name:find("^flow%.keras%.") then others[#others + 1] = name end
  end
  if record and (#record.positional > 0 or record.options) then
    lines[#lines + 1] = ""
    lines[#lines + 1] = style("heading", "Takes") .. ", by position or by name:"
    parameter_lines(record.positional, lines)
    local options, by_position = record.options or {}, record.options_by_position or 0
    parameter_lines({ unpack(options, 1, by_position) }, lines)
    if #options > by_position then
      lines[#lines + 1] = #record.positional > 0 and "and by name only:" or nil
      parameter_lines({ unpack(options, by_position + 1) }, lines)
    end
  end
  if #others > 0 then
    lines[#lines + 1] = ""
    lines[#lines + 1] = joined(style("heading", "Also:"), others, WIDTH)
  end
  if item.kind == "class" then
    local methods = {}
    for name, kind in pairs(names.of(item.f)) do
      if kind == names.METHOD then methods[#methods + 1] = name end
    end
    table.sort(methods)
    if #methods > 0 then
      lines[#lines + 1] = ""
      lines[#lines + 1] = joined(style("heading", "Methods:"), methods, WIDTH)
    end
  end
  if item.example then
    lines[#lines + 1] = ""
    lines[#lines + 1] = style("heading", "Example:")
    lines[#lines + 1] = INDENT .. item.example:gsub("\n", "\n" .. INDENT)
  end
  return table.concat(lines, "\n")
end

-- Public names below a module, "flow.layers", one level deep.
local function names_below(path, module)
  local list = require("flow.names").sorted(names.of(module))
  return joined(path .. ":", list, WIDTH)
end

local INTRODUCTION = [[
help "model:fit"      what a function, a method or a class takes, and an example; also ?model:fit at the prompt
help(flow.layers)     the names of a module
flowlua help NAME     the same in the shell]]

-- The module of a name such as "flow.layers" or "layers".
local function module_of(text)
  local value = reference.flow
  for name in text:gsub("^flow%.?", ""):gmatch("[^.]+") do
    local ok, inner = pcall(function() return value[name] end)
    if not ok or type(inner) ~= "table" or names.is_class(inner) then return nil end
    value = inner
  end
  return errors.namespaces[value] and value or getmetatable(value) and value
end

-- The text of help(what): a page, the names of a module, or where to begin. Raises for a name that nothing has.
function reference.text(what, style)
  if what == nil then return INTRODUCTION .. "\n\n" .. names_below("flow", reference.flow) end
  if type(what) == "string" then
    what = what:match("^%s*(.-)%s*$"):gsub("%(.*$", "")
    if what == "" then return reference.text(nil, style) end
    local module = module_of(what)
    if module then return names_below(what:find("^flow") and what or "flow." .. what, module) end
  elseif errors.namespaces[what] and not names.is_class(what) or what == reference.flow then
    return names_below(errors.namespaces[what] or "flow", what)
  end
  local item, others = reference.find(what)
  if item then
    local page = reference.page(item, style)
    if #others > 0 then page = page .. "\n\n" .. joined("There are also", others, WIDTH) end
    return page
  end
  if type(what) ~= "string" then
    errors.raise("help takes a name, a function, a class or an object of flow, got %s", errors.describe(what))
  end
  local known, last, begun = {}, what:match("[%w_]+$") or what, {}
  for name in pairs(by_name) do
    local own = name:match("[%w_]+$")
    if not known[own] and own:sub(1, #last) == last then begun[#begun + 1] = own end
    known[own] = true
  end
  if #begun > 0 then
    table.sort(begun)
    errors.raise("there is no help for %q; there are %s", what, table.concat(begun, ", ", 1, math.min(#begun, 10)))
  end
  local elsewhere = errors.elsewhere("flow", last) or errors.elsewhere("model", last) or errors.elsewhere("tensor", last)
  errors.raise("there is no help for %q%s", what, elsewhere or errors.suggestion(last, known))
end

-- flow.help(what): prints it where messages go.
function reference.help(what)
  require("flow.log").print("%s\n", reference.text(what))
end
signature.register(reference.help, signature.entry("flow.help", reference.help, "what?"))      -- not guarded: modules are what it takes

return reference
