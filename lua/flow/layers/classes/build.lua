-- build.lua: how layers written in Lua are built where a script asks for it: layer:build { -1, 4 }.

local inside = require "flow.layers.classes.inside"
local placement = require "flow.tensor.placement"
local variable = require "flow.tensor.variable"
local symbolic = require "flow.layers.symbolic"

local own_build = {}

-- Shape as layers see it while they are built: the batch dimension is -1, but of a layer that keeps a state for each row.
function own_build.batch_shape(shape, layer)
  local result = { layer and shape[1] and layer:_keeps_states() and shape[1] or -1 }
  for i = 2, #shape do result[i] = shape[i] end
  return symbolic.shape(result)
end
local batch_shape = own_build.batch_shape

-- Builds a layer without its own build(): a call on inputs of these shapes, of which nothing is computed, builds what is inside of it.
function own_build.by_call(layer, shapes)
  local inputs = {}
  for i, one in ipairs(shapes) do inputs[i] = { shape = batch_shape(one), dtype = "float32" } end
  symbolic.build(layer, inputs)
end

-- Drops the entries of a list beyond the first `count`.
local function cut(list, count)
  for i = #list, count + 1, -1 do list[i] = nil end
end

-- Calls build(layer, ...) with layer._building set. If it fails the layer is left without the weights that it had added, and without what
-- these add to the loss.
function own_build.run(layer, build, ...)
  local weights, regularizers = #layer._own, #(rawget(layer, "_regularizers") or {})
  rawset(layer, "_building", true)
  local ok, problem = pcall(inside.call, layer, require "flow.tensor.outside_traces", build, layer, ...)
  rawset(layer, "_building", nil)
  if ok then return end
  cut(layer._own, weights)
  cut(rawget(layer, "_regularizers") or {}, regularizers)
  error(problem, 0)
end

local function set_built(self, shape)
  if type(shape) == "table" then rawset(self, "_input_shape", shape) end
  rawset(self, "_built", true)
  rawset(self, "_built_in", placement.current() or false)
  if variable.awaited then variable.awaited() end
end

-- A build() that a script's class defines: the layer is built after it, also when the script calls it.
function own_build.wrap(build, class)
  return not rawget(class, "in_lua") and build or function(self, shape, ...)
    if rawget(self, "_building") then return build(self, shape, ...) end
    if type(shape) == "table" and type(shape[1]) == "number" then
      shape = batch_shape(require "flow.layers.classes.build_shapes" (self, shape)[1], self)
    end
    own_build.run(self, build, shape, ...)
    if not self._built then set_built(self, shape) end
  end
end

-- The build() of a layer of the library's in Lua that gets one shape: build(layer, shape) runs once, whoever calls it.
function own_build.once(build)
  return function(self, shape)
    if rawget(self, "_building") then return build(self, type(shape[1]) == "table" and shape[1] or shape) end
    if self._built then return end
    shape = batch_shape(require "flow.layers.classes.build_shapes" (self, shape)[1], self)
    own_build.run(self, build, shape)
    set_built(self, shape)
  end
end

return own_build
