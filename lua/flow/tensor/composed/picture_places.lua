-- picture_places.lua: tf.image's functions that move pixels: flips, turns, crops and borders, of one picture {height, width, channels} or
-- of a batch, eager and traced. flow.image loads it when one of them is asked for. Offsets count pixels from 0.

local errors = require "flow.errors"
local image = require "flow.tensor.image"
local draws = require "flow.tensor.composed.draws"
local tools = require "flow.tensor.composed.tools"
local native = require "flow.ffi"
local shapes = require "flow.tensor.shapes"
local tensor = require "flow.tensor"
local signature = require "flow.signature"

local ops, takes, raise = tools.ops, signature.takes, errors.raise

-- The picture as a tensor, the axis of its height, and its height and width.
local function picture_of(x, what)
  x = ops.operand(x, nil, "flow.image." .. what)
  local rank = #tools.dims(x)
  if rank ~= 3 and rank ~= 4 then raise("flow.image.%s: a picture has rank 3, a batch rank 4, got rank %d", what, rank) end
  return x, rank - 2, tools.length(x, rank - 2, "image." .. what), tools.length(x, rank - 1, "image." .. what)
end

---- flips and turns --------------------------------------------------------------------------------

takes "image"
function image.flip_left_right(x)
  local picture, axis = picture_of(x, "flip_left_right")
  return ops.flip(picture, axis + 1)
end
takes "image"
function image.flip_up_down(x)
  local picture, axis = picture_of(x, "flip_up_down")
  return ops.flip(picture, axis)
end
-- Rows and columns swapped.
takes "image"
function image.transpose(x)
  local picture, axis = picture_of(x, "transpose")
  return ops.swapaxes(picture, axis, axis + 1)
end
-- k quarter turns against the clock. If k has no value yet, all four are computed: the pictures are square then.
takes "image, k: data = 1"
function image.rot90(x, k)
  local picture, axis = picture_of(x, "rot90")
  local function turned(n) return ops.rot90(picture, n, { axis, axis + 1 }) end
  if not (native.is_tensor(k) and tensor.is_symbolic(k)) then
    local n = native.is_tensor(k) and k:item() or k
    if type(n) ~= "number" or n ~= math.floor(n) then raise("flow.image.rot90: k is a whole number, got %s", errors.describe(k)) end
    return turned(n)
  end
  local size = tools.dims(picture)
  if size[axis] ~= size[axis + 1] then
    raise("flow.image.rot90: pictures of %d x %d are turned by a number: one that is known only when the function runs needs square ones",
      size[axis], size[axis + 1])
  end
  k = ops.mod(k, 4)
  return ops.where(ops.lt(k, 2), ops.where(ops.eq(k, 0), picture, turned(1)), ops.where(ops.eq(k, 2), turned(2), turned(3)))
end

-- Half of the pictures flipped, each picture of a batch for itself.
local function flip_some(name)
  local function some(x, seed, what)
    local picture = picture_of(x, what)
    local is_stateless, shape = type(seed) == "table" and seed.pair, {}
    if #tools.dims(picture) == 4 then      -- rows of a trace's batch are drawn as such; a seed of two numbers is for a known number
      local rows = is_stateless and tools.length(picture, 1, "image." .. what) or shapes.of(tools.dims(picture))[1]
      shape = { rows, 1, 1, 1 }
    end
    return ops.where(ops.lt(draws.uniform(shape, 0, 1, seed, what), 0.5), image[name](picture), picture)
  end
  takes "image, seed?"
  image["random_" .. name] = function(x, seed) return some(x, seed, "random_" .. name) end
  takes "image, seed: data"
  image["stateless_random_" .. name] = function(x, seed)
    return some(x, draws.pair(seed, "flow.image.stateless_random_" .. name), "stateless_random_" .. name)
  end
end
flip_some "flip_left_right"
flip_some "flip_up_down"

---- crops ------------------------------------------------------------------------------------------

takes "image, offset_height: whole, offset_width: whole, target_height: count, target_width: count"
function image.crop_to_bounding_box(x, top, left, height, width)
  local picture, axis, rows, columns = picture_of(x, "crop_to_bounding_box")
  if top + height > rows or left + width > columns then
    raise("flow.image.crop_to_bounding_box: %d rows after %d and %d columns after %d are not in a picture of %d x %d", height, top,
      width, left, rows, columns)
  end
  return tools.part(tools.part(picture, axis, top + 1, top + height), axis + 1, left + 1, left + width)
