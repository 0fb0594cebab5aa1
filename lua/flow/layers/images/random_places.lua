-- random_places.lua: layers that move the pixels of pictures, cut parts out of them or cover some
-- (keras.src.layers.preprocessing.image_preprocessing).

local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local random = require "flow.tensor.random"
local image_layer = require "flow.layers.images.image_layer"
local pictures = require "flow.tensor.composed.image"
local tools = require "flow.tensor.composed.tools"
local bounding_boxes = require("flow.tensor.composed.bounding_boxes").bounding_boxes

local define, uniform, size = image_layer.define, image_layer.uniform, image_layer.size
local raise = errors.raise
local HALF, WHOLE = { 0, 1 }, { -1, 1 }
local FACTOR, RANGE, SEED = "factor: number|list = 1", "value_range: list = nil", "seed: whole = nil"
local FORMAT = "data_format: 'channels_last' = 'channels_last'"
local FILL, VALUE = "fill_mode: 'reflect'|'wrap'|'constant'|'nearest' = 'reflect'", "fill_value: number = 0"
local INTERPOLATION = "interpolation: 'nearest'|'bilinear' = 'bilinear'"
local places = {}

-- Segmentation masks, pictures of classes, moved as the pictures are, without numbers between those of classes. They have the dtype that
-- they had.
local function masks_by(change)
  return function(self, masks, given, drawn)
    local single = #tensor.raw_shape(masks) == 3
    local nearest = {}
    for name, value in pairs(given) do nearest[name] = value end
    nearest.interpolation = "nearest"
    local x = single and ops.expand_dims(masks, 1) or masks
    local y = change(self, x:to "float32", nearest, drawn):to(masks.dtype)
    return single and ops.squeeze(y, 1) or y
  end
end

places.masks_by = masks_by

-- Boxes in pictures that transformed() moves by the six numbers that coefficients(given, drawn, height, width) returns, each {n, 1} or a
-- number.
local function moves_by(coefficients)
  return function(_, found, given, drawn, height, width)
    local list = { coefficients(given, drawn, height, width) }
    for i = 1, 6 do
      if type(list[i]) ~= "number" then list[i] = ops.expand_dims(list[i], 3) end
    end
    return bounding_boxes.moved(found, unpack(list, 1, 6))
  end
end
places.moves_by = moves_by

---- transforms of places -------------------------------------------------------------------------------------------------------------

-- x with the pixel at (column, row) taken from (a0 column + a1 row + a2, b0 column + b1 row + b2); each a number or {n, 1}.
local function transformed(x, given, a0, a1, a2, b0, b1, b2)
  local list, first = { a0, a1, a2, b0, b1, b2, 0, 0 }, nil
  for i = 1, 8 do first = type(list[i]) ~= "number" and list[i] or first end
  local zero = first * 0
  for i = 1, 8 do list[i] = zero + list[i] end
  return pictures.affine_transform(x, ops.concat(list, 2), { interpolation = given.interpolation, fill_mode = given.fill_mode,
                                                             fill_value = given.fill_value })
end

places.transformed = transformed

local function translation(_, drawn) return 1, 0, -drawn.right, 0, 1, -drawn.down end
local function translate(_, x, given, drawn) return transformed(x, given, translation(given, drawn)) end
places.RandomTranslation = define("RandomTranslation", { "height_factor: number|list", "width_factor: number|list", FILL, INTERPOLATION,
    SEED, VALUE, FORMAT }, {
  factors = { height_factor = WHOLE, width_factor = WHOLE },
  draw = function(self, x, given)
    local height, width = size(x)
    return { down = uniform(self, x, given.height_factor[1], given.height_factor[2], 1) * height,
             right = uniform(self, x, given.width_factor[1], given.width_factor[2], 1) * width }
  end,
  change = translate, masks = masks_by(translate), moves = moves_by(translation),
})

local function shearing(_, drawn) return 1, drawn.across, 0, drawn.down, 1, 0 end
local function shear(_, x, given, drawn) return transformed(x, given, shearing(given, drawn)) end
places.RandomShear = define("RandomShear", { "x_factor: number|list = 0", "y_factor: number|list = 0", INTERPOLATION, FILL, VALUE, FORMAT,
    SEED }, {
  factors = { x_factor = WHOLE, y_factor = WHOLE },
  draw = function(self, x, given)
    local side = ops.where(ops.gt(uniform(self, x, 0, 1, 1), 0.5), -1, 1)
    return { down = uniform(self, x, given.y_factor[1], given.y_factor[2], 1) * side,
             across = uniform(self, x, given.x_factor[1], given.x_factor[2], 1) * side }
  end,
  change = shear, masks = masks_by(shear), moves = moves_by(shearing),
  -- Keras reads what it was given: a number where it stands for both directions.
  write = function(name, value)
    if (name == "x_factor" or name == "y_factor") and value[1] == -value[2] then return value[2] end
    return value
  end,
})

