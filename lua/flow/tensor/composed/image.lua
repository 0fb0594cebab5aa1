-- image.lua: flow.keras.ops.image: pictures as tensors {height, width, channels} or {batch, height, width, channels}, in eager and traced
-- functions. With data_format = "channels_first" the channels are before height and width.

local errors = require "flow.errors"
local tools = require "flow.tensor.composed.tools"
local windows = require "flow.tensor.composed.windows"
local signature = require "flow.signature"

local raise, takes = errors.raise, signature.takes
local check_size = require("flow.tensor.image").check_size
local ops, floats = tools.ops, tools.floats
local image = signature.module "flow.keras.ops.image"

local internal = signature.internal(image)

local FORMAT = "data_format: 'channels_last'|'channels_first' = 'channels_last'"

-- f(pictures) on {batch, height, width, channels}; the result has the form of what was given.
local function on_batch(images, format, what, f)
  local rank = #tools.dims(images)
  if rank ~= 3 and rank ~= 4 then raise("flow.keras.ops.image.%s: pictures of rank 3 or 4, got %d", what, rank) end
  local x = rank == 3 and ops.expand_dims(images, 1) or images
  if format == "channels_first" then x = ops.moveaxis(x, 2, 4) end
  local y = f(x)
  if format == "channels_first" then y = ops.moveaxis(y, 4, 2) end
  return rank == 3 and ops.squeeze(y, 1) or y
end

-- The same over {height, width} alone, whatever the rank.
local function picture_op(name, text, f)
  takes(text)
  image[name] = function(images, ...)
    local given = { ... }
    return on_batch(tools.operand(images, "keras.ops.image." .. name), given[select("#", ...)].data_format, name, function(x)
      return f(x, unpack(given))
    end)
  end
end

---- colours ----------------------------------------------------------------------------------------

-- The luminance, as one channel: 0.2989 red + 0.587 green + 0.114 blue.
picture_op("rgb_to_grayscale", "images, { " .. FORMAT .. "; }", function(x)
  local weights = tools.constant({ 0.2989, 0.5870, 0.1140 }, tools.is_float(x) and x.dtype or "float32")
  local grey = ops.sum(x * weights, -1, true)
  return tools.is_float(x) and grey or grey:to(x.dtype)
end)

local function need_colours(x, what)
  if not tools.is_float(x) then raise("flow.keras.ops.image.%s: pictures in floats from 0 to 1, got %s", what, x.dtype) end
  if tools.length(x, 4, what) ~= 3 then raise("flow.keras.ops.image.%s: 3 channels, got %d", what, tools.dims(x)[4]) end
end

-- Hue, saturation and value, each from 0 to 1 (A. Smith, "Color gamut transform pairs", 1978).
picture_op("rgb_to_hsv", "images, { " .. FORMAT .. "; }", function(x)
  need_colours(x, "rgb_to_hsv")
  local c = ops.unstack(x, nil, 4)
  local red, green, blue = c[1], c[2], c[3]
  local value = ops.max(x, 4)
  local range = value - ops.min(x, 4)
  local safe = ops.where(ops.eq(range, 0), 1, range)
  local hue = ops.where(ops.eq(value, red), (green - blue) / safe,
    ops.where(ops.eq(value, green), (blue - red) / safe + 2, (red - green) / safe + 4)) / 6
  hue = ops.where(ops.eq(range, 0), 0, ops.where(ops.lt(hue, 0), hue + 1, hue))
  return ops.stack({ hue:to(x.dtype), ops.divide_no_nan(range, value), value }, 4)
end)
picture_op("hsv_to_rgb", "images, { " .. FORMAT .. "; }", function(x)
  need_colours(x, "hsv_to_rgb")
  local c = ops.unstack(x, nil, 4)
  local hue, saturation, value = c[1] * 6, c[2], c[3]
  local function channel(ramp) return value * (1 - saturation + saturation * ops.clip(ramp, 0, 1)) end
  return ops.stack({ channel(ops.abs(hue - 3) - 1), channel(2 - ops.abs(hue - 2)), channel(2 - ops.abs(hue - 4)) }, 4)
end)

---- borders ----------------------------------------------------------------------------------------

