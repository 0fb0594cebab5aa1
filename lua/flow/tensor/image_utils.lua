-- image_utils.lua: the helpers of keras.utils and keras.preprocessing.image for pictures, which are tensors here: uint8 {height, width,
-- channels}.

local errors = require "flow.errors"
local native = require "flow.ffi"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local image = require "flow.tensor.image"

local raise, takes = errors.raise, signature.takes
local utils = signature.module("flow.utils", {}, nil, true)

local FORMATS = "data_format?: 'channels_last'|'channels_first'"

-- The picture in a file. interpolation goes with target_size: names and values of flow.image.resize, rounded.
takes("path: path, color_mode: 'rgb'|'rgba'|'grayscale' = 'rgb', target_size?: list, interpolation: string = 'nearest', "
  .. "keep_aspect_ratio: boolean = false")
function utils.load_img(path, color_mode, size, interpolation, keeps)
  local picture = image.load(path, { color_mode = color_mode })
  if not size then return picture end
  local resized = image.resize(picture, size, { interpolation = interpolation, crop_to_aspect_ratio = keeps })
  return resized:clip(0, 255):round():to "uint8"
end

local function to_last(what, x, format)
  if #x.shape ~= 3 then raise("%s: a picture has 3 dimensions, got {%s}", what, table.concat(x.shape, ", ")) end
  return format == "channels_first" and x:permute { 2, 3, 1 } or x
end

-- A picture as numbers, float32 {height, width, channels}; {height, width} gets a channel.
takes("img: data, " .. FORMATS .. ", dtype: string = 'float32'")
function utils.img_to_array(picture, format, dtype)
  local what = "flow.utils.img_to_array"
  local x = ops.operand(picture, nil, what):to(dtype)
  if #x.shape == 2 then x = x:expand_dims(-1) end
  if #x.shape ~= 3 then raise("%s: a picture has 2 or 3 dimensions, got {%s}", what, table.concat(x.shape, ", ")) end
  return format == "channels_first" and x:permute { 3, 1, 2 } or x
end

-- Numbers as a picture, uint8; scale: the least number becomes 0, the largest 255.
takes("x: data, " .. FORMATS .. ", scale: boolean = true, dtype: string = 'float32'")
function utils.array_to_img(x, format, scale, dtype)
  local what = "flow.utils.array_to_img"
  x = to_last(what, ops.operand(x, nil, what):to(dtype), format)
  local channels = x.shape[3]
  if channels ~= 1 and channels ~= 3 and channels ~= 4 then raise("%s: a picture has 1, 3 or 4 channels, got %d", what, channels) end
  if scale and x.size > 0 then
    x = x - x:min()
    local most = x:max():item()
    if most ~= 0 then x = x / most end
    x = x * 255
  end
  return x:clip(0, 255):floor():to "uint8"
end

-- Writes numbers as a picture, as array_to_img makes it. file_format: what the name ends with, if that says something else.
takes("path: path, x: data, " .. FORMATS .. ", file_format?: string, scale: boolean = true")
function utils.save_img(path, x, format, file_format, scale)
  local ending = path:match("%.([^./]*)$")
  if file_format and (not ending or ending:lower() ~= file_format:lower()) then
    raise("flow.utils.save_img: the name of the file says how it is written: it ends with %q, file_format is %q", ending or "", file_format)
  end
  local picture = utils.array_to_img(x, { data_format = format, scale = scale })
  if picture.shape[3] == 4 and ending and ending:lower():find("^jpe?g$") then picture = picture[{ {}, {}, { 1, 3 } }]:contiguous() end
  image.save(path, picture)
end

-- Pictures of another size, cut to the new aspect ratio before: float32.
takes "x: data, size: list, interpolation: string = 'bilinear', data_format: 'channels_last'|'channels_first' = 'channels_last'"
function utils.smart_resize(x, size, interpolation, format)
  local pictures = native.is_tensor(x) and x or tensor.tensor(x)
  local first = format == "channels_first"
  if first then pictures = ops.moveaxis(pictures, -3, -1) end
  local resized = image.resize(pictures, size, { interpolation = interpolation, crop_to_aspect_ratio = true })
  return first and ops.moveaxis(resized, -1, -3) or resized
end

return utils
