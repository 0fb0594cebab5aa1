-- boxes.lua: bounding boxes beside pictures, data.bounding_boxes = { boxes = {n, k, 4}, labels = {n, k} }, of one picture without n. Layers
-- that move pixels move boxes with them: they are converted from the layer's bounding_box_format to left, top, right, bottom, moved, cut to
-- the new picture and converted back. The label of a box of which nothing is left becomes -1.

local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"

local raise = errors.raise
local boxes = {}

local function bounding_boxes() return require("flow.tensor.composed.bounding_boxes").bounding_boxes end

---- the format --------------------------------------------------------------------------------------------------------------------

-- Gives a layer its format, as bounding_box_format says it; nil or null: none.
function boxes.give(layer, format)
  if format == nil or format == json.null then return layer end
  bounding_boxes().format(object.title(layer), format)
  rawset(layer, "_box_format", format)
  return layer
end

-- Adds the format to a config, if there is one.
function boxes.write(layer, config)
  config.bounding_box_format = rawget(layer, "_box_format")
  return config
end

-- Takes it out of the arguments or the config of a class of the library.
function boxes.take(named)
  local format = named.bounding_box_format
  named.bounding_box_format = nil
  return format
end

function boxes.install(class)
  function class.fields.bounding_box_format(self) return rawget(self, "_box_format") end
end

---- changes -----------------------------------------------------------------------------------------------------------------------

function boxes.rank(x) return #tensor.raw_shape(ops.operand(x, nil, "boxes")) end

-- The boxes after a transformation. moved(layer, boxes, drawn, height, width): what becomes of them.
function boxes.change(layer, found, drawn, moved)
  local title, format, shape = object.title(layer), rawget(layer, "_box_format"), drawn.input_shape
  if type(found) ~= "table" or getmetatable(found) or found.boxes == nil or found.labels == nil then
    raise("%s: bounding_boxes is a table { boxes = , labels = }, got %s", title, errors.describe(found))
  end
  if not format then
    raise("%s: bounding_boxes needs to know what the four numbers are: give the layer bounding_box_format = \"xyxy\" or another one", title)
  end
  if not shape then raise("%s: the transformation has no input_shape; get_random_transformation(images) gives it", title) end
  local height, width = shape[#shape - 2], shape[#shape - 1]
  if height < 0 or width < 0 then raise("%s: boxes are moved in pictures of a known size", title) end
  local x = ops.operand(found.boxes, nil, title)
  local rank = #tensor.raw_shape(x)
  if rank ~= 2 and rank ~= 3 then
    raise("%s: boxes have the shape {boxes, 4}, or {batch, boxes, 4}, got %s", title, tensor.shape_text(tensor.raw_shape(x)))
  end
  local tools = bounding_boxes()
  x = tools.convert_format(rank == 2 and ops.expand_dims(x, 1) or x, format, "xyxy", height, width)
  local new_height, new_width
  x, new_height, new_width = moved(layer, x, drawn, height, width)
  if rank == 2 then x = ops.squeeze(x, 1) end
  local result = {}
  for name, value in pairs(found) do result[name] = value end
  result.boxes, result.labels = x, ops.operand(found.labels, nil, title)
  return tools.convert_format(tools.clip_to_image_size(result, new_height, new_width), "xyxy", format, new_height, new_width)
end

return boxes
