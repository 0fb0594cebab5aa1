-- wrapper.lua: Wrapper, which classes of layers extend that hold another layer and change what it does:
-- layers.Wrapper:extend("Doubled"), with a call() that calls self.layer. It builds that layer and keeps it in files, as
-- keras/src/layers/core/wrapper.py does.

local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local Layer = require "flow.layers.layer"
local entries = require "flow.layers.entries"
local own_build = require "flow.layers.classes.build"

local raise = errors.raise
local Wrapper = object.class("Wrapper", Layer)

signature.takes("layer, { name?: string, trainable: boolean = true, dtype?, activity_regularizer? }")
signature.constructor(Wrapper, "flow.layers.Wrapper", function(layer, options)
  if type(layer) == "table" and not getmetatable(layer) and #layer == 1 then layer = layer[1] end
  if not object.is(layer, Layer) then raise("Wrapper takes a layer such as layers.Dense(8), got %s", errors.describe(layer)) end
  local self = object.new(Wrapper):_prepare("Wrapper", options)
  rawset(self, "_assignments", { layer = layer })
  self._children[1] = layer
  return self
end)

Wrapper.build = own_build.once(function(self, shape) self.layer:_ensure_built({ shape }, true) end)

function Wrapper:call()
  raise("%s: the class of a Wrapper has a call(x) of its own: local Twice = layers.Wrapper:extend(\"Twice\"); "
    .. "function Twice:call(x) return self.layer(x) * 2 end", object.title(self))
end

function Wrapper:get_config()
  local config = entries.base(self)
  config.layer = entries.inner(self.layer)
  return config
end

function Wrapper._from_config(class, content, reader)
  return class(entries.options_with_layer(content, reader, "layer", "Wrapper"))
end

return { Wrapper = Wrapper }
