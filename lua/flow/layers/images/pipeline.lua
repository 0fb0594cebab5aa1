-- pipeline.lua: Pipeline: layers that prepare data, one after the other (keras.src.layers.preprocessing.pipeline). Called by itself it acts
-- as in training, as they do.

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local signature = require "flow.signature"
local Layer = require "flow.layers.layer"
local entries = require "flow.layers.entries"

local raise = errors.raise
local Pipeline = object.class("Pipeline", Layer)

signature.takes("layers: list, { name?: string, trainable: boolean = true, dtype? }")
signature.constructor(Pipeline, "flow.layers.Pipeline", function(list, options)
  for i = 1, errors.check_list("Pipeline: layers", list) do
    if not object.is(list[i], Layer) then raise("Pipeline: entry %d of layers is %s, expected a layer", i, errors.describe(list[i])) end
  end
  local self = object.new(Pipeline):_prepare("Pipeline", options)
  rawset(self, "_assignments", { layers = { unpack(list) } })
  for i, layer in ipairs(list) do self._children[i] = layer end
  return self
end)

function Pipeline.fields._trains_alone() return true end
function Pipeline.fields._autocasts() return false end      -- its layers do

-- Also of pictures by name, as the layers take them.
function Pipeline:_call(inputs, options)
  if not signature.is_options(inputs) then return Layer._call(self, inputs, options) end
  for _, layer in ipairs(self._children) do inputs = layer(inputs, options) end
  return inputs
end

function Pipeline:call(x, options)
  for _, layer in ipairs(self._children) do x = layer(x, { training = options.training }) end
  return x
end

function Pipeline:get_config()
  local list = json.list()
  for i, layer in ipairs(self._children) do list[i] = entries.inner(layer) end
  return { name = self.name, layers = list }
end

function Pipeline._from_config(class, content, reader)
  local list = {}
  for i, entry in ipairs(entries.table_field(content, "layers", "Pipeline")) do
    list[i] = entries.read_inner(entry, reader, "Pipeline: layer " .. i)
  end
  return class(list, { name = content.name })
end

return { Pipeline = Pipeline }
