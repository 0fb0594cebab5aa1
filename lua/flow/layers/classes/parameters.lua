-- parameters.lua: the methods that scripts define get what is given by name where they name it: function Block:call(x, training, mask),
-- function GAN:compile(d_optimizer, g_optimizer), as in Python. A method that names one parameter for all options gets their table.

local debug = require("flow.host").debug
local scopes = require "flow.scopes"
local signature = require "flow.signature"
local arguments = require "flow.arguments"
local object = require "flow.object"
local errors = require "flow.errors"

local raise = errors.raise
local parameters = {}

local FIRST = 2      -- the first parameter after self

-- The names of a method's parameters after self.
local function names_of(method)
  local names, f = {}, signature.unguarded(method)
  for i = FIRST, 64 do
    local name = debug.getlocal(f, i)
    if not name then break end
    names[#names + 1] = name
  end
  return names
end

local BY_LAYER = { training = true, mask = true }      -- what every call has

-- What parameters for all options are called. Others are inputs, which a call may leave out: function Block:call(x, context).
local FOR_OPTIONS = {}
local OPTIONS = "options opts opt o kwargs args arguments named config params call_options settings given known more rest"
for name in OPTIONS:gmatch "%S+" do FOR_OPTIONS[name] = true end

-- Raises for what a call has given by name that no parameter takes; names: the parameters.
local function check_taken(self, options, names)
  local known = { training = true, mask = true }
  for _, name in ipairs(names) do known[name] = true end
  errors.check_options(object.title(self), options, known)
end

-- Raises for what follows the values of all parameters, unless it is options that every call has.
local function check_extra(self, extra, names)
  if extra == nil then return end
  if arguments.is_options(extra) then return check_taken(self, extra, { unpack(names, 2) }) end
  raise("%s: its call takes (%s); %s is one argument too many", object.title(self), table.concat(names, ", "), errors.describe(extra))
end

local names_of_calls = setmetatable({}, { __mode = "k" })      -- of functions that of_call made: their parameters

-- Of a table that is all that a layer is called with: its first input, and the table of the others, if it has parameters of the class's
-- call() by name, the first one among them, and nothing else: layer { logits = x, targets = y }. Else nil: it is the input, as a table with
-- the first one alone is of a model, whose data may have such a name.
function parameters.by_name(layer, given)
  local names, known, others = names_of_calls[layer.call], { training = true, mask = true }, {}
  if not names or given[names[1]] == nil then return nil end
  for _, name in ipairs(names) do known[name] = true end
  for name, value in pairs(given) do
    if not known[name] then return nil end
    if name ~= names[1] then others[name] = value end
  end
  if next(others) ~= nil or not object.has(layer, "fit") then return given[names[1]], others end
end

-- call() of a layer's class. Its last argument is a table of options; what they name goes to the parameters of these names, the last
-- parameter gets the table if it is not among them, and is one for options or there is more than every call has. training: as the call
-- gives it; nil if it does not.
function parameters.of_call(call, class)
  local names, named = names_of(call), {}
  if #names ~= 1 and not rawget(class, "in_lua") then return call end      -- those of the library read options themselves
  for i = 2, #names do named[names[i]] = i end
  if #names < 1 or debug.getinfo(signature.unguarded(call), "u").isvararg then return call end
  if #names == 1 then
    local function called(self, inputs, extra)
      if extra ~= nil then check_extra(self, extra, names) end
      return call(self, inputs)
    end
    names_of_calls[called] = names
    return called
  end
  local by_name = named.training or named.mask
  local function called(self, ...)
    local count = select("#", ...)
    if count > #names then check_extra(self, (select(#names + 1, ...)), names) end
    local options, position = count > 1 and (select(count, ...)), named.training
    local training = position and position <= count and (select(position, ...))
    if type(training) == "boolean" then scopes.own().training = training end      -- given by position: for the layers inside
    if not options or not arguments.is_options(options) then return call(self, ...) end
    local found = by_name or #names > count
    for name in pairs(options) do
      if named[name] and named[name] >= count then found = true end
    end
    local last, has_more = names[#names], false
    for name in pairs(options) do has_more = has_more or not BY_LAYER[name] and not (named[name] and named[name] >= count) end
    local is_input = #names >= count and not FOR_OPTIONS[last] and not has_more      -- that was left out
    if not found and not is_input then return call(self, ...) end
    local values, taken = { ... }, {}
    values[count] = nil
    for name, i in pairs(named) do
      if i >= count then
        values[i], taken[name] = options[name], true
        if name == "training" and scopes.own().training_is_open then values[i] = nil end
      end
    end
    if #names >= count and not is_input and not BY_LAYER[last] and options[last] == nil then
      local left = {}
      for name, value in pairs(options) do
        if not taken[name] then left[name] = value end
      end
      values[#names] = left
    else
      check_taken(self, options, names)
    end
    return call(self, unpack(values, 1, math.max(#names, count - 1)))
  end
  names_of_calls[called] = names
  return called
end

-- compile() of a model's class.
function parameters.of_compile(compile, class)
  if not rawget(class, "in_lua") then return compile end
  return function(self, ...) return compile(self, arguments.for_init(object.title(self) .. ": compile", compile, ...)) end
end

return parameters
