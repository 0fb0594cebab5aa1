-- picture_colors.lua: tf.image's functions that change or measure colours, of one picture {height, width, channels} or of a batch, eager
-- and traced. flow.image loads it when one of them is asked for. Pictures keep their dtype: whole numbers are computed as floats from 0
-- to 1.

local errors = require "flow.errors"
local image = require "flow.tensor.image"
local draws = require "flow.tensor.composed.draws"
local pictures = require "flow.tensor.composed.image"
local tools = require "flow.tensor.composed.tools"
local signature = require "flow.signature"

local ops, takes, raise = tools.ops, signature.takes, errors.raise

-- x as a tensor, and its rank, which is `least` (3) or more.
local function picture_of(x, what, least)
  x = ops.operand(x, nil, "flow.image." .. what)
  local rank = #tools.dims(x)
  if rank < (least or 3) then raise("flow.image.%s: a picture has rank 3, a batch rank 4, got rank %d", what, rank) end
  return x, rank
end

-- f of the picture in floats, in the picture's dtype.
local function in_floats(x, what, f)
  x = picture_of(x, what)
  if tools.is_float(x) then return f(x):to(x.dtype) end
  return image.convert_image_dtype(f(image.convert_image_dtype(x, "float32")), x.dtype, true)
end

-- A number of the script's, or a tensor without axes, in the picture's dtype.
local function scalar(value, x, what, name)
  if type(value) == "number" then return value end
  local t = ops.operand(value, nil, "flow.image." .. what)
  if #tools.dims(t) ~= 0 then raise("flow.image.%s: %s is a number, got %s", what, name, errors.describe(value)) end
  return t:to(x.dtype)
end

---- conversions ------------------------------------------------------------------------------------

-- One channel: 0.2989 red + 0.587 green + 0.114 blue.
takes "images"
function image.rgb_to_grayscale(x)
  return in_floats(x, "rgb_to_grayscale", function(y) return ops.sum(y * tools.constant({ 0.2989, 0.5870, 0.1140 }, y.dtype), -1, true) end)
end
takes "images"
function image.grayscale_to_rgb(x)
  local picture, rank = picture_of(x, "grayscale_to_rgb", 1)
  if tools.length(picture, rank, "image.grayscale_to_rgb") ~= 1 then
    raise("flow.image.grayscale_to_rgb: one channel, got %d", tools.dims(picture)[rank])
  end
  return ops.concat({ picture, picture, picture }, rank)
end

for _, name in ipairs { "rgb_to_hsv", "hsv_to_rgb" } do
  takes "images"
  image[name] = function(x) return pictures[name]((picture_of(x, name))) end
end

-- The matrices of TensorFlow, for rows of colours.
local YIQ = { { 0.299, 0.59590059, 0.2115 }, { 0.587, -0.27455667, -0.52273617 }, { 0.114, -0.32134392, 0.31119955 } }
local RGB_OF_YIQ = { { 1, 1, 1 }, { 0.95598634, -0.27201283, -1.10674021 }, { 0.6208248, -0.64720424, 1.70423049 } }
local YUV = { { 0.299, -0.14714119, 0.61497538 }, { 0.587, -0.28886916, -0.51496512 }, { 0.114, 0.43601035, -0.10001026 } }
local RGB_OF_YUV = { { 1, 1, 1 }, { 0, -0.394642334, 2.03206185 }, { 1.13988303, -0.58062185, 0 } }
for name, matrix in pairs { rgb_to_yiq = YIQ, yiq_to_rgb = RGB_OF_YIQ, rgb_to_yuv = YUV, yuv_to_rgb = RGB_OF_YUV } do
  takes "images"
  image[name] = function(x)
    local picture, rank = picture_of(x, name, 2)
    if not tools.is_float(picture) then raise("flow.image.%s: pictures in floats, got %s", name, picture.dtype) end
    return ops.tensordot(picture, tools.constant(matrix, picture.dtype), { { rank }, { 1 } })
  end
end

---- adjustments ------------------------------------------------------------------------------------

takes "image, delta"
function image.adjust_brightness(x, delta)
  return in_floats(x, "adjust_brightness", function(y) return y + scalar(delta, y, "adjust_brightness", "delta") end)
end
-- (x - mean) contrast_factor + mean, with the mean of each channel of each picture.
takes "images, contrast_factor"
function image.adjust_contrast(x, factor)
  return in_floats(x, "adjust_contrast", function(y)
    local mean = ops.mean(y, { -3, -2 }, true)
    return (y - mean) * scalar(factor, y, "adjust_contrast", "contrast_factor") + mean
  end)
end
-- gain x^gamma.
takes "image, gamma = 1, gain = 1"
function image.adjust_gamma(x, gamma, gain)
  if type(gamma) == "number" and gamma < 0 then raise("flow.image.adjust_gamma: gamma is 0 or more, got %g", gamma) end
  return in_floats(x, "adjust_gamma", function(y)
    return ops.pow(y, scalar(gamma or 1, y, "adjust_gamma", "gamma")) * scalar(gain or 1, y, "adjust_gamma", "gain")
  end)
end

-- f(hue, saturation, value) as colours.
local function with_hsv(x, what, f)
  return in_floats(x, what, function(y)
    local parts = ops.unstack(pictures.rgb_to_hsv(y), nil, -1)
    return pictures.hsv_to_rgb(ops.stack({ f(unpack(parts)) }, -1))
  end)
end
-- delta: a share of the circle of hues, from -1 to 1.
takes "image, delta"
function image.adjust_hue(x, delta)
  return with_hsv(x, "adjust_hue", function(h, s, v) return ops.mod(h + scalar(delta, h, "adjust_hue", "delta"), 1), s, v end)
