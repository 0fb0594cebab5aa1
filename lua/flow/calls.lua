-- calls.lua: parses the texts that say what functions take (signature.lua), and reads calls by them. Loaded by the first call that needs
-- it, which most programs never make.
--
-- A text is parsed once, into a record (record_of), which stays in the entry of its function. Reading a call takes three steps: the last
-- argument is options or a value (ends_in_options), positions and names are put in one place each (spread, gather_rest), and each value is
-- checked against its kind or gets its default (checked). Errors name the user's line, since every frame in between is in lua/flow.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"

local raise, is_options = errors.raise, signature.is_options
local calls = {}

---- kinds ------------------------------------------------------------------------------------------------------------------

local floor, huge = math.floor, math.huge

-- The largest whole number up to which doubles have them all: a number beyond it is hardly meant as a count, and the library's integers
-- would be another one.
local MOST_WHOLE = 2 ^ 53
local function whole_from(least)
  return function(value) return type(value) == "number" and value >= least and value <= MOST_WHOLE and value == floor(value) end
end

local function of_type(name)
  return function(value) return type(value) == name end
end

-- A number or a 64-bit integer, an int64_t or a uint64_t.
local function is_numeric(value)
  return type(value) == "number" or type(value) == "cdata" and tostring(value):find("^%-?%d+U?LL$") ~= nil
end

-- Name of a kind -> its test, and how messages name it. A test may raise what it knows better. named: tables with names are values.
local KINDS = {
  any = { function() return true end, "anything" },
  data = { function() return true end, "data", named = true },
  given = { function(value) return value ~= false end, "anything" },      -- any kind of value, and false stands for none
  given_data = { function(value) return value ~= false end, "data", named = true },
  gaps = { function(value) return value ~= false end, "anything", gaps = true },      -- as `given`; a list may lack entries
  number = { of_type "number", "a number" },
  numeric = { is_numeric, "a number" },
  tensor = { native.is_tensor, "a tensor" },
  scalar = { function(value) return is_numeric(value) or native.is_tensor(value) end, "a number" },
  positive = { function(value) return type(value) == "number" and value > 0 end, "a number above 0" },
  integer = { whole_from(-MOST_WHOLE), "a whole number" },
  whole = { whole_from(0), "a whole number from 0" },
  count = { whole_from(1), "a whole number from 1" },
  boolean = { of_type "boolean", "true or false" },
  string = { of_type "string", "a string" },
  text = { function(value) return type(value) == "string" and value ~= "" end, "a text" },
  path = { of_type "string", "a path" },
  callable = { signature.is_callable, "a function" },
  table = { of_type "table", "a table", named = true },
  list = { function(value) return type(value) == "table" and not getmetatable(value) and not signature.is_named(value) end, "a list" },
  frequency = { function(value) return value == "epoch" or whole_from(1)(value) end, '"epoch" or a number of batches' },
  updates = { function(value) return value == "epoch" or value == "batch" or whole_from(1)(value) end,
              '"epoch", "batch" or a number of batches' },
  verbosity = { function(value) return type(value) == "boolean" or value == "auto" or whole_from(0)(value) end, '0, 1, 2 or "auto"' },
}
calls.KINDS = KINDS