local BORDERS = "images, { top_%s?: whole, left_%s?: whole, bottom_%s?: whole, right_%s?: whole, "
  .. "target_height?: whole, target_width?: whole, " .. FORMAT .. "; }"

-- What is before and after an axis, of three numbers of which two are given: sign is 1 where it is added, -1 where it is cut off.
local function border(before, after, target, n, sign, what)
  if before and after and not target then return before, after end
  if target and before and not after then return before, sign * (target - n) - before end
  if target and after and not before then return sign * (target - n) - after, after end
  raise("flow.keras.ops.image.%s: give two of the border before, the border after and the target size, for height and for width", what)
end
-- Top, bottom, left and right border of padding (sign 1) or cropping (-1), of which Keras lets one of each pair follow from the target
-- size; then height and width of x {n, height, width, channels}. Raises for a border below 0.
local function borders(x, options, kind, sign, what)
  local height, width = tools.length(x, 2, what), tools.length(x, 3, what)
  local top, bottom = border(options["top_" .. kind], options["bottom_" .. kind], options.target_height, height, sign, what)
  local left, right = border(options["left_" .. kind], options["right_" .. kind], options.target_width, width, sign, what)
  if math.min(top, bottom, left, right) < 0 then
    raise("flow.keras.ops.image.%s: the borders would be %d, %d, %d and %d of a picture of %d by %d", what, top, left, bottom, right,
      height, width)
  end
  return top, bottom, left, right, height, width
end
picture_op("pad_images", (BORDERS:gsub("%%s", "padding")), function(x, options)
  local top, bottom, left, right = borders(x, options, "padding", 1, "pad_images")
  return ops.pad(x, { { 0, 0 }, { top, bottom }, { left, right }, { 0, 0 } })
end)
picture_op("crop_images", (BORDERS:gsub("%%s", "cropping")), function(x, options)
  local top, bottom, left, right, height, width = borders(x, options, "cropping", -1, "crop_images")
  return tools.part(tools.part(x, 2, top + 1, height - bottom), 3, left + 1, width - right)
end)

---- sizes and places -------------------------------------------------------------------------------

local METHODS = { nearest = 0, bilinear = 1, bicubic = 2, area = 3, lanczos3 = 4, lanczos5 = 5 }
local FILLS = { reflect = 0, wrap = 1, constant = 2, nearest = 3 }

-- The number of an option's text; raises, naming the known texts, for another one.
local function choose(value, choices, what, name)
  local number = choices[value]
  if not number then
    raise("flow.keras.ops.image.%s: unknown %s %s%s", what, name, errors.describe(value), errors.choices(tostring(value), choices))
  end
  return number
end

local function resized(x, height, width, options)
  return tools.apply("resize", { floats(x, "resize") }, function(a)
    a.resize.size[0], a.resize.size[1] = height, width
    a.resize.interpolation = choose(options.interpolation, METHODS, "resize", "interpolation")
    a.resize.antialias = options.antialias and 1 or 0
  end)
end

-- Pictures of another size {height, width}. crop_to_aspect_ratio and pad_to_aspect_ratio cut borders off, or add some, before.
local RESIZE = "images, size: list, { interpolation = 'bilinear', antialias: boolean = false, crop_to_aspect_ratio: boolean = false, "
  .. "pad_to_aspect_ratio: boolean = false, fill_mode: 'constant' = 'constant', fill_value: number = 0, " .. FORMAT .. "; }"