-- The corners of pictures, {n, 4, 2}, and where they go, by the shares of the sides that were drawn, drawn.moves {n, 4, 2}.
local function corners_of(height, width, drawn)
  local right, bottom = width - 1, height - 1
  local starts = tensor.tensor({ 0, 0, right, 0, 0, bottom, right, bottom }):reshape { 1, 4, 2 }
  return drawn.moves * 0 + starts, starts + starts * drawn.moves
end

-- drawn.applies: which pictures are changed.
local function put_in_perspective(_, x, given, drawn)
  local height, width = size(x)
  local starts, ends = corners_of(height, width, drawn)
  local y = pictures.perspective_transform(x, starts, ends, { interpolation = given.interpolation, fill_value = given.fill_value })
  return ops.where(drawn.applies, y, x)
end

-- The rectangles around the four corners of each box, which go where the picture's go.
local function boxes_in_perspective(_, found, _, drawn, height, width)
  local starts, ends = corners_of(height, width, drawn)
  local way = ops.expand_dims(pictures.homography(ends, starts):to(found.dtype), 2)      -- {n, 1, 8}
  local function of(i) return tools.part(way, 3, i, i) end
  local x0, y0, x1, y1 = unpack(ops.split(found, 4, -1))
  local across, down = {}, {}
  for i, corner in ipairs { { x0, y0 }, { x1, y1 }, { x0, y1 }, { x1, y0 } } do
    local x, y = corner[1], corner[2]
    local depth = of(7) * x + of(8) * y + 1
    across[i], down[i] = (of(1) * x + of(2) * y + of(3)) / depth, (of(4) * x + of(5) * y + of(6)) / depth
  end
  across, down = ops.concat(across, 3), ops.concat(down, 3)
  local function end_of(op, list) return ops[op](list, -1, true) end
  local moved = ops.concat({ end_of("min", across), end_of("min", down), end_of("max", across), end_of("max", down) }, 3)
  return ops.where(ops.reshape(drawn.applies, { -1, 1, 1 }), moved, found)
end
places.RandomPerspective = define("RandomPerspective", { FACTOR, "scale: number = 1", INTERPOLATION, VALUE, SEED, FORMAT }, {
  factors = { factor = HALF },
  prepare = function(_, given, name) image_layer.factor(name, "scale", given.scale, HALF) end,
  draw = function(self, x, given)
    return { applies = image_layer.chance(self, x, given.factor), moves = uniform(self, x, -0.5 * given.scale, 0.5 * given.scale, 4, 2) }
  end,
  change = put_in_perspective, masks = masks_by(put_in_perspective), moves = boxes_in_perspective,
})

---- elastic transforms ---------------------------------------------------------------------------------------------------------------

local ELASTIC = "fill_mode: 'reflect'|'wrap'|'constant'|'nearest'|'mirror' = 'reflect'"
local function bend(_, x, given, drawn)
  local y = pictures.moved(x, drawn.across, drawn.down, { interpolation = given.interpolation, fill_mode = given.fill_mode,
                                                          fill_value = given.fill_value })
  return ops.where(drawn.applies, y, x)
end
places.RandomElasticTransform = define("RandomElasticTransform", { FACTOR, "scale: number|list = 1", INTERPOLATION, ELASTIC, VALUE, RANGE,
    SEED, FORMAT }, {
  factors = { factor = HALF, scale = HALF },
  draw = function(self, x, given)
    local height, width = size(x)
    local applies = image_layer.chance(self, x, given.factor)
    local scale = random.uniform({ 1 }, image_layer.options(self, { minval = given.scale[1], maxval = given.scale[2] }))
    local alpha, sigma = scale * (0.1 * math.max(height, width)), scale * (0.05 * math.min(height, width)) + 1e-6
    local function field()
      local noise = random.normal({ image_layer.rows(x), height, width, 1 }, image_layer.options(self, {}))
      return pictures.bending(noise, sigma, 0.05 * math.min(height, width) * given.scale[2]) * alpha
    end
    return { applies = applies, across = field(), down = field() }
  end,
  change = function(self, x, given, drawn)
    return ops.clip(bend(self, x, given, drawn), given.value_range[1], given.value_range[2])
  end,
  masks = masks_by(bend),
})

---- parts ----------------------------------------------------------------------------------------------------------------------------

-- A box for each picture: { x0, x1, y0, y1 }, each {n, 1, 1, 1}; its width and height are these shares of the picture's.
local function draw_box(self, x, across, down)
  local height, width = size(x)
  local function bounds(length, share)
    local part = share * length
    local start = uniform(self, x, 0, 1, 1, 1, 1) * (length - part)
    return start, start + part
  end
  local box = {}
  box.x0, box.x1 = bounds(width, across)
  box.y0, box.y1 = bounds(height, down)
  return box
