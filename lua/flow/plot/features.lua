-- features.lua: the filters of a convolution, and what a layer gives for a picture, as lists of tensors {height, width, 1 or 3} with values
-- from 0 to 255, which plot/init.lua hands to flow.plot.images.

local errors = require "flow.errors"
local object = require "flow.object"
local Layer = require "flow.layers.layer"
local models = require "flow.model"
local ops = require "flow.tensor.ops"

local features = {}

-- Each filter of a convolution as a picture between 0 and 255, 127.5 for a weight of 0: a list. The largest weight of all filters, by its
-- size, is 0 or 255, so that filters can be compared. Of a layer with several weights of four axes the first one is taken. Raises for a
-- layer without one, or one that is not built.
function features.filters(layer)
  local what = "flow.plot.filters"
  if not object.is(layer, Layer) then errors.raise("%s takes a layer, such as model.layers[1], got %s", what, errors.describe(layer)) end
  local kernel
  for _, weight in ipairs(layer.weights) do
    if weight.rank == 4 then kernel = kernel or weight:value() end
  end
  if not kernel then
    errors.raise("%s: %s has no filters {height, width, channels, count}%s", what, object.title(layer),
      layer.built and "" or " yet: they are made when it is first called")
  end
  local largest = math.max(kernel:abs():max():item(), 1e-12)
  local list = {}
  for i = 1, kernel.shape[4] do
    local one = kernel[{ {}, {}, {}, i }]
    if one.shape[3] ~= 3 then one = one:mean(3, true) end
    list[i] = one * (127.5 / largest) + 127.5
  end
  return list
end

-- The channels of what a layer takes ("input") or gives ("output"): of the first one, where these are several. nil if these are not
-- pictures {rows, height, width, channels}, or where the layer does not know them, since it was never called on a symbolic tensor.
local function channels(layer, side)
  local ok, value = pcall(function() return layer[side] end)
  if ok and type(value) == "table" and not getmetatable(value) then value = value[1] end
  local shape = ok and type(value) == "table" and value.shape
  return shape and #shape == 4 and shape[4] or nil
end

-- The layer that `given` names: itself, by its name, or without it the first layer that gives pictures with another number of channels than
-- it takes.
local function find_layer(what, model, given)
  if object.is(given, Layer) then return given end
  if given ~= nil then return model:get_layer(given) end
  for _, layer in ipairs(model.layers) do
    local made, taken = channels(layer, "output"), channels(layer, "input")
    if made and taken and made ~= taken then return layer end
  end
  errors.raise("%s: %s has no layer that makes pictures of another number of channels; name one: { layer = ... }", what,
    object.title(model))
end

-- What a layer gives for a picture {height, width, channels} (or {1, height, width, channels}), each channel stretched from its least value
-- at 0 to its greatest at 255: a list; and the layer's name. The picture is given to the model as it is, as float32. For this a second
-- model is made of the first one's inputs and the layer's output; both have the same weights.
function features.maps(model, image, given)
  local what = "flow.plot.feature_maps"
  if not object.is(model, models.Model) then errors.raise("%s takes a model, got %s", what, errors.describe(model)) end
  image = ops.operand(image, nil, what)
  if image.rank == 3 then image = image:expand_dims(1) end
  if image.rank ~= 4 or image.shape[1] ~= 1 then
    errors.raise("%s: the image is {height, width, channels}, got {%s}", what, table.concat(image.shape, ", "))
  end
  local layer = find_layer(what, model, given)
  if not channels(layer, "output") then
    errors.raise("%s: what %s gives is not {rows, height, width, channels}", what, object.title(layer))
  end
  local maps = models.Model { inputs = model.inputs, outputs = layer.output }(image:to "float32")
  local list = {}
  for i = 1, maps.shape[4] do
    local one = maps[{ 1, {}, {}, i }]
    local low, high = one:min():item(), one:max():item()
    list[i] = (one - low) * (255 / math.max(high - low, 1e-12))
  end
  return list, layer.name
end

return features