picture_op("resize", RESIZE, function(x, size, options)
  local dtype, height, width = x.dtype, check_size("flow.keras.ops.image.resize: the size", size)
  local h, w = tools.length(x, 2, "resize"), tools.length(x, 3, "resize")
  if options.crop_to_aspect_ratio and options.pad_to_aspect_ratio then
    raise("flow.keras.ops.image.resize: only one of crop_to_aspect_ratio and pad_to_aspect_ratio can be set")
  elseif options.crop_to_aspect_ratio then
    local ch, cw = math.min(h, math.floor(w * height / width)), math.min(w, math.floor(h * width / height))
    ch, cw = math.max(ch, 1), math.max(cw, 1)
    local top, left = math.floor((h - ch) / 2), math.floor((w - cw) / 2)
    x = tools.part(tools.part(x, 2, top + 1, top + ch), 3, left + 1, left + cw)
  elseif options.pad_to_aspect_ratio then
    local ph, pw = math.max(h, math.floor(w * height / width)), math.max(w, math.floor(h * width / height))
    local top, left = math.floor((ph - h) / 2), math.floor((pw - w) / 2)
    x = ops.pad(x, { { 0, 0 }, { top, top }, { left, left }, { 0, 0 } }, "constant", options.fill_value)      -- as many on both sides
  end
  local y = resized(x, height, width, options)
  if tools.is_float(x) then return y end
  if options.interpolation ~= "nearest" then y = ops.round(y) end
  return ops.saturate_cast(y, dtype)
end)

-- x {n, height, width, channels} at the places that projective transforms {n, 8} lead to, in x's dtype.
local function sampled(x, transforms, options, what)
  local list = floats(x, what)
  return tools.apply("sample_image", { list, transforms:to(list.dtype) }, function(a)
    a.sampling.interpolation = choose(options.interpolation, { nearest = 0, bilinear = 1 }, what, "interpolation")
    a.sampling.fill_mode = choose(options.fill_mode or "constant", FILLS, what, "fill_mode")
    a.sampling.fill_value = options.fill_value
  end):to(x.dtype)
end

