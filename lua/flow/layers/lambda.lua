-- lambda.lua: Lambda: a function as a layer, traced as the call of a layer written in Lua is. As keras.src.layers.core.lambda_layer, but
-- that files do not hold it.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local Layer = require "flow.layers.layer"

local raise = errors.raise
local Lambda = object.class("Lambda", Layer)

local function new(f, mask, arguments, options)
  local self = object.new(Lambda):_prepare("Lambda", options)
  for name, value in pairs { _f = f, _mask = mask or false, _arguments = arguments or false } do rawset(self, name, value) end
  rawset(self, "supports_masking", mask ~= nil)
  return self
end

-- arguments: a table that f gets after the inputs. mask: a function of the inputs and their mask that gives the output's; without one the
-- output has none. output_shape is found by tracing f: it may be given, as in Keras, and says nothing.
signature.takes("f: callable, output_shape?, mask?: callable, arguments?: table, { name?: string, trainable: boolean = true, dtype? }")
signature.constructor(Lambda, "flow.layers.Lambda", function(f, _, mask, arguments, options) return new(f, mask, arguments, options) end)

function Lambda:call(inputs)
  if self._arguments then return self._f(inputs, self._arguments) end
  return self._f(inputs)
end

function Lambda:compute_mask(inputs, mask) return self._mask and self._mask(inputs, mask) or nil end

function Lambda:get_config()
  raise("%s: files hold no functions of Lua: write a layer with layers.Layer:extend in its place", object.title(self))
end

-- The same layer, for a copy of a model.
function Lambda:_copy()
  return new(self._f, self._mask or nil, self._arguments or nil, { name = self.name, trainable = self._trainable, dtype = self._policy })
end

function Lambda._from_config(_, content)
  raise("the layer Lambda %q is code of Python, which is not executed: build the model in Lua and load its weights", tostring(content.name))
end

return { Lambda = Lambda }