end
takes "image, saturation_factor"
function image.adjust_saturation(x, factor)
  return with_hsv(x, "adjust_saturation", function(h, s, v)
    return h, ops.clip(s * scalar(factor, s, "adjust_saturation", "saturation_factor"), 0, 1), v
  end)
end

-- random_NAME and stateless_random_NAME: by a number between two bounds, or between -most and most.
local function draw_some(name, bounds, check)
  local what = "random_" .. name
  local function some(x, low, high, seed, title)
    if high == nil then low, high = -low, low end
    check(low, high, title)
    return image["adjust_" .. name](x, draws.uniform({}, low, high, seed, "image." .. title))
  end
  if bounds == "max_delta" then
    takes "image, max_delta: number, seed?"
    image[what] = function(x, most, seed) return some(x, most, nil, seed, what) end
    takes "image, max_delta: number, seed: data"
    image["stateless_" .. what] = function(x, most, seed)
      return some(x, most, nil, draws.pair(seed, "flow.image.stateless_" .. what), "stateless_" .. what)
    end
  else
    takes "image, lower: number, upper: number, seed?"
    image[what] = function(x, low, high, seed) return some(x, low, high, seed, what) end
    takes "image, lower: number, upper: number, seed: data"
    image["stateless_" .. what] = function(x, low, high, seed)
      return some(x, low, high, draws.pair(seed, "flow.image.stateless_" .. what), "stateless_" .. what)
    end
  end
end
local function check_most(most)
  return function(_, high, title)
    if high < 0 or high > most then
      raise("flow.image.%s: max_delta is from 0%s, got %g", title, most < math.huge and " to " .. most or "", high)
    end
  end
end
local function check_bounds(low, high, title)
  if low < 0 or high <= low then raise("flow.image.%s: lower is from 0 and below upper, got %g and %g", title, low, high) end
end
draw_some("brightness", "max_delta", check_most(math.huge))
draw_some("hue", "max_delta", check_most(0.5))
draw_some("contrast", "bounds", check_bounds)
draw_some("saturation", "bounds", check_bounds)

-- Each picture with mean 0 and standard deviation 1, in float32; pictures of one colour are not divided by 0.
takes "image"
function image.per_image_standardization(x)
  local y, count = picture_of(x, "per_image_standardization"):to "float32", 1
  local dims = tools.dims(y)
  for axis = #dims - 2, #dims do count = count * tools.length(y, axis, "image.per_image_standardization") end
  local axes = { -3, -2, -1 }
  return (y - ops.mean(y, axes, true)) / ops.maximum(ops.std(y, axes, true), 1 / math.sqrt(count))
end

---- measures ---------------------------------------------------------------------------------------

-- What each pixel of a batch is less than the one below it, and than the one to its right; 0 at the end. A list of the two.
takes "image"
function image.image_gradients(x)
  local y, rank = picture_of(x, "image_gradients", 4)
  if rank ~= 4 then raise("flow.image.image_gradients: a batch of rank 4, got rank %d", rank) end
  local function differences(axis)
    local n = tools.length(y, axis, "image.image_gradients")
    local last = tools.part(y, axis, n, n)
    return ops.concat({ tools.part(y, axis, 2, n) - tools.part(y, axis, 1, n - 1), ops.zeros_like(last) }, axis)
  end
  return { differences(2), differences(3) }
end
takes "image"
function image.sobel_edges(x) return pictures.sobel_edges((picture_of(x, "sobel_edges", 4))) end

-- The sum of the absolute differences of neighbouring pixels, of each picture.
takes "images"
function image.total_variation(x)
  local y, rank = picture_of(x, "total_variation")
  local function along(axis)
    local n = tools.length(y, axis, "image.total_variation")
    return ops.sum(ops.abs(tools.part(y, axis, 2, n) - tools.part(y, axis, 1, n - 1)), { -3, -2, -1 })
  end
  return along(rank - 2) + along(rank - 1)
end

-- Decibels of each picture: 20 log10(max_val) - 10 log10(mean squared difference).
takes "a, b, max_val: number"
function image.psnr(a, b, most)
  a, b = picture_of(a, "psnr"), picture_of(b, "psnr")
  local function floats_of(x) return tools.is_float(x) and x or image.convert_image_dtype(x, "float32") end
  if not tools.is_float(a) then most = most / image.largest_of[a.dtype] end
  local squares = ops.mean(ops.square(floats_of(a) - floats_of(b)), { -3, -2, -1 })
  return ops.log(squares) * (-10 / math.log(10)) + 20 * math.log10(most)
end

-- The structural similarity of each picture, from -1 to 1.
takes [[img1, img2, max_val: number, filter_size: count = 11, filter_sigma: number = 1.5, k1: number = 0.01, k2: number = 0.03]]
function image.ssim(a, b, most, size, sigma, k1, k2)
  a, b = picture_of(a, "ssim"), picture_of(b, "ssim")
  if not tools.is_float(a) then
    most = most / image.largest_of[a.dtype]
    a, b = image.convert_image_dtype(a, "float32"), image.convert_image_dtype(b, "float32")
  end
  return pictures.ssim(a, b, { max_val = most, filter_size = size, filter_sigma = sigma, k1 = k1, k2 = k2 })
end

-- Patches of sizes {1, height, width, 1}, strides and rates alike, of a batch: {batch, rows, columns, height width channels}.
takes "images, sizes: list, strides: list, rates: list, padding: string"
function image.extract_patches(x, sizes, strides, rates, padding)
  return pictures.extract_patches((picture_of(x, "extract_patches", 4)), { sizes[2], sizes[3] }, { strides = { strides[2], strides[3] },
    dilation_rate = { rates[2], rates[3] }, padding = padding:lower() })
end

return image