-- One transform {8}, or one for each picture: pixel (x, y) of the result is that at ((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k) with
-- k = c0 x + c1 y + 1 of the picture; transforms are {a0, a1, a2, b0, b1, b2, c0, c1}.
local function transforms_of(x, transform)
  transform = ops.operand(transform, nil, "keras.ops.image.affine_transform")
  if #tools.dims(transform) == 1 then transform = ops.expand_dims(transform, 1) end
  local dims = tools.dims(x)
  local first = tools.part(ops.reshape_raw(x, { dims[1], dims[2] * dims[3] * dims[4] }), 2, 1, 1)
  return transform + ops.zeros_like(first, { dtype = transform.dtype })      -- one for each picture
end
local SAMPLE = "interpolation = 'bilinear', fill_mode = 'constant', fill_value: number = 0, " .. FORMAT
picture_op("affine_transform", "images, transform, { " .. SAMPLE .. "; }", function(x, transform, options)
  return sampled(x, transforms_of(x, transform), options, "affine_transform")
end)

-- The eight numbers {batch, 8} of the transform that takes the points `to` to the points `from`, {4, 2} of (x, y) or {batch, 4, 2}, as
-- float64.
function internal.homography(from, to)
  local function points(p)
    p = ops.operand(p, nil, "keras.ops.image.perspective_transform"):to("float64")
    if #tools.dims(p) == 2 then p = ops.expand_dims(p, 1) end
    return p
  end
  from, to = points(from), points(to)
  local function column(p, axis) return ops.squeeze(tools.part(p, 3, axis, axis), 3) end      -- {batch, 4}
  local sx, sy, ex, ey = column(from, 1), column(from, 2), column(to, 1), column(to, 2)
  local one, none = ops.ones_like(ex), ops.zeros_like(ex)
  local of_x = ops.stack({ ex, ey, one, none, none, none, -(sx * ex), -(sx * ey) }, -1)
  local of_y = ops.stack({ none, none, none, ex, ey, one, -(sy * ex), -(sy * ey) }, -1)
  return ops.solve(ops.concat({ of_x, of_y }, 2), ops.concat({ sx, sy }, 2))
end

-- Moves four points {4, 2} of (x, y), or those of each picture {batch, 4, 2}, to others.
picture_op("perspective_transform", "images, start_points: data, end_points: data, { interpolation = 'bilinear', fill_value: number = 0, "
  .. FORMAT .. "; }", function(x, from, to, options)
  return sampled(x, transforms_of(x, internal.homography(from, to):to("float32")), options, "perspective_transform")
end)

---- filters ----------------------------------------------------------------------------------------

local function pair_of(value) return type(value) == "table" and value or { value, value } end

-- The window of a blur, {size[1], size[2], channels, 1}. sigma: two numbers, or a tensor {2}.
local function gaussian_kernel(size, sigma, channels, dtype)
  local sides = {}
  for axis = 1, 2 do
    local places = {}
    for i = 0, size[axis] - 1 do places[i + 1] = i - (size[axis] - 1) / 2 end
    local values = ops.exp(-0.5 * ops.square(tools.constant(places, dtype) / sigma[axis]))
    sides[axis] = values / ops.sum(values)
  end
  local kernel = ops.expand_dims(sides[2], 2) * ops.expand_dims(sides[1], 1)
  return ops.repeat_(ops.reshape(kernel, { size[1], size[2], 1, 1 }), channels, 3)
end

-- Each channel convolved with a Gaussian window; sigma may be a tensor {2}.
function internal.blurred(x, size, sigma)
  return ops.depthwise_conv(x, gaussian_kernel(size, sigma, tools.length(x, 4, "gaussian_blur"), x.dtype), { padding = "same" })
end
picture_op("gaussian_blur", "images, { kernel_size: number|list = 3, sigma: number|list = 1, " .. FORMAT .. "; }", function(x, options)
  local sigma = pair_of(options.sigma)
  if not (type(sigma[1]) == "number" and type(sigma[2]) == "number" and sigma[1] > 0 and sigma[2] > 0) then
    raise("flow.keras.ops.image.gaussian_blur: sigma is a number above 0 or a list of two, got %s", errors.describe(options.sigma))
  end
  local size = windows.per_axis(options.kernel_size, 2, "keras.ops.image.gaussian_blur", "a kernel size")
  return internal.blurred(floats(x, "gaussian_blur"), size, sigma):to(x.dtype)
end)

-- How much each channel changes downwards and to the right, {..., channels, 2}: Sobel's windows, over pictures mirrored at their edges.
takes("images, { " .. FORMAT .. "; }")
function image.sobel_edges(images, options)
  local x = floats(images, "keras.ops.image.sobel_edges")
  local function edges(across)
    return on_batch(x, options.data_format, "sobel_edges", function(pictures)
      local channels = tools.length(pictures, 4, "sobel_edges")
      local kernel = tools.constant({ { -1, -2, -1 }, { 0, 0, 0 }, { 1, 2, 1 } }, pictures.dtype)
      if across then kernel = ops.transpose(kernel) end
      kernel = ops.repeat_(ops.reshape(kernel, { 3, 3, 1, 1 }), channels, 3)
      local padded = ops.pad(pictures, { { 0, 0 }, { 1, 1 }, { 1, 1 }, { 0, 0 } }, "reflect")
      return ops.depthwise_conv(padded, kernel)
    end)
  end
  return ops.stack({ edges(false), edges(true) }, #tools.dims(x) + 1)
end

-- The structural similarity of pictures, one number for each pair: 1 where they are equal. Z. Wang, A. Bovik, H. Sheikh, E. Simoncelli,
-- "Image quality assessment", 2004, over Gaussian windows.
takes("image1, image2, max_val: number = 1, filter_size: count = 11, filter_sigma: number = 1.5, k1: number = 0.01, k2: number = 0.03, "
  .. "{ " .. FORMAT .. "; }")
function image.ssim(image1, image2, max_val, filter_size, filter_sigma, k1, k2, options)
  local what = "keras.ops.image.ssim"
  local a, b = floats(image1, what), floats(image2, what)
  local rank = #tools.dims(a)
  if rank ~= #tools.dims(b) then raise("flow.keras.ops.image.ssim: pictures of one rank, got %d and %d", rank, #tools.dims(b)) end
  local c1, c2 = (k1 * max_val) ^ 2, (k2 * max_val) ^ 2
  local function mean(x)
    local kernel = gaussian_kernel({ filter_size, filter_size }, { filter_sigma, filter_sigma }, tools.length(x, 4, "ssim"), x.dtype)
    return ops.depthwise_conv(x, kernel)
  end
  local second
  on_batch(b, options.data_format, "ssim", function(y)
    second = y
    return y
  end)
  local result
  on_batch(a, options.data_format, "ssim", function(x)
    local mu1, mu2 = mean(x), mean(second)
    local product, square1, square2 = mu1 * mu2, mu1 * mu1, mu2 * mu2
    local sigma1, sigma2, sigma12 = mean(x * x) - square1, mean(second * second) - square2, mean(x * second) - product
    local map = (product * 2 + c1) * (sigma12 * 2 + c2) / ((square1 + square2 + c1) * (sigma1 + sigma2 + c2))
    result = ops.mean(ops.mean(map, { 2, 3 }), -1)
    return x
  end)
  return rank == 3 and ops.squeeze(result, 1) or result
end

-- The pixels under a window of `size` at each of its places, as channels: {batch, rows, columns, height width channels}.
local PATCHES = "images, size: number|list, { strides?: number|list, dilation_rate: number|list = 1, padding: 'valid'|'same' = 'valid', "
picture_op("extract_patches", PATCHES .. FORMAT .. "; }", function(x, size, options)
  local window = pair_of(size)
  local list = windows.taps(x, window, options.strides or window, options.dilation_rate, options.padding, "extract_patches")
  return ops.concat(list, 4)
end)
takes(PATCHES:gsub("images", "volumes") .. FORMAT .. "; }")
function image.extract_patches_3d(volumes, size, options)
  local x = tools.operand(volumes, "keras.ops.image.extract_patches_3d")
  local single = #tools.dims(x) == 4
  if single then x = ops.expand_dims(x, 1) end
  local first = options.data_format == "channels_first"
  if first then x = ops.moveaxis(x, 2, -1) end
  local window = type(size) == "table" and size or { size, size, size }
  local list = windows.taps(x, window, options.strides or window, options.dilation_rate, options.padding, "extract_patches_3d")
  local y = ops.concat(list, 5)
  if first then y = ops.moveaxis(y, -1, 2) end
  return single and ops.squeeze(y, 1) or y
end

---- coordinates ------------------------------------------------------------------------------------

-- Numbers from 0 inside of n elements for those outside, by the way of filling; nil: outside stays outside.
local PLACES = {
  nearest = function(i, n) return ops.clip(i, 0, n - 1) end,
  wrap = function(i, n) return ops.mod(i, n) end,
  mirror = function(i, n)
    if n == 1 then return ops.zeros_like(i) end
    i = ops.mod(i, 2 * n - 2)
    return ops.minimum(i, (2 * n - 2) - i)
  end,
  reflect = function(i, n)
    i = ops.mod(i, 2 * n)
    return ops.minimum(i, (2 * n - 1) - i)
  end,
}

-- The values of x, of any rank, at coordinates {rank, ...}, which count pixels from 0 as those of pictures do; order 0: of the nearest
-- element, 1: weighted by distance.
local FILL = "{ fill_mode: 'constant'|'nearest'|'wrap'|'mirror'|'reflect' = 'constant', fill_value: number = 0; }"
takes("inputs, coordinates, order: whole, " .. FILL)
function image.map_coordinates(inputs, coordinates, order, options)
  local what = "keras.ops.image.map_coordinates"
  local x, points = tools.operand(inputs, what), floats(coordinates, what)
  local dims, size = tools.dims(x), 1
  if tools.length(points, 1, what) ~= #dims then
    raise("flow.%s: coordinates of %d axes for rank %d", what, tools.dims(points)[1], #dims)
  end
  if order > 1 then raise("flow.%s: order is 0 or 1, got %d", what, order) end
  local corners = { { weight = 1, number = 0 } }
  for axis, n in ipairs(dims) do
    local at = ops.squeeze(tools.part(points, 1, axis, axis), 1)
    local below = order == 0 and ops.round(at) or ops.floor(at)
    local choices = { { below, order == 0 and 1 or 1 - (at - below) } }
    if order == 1 then choices[2] = { below + 1, at - below } end
    local next_corners = {}
    for _, corner in ipairs(corners) do
      for _, choice in ipairs(choices) do
        local place, inside = PLACES[options.fill_mode], corner.inside
        local index = place and place(choice[1], n) or choice[1]
        if not place then
          local own = ops.logical_and(ops.ge(index, 0), ops.le(index, n - 1))
          inside = inside and ops.logical_and(inside, own) or own
          index = ops.clip(index, 0, n - 1)
        end
        local number = index:to("int64") + corner.number * n
        next_corners[#next_corners + 1] = { weight = choice[2] * corner.weight, number = number, inside = inside }
      end
    end
    corners, size = next_corners, size * n
  end
  local flat, sum = ops.reshape_raw(x, { size }), nil
  for _, corner in ipairs(corners) do
    local value = tools.gather(flat, corner.number)
    if corner.inside then value = ops.where(corner.inside, value, options.fill_value) end
    if order == 1 then value = value * corner.weight end
    sum = sum and sum + value or value
  end
  if not tools.is_float(x) and order == 1 then sum = ops.round(sum) end
  return sum:to(x.dtype)
end

---- scaling and moving -----------------------------------------------------------------------------

-- Kernels of a distance from 0, in pixels of the picture: a triangle, R. Keys' cubic with a = -0.5 ("Cubic convolution interpolation for
-- digital image processing", 1981), C. Lanczos' windowed sinc of a radius.
local function cubic(x)
  local near, far = ((x * 1.5 - 2.5) * x) * x + 1, ((x * -0.5 + 2.5) * x - 4) * x + 2
  return ops.where(ops.ge(x, 2), 0, ops.where(ops.ge(x, 1), far, near))
end
-- Lanczos' kernel, sinc(x) * sinc(x / radius), as a function of distances, which are not negative.
local function lanczos(radius)
  return function(x)
    local angle = x * math.pi
    local y = ops.sin(angle) * ops.sin(angle / radius) * radius / ops.where(ops.eq(x, 0), 1, ops.square(angle))
    return ops.where(ops.gt(x, radius), 0, ops.where(ops.gt(x, 1e-3), y, 1))
  end
end
local KERNELS = { linear = function(x) return ops.maximum(1 - x, 0) end, cubic = cubic, lanczos3 = lanczos(3), lanczos5 = lanczos(5) }
KERNELS.bilinear, KERNELS.trilinear, KERNELS.triangle, KERNELS.bicubic, KERNELS.tricubic =
  KERNELS.linear, KERNELS.linear, KERNELS.linear, KERNELS.cubic, KERNELS.cubic

-- {from, to}: how much each of `from` pixels counts in each of `to` pixels, pixel p of which is at (p + 0.5 - translation) / scale - 0.5.
-- Pixels outside of the picture are 0; with antialias kernels of smaller pictures are wider.
local function pixel_weights(from, to, scale, translation, kernel, antialias)
  local at = (tools.constant(tools.count(to), scale.dtype) + 0.5 - translation) / scale - 0.5
  local distance = ops.abs(at - tools.constant(tools.count(from), scale.dtype, { from, 1 }))
  local weights = kernel(antialias and distance / ops.maximum(1 / scale, 1) or distance)
  local sum = ops.sum(weights, 1, true)
  weights = ops.where(ops.gt(ops.abs(sum), 1000 * 2 ^ -23), weights / ops.where(ops.eq(sum, 0), 1, sum), 0)
  return ops.where(ops.logical_and(ops.ge(at, -0.5), ops.le(at, from - 0.5)), weights, 0)
end

-- Pictures of shape output_shape: each of the axes spatial_dims scaled by a number of `scale` and then moved by one of `translation`.
-- One axis after the other, each new element is a mix of old ones by a matrix of weights (jax.image.scale_and_translate).
takes [[images, output_shape: list, scale: data, translation: data, spatial_dims: list,
  method: 'linear'|'bilinear'|'trilinear'|'triangle'|'cubic'|'bicubic'|'tricubic'|'lanczos3'|'lanczos5', { antialias: boolean = true; }]]
function image.scale_and_translate(images, shape, scale, translation, axes, method, options)
  local what = "keras.ops.image.scale_and_translate"
  local x = floats(images, what)
  local rank = #tools.dims(x)
  if #shape ~= rank then raise("flow.%s: output_shape has %d sizes, the pictures have rank %d", what, #shape, rank) end
  scale, translation = tools.operand(scale, what):to(x.dtype), tools.operand(translation, what):to(x.dtype)
  if tools.length(scale, 1, what) ~= #axes or tools.length(translation, 1, what) ~= #axes then
    raise("flow.%s: scale and translation have a number for each of %d axes", what, #axes)
  end
  for i, axis in ipairs(axes) do
    axis = tools.axis(x, axis, what)
    local size = tools.whole(shape[axis], 0, what, ("size %d of output_shape"):format(axis))
    local weights = pixel_weights(tools.length(x, axis, what), size, scale[i], translation[i], KERNELS[method], options.antialias)
    x = ops.moveaxis(ops.matmul(ops.moveaxis(x, axis, -1), weights), -1, axis)
  end
  return x
end

---- bending ----------------------------------------------------------------------------------------

-- How far pixels move, {n, height, width, 1}: noise of that shape, blurred. sigma: a number or a tensor {1}; most: its largest value.
function internal.bending(noise, sigma, most)
  local size = 2 * math.floor(math.floor(6 * most) / 2) + 1
  local width = type(sigma) == "number" and tools.constant({ sigma }, noise.dtype) or sigma
  return internal.blurred(noise * width, { size, size }, { width, width })
end

-- Pixel (x, y) of the result is that at (x + across, y + down) of the pictures; across, down: {n, height, width, 1}.
function internal.moved(x, across, down, options)
  local dims, fill = tools.dims(x), PLACES[options.fill_mode]
  local height, width, channels = dims[2], dims[3], dims[4]
  local linear = options.interpolation ~= "nearest"
  local flat, sum = ops.reshape_raw(x, { dims[1], height * width, channels }), nil
  local at = { down + ops.reshape(tools.constant(tools.count(height), x.dtype), { 1, height, 1, 1 }),
               across + ops.reshape(tools.constant(tools.count(width), x.dtype), { 1, 1, width, 1 }) }
  local below = {}
  for axis = 1, 2 do below[axis] = linear and ops.floor(at[axis]) or ops.round(at[axis]) end
  for corner = 0, linear and 3 or 0 do
    local number, weight, inside = nil, nil, nil
    for axis, n in ipairs { height, width } do
      local up = math.floor(corner / axis) % 2
      local index, share = below[axis] + up, up == 1 and at[axis] - below[axis] or 1 - (at[axis] - below[axis])
      if fill then index = fill(index, n)
      else
        local own = ops.logical_and(ops.ge(index, 0), ops.le(index, n - 1))
        inside = inside and ops.logical_and(inside, own) or own
        index = ops.clip(index, 0, n - 1)
      end
      number = number and number * n + index or index
      weight = weight and weight * share or share
    end
    local numbers = ops.repeat_(ops.reshape_raw(number:to "int64", { dims[1], height * width, 1 }), channels, 3)
    local value = ops.reshape_raw(tools.take_along(flat, numbers, 2), dims)
    if inside then value = ops.where(inside, value, options.fill_value) end
    if linear then value = value * weight end
    sum = sum and sum + value or value
  end
  return sum
end

-- Pixels moved by smooth random fields: noise, blurred by sigma, times alpha (P. Y. Simard, D. Steinkraus and J. C. Platt, "Best practices
-- for convolutional neural networks applied to visual document analysis", 2003).
local ELASTIC = "images, { alpha: number = 20, sigma: number = 5, interpolation: 'bilinear'|'nearest' = 'bilinear', "
  .. "fill_mode: 'constant'|'nearest'|'wrap'|'mirror'|'reflect' = 'reflect', fill_value: number = 0, seed?, " .. FORMAT .. "; }"
picture_op("elastic_transform", ELASTIC, function(x, options)
  local random, dims = require "flow.tensor.random", require("flow.tensor.shapes").of(tools.dims(x))
  local y, count = floats(x, "elastic_transform"), 0
  local function field()
    local seed = options.seed
    count = count + 1
    if type(seed) == "number" then      -- exact: what is doubled is below 2^52
      seed = (random.check_seed("flow.keras.ops.image.elastic_transform", seed) % 2 ^ 52 * 2 + count) % 2 ^ 53
    end
    local noise = random.normal({ dims[1], dims[2], dims[3], 1 }, { seed = seed }):to(y.dtype)
    return internal.bending(noise, options.sigma, options.sigma) * options.alpha
  end
  return internal.moved(y, field(), field(), options):to(x.dtype)
end)

return image
