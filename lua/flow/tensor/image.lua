-- image.lua: flow.image: pictures from files into tensors and back, and other sizes of them.
--
--   local photo = flow.image.load("rose.jpg")                        uint8 {height, width, 3}
--   local small = flow.image.load("rose.jpg", { size = {180, 180} }) float32 {180, 180, 3}, values 0 to 255
--   flow.image.save("grey.png", flow.image.load("rose.jpg", { color_mode = "grayscale" }))

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"

local C, raise = native.C, errors.raise
local signature = require "flow.signature"

local takes = signature.takes
-- What other files have is loaded when it is asked for.
local FILES = {
  picture_places = [[flip_left_right flip_up_down transpose rot90 random_flip_left_right random_flip_up_down
    stateless_random_flip_left_right stateless_random_flip_up_down crop_to_bounding_box central_crop random_crop stateless_random_crop
    pad_to_bounding_box resize_with_crop_or_pad resize_with_pad]],
  picture_colors = [[rgb_to_grayscale grayscale_to_rgb rgb_to_hsv hsv_to_rgb rgb_to_yiq yiq_to_rgb rgb_to_yuv yuv_to_rgb adjust_brightness
    adjust_contrast adjust_gamma adjust_hue adjust_saturation random_brightness random_contrast random_hue random_saturation
    stateless_random_brightness stateless_random_contrast stateless_random_hue stateless_random_saturation per_image_standardization
    image_gradients sobel_edges total_variation psnr ssim extract_patches]],
  picture_boxes = [[non_max_suppression combined_non_max_suppression crop_and_resize]],
}
local file_of = {}
for file, list in pairs(FILES) do
  for name in list:gmatch "%S+" do file_of[name] = "flow.tensor.composed." .. file end
end
local image = signature.module("flow.image", nil, function(module, name)
  if not file_of[name] then return nil end
  require(file_of[name])
  return rawget(module, name)
end)
signature.names_of(image, function() return require("flow.names").sorted(file_of) end)
local internal = signature.internal(image)
local out = native.out("flow_tensor")

-- Keras' names and their numbers of channels.
internal.color_modes = { grayscale = 1, rgb = 3, rgba = 4 }
internal.interpolations = { "bilinear", "nearest", "bicubic", "area", "lanczos3", "lanczos5", "gaussian", "mitchellcubic" }

local FIT = "interpolation?, crop_to_aspect_ratio: boolean = false, pad_to_aspect_ratio: boolean = false"

local function is_one_of(value, list)
  for _, name in ipairs(list) do
    if name == value then return true end
  end
  return false
end

-- The name of a way to interpolate, in lower case; nil stands for bilinear.
function internal.check_interpolation(what, value)
  if value == nil then return "bilinear" end
  local name = type(value) == "string" and value:lower()
  if not name or not is_one_of(name, image.interpolations) then
    raise("%s: interpolation is one of %s; got %s", what, table.concat(image.interpolations, ", "), errors.describe(value))
  end
  return name
end

-- Height and width of a size: a number for a square, or { height, width }.
function internal.check_size(what, size)
  if native.is_tensor(size) then size = require("flow.tensor.shapes").values_of(size) end
  if type(size) == "number" then size = { size, size } end
  if type(size) ~= "table" or #size ~= 2 then
    raise("%s is {height, width}, or a number for a square; got %s", what, errors.describe(size))
  end
  local number_of = require "flow.classes.number_of"
  size = { number_of(size[1]), number_of(size[2]) }
  for _, n in ipairs(size) do
    if type(n) ~= "number" or n < 1 or n ~= math.floor(n) or n > 2 ^ 24 then
      raise("%s: a height or width is a whole number from 1, got %s", what, errors.describe(n))
    end
  end
  return size[1], size[2]
end

-- 0 stretches, 1 crops, 2 pads: numbers of flow_image_resize.
function internal.check_fit(what, options)
  if options.crop_to_aspect_ratio and options.pad_to_aspect_ratio then
    raise("%s: only one of crop_to_aspect_ratio and pad_to_aspect_ratio can be set", what)
  end
  return options.crop_to_aspect_ratio and 1 or options.pad_to_aspect_ratio and 2 or 0
end

-- The number of channels that color_mode or channels ask for, 3 by default, 0 for as many as a file has.
local function channels_of(what, options)
  local mode, channels = options.color_mode, options.channels
  if mode ~= nil and channels ~= nil then raise("%s: give channels or color_mode, not both", what) end
  if mode ~= nil then
    channels = image.color_modes[mode]
    if not channels then raise("%s: color_mode is \"rgb\", \"rgba\" or \"grayscale\", got %s", what, errors.describe(mode)) end
  end
  channels = channels or 3
  if channels ~= 0 and channels ~= 1 and channels ~= 3 and channels ~= 4 then
    raise("%s: channels is 1, 3 or 4, or 0 for as many as the file has; got %s", what, errors.describe(channels))
  end
  return channels
end

