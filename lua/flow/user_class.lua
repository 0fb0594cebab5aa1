-- user_class.lua: classes of layers, losses, metrics, optimizers, schedules and data sets written in Lua: local Rate =
-- flow.metrics.Metric:extend("Rate").

local errors = require "flow.errors"
local names = require "flow.names"
local object = require "flow.object"
local arguments = require "flow.arguments"

-- A class that extends parent. Class(a, b, { name = "m" }) makes new(Class, name, options) and calls Class.init(self, a, b, ...) if there
-- is one; without init a table of options becomes fields, except for those whose names are keys of `taken`. assign(self, name, value): how
-- an option becomes a field; without it rawset.
local function extend(parent, class_name, new, taken, assign)
  if type(class_name) ~= "string" then errors.raise("extend(): the class needs a name, got %s", errors.describe(class_name)) end
  local class = object.open(object.class(class_name, parent))
  rawset(class, "in_lua", true)
  getmetatable(class).__call = function(_, ...)
    local count = select("#", ...)
    local last = count > 0 and (select(count, ...))
    local options = arguments.is_options(last) and last or {}
    if options.name ~= nil and type(options.name) ~= "string" then
      errors.raise("%s: name is a string, got %s", class_name, errors.describe(options.name))
    end
    local self = new(class, options.name or names.auto(class_name), options)
    if class.init then
      class.init(self, ...)
    elseif count > 1 or count == 1 and last ~= nil and not arguments.is_options(last) then
      errors.raise("%s takes a table of options; what it takes by position says function %s:init(...)", class_name, class_name)
    else
      for name, value in pairs(options) do
        if name ~= "name" and not (taken and taken[name]) then (assign or rawset)(self, name, value) end
      end
    end
    return self
  end
  return class
end

return extend