end

-- The middle: central_fraction of the height and of the width, above 0 and at most 1.
takes "image, central_fraction: number"
function image.central_crop(x, fraction)
  if fraction <= 0 or fraction > 1 then raise("flow.image.central_crop: central_fraction is above 0 and at most 1, got %g", fraction) end
  local picture, _, rows, columns = picture_of(x, "central_crop")
  local top, left = math.floor((rows - rows * fraction) / 2), math.floor((columns - columns * fraction) / 2)
  return image.crop_to_bounding_box(picture, top, left, rows - 2 * top, columns - 2 * left)
end

-- A part of this size of any tensor, at a random place.
local function crop_somewhere(x, size, seed, what)
  x = ops.operand(x, nil, "flow.image." .. what)
  if native.is_tensor(size) then size = shapes.values_of(size) end
  local dims, starts, lengths = tools.dims(x), {}, {}
  if #dims ~= #size then
    raise("flow.image.%s: the size has %d numbers, the tensor rank %d", what, #size, #dims)
  end
  for axis = 1, #size do
    local n = tools.whole(size[axis], 0, "image." .. what, "a size")
    local room = tools.length(x, axis, what) - n
    lengths[axis] = n
    if room < 0 then raise("flow.image.%s: axis %d has %d elements, %d are asked for", what, axis, n + room, n) end
    starts[axis] = room
  end
  local at = ops.floor(draws.uniform({ #size }, 0, 1, seed, what) * (tools.constant(starts, "float32") + 1))
  return ops.slice(x, ops.minimum(at, tools.constant(starts, "float32")):to "int32" + 1, lengths)
end
takes "value, size: list|tensor, seed?"
function image.random_crop(x, size, seed) return crop_somewhere(x, size, seed, "random_crop") end
takes "value, size: list|tensor, seed: data"
function image.stateless_random_crop(x, size, seed)
  return crop_somewhere(x, size, draws.pair(seed, "flow.image.stateless_random_crop"), "stateless_random_crop")
end

---- borders ----------------------------------------------------------------------------------------

-- Zeros around a picture, which begins at the offsets.
takes "image, offset_height: whole, offset_width: whole, target_height: count, target_width: count"
function image.pad_to_bounding_box(x, top, left, height, width)
  local picture, axis, rows, columns = picture_of(x, "pad_to_bounding_box")
  local below, right = height - top - rows, width - left - columns
  if below < 0 or right < 0 then
    raise("flow.image.pad_to_bounding_box: a picture of %d x %d does not fit in %d x %d from row %d, column %d on", rows, columns, height,
      width, top, left)
  end
  local widths = {}
  for i = 1, #tools.dims(picture) do widths[i] = i == axis and { top, below } or i == axis + 1 and { left, right } or { 0, 0 } end
  return ops.pad(picture, widths)
end

-- Cut in the middle or with zeros around, to this size.
takes "image, target_height: count, target_width: count"
function image.resize_with_crop_or_pad(x, height, width)
  local picture, _, rows, columns = picture_of(x, "resize_with_crop_or_pad")
  local function middle(more) return math.floor(math.max(more, 0) / 2) end
  picture = image.crop_to_bounding_box(picture, middle(rows - height), middle(columns - width), math.min(rows, height),
    math.min(columns, width))
  return image.pad_to_bounding_box(picture, middle(height - rows), middle(width - columns), height, width)
end

-- As large as it fits without another ratio of the sides, with zeros around.
takes "image, target_height: count, target_width: count, method: string = 'bilinear', antialias: boolean = false"
function image.resize_with_pad(x, height, width, method, antialias)
  local picture, _, rows, columns = picture_of(x, "resize_with_pad")
  local ratio = math.max(rows / height, columns / width)
  local own_height, own_width = math.floor(rows / ratio), math.floor(columns / ratio)
  local resized = image.resize(picture, { own_height, own_width }, { method = method, antialias = antialias })
  local function middle(room) return math.max(math.floor(room / 2), 0) end
  return image.pad_to_bounding_box(resized, middle((height - rows / ratio)), middle((width - columns / ratio)), height, width)
end

return image
