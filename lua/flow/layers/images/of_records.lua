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
local boxes = require "flow.layers.images.boxes"
local image_layer = require "flow.layers.images.image_layer"
local places = require "flow.layers.images.random_places"
local bounding_boxes = require("flow.tensor.composed.bounding_boxes").bounding_boxes

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
  moves = function(_, found, given, drawn, height, width)
    local flips = ops.squeeze(drawn.flips, -1)
    if given.mode ~= "vertical" then
      found = ops.where(flips, bounding_boxes.transformed(found, -1, 0, width, 0, 1, 0), found)
    end
    if given.mode ~= "horizontal" then
      found = ops.where(flips, bounding_boxes.transformed(found, 1, 0, 0, 0, -1, height), found)
    end
    return found
  end,
}

-- The transform of random_rotation.c, which leaves the centre where it is.
local function rotation(_, drawn, height, width)
  local angle = column_of(drawn.angle) * (math.pi / 180)
  local cosine, sine = ops.cos(angle), ops.sin(angle)
  local column, row = (width - 1) / 2, (height - 1) / 2
  return cosine, -sine, column - column * cosine + row * sine, sine, cosine, row - column * sine - row * cosine
end
local function rotate(_, x, given, drawn) return places.transformed(x, given, rotation(given, drawn, size(x))) end
definitions.RandomRotation = {
  draw = function(self, x, given)
    local range = factor("RandomRotation", "factor", given.factor, WHOLE)
    return { angle = uniform(self, x, range[1] * 360, range[2] * 360, 1) }
  end,
  change = rotate, masks = places.masks_by(rotate), moves = places.moves_by(rotation),
}

-- That of random_zoom.c.
local function zooming(_, drawn, height, width)
  local columns, rows = column_of(drawn.width_zoom), column_of(drawn.height_zoom)
  local column, row = (width - 1) / 2, (height - 1) / 2
  return columns, 0, column - column * columns, 0, rows, row - row * rows
end
local function zoom(_, x, given, drawn) return places.transformed(x, given, zooming(given, drawn, size(x))) end
definitions.RandomZoom = {
  draw = function(self, x, given)
    local function drawn(name)
      local range = factor("RandomZoom", name, given[name], WHOLE)
      return uniform(self, x, 1 + range[1], 1 + range[2], 1)
    end
    local height = drawn "height_factor"
    return { height_zoom = height, width_zoom = given.width_factor and drawn "width_factor" or height }
  end,
  change = zoom, masks = places.masks_by(zoom), moves = places.moves_by(zooming),
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

-- What becomes of boxes where the part at top and left of that size is resized to what the layer gives.
local function part_moved(found, given, top, left, height, width)
  local down, across = given.height / height, given.width / width
  return bounding_boxes.transformed(found, across, 0, -left * across, 0, down, -top * down), given.height, given.width
end

-- The largest part of a picture that has the proportions of what the layer gives.
local function largest(given, height, width)
  local part_height = math.max(math.min(height, math.floor(width * given.height / given.width)), 1)
  local part_width = math.max(math.min(width, math.floor(height * given.width / given.height)), 1)
  return math.floor((height - part_height) / 2), math.floor((width - part_width) / 2), part_height, part_width
end

definitions.CenterCrop = {
  always = true, change = call, masks = places.masks_by(call),
  moves = function(_, found, given, _, height, width)
    local down, right = height - given.height, width - given.width
    if down < 0 or right < 0 then return part_moved(found, given, largest(given, height, width)) end
    return part_moved(found, given, math.floor(down / 2), math.floor(right / 2), given.height, given.width)
  end,
}

definitions.Resizing = {
  always = true, change = call,
  moves = function(_, found, given, _, height, width)
    if given.crop_to_aspect_ratio then return part_moved(found, given, largest(given, height, width)) end
    if not given.pad_to_aspect_ratio then return part_moved(found, given, 0, 0, height, width) end
    local scale = math.min(given.height / height, given.width / width)
    local top, left = math.floor((given.height - height * scale) / 2), math.floor((given.width - width * scale) / 2)
    return bounding_boxes.transformed(found, scale, 0, left, 0, scale, top), given.height, given.width
  end,
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
  local get_config = class.get_config
  function class:get_config() return boxes.write(self, get_config(self)) end
  function class:_call(inputs, options)
    if not signature.is_options(inputs) then return Layer._call(self, inputs, options) end
    return image_layer.call_named(self, inputs, options)
  end
end
