-- histograms.lua: Equalization and ContrastLimitedAdaptiveHistogramEqualization: pictures whose values are spread evenly
-- (keras.src.layers.preprocessing.image_preprocessing).

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local tools = require "flow.tensor.composed.tools"
local image_layer = require "flow.layers.images.image_layer"

local define, rescale = image_layer.define, image_layer.rescale
local BYTES, BINS = { 0, 255 }, 256
local RANGE, FORMAT = "value_range: list = nil", "data_format: 'channels_last' = 'channels_last'"
local histograms = {}

-- How often each number from 0 to below bins is in a row: {rows, bins} of numbers {rows, n}.
local function count(numbers, bins)
  local ones = tools.filled(numbers, tools.dims(numbers), 1, "float32")
  return tools.apply("take_along_gradient", { ones, numbers }, function(a) a.along.axis, a.along.size = 1, bins end)
end

---- Equalization ---------------------------------------------------------------------------------------------------------------------

local function bin_of(values, bins) return ops.clip(ops.trunc(values * ((bins - 1) / 255)), 0, bins - 1):to "int64" end

-- Values {n, height * width} of one channel. As in Keras the pictures of a batch have one histogram.
local function equalize(values, bins)
  local counts = ops.sum(count(bin_of(values, bins), bins), 1)
  local cumulative = ops.cumsum(counts, 1)
  local total, least = ops.max(cumulative), ops.min(ops.where(ops.gt(cumulative, 0), cumulative, math.huge))
  local span = ops.where(ops.eq(total, least), 1, total - least)
  local new_values = ops.clip(ops.round((cumulative - least) * 255 / span), 0, 255)
  local is_flat = ops.le(ops.sum(ops.gt(counts, 0):to "float32"), 1)
  return ops.where(is_flat, values, tools.gather(new_values, bin_of(values, bins)))
end

histograms.Equalization = define("Equalization", { RANGE, "bins: count = 256", FORMAT }, {
  change = function(_, x, given)
    local dims, channels = tensor.raw_shape(x), {}
    local y = rescale(x, given.value_range, BYTES):to "float32"
    for i, channel in ipairs(ops.unstack(y, nil, 4)) do
      local values = ops.reshape_raw(channel, { dims[1], dims[2] * dims[3] })
      channels[i] = ops.reshape_raw(equalize(values, given.bins), { dims[1], dims[2], dims[3] })
    end
    return rescale(ops.stack(channels, 4), BYTES, given.value_range):to(x.dtype)
  end,
})

---- the same in tiles ----------------------------------------------------------------------------------------------------------------

-- What each of 256 values becomes in each tile, {n, rows, columns, channels, 256}, of tiles {n, rows, columns, channels, pixels}. Where
-- values are more frequent than a limit, the rest counts for all values alike.
local function new_values(tiles, clip_limit)
  local dims = tools.dims(tiles)
  local pixels = dims[5]
  local counts = count(ops.reshape_raw(ops.clip(tiles, 0, 255):to "int64", { dims[1] * dims[2] * dims[3] * dims[4], pixels }), BINS)
  if clip_limit > 0 then
    local kept = ops.minimum(counts, clip_limit * pixels / BINS)
    counts = kept + ops.sum(counts - kept, 2, true) / BINS
  end
  local cumulative = ops.cumsum(counts, 2)
  local least = ops.min(cumulative, 2, true)
  local span = ops.where(ops.eq(least, pixels), 1, pixels - least)
  return ops.reshape_raw(ops.clip((cumulative - least) * 255 / span, 0, 255), { dims[1], dims[2], dims[3], dims[4], BINS })
end

-- Between which two tiles, counted from 0, each of n pixels of an axis is, and how far from the first: lists of numbers. There is one
-- more tile at both ends, like the outermost one.
local function neighbours(n, size, tiles)
  local first, second, share = {}, {}, {}
  for i = 1, n do
    local at = (i - 1 - size / 2) / size + 1
    local below = math.floor(at)
    first[i], second[i] = math.min(math.max(below, 0), tiles + 1), math.min(math.max(below + 1, 0), tiles + 1)
    share[i] = at - below
  end
  return first, second, share
