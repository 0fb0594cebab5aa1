-- of_keras.lua: makes the classes of Keras' optimizers that are written in Lua because their updates need norms, shapes or products of
-- single variables. What a file of this folder gives beside the update is here: the constructor, its checks, and the config.

local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"
local json = require "flow.json"
local names = require "flow.names"
local custom_optimizer = require "flow.train.custom_optimizer"

-- Names of the constructor's arguments in Keras' order: learning_rate, the class's own, those of every optimizer, name, and `last`.
local function argument_names(own, common, last)
  local list = { "learning_rate", first_is_single = true }
  for _, option in ipairs(own) do list[#list + 1] = option[1] end
  for i = 2, #common do list[#list + 1] = common[i] end
  list[#list + 1] = "name"
  for _, option in ipairs(last) do list[#list + 1] = option[1] end
  return list
end

-- The class's own options with their values, checked, and the options of every optimizer, from the arguments that were given by name.
-- false stands for None, but use_ema is a boolean.
local function divide(class_name, named, kinds, common, defaults)
  local fields, options = {}, {}
  for option, entry in pairs(kinds) do
    local value = named[option]
    if value == nil then value = entry.default end
    fields[option] = custom_optimizer.check(class_name, option, value, entry.kind)
  end
  for option, value in pairs(defaults) do options[option] = value end
  for i = 1, #common do
    local value = named[common[i]]
    if value == false and common[i] ~= "use_ema" then options[common[i]] = nil
    elseif value ~= nil then options[common[i]] = value end
  end
  return fields, options
end

local function define_config(class, kinds)
  function class._own_config(self)
    local config = {}
    for option, entry in pairs(kinds) do
      local value = self[option]
      if entry.kind == "number?" and not value then value = json.null
      elseif entry.kind == "list" then value = json.list { unpack(value) } end
      config[option] = value
    end
    return config
  end

  -- Also the options that every optimizer takes, except those that are not set.
  function class.get_config(self)
    local config = json.decode(self:to_json()).config
    for option, value in pairs(config) do
      if value == json.null then config[option] = nil end
    end
    return config
  end
end

-- Custom, new, common: of custom_optimizer.lua. own: the options of the class, { name, default, kind } in Keras' order; kind is number,
-- integer, boolean, list, or "number?", for which false means None. The options in `last` come after those that every optimizer takes. All
-- are fields of its objects. defaults: of common options that differ. parent: Custom, if it is left out.
return function(Custom, new, common, class_name, own, last, defaults, parent)
  local class, kinds, known = object.class(class_name, parent or Custom), {}, {}
  last, defaults = last or {}, defaults or {}
  local list = argument_names(own, common, last)
  for _, option in ipairs(list) do known[option] = true end
  rawset(class, "of_keras", true)
  rawset(class, "defaults", { learning_rate = 0.001 })
  for _, part in ipairs { own, last } do
    for _, option in ipairs(part) do
      kinds[option[1]] = { default = option[2], kind = option[3] or "number" }
      class.defaults[option[1]] = option[2]
    end
  end
  for option, value in pairs(defaults) do class.defaults[option] = value end

  signature.of_record(class, "flow.optimizers." .. class_name, list, #list, function(...)
    local named = errors.check_options(class_name, arguments.named(class_name, list, #list, ...), known)
    local fields, options = divide(class_name, named, kinds, common, defaults)
    if named.name ~= nil then custom_optimizer.check(class_name, "name", named.name, "text") end
    if class._prepare then class._prepare(fields, options) end
    local self = new(class, named.name or names.snake(class_name), options)
    for option, value in pairs(fields) do rawset(self, option, value) end
    return self
  end)
  define_config(class, kinds)
  return class
end
