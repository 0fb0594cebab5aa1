-- bounding_boxes.lua: flow.utils.bounding_boxes: keras.utils.bounding_boxes: boxes {..., 4} of pictures in several formats, alone or as
-- { boxes =, labels = }. Coordinates are those of edges in pixels: a box of the whole picture is 0, 0, width, height.

local errors = require "flow.errors"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local tools = require "flow.tensor.composed.tools"

local ops, takes, raise = tools.ops, signature.takes, errors.raise

local boxes_of = signature.module "flow.utils.bounding_boxes"
local internal = signature.internal(boxes_of)

local EPSILON = 1e-7

-- Boxes as a tensor of floats; raises unless its last axis has four entries.
local function tensor_of(what, boxes)
  local x = ops.operand(boxes, nil, what)
  local dims = tensor.raw_shape(x)
  if dims[#dims] ~= 4 then
    raise("flow.utils.bounding_boxes.%s: boxes have four numbers on their last axis, got the shape %s", what, tensor.shape_text(dims))
  end
  return x.dtype:find "float" and x or x:to "float32"
end

-- The four columns {..., 1} of boxes.
local function columns(x)
  local axis, list = #tensor.raw_shape(x), {}
  for i = 1, 4 do list[i] = tools.part(x, axis, i, i) end
  return unpack(list)
end

local function joined(a, b, c, d) return ops.concat({ a, b, c, d }, -1) end

-- f of boxes alone, or of those of a table, in a copy of it.
local function each(boxes, f)
  if type(boxes) ~= "table" or getmetatable(boxes) or boxes.boxes == nil then return f(boxes) end
  local result = {}
  for name, value in pairs(boxes) do result[name] = value end
  result.boxes = f(boxes.boxes)
  return result
end

---- formats -------------------------------------------------------------------------------------------------------------------

local TO = {      -- to left, top, right, bottom
  xyxy = function(a, b, c, d) return a, b, c, d end,
  yxyx = function(a, b, c, d) return b, a, d, c end,
  xywh = function(x, y, w, h) return x, y, x + w, y + h end,
  center_xywh = function(x, y, w, h) return x - w / 2, y - h / 2, x + w / 2, y + h / 2 end,
  center_yxhw = function(y, x, h, w) return x - w / 2, y - h / 2, x + w / 2, y + h / 2 end,
}
local FROM = {
  xyxy = TO.xyxy, yxyx = TO.yxyx,
  xywh = function(a, b, c, d) return a, b, c - a, d - b end,
  center_xywh = function(a, b, c, d) return (a + c) / 2, (b + d) / 2, c - a, d - b end,
  center_yxhw = function(a, b, c, d) return (b + d) / 2, (a + c) / 2, d - b, c - a end,
}
local FORMATS = { "xyxy", "yxyx", "xywh", "center_xywh", "center_yxhw", "rel_xyxy", "rel_yxyx", "rel_xywh", "rel_center_xywh" }
local KNOWN = {}
for _, name in ipairs(FORMATS) do KNOWN[name] = true end

-- The name of a format without rel_, and whether it begins with that. what: the caller, of messages.
function internal.format(what, name)
  local lower = type(name) == "string" and name:lower()
  if not KNOWN[lower] then
    raise("%s: a format of boxes is one of %s, got %s%s", what, table.concat(FORMATS, ", "), errors.describe(name),
      type(name) == "string" and errors.suggestion(name, FORMATS) or "")
  end
  return lower:gsub("^rel_", ""), lower:find "^rel_" ~= nil
end

-- Boxes in another format; relative ones are shares of the picture's height and width.
takes "boxes: given_data, source: string, target: string, height?, width?, dtype: string = 'float32'"
function boxes_of.convert_format(boxes, source, target, height, width, dtype)
  local what = "flow.utils.bounding_boxes.convert_format"
  local from, from_relative = internal.format(what, source)
  local to, to_relative = internal.format(what, target)
  if (from_relative or to_relative) and (height == nil or width == nil) then
    raise("%s: height and width are needed from %q to %q", what, source, target)
  end
  return each(boxes, function(given)
    local x = tensor_of("convert_format", given):to(dtype)
    if source:lower() == target:lower() then return x end
    local a, b, c, d = TO[from](columns(x))
    if from_relative and not to_relative then a, b, c, d = a * width, b * height, c * width, d * height end
    if to_relative and not from_relative then a, b, c, d = a / width, b / height, c / width, d / height end
    return joined(FROM[to](a, b, c, d))
  end)
end

local function check_format(what, format, ...)
  for _, one in ipairs { ... } do
    if format == one then return end
  end
  raise("flow.utils.bounding_boxes.%s: bounding_box_format is \"%s\" here, got %q: use convert_format", what,
    table.concat({ ... }, "\" or \""), format)
end

---- parts ---------------------------------------------------------------------------------------------------------------------

-- Boxes within the picture; the labels of those of which nothing is left become -1.
takes "bounding_boxes: table, height?, width?, bounding_box_format: string = 'xyxy'"
function boxes_of.clip_to_image_size(given, height, width, format)
  check_format("clip_to_image_size", format, "xyxy", "rel_xyxy")
  if format == "rel_xyxy" then height, width = 1, 1 end
  if height == nil or width == nil then raise("flow.utils.bounding_boxes.clip_to_image_size: height and width are needed") end
  if given.boxes == nil then raise("flow.utils.bounding_boxes.clip_to_image_size takes { boxes =, labels = }") end
  local function within(x, most) return ops.minimum(ops.maximum(x, 0), most) end
  local result = each(given, function(boxes)
    local a, b, c, d = columns(tensor_of("clip_to_image_size", boxes))
    return joined(within(a, width), within(b, height), within(c, width), within(d, height))
  end)
  if given.labels == nil then return result end
  local labels, a, b, c, d = ops.operand(given.labels, nil, "clip_to_image_size"), columns(result.boxes)
  local stays = ops.gt((c - a) * (d - b), 0)
  if #tensor.raw_shape(labels) < #tensor.raw_shape(result.boxes) then stays = ops.squeeze(stays, -1) end
  result.labels = ops.where(stays, labels, -1):to(labels.dtype)
  return result
end

-- Boxes in the part of a picture that begins at top and left.
takes "boxes: given_data, top, left, height, width, bounding_box_format: string = 'xyxy'"
function boxes_of.crop(boxes, top, left, height, width, format)
  check_format("crop", format, "xyxy")
  local a, b, c, d = columns(tensor_of("crop", boxes))
  local function within(x, most) return ops.minimum(ops.maximum(x, 0), most) end
  return joined(within(a - left, width), within(b - top, height), within(c - left, width), within(d - top, height))
end

-- Boxes in a picture that has got rows above it and columns before it.
takes "boxes: given_data, top, left, height?, width?, bounding_box_format: string = 'xyxy'"
function boxes_of.pad(boxes, top, left, _, _, format)
  check_format("pad", format, "xyxy")
  local a, b, c, d = columns(tensor_of("pad", boxes))
  return joined(a + left, b + top, c + left, d + top)
end

---- transforms ------------------------------------------------------------------------------------------------------------------

-- The boxes around boxes {n, k, 4} of which (x, y) has become (a0 x + a1 y + a2, b0 x + b1 y + b2); each a number or {n, 1, 1}.
function internal.transformed(boxes, a0, a1, a2, b0, b1, b2)
  local x1, y1, x2, y2 = columns(boxes)
  local xs, ys = joined(x1, x2, x2, x1), joined(y1, y1, y2, y2)
  local x, y = xs * a0 + ys * a1 + a2, xs * b0 + ys * b1 + b2
  return joined(ops.min(x, -1, true), ops.min(y, -1, true), ops.max(x, -1, true), ops.max(y, -1, true))
end

-- The same where the picture has at (x, y) what was at (a0 x + a1 y + a2, b0 x + b1 y + b2).
function internal.moved(boxes, a0, a1, a2, b0, b1, b2)
  local size = a0 * b1 - a1 * b0
  return internal.transformed(boxes, b1 / size, -a1 / size, (a1 * b2 - b1 * a2) / size, -b0 / size, a0 / size, (b0 * a2 - a0 * b2) / size)
end

-- Boxes {n, k, 4} turned by angle {n} in degrees, moved by shares of the picture, scaled and sheared about a centre, as Keras does it.
takes("boxes: given_data, angle, translate_x, translate_y, scale, shear_x, shear_y, height: scalar, width: scalar, " ..
  "center_x: number = 0.5, center_y: number = 0.5, bounding_box_format: string = 'xyxy'")
function boxes_of.affine_transform(boxes, angle, translate_x, translate_y, scale, shear_x, shear_y, height, width, center_x, center_y,
    format)
  check_format("affine_transform", format, "xyxy")
  local x = tensor_of("affine_transform", boxes)
  local function each_of(value) return ops.reshape(ops.operand(value, "float32", "affine_transform"), { -1, 1, 1 }) end
  local turn, sx, sy = each_of(angle) * (-math.pi / 180), each_of(shear_x) * (-math.pi / 180), each_of(shear_y) * (-math.pi / 180)
  local cx, cy = center_x * (width - 1), center_y * (height - 1)
  local right, down = cx - each_of(translate_x) * (width - 1), cy - each_of(translate_y) * (height - 1)
  local rest, tangent, s = turn - sy, ops.tan(sx), each_of(scale)
  local a, c = ops.cos(rest) / ops.cos(sy), -ops.sin(rest) / ops.cos(sy)
  local b, d = a * tangent + ops.sin(turn), ops.cos(turn) - c * tangent
  local a0, a1, b0, b1 = d * s, -b * s, -c * s, a * s
  return internal.transformed(x, a0, a1, cx - a0 * right - a1 * down, b0, b1, cy - b0 * right - b1 * down)
end

---- anchors ---------------------------------------------------------------------------------------------------------------------

-- convert_format(boxes, source, target) for pictures of this shape {height, width, ...}, or of an unknown one, nil.
local function converter(image_shape)
  local shape = image_shape or {}
  return function(boxes, source, target) return boxes_of.convert_format(boxes, source, target, shape[1], shape[2]) end
end

-- What both directions begin with: the variance as a tensor, or nil, and the converter of the pictures' shape. Raises for a format that has
-- no centre.
local function delta_tools(what, format, variance, image_shape)
  check_format(what, format, "center_xywh", "center_yxhw")
  if variance ~= nil then
    variance = ops.operand(variance, "float32", what)
    local dims = tensor.raw_shape(variance)
    if dims[#dims] ~= 4 then raise("flow.utils.bounding_boxes.%s: variance has four numbers", what) end
  end
  return variance, converter(image_shape)
end

-- Boxes in a format with a centre as centres {..., 2} and sizes {..., 2}.
local function halves(x)
  local axis = #tensor.raw_shape(x)
  return tools.part(x, axis, 1, 2), tools.part(x, axis, 3, 4)
end

-- What brings anchors {n, 4} to boxes, as networks learn it.
takes("anchors: given_data, boxes: given_data, anchor_format: string, box_format: string, encoding_format: string = 'center_yxhw', " ..
  "variance?, image_shape?: list")
function boxes_of.encode_box_to_deltas(anchors, boxes, anchor_format, box_format, format, variance, image_shape)
  local factors, converted = delta_tools("encode_box_to_deltas", format, variance, image_shape)
  local centre, size = halves(converted(anchors, anchor_format, format))
  local own_centre, own_size = halves(converted(boxes, box_format, format))
  size = ops.maximum(size, EPSILON)
  local deltas = ops.concat({ (own_centre - centre) / size, ops.log(ops.maximum(own_size, EPSILON) / size) }, -1)
  return factors and deltas / factors or deltas
end

-- Boxes of anchors and what a network says of them; anchors and deltas may be tables of levels.
takes("anchors: given_data, boxes_delta: given_data, anchor_format: string, box_format: string, encoded_format: string = 'center_yxhw', " ..
  "variance?, image_shape?: list")
function boxes_of.decode_deltas_to_boxes(anchors, deltas, anchor_format, box_format, format, variance, image_shape)
  local factors, converted = delta_tools("decode_deltas_to_boxes", format, variance, image_shape)
  local function decoded(anchor, delta)
    local centre, size = halves(converted(anchor, anchor_format, format))
    delta = tensor_of("decode_deltas_to_boxes", delta)
    local move, growth = halves(factors and delta * factors or delta)
    local box = ops.concat({ move * size + centre, ops.exp(growth) * size }, -1)
    return converted(box, format, box_format)
  end
  if type(anchors) ~= "table" or getmetatable(anchors) or not signature.is_named(anchors) then return decoded(anchors, deltas) end
  local result = {}
  for level, anchor in pairs(anchors) do result[level] = decoded(anchor, deltas[level]) end
  return result
end

---- overlaps --------------------------------------------------------------------------------------------------------------------

-- The share that each of boxes1 {..., n, 4} and each of boxes2 {..., m, 4} have in common: {..., n, m}.
takes("boxes1: given_data, boxes2: given_data, bounding_box_format: string, use_masking: boolean = false, mask_val: number = -1, " ..
  "image_shape?: list")
function boxes_of.compute_iou(boxes1, boxes2, format, use_masking, mask_val, image_shape)
  local converted = converter(image_shape)
  local first, second = converted(boxes1, format, "xyxy"), converted(boxes2, format, "xyxy")
  local a1, b1, c1, d1 = columns(first)
  local a2, b2, c2, d2 = columns(second)
  local function across(x) return ops.swapaxes(x, -1, -2) end
  local function length(from, to, other_from, other_to)
    return ops.maximum(ops.minimum(to, across(other_to)) - ops.maximum(from, across(other_from)), 0)
  end
  local common = length(a1, c1, a2, c2) * length(b1, d1, b2, d2)
  local iou = common / ((c1 - a1) * (d1 - b1) + across((c2 - a2) * (d2 - b2)) - common + EPSILON)
  if not use_masking then return iou end
  local function hidden(x) return ops.lt(ops.max(x, -1, true), 0) end
  return ops.where(ops.logical_or(hidden(first), across(hidden(second))), mask_val, iou)
end

-- The complete overlap of boxes {..., 4} with others, one by one, which also knows of distances and proportions.
takes "boxes1: given_data, boxes2: given_data, bounding_box_format: string, image_shape?: list"
function boxes_of.compute_ciou(boxes1, boxes2, format, image_shape)
  local converted = converter(image_shape)
  local a1, b1, c1, d1 = columns(converted(boxes1, format, "xyxy"))
  local a2, b2, c2, d2 = columns(converted(boxes2, format, "xyxy"))
  local w1, h1, w2, h2 = c1 - a1, d1 - b1 + EPSILON, c2 - a2, d2 - b2 + EPSILON
  local common = ops.maximum(ops.minimum(c1, c2) - ops.maximum(a1, a2), 0) * ops.maximum(ops.minimum(d1, d2) - ops.maximum(b1, b2), 0)
  local iou = common / (w1 * h1 + w2 * h2 - common + 2 * EPSILON)
  local around = (ops.maximum(c1, c2) - ops.minimum(a1, a2)) ^ 2 + (ops.maximum(d1, d2) - ops.minimum(b1, b2)) ^ 2 + EPSILON
  local distance = ((a1 + c1 - a2 - c2) / 2) ^ 2 + ((b1 + d1 - b2 - d2) / 2) ^ 2
  local v = (ops.arctan(w2 / h2) - ops.arctan(w1 / h1)) ^ 2 * (4 / math.pi ^ 2)
  return ops.squeeze(iou - (distance / around + v * (v / (v - iou + (1 + EPSILON)))), -1)
end

return { bounding_boxes = boxes_of }
