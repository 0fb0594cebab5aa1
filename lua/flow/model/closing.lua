-- closing.lua: model:close() frees what a model holds at once instead of when the collector runs, for servers that replace a model. Later
-- use of the model, its layers, variables or optimizer is an error that says so.
--
-- Order: what plans hold goes first (steps), then variables, optimizers and layers. A closed object keeps nothing but its title, and has a
-- metatable that raises for whatever is asked of it.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local models = require "flow.model"
local variable = require "flow.tensor.variable"

local C, raise = native.C, errors.raise
local Model = models.Model

-- Raises that an object was closed.
local function refuse(self)
  raise("%s is closed and has no weights: load it again, or make a new one", rawget(self, "_title"))
end

local function nothing() end

-- The metatable of closed models, layers and optimizers, instead of their class.
local closed = object.class("Closed").metatable
closed.__index = function(self, key)
  if key == "close" then return nothing end      -- a second time does nothing
  return refuse(self)
end
closed.__newindex, closed.__call = refuse, refuse
closed.__tostring = function(self) return rawget(self, "_title") .. " (closed)" end

-- Makes an object a closed one.
local function end_of(self)
  local title = object.title(self)
  for key in pairs(self) do rawset(self, key, nil) end
  rawset(self, "_title", title)
  setmetatable(self, closed)
end

-- The layers inside, innermost first.
local function collect(layer, list, seen)
  if seen[layer] then return end
  seen[layer] = true
  for _, child in ipairs(layer._children) do collect(child, list, seen) end
  list[#list + 1] = layer
end

local function close_variables(list)
  for _, v in ipairs(list) do variable.close(v) end
end

-- Frees weights, plans and optimizers now. This also closes layers and optimizers that other models use.
function Model:close()
  for _, step in ipairs(rawget(self, "_steps") or {}) do
    if step.running > 0 then raise("%s: close: the model is running: this was called in a callback of its own fit", object.title(self)) end
  end
  local layers, optimizers, slots = {}, self:_optimizers(), {}
  collect(self, layers, {})
  local weights = self.weights
  for i, optimizer in ipairs(optimizers) do slots[i] = optimizer.variables end
  if rawget(self, "_steps") then self:_forget_steps() end
  close_variables(weights)
  for i, optimizer in ipairs(optimizers) do
    close_variables(slots[i])
    local scale = rawget(optimizer, "_scale")
    if scale then native.close(scale, C.flow_loss_scale_release) end
    local inner = rawget(optimizer, "inner_optimizer")
    native.close(rawget(optimizer, "handle"), C.flow_optimizer_release)
    if inner then end_of(inner) end
    end_of(optimizer)
  end
  for _, layer in ipairs(layers) do
    local handle = rawget(layer, "_handle")
    if handle then native.close(handle, C.flow_layer_release) end
    end_of(layer)
  end
  native.collect()      -- what symbolic tensors of the model still hold
end

return Model
