-- image.lua: flow.keras.ops.image: pictures as tensors {height, width, channels} or {batch, height, width, channels}, in eager and traced
-- functions.

local tools = require "flow.tensor.composed.tools"
local signature = require "flow.signature"

local takes, ops = signature.takes, tools.ops
local image = signature.module "flow.keras.ops.image"

-- The luminance, as one channel: 0.2989 red + 0.587 green + 0.114 blue.
takes "images"
function image.rgb_to_grayscale(images)
  images = tools.operand(images, "keras.ops.image.rgb_to_grayscale")
  local weights = tools.constant({ 0.2989, 0.5870, 0.1140 }, tools.is_float(images) and images.dtype or "float32")
  local grey = ops.sum(images * weights, -1, true)
  return tools.is_float(images) and grey or grey:to(images.dtype)
end

return image