end
places.draw_box = draw_box

-- {n, height, width, 1}: whether a pixel is in the box.
function places.inside(x, box)
  local height, width = size(x)
  local rows, columns = ops.reshape(tensor.arange(0, height):to "float32", { 1, height, 1, 1 }),
    ops.reshape(tensor.arange(0, width):to "float32", { 1, 1, width, 1 })
  local across = ops.logical_and(ops.ge(columns, box.x0), ops.lt(columns, box.x1))
  return ops.logical_and(across, ops.logical_and(ops.ge(rows, box.y0), ops.lt(rows, box.y1)))
end

places.RandomErasing = define("RandomErasing", { FACTOR, "scale: number|list = nil", "fill_value: number|list = nil", RANGE, SEED,
    FORMAT }, {
  factors = { factor = HALF },
  prepare = function(self, given, name)
    given.scale = image_layer.factor(name, "scale", given.scale or { 0.02, 0.33 }, HALF)
    rawset(self, "scale", given.scale)
    local fill = given.fill_value
    if type(fill) == "table" and #fill ~= 3 then
      raise("%s: fill_value is a number or a list of three, got %s", object.title(self), errors.describe(fill))
    end
  end,
  draw = function(self, x, given)
    local across = ops.sqrt(uniform(self, x, given.scale[1], given.scale[2], 1, 1, 1))
    local down = ops.sqrt(uniform(self, x, given.scale[1], given.scale[2], 1, 1, 1))
    local drawn = { box = draw_box(self, x, across, down), applies = image_layer.chance(self, x, given.factor), fill = given.fill_value }
    if drawn.fill == nil then
      local dims = tensor.raw_shape(x)
      drawn.fill = random.normal({ image_layer.rows(x), dims[2], dims[3], dims[4] }, image_layer.options(self, {})) * given.value_range[2]
    elseif type(drawn.fill) == "table" then
      drawn.fill = tensor.tensor(drawn.fill)
    end
    return drawn
  end,
  change = function(_, x, given, drawn)
    local low, high = given.value_range[1], given.value_range[2]
    local fill = drawn.fill
    if type(fill) == "number" then fill = math.min(math.max(fill, low), high) else fill = ops.clip(fill, low, high):to(x.dtype) end
    return ops.where(ops.logical_and(drawn.applies, places.inside(x, drawn.box)), fill, x)
  end,
})

-- As in Keras, all pictures of a batch are cut alike. Where they are not larger than the part in both directions, the largest part of its
-- proportions is resized; without training they stay unchanged.
local function middle(given, height, width)      -- the part where nothing was drawn
  local crop_height = math.max(math.min(height, math.floor(width * given.height / given.width)), 1)
  local crop_width = math.max(math.min(width, math.floor(height * given.width / given.height)), 1)
  local top, left = math.floor((height - crop_height) / 2), math.floor((width - crop_width) / 2)
  return top, left, math.min(top + given.height, height), math.min(left + given.width, width)
end

local function crop(_, x, given, drawn)
  local height, width = size(x)
  if drawn.top then
    local function part(y, axis, first, count) return ops.take(y, tensor.arange(1, count + 1, { dtype = "int64" }) + first, axis) end
    return part(part(x, 2, drawn.top, given.height), 3, drawn.left, given.width)
  end
  local top, left, bottom, right = middle(given, height, width)
  local y = x[{ {}, { top + 1, bottom }, { left + 1, right } }]
  if bottom - top == given.height and right - left == given.width then return y end
  return pictures.resize(y, { given.height, given.width }, { interpolation = given.interpolation or "bilinear" })
end
places.RandomCrop = define("RandomCrop", { "height: count", "width: count", SEED, FORMAT }, {
  change = crop, masks = masks_by(crop),
  moves = function(_, found, given, drawn, height, width)
    local top, left, down, across = drawn.top, drawn.left, 1, 1
    if top then top, left = top:to "float32", left:to "float32"
    else
      local bottom, right
      top, left, bottom, right = middle(given, height, width)
      down, across = given.height / (bottom - top), given.width / (right - left)
    end
    return bounding_boxes.transformed(found, across, 0, -left * across, 0, down, -top * down), given.height, given.width
  end,
  draw = function(self, x, given)
    local height, width = size(x)
    if height <= given.height or width <= given.width then return {} end
    local function start(most)
      local options = image_layer.options(self, { minval = 0, maxval = most })
      return ops.floor(random.uniform({ 1 }, options)):to "int64"
    end
    return { top = start(height - given.height + 1), left = start(width - given.width + 1) }
  end,
})

return places