end

local function with_ends(x, axis, n)
  return ops.concat({ tools.part(x, axis, 1, 1), x, tools.part(x, axis, n, n) }, axis)
end

-- Contrast limited adaptive histogram equalization (Zuiderveld, Graphics Gems IV, 1994). x: {n, height, width, channels}, 0 to 255; grid:
-- tiles down and across. Each tile has its own map from old to new values, and a pixel takes a mix of the maps of the four tiles
-- around it, by its distance from their middles. Pictures whose sides the grid does not divide are extended by mirroring and cut at the
-- end.
local function clahe(x, clip_limit, grid)
  local dims = tools.dims(x)
  local height, width, channels = dims[2], dims[3], dims[4]
  local rows, columns = math.ceil(height / grid[1]), math.ceil(width / grid[2])      -- of a tile
  local whole, across = rows * grid[1], columns * grid[2]
  if whole > height or across > width then
    x = ops.pad(x, { { 0, 0 }, { 0, whole - height }, { 0, across - width }, { 0, 0 } }, "symmetric")
  end
  local tiles = ops.transpose(ops.reshape_raw(x, { dims[1], grid[1], rows, grid[2], columns, channels }), { 1, 2, 4, 6, 3, 5 })
  local map = new_values(ops.reshape_raw(tiles, { dims[1], grid[1], grid[2], channels, rows * columns }), clip_limit)
  map = with_ends(with_ends(map, 2, grid[1]), 3, grid[2])
  local flat = ops.reshape_raw(map, { dims[1], (grid[1] + 2) * (grid[2] + 2) * channels * BINS })
  local pixel = ops.clip(x, 0, 255):to "int64" + (ops.reshape(tools.constant(tools.count(channels), "int64"), { 1, 1, 1, channels }) * BINS)
  local y = { neighbours(whole, rows, grid[1]) }
  local z = { neighbours(across, columns, grid[2]) }
  local function constant(list, dtype, shape) return tools.constant(list, dtype, shape) end
  local sum
  for i = 1, 2 do
    local row = constant(y[i], "int64", { 1, whole, 1, 1 }) * ((grid[2] + 2) * channels * BINS)
    local down = constant(y[3], "float32", { 1, whole, 1, 1 })
    for k = 1, 2 do
      local numbers = pixel + row + constant(z[k], "int64", { 1, 1, across, 1 }) * (channels * BINS)
      local value = tools.take_along(flat, ops.reshape_raw(numbers, { dims[1], whole * across * channels }), 2)
      local right = constant(z[3], "float32", { 1, 1, across, 1 })
      value = ops.reshape_raw(value, { dims[1], whole, across, channels }) * (k == 1 and 1 - right or right) * (i == 1 and 1 - down or down)
      sum = sum and sum + value or value
    end
  end
  return tools.part(tools.part(sum, 2, 1, height), 3, 1, width)
end

local NAME = "ContrastLimitedAdaptiveHistogramEqualization"
histograms[NAME] = define(NAME, { RANGE, "clip_limit: number = 4", "tile_grid_size: list = nil", FORMAT }, {
  always = true,
  prepare = function(self, given, name)
    local grid = given.tile_grid_size or { 8, 8 }
    if #grid ~= 2 or type(grid[1]) ~= "number" or type(grid[2]) ~= "number" or math.min(grid[1], grid[2]) < 1
      or grid[1] % 1 ~= 0 or grid[2] % 1 ~= 0 then
      errors.raise("%s: tile_grid_size is a list of two whole numbers from 1, got %s", name, errors.describe(grid))
    end
    given.tile_grid_size = { grid[1], grid[2] }
    rawset(self, "tile_grid_size", given.tile_grid_size)
  end,
  change = function(_, x, given)
    local y = clahe(rescale(x:to "float32", given.value_range, BYTES), given.clip_limit, given.tile_grid_size)
    return rescale(y, BYTES, given.value_range):to(x.dtype)
  end,
})

return histograms
