-- arguments.lua: from a Lua call to the named arguments of a C record.
--
-- The rule of constructors: positional arguments first, in Keras' order, then one table of named options; a single table may
-- carry everything. A table with names is options, a table with only a list part is a value:
--   Conv2D(16, 3, { padding = "same" })    Conv2D { filters = 16, kernel_size = 3 }    Conv2D(32, {3, 3})    Input {180, 180, 3}
--
-- Two callers sort arguments here. Constructors of the library's records call named(), which gives one table by the record's names, and
-- then native(), which makes of it the flow_arguments that C reads. Classes of scripts have an init with its own parameters; for_init()
-- sorts the arguments of a call, or a config, into their positions.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local custom_objects = require "flow.custom_objects"

local C, check, raise = native.C, native.check, errors.raise
local arguments = {}

local is_options = signature.is_options
arguments.is_options = is_options

local COMMON = { name = true, trainable = true, dtype = true }      -- what get_config() of any class may hold

-- Tables of options that are configs, of which each entry is an argument by its name.
arguments.configs = setmetatable({}, { __mode = "k" })

-- The last parameter of an init that takes what is left, as **kwargs does in Python: it gets the name, too.
local REST = { options = true, kwargs = true, opts = true }

-- What a script's init is given, where the last argument is a table of options that holds some of its parameters by their names:
-- Block(64, { depth = 2 }), Block { width = 64, depth = 2 }, as from_config(config) makes them. What is left goes to a last parameter that
-- has no value, but for the options of every class, which need no init: in Block(64, { name = "b" }) the second parameter has no value.
function arguments.for_init(class_name, init, ...)
  local count = select("#", ...)
  local options = count > 0 and (select(count, ...))
  if not is_options(options) then return ... end
  -- names: the parameters after self, in order; found: whether an option is one of those that have no position in this call; left: options
  -- that no parameter has taken yet.
  local names, found, values, left = {}, false, { ... }, {}
  init = signature.unguarded(init)
  for i = 2, 64 do      -- from self on; 64: more parameters than anybody writes
    local name = debug.getlocal(init, i)
    if not name then break end
    names[i - 1] = name
    found = found or i > count and options[name] ~= nil
  end
  for name, value in pairs(options) do
    if not COMMON[name] then left[name] = value end      -- false, too
  end
  local is_config = arguments.configs[options] and count == 1 and #names > 1
  local is_common = next(left) == nil and next(options) ~= nil and count <= #names and not REST[names[#names]]
  if not found and not is_config and not is_common and (next(left) ~= nil or count >= #names) then return ... end
  values[count] = nil      -- the table of options itself: its place is the first that options fill
  for i = count, #names do values[i], left[names[i]] = options[names[i]], nil end
  local name = next(left)
  if name ~= nil and options[names[#names]] ~= nil then
    raise("%s: unknown option %q%s", class_name, tostring(name), errors.suggestion(name, names))
  end
  if REST[names[#names]] and values[#names] == nil and options.name ~= nil then
    left.name = options.name
    name = "name"
  end
  if name ~= nil then values[#names] = left end
  return unpack(values, 1, math.max(#names, count - 1))
end

-- Raises for what a call of a script's class gives its init beyond its parameters, as Python does: Lua would drop it. Options that every
-- object of the class takes, keys of `taken`, need no parameter, nor do entries of a config.
function arguments.check_init(class_name, init, taken, ...)
  init = signature.unguarded(init)
  local info, count = debug.getinfo(init, "u"), select("#", ...)
  local most = info.nparams - 1
  if info.isvararg or count <= most then return end
  for i = math.max(most, 0) + 1, count do
    local value = (select(i, ...))
    if is_options(value) and i == count then
      if arguments.configs[value] then return end
      local unknown = {}
      for name in pairs(value) do
        if not COMMON[name] and not (taken and taken[name]) then unknown[#unknown + 1] = tostring(name) end
      end
      table.sort(unknown)
      local parameters = {}
      for k = 2, info.nparams do parameters[k - 1] = debug.getlocal(init, k) end
      -- what init names is sorted into its positions
      for k = #unknown, 1, -1 do
        for _, name in ipairs(parameters) do
          if unknown[k] == name then table.remove(unknown, k) break end
        end
      end
      if unknown[1] then
        raise("%s: unknown option %q%s; %s", class_name, unknown[1], errors.suggestion(unknown[1], parameters):gsub("?$", ""),
          #parameters > 0 and "its init takes " .. table.concat(parameters, ", ") or "its init takes no arguments")
      end
    elseif value ~= nil then
      raise("%s: its init takes %d argument%s; %s is one too many", class_name, most, most == 1 and "" or "s", errors.describe(value))
    end
  end
end

-- Sorts the arguments of a constructor call into one table of names. parameters: list of names in positional order; its field
-- first_is_single says that the first is never a list: then those without a name in a table are positions, Dense { 3, activation = "relu"
-- }.
-- Raises for a value that has a position and a name, and for one position too many. A value of nil is left out. Neither the names nor the
-- kinds of values are checked here: the library does that (flow_arguments), or errors.check_options.
function arguments.named(what, parameters, positional, ...)
  local count, named = select("#", ...), {}
  local last = count > 0 and (select(count, ...))
  local first_is_single = parameters.first_is_single
  local is_list = first_is_single and count == 1 and type(last) == "table" and not getmetatable(last)
  local function give(name, value)
    if named[name] ~= nil then raise("%s: %s is given twice, by position and by name", what, name) end
    named[name] = value
  end
  if is_list or is_options(last) then
    local first
    for name, value in pairs(last) do
      if type(name) ~= "number" then
        give(name, value)
      elseif not parameters[1] then
        raise("%s takes no value by position", what)
      elseif first_is_single then
        if name > positional or not parameters[name] then
          raise("%s takes at most %d arguments by position, got %d", what, positional, table.maxn(last))
        end
        give(parameters[name], value)
      else
        first = first or {}
        first[name] = value
      end
    end
    if first then give(parameters[1], first) end
    count = count - 1
  end
  if count > positional then
    local next_name = parameters[positional + 1]
    raise("%s takes at most %d arguments by position, got %d: %s is one too many%s", what, positional, count,
      errors.describe((select(count, ...))), next_name and ("; give the others by name: { %s = ... }"):format(next_name) or "")
  end
  for i = 1, count do
    give(parameters[i], (select(i, ...)))
  end
  for name, value in pairs(named) do
    if type(value) == "table" then errors.check_holes(("%s: %s"):format(what, tostring(name)), value) end
  end
  return named
end

local SINGLE = { integer = true, number = true, boolean = true, text = true, activation = true }

-- Whether arguments of this type of the library's records, a C text or NULL, are never lists.
function arguments.is_single(type_name)
  return type_name ~= nil and SINGLE[native.string(type_name)] or false
end

-- The numbers of nested lists one after the other, and the lengths of the lists on each level: { {1, 2, 3}, {4, 5, 6} } is 1 to 6 and
-- { 2, 3 }.
-- what: names the list in messages. depth: that of `list`, from 1. Appends to `values` and `dims`, which it returns. Raises for an entry
-- that is neither a number nor a list, for lists of different lengths on one level, and for more levels than a tensor has axes; that also
-- ends a list that contains itself.
local function add_numbers(what, list, depth, values, dims)
  local length = errors.check_list(what, list)
  if depth > C.FLOW_MAX_RANK then raise("%s: its lists are nested more than %d deep", what, C.FLOW_MAX_RANK) end
  dims[depth] = dims[depth] or length
  if dims[depth] ~= length then raise("%s: its lists have %d and %d entries, expected equal lengths", what, dims[depth], length) end
  for i = 1, length do
    local entry = list[i]
    local inner = type(entry) == "table" and not getmetatable(entry)
    if not inner and type(entry) ~= "number" then raise("%s: entry %d is %s, expected a number", what, i, errors.describe(entry)) end
    if inner and #values > 0 and not dims[depth + 1] or not inner and dims[depth + 1] then
      raise("%s: entry %d is %s, the list mixes numbers and lists", what, i, errors.describe(entry))
    end
    if inner then add_numbers(what, entry, depth + 1, values, dims) else values[#values + 1] = entry end
  end
  return values, dims
end

-- Axes as the library counts them, from 0: a number or a list of them, which count from 1 in Lua. Anything else stays unchanged.
-- what, name: the call and its option, for messages. depth: of a list in a list. Fractions and NaN stay unchanged: the library refuses
-- them.
function arguments.zero_based(what, name, value, depth)
  if type(value) == "table" then
    local list = {}
    depth = errors.deeper(what .. ": " .. name, depth)
    for i, axis in ipairs(value) do list[i] = arguments.zero_based(what, name, axis, depth) end
    return list
  end
  if value == 0 then raise("%s: %s is 0; axes count from 1, -1 is the last", what, name) end
  return type(value) == "number" and value > 0 and value - 1 or value
end

-- A value with its own options, such as flow.regularizers.L2(1e-4); see layers/choices.lua.
arguments.Choice = object.class("Choice")

-- Whether a value is a choice that is written in Lua, a function or an object of a script's class: the library cannot take it.
function arguments.is_own_choice(value)
  return type(value) == "function" or object.is(value, arguments.Choice) and rawget(value, "_in_lua") or false
end

-- Activations of Keras that the library's layers do not have: the operation of that name is called on what they give.
arguments.ACTIVATIONS_IN_LUA = { sparsemax = true, glu = true }

-- Whether one of the arguments of a layer is such a choice, or an activation that is a layer or a function registered under that name.
function arguments.has_own_choices(named)
  local activation = named.activation
  if type(activation) == "table" then return true end      -- a layer
  if type(activation) == "string" and (arguments.ACTIVATIONS_IN_LUA[activation] or custom_objects.function_of(activation)) then
    return true
  end
  for _, value in pairs(named) do
    if arguments.is_own_choice(value) then return true end
  end
  return false
end

local out = native.out("flow_arguments")

-- Choices and tables with names as the library takes them: kernel_regularizer = "L2", ["kernel_regularizer.l2"] = 1e-4;
-- ["renorm_clipping.rmax"] = 3.
local function without_choices(named)
  local plain = {}
  for name, value in pairs(named) do
    if object.is(value, arguments.Choice) then
      plain[name] = value.class_name
      for option, inner in pairs(value.options) do plain[name .. "." .. option] = inner end
    elseif is_options(value) and next(value) ~= nil and value[1] == nil then
      for option, inner in pairs(value) do plain[name .. "." .. tostring(option)] = inner end
    else
      plain[name] = value
    end
  end
  return plain
end

-- A flow_arguments for a table of names; owned by the collector.
-- Tables without a metatable are nested lists of numbers; a Choice is written as its class and its options by `name.option`. Raises for a
-- value of any other kind. No value of the table is kept: the library copies texts and numbers.
function arguments.native(what, named)
  check(C.flow_arguments_new(out))
  local handle = native.own(out, C.flow_arguments_release)
  named = without_choices(named)
  for name, value in pairs(named) do
    local kind = type(value)
    if type(name) ~= "string" then raise("%s: an option needs a name, got %s", what, errors.describe(name)) end
    if kind == "number" then
      check(C.flow_arguments_set_number(handle, name, value))
    elseif kind == "boolean" then
      check(C.flow_arguments_set_boolean(handle, name, value and 1 or 0))
    elseif kind == "string" then
      check(C.flow_arguments_set_text(handle, name, value))
    elseif kind == "table" and not getmetatable(value) then
      local numbers, dims = add_numbers(("%s: %s"):format(what, name), value, 1, {}, {})
      local values, lengths = native.array("double", #numbers), native.array("int", #dims)
      for i = 1, #numbers do values[i - 1] = numbers[i] end
      for i = 1, #dims do lengths[i - 1] = dims[i] end
      check(C.flow_arguments_set_nested(handle, name, values, #dims, lengths))
    else
      raise("%s: option %s is %s, expected a number, text, boolean or list", what, name, errors.describe(value))
    end
  end
  return handle
end

return arguments
