-- of_records.lua: what layers of core/layers that change pictures do besides their calls on tensors: pictures by name with their labels
-- and masks, and the methods get_random_transformation, transform_images and others of Keras' layers. Their formulas stand in C for calls
-- on tensors, and here once more for a transformation that is drawn first and then applied to several things. As in Keras a transformation
-- is a table: of RandomFlip { flips = {n, 1, 1, 1} }, of RandomRotation { angle = {n, 1} } in degrees, of RandomZoom { height_zoom,
-- width_zoom = {n, 1} }, of RandomContrast { contrast_factor = {n, 1, 1, 1} }.

local object = require "flow.object"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local signature = require "flow.signature"
local Layer = require "flow.layers.layer"
local image_layer = require "flow.layers.images.image_layer"
local places = require "flow.layers.images.random_places"

local uniform, factor, size = image_layer.uniform, image_layer.factor, image_layer.size
local WHOLE, HALF = { -1, 1 }, { 0, 1 }
local definitions = {}

-- Numbers of a transformation, {n} or {n, 1}, as {n, 1}.
local function column_of(value)
  local x = ops.operand(value, "float32", "a transformation")
  return #tensor.raw_shape(x) == 1 and ops.expand_dims(x, 2) or x
end

local function flip(_, x, given, drawn)
  if given.mode ~= "vertical" then x = ops.where(drawn.flips, ops.flip(x, 3), x) end
  if given.mode ~= "horizontal" then x = ops.where(drawn.flips, ops.flip(x, 2), x) end
  return x
end
definitions.RandomFlip = {
  draw = function(self, x) return { flips = ops.le(uniform(self, x, 0, 1, 1, 1, 1), 0.5) } end,
  change = flip, masks = places.masks_by(flip),
}

-- The transform of random_rotation.c, which leaves the centre where it is.
local function rotate(_, x, given, drawn)
  local height, width = size(x)
  local angle = column_of(drawn.angle) * (math.pi / 180)
  local cosine, sine = ops.cos(angle), ops.sin(angle)
  local column, row = (width - 1) / 2, (height - 1) / 2
  return places.transformed(x, given, cosine, -sine, column - column * cosine + row * sine,
    sine, cosine, row - column * sine - row * cosine)
end
definitions.RandomRotation = {
  draw = function(self, x, given)
    local range = factor("RandomRotation", "factor", given.factor, WHOLE)
    return { angle = uniform(self, x, range[1] * 360, range[2] * 360, 1) }
  end,
  change = rotate, masks = places.masks_by(rotate),
}

-- That of random_zoom.c.
local function zoom(_, x, given, drawn)
  local height, width = size(x)
  local columns, rows = column_of(drawn.width_zoom), column_of(drawn.height_zoom)
  local column, row = (width - 1) / 2, (height - 1) / 2
  return places.transformed(x, given, columns, 0, column - column * columns, 0, rows, row - row * rows)
end
definitions.RandomZoom = {
  draw = function(self, x, given)
    local function drawn(name)
      local range = factor("RandomZoom", name, given[name], WHOLE)
      return uniform(self, x, 1 + range[1], 1 + range[2], 1)
    end
    local height = drawn "height_factor"
    return { height_zoom = height, width_zoom = given.width_factor and drawn "width_factor" or height }
  end,
  change = zoom, masks = places.masks_by(zoom),
}

definitions.RandomContrast = {
  draw = function(self, x, given)
    local value = given.factor
    local range = type(value) == "table" and value or { 0, value }
    range = factor("RandomContrast", "factor", range, HALF)
    return { contrast_factor = uniform(self, x, 1 - range[1], 1 + range[2], 1, 1, 1) }
  end,
  change = function(_, x, given, drawn)
    local mean = ops.mean(x, { 2, 3 }, true)
    return ops.clip((x - mean) * drawn.contrast_factor + mean, given.value_range[1], given.value_range[2])
  end,
}

local function call(self, x) return Layer._call(self, x, {}) end
definitions.CenterCrop = { always = true, change = call, masks = places.masks_by(call) }

definitions.Resizing = {
  always = true, change = call,
  masks = function(self, masks)
    local twin = rawget(self, "_nearest")
    if not twin then
      local config = self:get_config()
      config.interpolation = "nearest"
      twin = { object.class_of(self).from_config(config) }      -- in a table: no part of the layer
      rawset(self, "_nearest", twin)
    end
    return twin[1](masks):to(masks.dtype)
  end,
}

-- Gives a class of the library what this file is about.
return function(class)
  image_layer.definitions[class.name] = definitions[class.name]
  image_layer.add_methods(class)
  function class:_call(inputs, options)
    if not signature.is_options(inputs) then return Layer._call(self, inputs, options) end
    return image_layer.call_named(self, inputs, options)
  end
end
