-- random_colors.lua: layers that change the colours of pictures, each in one way (keras.src.layers.preprocessing.image_preprocessing).

local errors = require "flow.errors"
local ops = require "flow.tensor.ops"
local tensor = require "flow.tensor"
local random = require "flow.tensor.random"
local image_layer = require "flow.layers.images.image_layer"
local pictures = require "flow.tensor.composed.image"

local define, uniform = image_layer.define, image_layer.uniform
local rescale, raise = image_layer.rescale, errors.raise
local FACTOR, RANGE, SEED = "factor: number|list", "value_range: list = nil", "seed: whole = nil"
local FORMAT = "data_format: 'channels_last' = 'channels_last'"
local WHOLE, HALF, BYTES = { -1, 1 }, { 0, 1 }, { 0, 255 }
local colors = {}

-- A factor for each picture, {n, 1, 1, 1}.
local function draw_factor(self, x, given) return { factor = uniform(self, x, given.factor[1], given.factor[2], 1, 1, 1) } end

local function clipped(y, range) return ops.clip(y, range[1], range[2]) end

colors.RandomBrightness = define("RandomBrightness", { FACTOR, RANGE, SEED }, {
  factors = { factor = WHOLE }, draw = draw_factor,
  change = function(_, x, given, drawn)
    return clipped(x + drawn.factor * (given.value_range[2] - given.value_range[1]), given.value_range)
  end,
})

colors.RandomColorDegeneration = define("RandomColorDegeneration", { FACTOR, RANGE, FORMAT, SEED }, {
  factors = { factor = WHOLE }, draw = draw_factor,
  change = function(_, x, given, drawn)
    return clipped(x + drawn.factor * (pictures.rgb_to_grayscale(x) - x), given.value_range)
  end,
})

colors.RandomGrayscale = define("RandomGrayscale", { "factor: number = 0.5", FORMAT, SEED }, {
  prepare = function(_, given, name) image_layer.factor(name, "factor", given.factor, HALF) end,
  draw = function(self, x, given) return { applies = ops.lt(uniform(self, x, 0, 1, 1, 1, 1), given.factor) } end,
  change = function(_, x, _, drawn) return ops.where(drawn.applies, pictures.rgb_to_grayscale(x), x) end,
})

colors.RandomInvert = define("RandomInvert", { "factor: number|list = 1", RANGE, SEED, FORMAT }, {
  factors = { factor = HALF },
  draw = function(self, x, given) return { applies = image_layer.chance(self, x, given.factor) } end,
  change = function(_, x, given, drawn) return ops.where(drawn.applies, given.value_range[2] - x, x) end,
})

-- x with one of hue (1), saturation (2) and value (3) replaced by what f makes of it.
local function change_hsv(x, channel, f)
  local parts = ops.unstack(pictures.rgb_to_hsv(x), nil, 4)
  parts[channel] = f(parts[channel])
  return pictures.hsv_to_rgb(ops.stack(parts, 4))
end

colors.RandomHue = define("RandomHue", { FACTOR, RANGE, FORMAT, SEED }, {
  factors = { factor = HALF },
  draw = function(self, x, given)
    local back = ops.gt(uniform(self, x, 0, 1, 1, 1), 0.5)
    local factor = uniform(self, x, given.factor[1], given.factor[2], 1, 1) * 0.5
    return { factor = ops.where(back, -factor, factor) }
  end,
  change = function(_, x, given, drawn)
    local y = change_hsv(rescale(x, given.value_range, HALF), 1, function(hue)
      hue = hue + drawn.factor
      hue = ops.where(ops.gt(hue, 1), hue - 1, hue)
      return ops.where(ops.lt(hue, 0), hue + 1, hue)
    end)
    return rescale(ops.clip(y, 0, 1), HALF, given.value_range)
  end,
})

colors.RandomSaturation = define("RandomSaturation", { FACTOR, RANGE, FORMAT, SEED }, {
  factors = { factor = WHOLE },
  draw = function(self, x, given)
    local factor = uniform(self, x, given.factor[1], given.factor[2], 1, 1)
    return { factor = factor / (1 - factor + 1e-7) }
  end,
  change = function(_, x, given, drawn)
    return change_hsv(x, 2, function(saturation) return clipped(saturation * drawn.factor, given.value_range) end)
  end,
})

local function smoothing(dtype, channels)
  local a, b = 1 / 13, 5 / 13
  local kernel = tensor.tensor({ a, a, a, a, b, a, a, a, a }, { dtype = dtype }):reshape { 3, 3, 1, 1 }
  return ops.repeat_(kernel, channels, 3)
end

colors.RandomSharpness = define("RandomSharpness", { FACTOR, RANGE, FORMAT, SEED }, {
  factors = { factor = HALF }, draw = draw_factor,
  change = function(_, x, given, drawn)
    local smooth = ops.depthwise_conv(x, smoothing(x.dtype, tensor.raw_shape(x)[4]), { padding = "same" })
    return clipped(x + (1 - 2 * drawn.factor) * (smooth - x), given.value_range)
  end,
})