-- The largest height and width of the picture's own ratio within a size, as tf.image.resize rounds them: halves to even numbers.
local function kept_ratio(picture, height, width, what)
  local shape = native.is_tensor(picture) and picture.shape or {}
  local h, w = shape[#shape - 2], shape[#shape - 1]
  if not w then raise("%s: preserve_aspect_ratio needs a tensor {height, width, channels} or a batch of them", what) end
  local scale = math.min(height / h, width / w)
  local function rounded(x)
    local low = math.floor(x)
    return (x - low > 0.5 or x - low == 0.5 and low % 2 == 1) and low + 1 or low
  end
  return rounded(scale * h), rounded(scale * w)
end

-- A picture of another size: float32, not rounded. size: {height, width}; a tensor of rank 4 is a batch of pictures.
-- In a trace, of floats under a tape, and where antialias asks for it, it is flow.keras.ops.image.resize of floats. method is interpolation
-- under its name in tf.image, where "nearest" keeps the picture's dtype. preserve_aspect_ratio, of tf.image, too: size is the largest that
-- it may have.
takes("images, size, { " .. FIT .. ", antialias: boolean = false, method?: string, preserve_aspect_ratio: boolean = false }")
function image.resize(picture, size, options)
  local what = "flow.image.resize"
  if options.method then
    if options.interpolation then raise("%s: method is another name of interpolation: give one of them", what) end
    local resized = image.resize(picture, size, { interpolation = options.method, antialias = options.antialias,
      crop_to_aspect_ratio = options.crop_to_aspect_ratio, pad_to_aspect_ratio = options.pad_to_aspect_ratio,
      preserve_aspect_ratio = options.preserve_aspect_ratio })
    return options.method:lower() == "nearest" and native.is_tensor(picture) and resized:to(picture.dtype) or resized
  end
  local height, width = image.check_size(what .. ": the size", size)
  if options.preserve_aspect_ratio then height, width = kept_ratio(picture, height, width, what) end
  local recorded = native.is_tensor(picture) and C.flow_tape_depth(native.context) > 0 and picture.dtype:find "float"
  if native.is_tensor(picture) and (options.antialias or recorded or tensor.is_symbolic(picture)) then
    return require("flow.tensor.composed.image").resize(picture:to "float32", { height, width }, {
      interpolation = image.check_interpolation(what, options.interpolation), antialias = options.antialias,
      crop_to_aspect_ratio = options.crop_to_aspect_ratio, pad_to_aspect_ratio = options.pad_to_aspect_ratio })
  end
  local method, fit = image.check_interpolation(what, options.interpolation), image.check_fit(what, options)
  native.try(C.flow_image_resize, native.pointer(picture), height, width, method, fit, out)
  return native.tensor(out[0])
end

local function finish(picture, options)
  if options.size == nil then return picture end
  return image.resize(picture, options.size, { interpolation = options.interpolation, crop_to_aspect_ratio = options.crop_to_aspect_ratio,
                                               pad_to_aspect_ratio = options.pad_to_aspect_ratio })
end

-- The picture in a file (JPEG, PNG, GIF or BMP): uint8 {height, width, channels}; with size what resize makes of it.
takes("path, { channels?, color_mode?, size?, " .. FIT .. " }")
function image.load(path, options)
  local what = "flow.image.load"
  path = require("flow.io").path(path, what)
  local channels = channels_of(what, options)
  native.try(C.flow_image_load, path, channels, out)
  return finish(native.tensor(out[0]), options)
end

-- The picture in a string that holds the contents of a file.
takes "bytes, { channels?, color_mode? }"
function image.decode(bytes, options)
  local what = "flow.image.decode"
  if type(bytes) ~= "string" then raise("%s: the contents of a file are a string, got %s", what, errors.describe(bytes)) end
  local channels = channels_of(what, options)
  native.try(C.flow_image_decode, bytes, #bytes, channels, out)
  return native.tensor(out[0])
end

-- The same under the names of tf.image, which tell no more than what a file may be: the contents say that. channels: 0, as many as it has.
for _, name in ipairs { "decode_image", "decode_jpeg", "decode_png", "decode_bmp", "decode_gif" } do
  takes "contents, channels: whole = 0, dtype: string = 'uint8'"
  image[name] = function(contents, channels, dtype)
    return image.convert_image_dtype(image.decode(contents, { channels = channels }), dtype)
  end
end

-- The largest value of a picture of whole numbers.
local WHOLE = { uint8 = 255, int8 = 127, int32 = 2 ^ 31 - 1 }
internal.largest_of = WHOLE

-- A picture in another dtype: whole numbers become floats from 0 to 1 and back, floats stay unchanged, as in tf.image.
takes "image, dtype: string, saturate: boolean = false"
function image.convert_image_dtype(picture, dtype, saturate)
  local x = ops.operand(picture, nil, "flow.image.convert_image_dtype")
  local from, to = WHOLE[x.dtype], WHOLE[dtype]
  if x.dtype == dtype then return x end
  if (x.dtype:find("^u?int") and not from) or (dtype:find("^u?int") and not to) then
    raise("flow.image.convert_image_dtype: %s to %s is not supported: uint8, int8, int32 and floats are", x.dtype, dtype)
  end
  if from and to then
    if from > to then return ops.floor_divide(x, math.floor((from + 1) / (to + 1))):to(dtype) end
    return x:to(dtype) * math.floor((to + 1) / (from + 1))
  end
  if from then return x:to(dtype) / from end
  if not to then return x:to(dtype) end
  x = x * (to + 0.5)
  if saturate then x = ops.clip(x, 0, to) end
  return x:to(dtype)
end

-- Writes {height, width} or {height, width, channels} with values 0 to 255 as .jpg, .jpeg, .png or .bmp.
takes "path, picture, { quality = 95 }"
function image.save(path, picture, options)
  local what = "flow.image.save"
  path = require("flow.io").path(path, what)
  local quality = options.quality
  if type(quality) ~= "number" or quality < 1 or quality > 100 or quality ~= math.floor(quality) then
    raise("%s: the quality is a whole number from 1 to 100, got %s", what, errors.describe(quality))
  end
  native.try(C.flow_image_save, path, native.pointer(picture), quality)
end

-- Names of methods, as tf.image has them.
image.ResizeMethod = { BILINEAR = "bilinear", NEAREST_NEIGHBOR = "nearest", BICUBIC = "bicubic", AREA = "area", LANCZOS3 = "lanczos3",
  LANCZOS5 = "lanczos5", GAUSSIAN = "gaussian", MITCHELLCUBIC = "mitchellcubic" }

return image
