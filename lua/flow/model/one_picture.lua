-- one_picture.lua: a Sequential of layers that prepare pictures, called on one picture {height, width, channels} in place of a batch, as in
-- ds:map before ds:batch.

local native = require "flow.ffi"
local object = require "flow.object"
local symbolic = require "flow.layers.symbolic"

-- Layers that take one picture, besides those of layers/images/image_layer.lua.
local OTHERS = { Resizing = true, CenterCrop = true, Rescaling = true, Normalization = true, RandomFlip = true, RandomRotation = true,
                 RandomZoom = true, RandomContrast = true, Identity = true }

local one_picture = {}

-- Whether that is so. A Sequential that knows its input is one of batches.
function one_picture.is(model, inputs)
  if rawget(model, "_input") or not native.is_tensor(inputs) or #symbolic.dims(inputs) ~= 3 then return false end
  local definitions, resizes = require("flow.layers.images.image_layer").definitions, false
  for _, layer in ipairs(model._children) do
    local name = object.class_of(layer).name
    if not (OTHERS[name] or definitions[name]) then return false end
    resizes = resizes or name ~= "Rescaling" and name ~= "Normalization" and name ~= "Identity"
  end
  return resizes      -- the others take tensors of any kind
end

-- The layers' results, one after the other: pictures have their own sizes, so no graph is made for one.
function one_picture.call(model, picture, options)
  for _, layer in ipairs(model._children) do picture = layer(picture, options) end
  return picture
end

return one_picture