-- Of 8 bits the first ones, as many as drawn: from the lower factor to below the upper one, as in Keras.
colors.RandomPosterization = define("RandomPosterization", { FACTOR, RANGE, FORMAT, SEED }, {
  factors = { factor = { 1, 8 } },
  draw = function(self, x, given)
    local low, high = math.floor(given.factor[1]), math.floor(given.factor[2])
    if low == high then return { step = 2 ^ (8 - low) } end
    local rows = image_layer.rows(x)
    local bits = random.randint({ rows, 1, 1, 1 }, low, high, image_layer.options(self, {}))
    return { step = ops.pow(2, 8 - bits:to("float32")):to(x.dtype) }
  end,
  change = function(_, x, given, drawn)
    local bytes = ops.floor(rescale(x, given.value_range, BYTES))
    return rescale(ops.floor(bytes / drawn.step) * drawn.step, BYTES, given.value_range)
  end,
})

colors.Solarization = define("Solarization", { "addition_factor: number|list = 0", "threshold_factor: number|list = 0", RANGE, SEED }, {
  factors = { addition_factor = HALF, threshold_factor = HALF },
  draw = function(self, x, given)      -- as in Keras, the lower ends are values of pixels
    local added, least = given.addition_factor, given.threshold_factor
    return { additions = uniform(self, x, added[1], math.max(added[1], added[2] * 255), 1, 1, 1),
             thresholds = uniform(self, x, least[1], math.max(least[1], least[2] * 255), 1, 1, 1) }
  end,
  change = function(_, x, given, drawn)
    local y = ops.clip(rescale(x, given.value_range, BYTES) + drawn.additions, 0, 255)
    return rescale(ops.where(ops.lt(y, drawn.thresholds), y, 255 - y), BYTES, given.value_range)
  end,
})

colors.AutoContrast = define("AutoContrast", { RANGE }, {
  always = true,
  change = function(_, x, given)
    local y = rescale(x, given.value_range, BYTES)
    local low, high = ops.min(y, { 2, 3 }, true), ops.max(y, { 2, 3 }, true)
    local is_flat = ops.eq(low, high)
    local scale = 255 / ops.where(is_flat, 1, high - low)
    return ops.where(is_flat, x, rescale(ops.clip(y * scale - low * scale, 0, 255), BYTES, given.value_range))
  end,
})

colors.RandomGaussianBlur = define("RandomGaussianBlur", { "factor: number|list = 1", "kernel_size: count|list = 3",
    "sigma: number|list = 1", RANGE, FORMAT, SEED }, {
  factors = { factor = HALF, sigma = HALF },
  prepare = function(self, given, name)
    local size = type(given.kernel_size) == "table" and given.kernel_size or { given.kernel_size, given.kernel_size }
    for i = 1, 2 do
      if type(size[i]) ~= "number" or size[i] < 1 or size[i] % 2 ~= 1 or #size ~= 2 then
        raise("%s: kernel_size is an odd number or a list of two", name)
      end
    end
    given.kernel_size = { size[1], size[2] }
    rawset(self, "kernel_size", given.kernel_size)
  end,
  draw = function(self, x, given)
    local applies = image_layer.chance(self, x, given.factor)
    local options = image_layer.options(self, { minval = given.sigma[1], maxval = given.sigma[2] })
    return { applies = applies, sigma = random.uniform({ 2 }, options) + 1e-6 }
  end,
  change = function(_, x, given, drawn)
    return clipped(ops.where(drawn.applies, pictures.blurred(x, given.kernel_size, drawn.sigma), x), given.value_range)
  end,
})

-- Brightness, contrast, saturation and hue, one after the other; a factor that is not given leaves it out.
local STEPS = { { "brightness_factor", "RandomBrightness" }, { "contrast_factor", "RandomContrast" },
                { "saturation_factor", "RandomSaturation" }, { "hue_factor", "RandomHue" } }
colors.RandomColorJitter = define("RandomColorJitter", { RANGE, "brightness_factor: number|list = nil",
    "contrast_factor: number|list = nil", "saturation_factor: number|list = nil", "hue_factor: number|list = nil", SEED, FORMAT }, {
  prepare = function(self, given)
    local layers, steps = require "flow.layers", {}
    for _, step in ipairs(STEPS) do
      local factor = given[step[1]]
      if factor ~= nil then
        steps[#steps + 1] = layers[step[2]] { factor = factor, value_range = given.value_range, seed = given.seed,
                                              name = self.name .. "_" .. step[1], dtype = self._policy.name }
      end
    end
    rawset(self, "_steps", steps)
  end,
  change = function(self, x)
    for _, step in ipairs(self._steps) do x = step(x, { training = true }) end
    return x
  end,
})

return colors