-- "a whole number from 0 or "epoch"": all that a kind of several names allows, for messages.
local function describe_kind(kind)
  local parts = {}
  for i, name in ipairs(kind.names) do
    local literal = name:match("^'(.*)'$")
    parts[i] = literal and ("%q"):format(literal) or KINDS[name][2]
  end
  if #parts == 1 then return parts[1] end
  return table.concat(parts, ", ", 1, #parts - 1) .. " or " .. parts[#parts]
end

-- Whether a value is of one of the kinds, or equal to one of the quoted texts.
local function fits(kind, value)
  for _, name in ipairs(kind.names) do
    local literal = name:match("^'(.*)'$")
    if literal then
      if value == literal then return true end
    elseif KINDS[name][1](value) then
      return true
    end
  end
  return false
end

---- records ----------------------------------------------------------------------------------------------------------------

-- The value that a default in a text stands for: a number, a quoted text, true, false, or nil. Raises for anything else, which is a mistake
-- in lua/flow and not of a user.
local function parse_default(text)
  if text == "" or text == "nil" then return nil end
  if text == "true" or text == "false" then return text == "true" end
  return tonumber(text) or text:match("^'(.*)'$") or error("signature: default " .. text)
end

-- { name =, optional =, variadic =, kind = { names = {...} }, default = } of "name?: kind = default".
local function parse_parameter(text)
  local head, default = text:match("^(.-)%s*=%s*(.*)$")
  local name, kinds = (head or text):match("^%s*([^:]-)%s*:%s*(.-)%s*$")
  name = name or (head or text):match("^%s*(.-)%s*$")
  local parameter = { default = parse_default(default or ""), default_text = default }
  parameter.name = name:gsub("%.%.%.$", function() parameter.variadic = true return "" end):gsub("%?$", function()
    parameter.optional = true
    return ""
  end)
  if kinds then
    parameter.kind = { names = {} }
    for kind in kinds:gmatch("[^|]+") do
      if not kind:find("^'") and not KINDS[kind] then error("signature: unknown kind " .. kind) end
      table.insert(parameter.kind.names, kind)
      parameter.kind.named = parameter.kind.named or KINDS[kind] and KINDS[kind].named
      parameter.kind.list = parameter.kind.list or kind == "list"
      parameter.kind.gaps = parameter.kind.gaps or KINDS[kind] and KINDS[kind].gaps
      parameter.kind.loose = parameter.kind.loose or kind == "given" or kind == "gaps"      -- as without a kind, but for false
    end
  end
  parameter.optional = parameter.optional or default ~= nil
  return parameter
end

-- The parameters of a list, separated by commas. by_name: gets each of them under its name, too.
local function parse_list(text, by_name)
  local list = {}
  text = text:gsub("'[^']*'", function(quoted) return (quoted:gsub(",", "\1")) end)      -- commas between quotes separate nothing
  for part in text:gmatch("[^,]+") do
    list[#list + 1] = parse_parameter((part:match("^%s*(.-)%s*$"):gsub("\1", ",")))
    by_name[list[#list].name] = list[#list]
  end
  return list
end

-- What the library's records call the kinds of arguments.
local TYPES = { integer = "a whole number", number = "a number", boolean = "true or false", text = "a text",
  pair = "a whole number or a pair of them",
  numbers = "a number or a list of them", activation = "an activation, by name", initializer = "an initializer, by name or as an object",
  regularizer = "a regularizer, by name or as an object", constraint = "a constraint, by name or as an object",
  axes = "an axis or a list of axes, from 1", ["named numbers"] = "a table of numbers with names" }

-- Types and defaults of a record of the library, for people.
local function describe_parameters(entry, record)
  local i = 0
  for _, list in ipairs { record.positional, record.options or {} } do
    for _, parameter in ipairs(list) do
      local type_name, default = entry.type_of and entry.type_of(i), entry.default_of(i)
      if type_name ~= nil then parameter.type_text = TYPES[native.string(type_name)] end
      if default ~= nil then
        local text = native.string(default)
        if text:find(",") then text = "{ " .. text:gsub(",", ", ") .. " }"
        elseif not tonumber(text) and text ~= "true" and text ~= "false" and text ~= "null" then text = "'" .. text .. "'" end
        parameter.default_text = text ~= "null" and text or "nil"
      end
      i = i + 1
    end
  end
end

-- record.by_name finds a parameter by what Keras calls it, too.
local function add_keras_names(record)
  setmetatable(record.by_name, { __index = function(_, name) return require("flow.errors.keras_names").find(record, name) end })
end

-- The record of an entry: { title =, positional = list, options = list or nil, by_name =, variadic =, form =, method =, rest =,
-- options_by_position = how many of the options may be given by position, too }.
local record_of
function record_of(entry)
  if entry.record then return entry.record end
  local record = { title = entry.title, by_name = {}, method = entry.method, any = entry.any or false,
                   is_data = entry.is_data or false }
  if entry.like then      -- another function's, whose first parameter is self here
    local other = record_of(entry.like)
    record.options, record.variadic, record.positional = other.options, other.variadic, { unpack(other.positional, entry.skip + 1) }
    record.options_by_position = other.options_by_position
    for _, list in ipairs { record.positional, record.options or {} } do
      for _, parameter in ipairs(list) do record.by_name[parameter.name] = parameter end
    end
    add_keras_names(record)
    entry.record = record
    return record
  elseif entry.text then
    local text, form = entry.text:match("^(.-)%s+%-%- (.*)$")
    text, record.form = text or entry.text, form
    local head, braces, rest = text:match("^(.-),?%s*{(.*)}[%s,]*(.-)%s*$")
    record.positional = parse_list(head or text, record.by_name)
    if braces then
      local by_position = braces:match("^(.-);")
      record.options = parse_list(braces:gsub(";%s*$", ""):gsub(";", ","), record.by_name)
      record.options_by_position = by_position and #parse_list(by_position, {}) or 0
    end
    record.rest = rest and rest ~= "" and rest or nil      -- what follows the options, of functions that read their calls themselves
  else
    record.positional = {}
    for i = entry.method and 2 or 1, huge do
      local name = debug.getlocal(entry.f, i)
      if not name then break end
      record.positional[#record.positional + 1] = { name = name, optional = true }
      record.by_name[name] = record.positional[#record.positional]
    end
  end
  if entry.default_of then describe_parameters(entry, record) end
  local last = record.positional[#record.positional]
  record.variadic = last and last.variadic or false
  add_keras_names(record)
  entry.record = record
  return record
end

calls.record_of = record_of

-- What a parameter is, "a whole number from 0"; nil: anything.
function calls.kind_text(parameter)
  return parameter.type_text or parameter.kind and describe_kind(parameter.kind)
end

local function usage_of(parameter)
  local text = parameter.name .. (parameter.variadic and "..." or "")
  if parameter.default_text and parameter.default_text ~= "nil" then return text .. " = " .. parameter.default_text:gsub("'", '"') end
  return text
end

-- "(x, y, { epochs = 1, callbacks })", as messages show what is taken.
function calls.usage(record)
  local parts, options = {}, {}
  for i, parameter in ipairs(record.positional) do parts[i] = usage_of(parameter) end
  for i, parameter in ipairs(record.options or {}) do options[i] = usage_of(parameter) end
  if #options > 0 then parts[#parts + 1] = "{ " .. table.concat(options, ", ") .. " }" end
  parts[#parts + 1] = record.rest
  if #parts == 0 then return "no arguments" end
  return "(" .. table.concat(parts, ", ") .. ")"
end

---- options ----------------------------------------------------------------------------------------------------------------

-- Whether `value`, the last of `count` arguments, is the table of options rather than a value of its parameter. self: of a method whose
-- record decides by is_data; else nil.
--
-- A table with names beyond the positions is always options. Where a parameter stands that takes tables with names, such as data by the
-- names of inputs, it is options only if one of the names is a parameter's. Elsewhere a table with names is options.
local function ends_in_options(record, value, count, self)
  if not is_options(value) then return false end
  local parameter = record.positional[count]
  if not parameter then return true end
  if record.is_data and parameter.kind and parameter.kind.named then return not record.is_data(self, value, parameter.name) end
  if next(value) == nil then      -- {} is a value where a table may be, or where something must
    if parameter.kind and not parameter.kind.loose then return not fits(parameter.kind, value) end
    return parameter.optional and not parameter.variadic
  end
  if not (parameter.kind and parameter.kind.named) then return true end
  for name in pairs(value) do
    if record.by_name[name] then return true end
  end
  return false
end

-- Raises for a name that the record does not have: it says what the name is called here, if another library has it, or which name is near.
local function unknown_option(record, name)
  local known = {}
  for key in pairs(record.by_name) do known[key] = true end
  if type(name) == "string" then
    local other = errors.elsewhere("option", name)
    if other then other = known[other:match("[%w_]+$")] and other end
    raise("%s: unknown option %q%s", record.title, name, errors.elsewhere(record.title, name) or other or errors.suggestion(name, known))
  end
  raise("%s: an option has a name, got %s", record.title, errors.describe(name))
end

-- Raises that `value`, argument `position`, is one too many.
local function too_many(record, value)
  if is_options(value) and next(value) ~= nil then
    for name in pairs(value) do
      if type(name) ~= "string" or not record.by_name[name] then unknown_option(record, name) end
    end
  end
  local usage = calls.usage(record)
  raise("%s takes %s; %s is one argument too many%s", record.title, usage, errors.describe(value),
    record.form and ": write " .. record.form or "")
end
calls.too_many = too_many

---- reading a call -----------------------------------------------------------------------------------------------------------

-- Spreads a table of options over positions and options. given: that table, which is not changed; values, options: of this call, which are
-- filled. Entries by number are the list of the first parameter, { x1, x2, axis = 1 }, unless that has a value already.
local function spread(record, given, values, options)
  local first, named, listed = record.positional[1], given, nil      -- listed: what stands in the table by number, the first parameter
  for name in pairs(given) do
    local parameter = record.by_name[name]
    if parameter and parameter.name ~= name then named = require("flow.errors.keras_names").renamed(record, given) end
  end
  for name, value in pairs(named) do
    if type(name) == "number" then
      if not first then raise("%s takes no value by position", record.title) end
      if values[1] ~= listed then
        raise("%s: %s is given twice, as an argument and in the table of options", record.title, first.name)
      end
      listed = listed or {}
      values[1], listed[name] = listed, value
    elseif not record.by_name[name] then
      unknown_option(record, name)
    end
  end
  for i, parameter in ipairs(record.positional) do
    local value = named[parameter.name]
    if value ~= nil then
      if values[i] ~= nil then raise("%s: %s is given twice, by position and by name", record.title, parameter.name) end
      values[i] = value
    end
  end
  for _, parameter in ipairs(record.options or {}) do
    local value = named[parameter.name]
    if value ~= nil and options[parameter.name] ~= nil then
      raise("%s: %s is given twice, by position and by name", record.title, parameter.name)
    end
    if value ~= nil then options[parameter.name] = value end
  end
end

-- Whether `value` is false where nothing may be given: a table cannot hold a nil, so that false stands for Python's None.
local function is_nothing(parameter, value)
  if value ~= false or not parameter.optional or parameter.default ~= nil then return false end
  return parameter.kind ~= nil and not fits(parameter.kind, false)
end

-- The value of a parameter, checked, or its default. Raises if it is missing although it has a kind and is not optional, if it is of
-- another kind, or if a list has a hole.
local function checked(record, parameter, value)
  if value == nil or is_nothing(parameter, value) then
    if parameter.default ~= nil then return parameter.default end
    if parameter.kind and not parameter.optional then
      raise("%s: %s is missing: it is %s", record.title, parameter.name, describe_kind(parameter.kind))
    end
    return nil
  end
  if parameter.kind and not fits(parameter.kind, value) then
    local number = require "flow.classes.number_of"(value)
    if fits(parameter.kind, number) then return number end
    raise("%s: %s is %s, got %s", record.title, parameter.name, describe_kind(parameter.kind), errors.describe(value))
  end
  if type(value) == "table" and not (parameter.kind and (parameter.kind.named or parameter.kind.gaps)) then
    errors.check_holes(record.title .. ": " .. parameter.name, value)
  end
  return value
end

-- The values from position n on as a list: of one that is a list, or a shape, it is that, and what follows are the options in their order.
local function gather_rest(record, values, n, count, options)
  local only, known = values[n], record.options or {}
  local is_list = type(only) == "cdata" or type(only) == "table" and not getmetatable(only)
  if count == n and is_list then return end
  if type(only) == "table" and is_list and #known > 0 then
    if not known[count - n] then too_many(record, values[count]) end
    for i = n + 1, count do options[known[i - n].name], values[i] = values[i], nil end
    return
  end
  local rest = {}
  for i = n, count do rest[i - n + 1], values[i] = values[i], nil end
  errors.check_list(record.title, rest, "argument %d is nil: is a name misspelt?", n - 1)
  values[n] = rest
end

-- The arguments of a call: values by position, the number of positions of the record, and the options by name, all checked. self: of a
-- method, which is not among the arguments; else nil.
local function read_call(record, self, ...)
  local values, count = { ... }, select("#", ...)
  local n, options = #record.positional, {}
  while count > 0 and values[count] == nil do count = count - 1 end
  local named = count > 0 and ends_in_options(record, values[count], count, self) and values[count]
  if named then values[count], count = nil, count - 1 end
  if record.variadic and count >= n then gather_rest(record, values, n, count, options)
  elseif count > n + (record.options_by_position or 0) then too_many(record, values[count])
  elseif count > n then
    for i = n + 1, count do options[record.options[i - n].name], values[i] = values[i], nil end
  end
  if named then spread(record, named, values, options) end
  for i = 1, n do values[i] = checked(record, record.positional[i], values[i]) end
  for _, parameter in ipairs(record.options or {}) do options[parameter.name] = checked(record, parameter, options[parameter.name]) end
  return values, n, options
end

-- The arguments of a call as the function gets them.
function calls.read(entry, ...)
  local record = record_of(entry)
  local values, n, options = read_call(record, nil, ...)
  if not record.options then return unpack(values, 1, n) end
  values[n + 1] = options
  return unpack(values, 1, n + 1)
end

-- The arguments of a call of at most four, whose last is a table with names, by position: if one name is that of a parameter; of a method
-- all names, whose tables may be logs; else the table is a value. signature.sort calls this.
function calls.sort(entry, last, ...)
  local record, known = record_of(entry), false
  for name in pairs(last) do
    if record.by_name[name] then known = true elseif name ~= 1 and record.method then return ... end
  end
  if not known then return ... end
  return calls.read(entry, ...)
end

-- The same as one table by names, positions included.
function calls.read_named(entry, self, ...)
  local record = record_of(entry)
  local values, n, given = read_call(record, self, ...)
  for i = 1, n do given[record.positional[i].name] = values[i] end
  return given
end

return calls
