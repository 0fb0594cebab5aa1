-- image_layer.lua: what layers share that change pictures, at random or not: one picture or a batch of them, alone or by name with their
-- labels and masks; factors; random numbers; Keras' config (keras.src.layers.preprocessing.image_preprocessing). Layers are made by
--
--   image_layer.define(name, { "factor: number|list", ... }, {         parameters in Keras' order, as signature.takes has them
--     factors = { factor = { least, most } },                           a number f stands for { max(-f, least), f }
--     draw = function(self, x, given) ... end,                         (optional) what is drawn for pictures x {n, height, width, channels}
--     change = function(self, x, given, drawn) ... end,                 the pictures that x becomes
--     labels =, masks = function(self, y, given, drawn) ... end,        (optional) what becomes of labels and segmentation masks
--     moves = function(self, boxes, given, drawn, height, width) ... end,      (optional) what becomes of boxes: see boxes.lua
--     always = true,                                                    also where the layer does not train
--   })
--
-- given: the arguments by name. Results are in the layer's dtype. Called by itself a layer acts as in training: it prepares data.
-- Layers of core/layers have definitions, too (of_records.lua): their arguments are those of get_config().

local native = require "flow.ffi"
local arguments = require "flow.arguments"
local errors = require "flow.errors"
local json = require "flow.json"
local object = require "flow.object"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local random = require "flow.tensor.random"
local shapes = require "flow.tensor.shapes"
local scopes = require "flow.scopes"
local Layer = require "flow.layers.layer"
local layer_config = require "flow.layers.layer_config"
local entries = require "flow.layers.entries"
local boxes = require "flow.layers.images.boxes"

local C, raise, takes = native.C, errors.raise, signature.takes

local ImageLayer = object.class("ImageLayer", Layer)
function ImageLayer.fields._trains_alone() return true end
function ImageLayer.fields._takes_several() return false end
local image_layer = { definitions = {} }

---- arguments ----------------------------------------------------------------------------------------------------------------------

-- { lower, upper } of a factor between bounds.
function image_layer.factor(name, parameter, value, bounds)
  local least, most = unpack(bounds)
  local list = type(value) == "table" and value or { value }
  for i = 1, math.max(#list, 1) do
    local f = list[i]
    if type(f) ~= "number" or not (f >= least and f <= most) or #list > 2 or type(value) == "table" and #list < 2 then
      raise("%s: %s is a number from %g to %g, or a list of two, got %s", name, parameter, least, most, errors.describe(value))
    end
  end
  if type(value) == "table" then return { math.min(list[1], list[2]), math.max(list[1], list[2]) } end
  return { math.max(-math.abs(value), least), math.abs(value) }
end

-- The smallest and the largest value of pixels.
local function check_range(name, range)
  if range == nil or #range == 0 then return { 0, 255 } end      -- an empty table: no options
  if #range ~= 2 or type(range[1]) ~= "number" or type(range[2]) ~= "number" or not (range[1] < range[2]) then
    raise("%s: value_range is a list of two numbers, the smaller one first, got %s", name, errors.describe(range))
  end
  return { range[1], range[2] }
end

-- The arguments of a layer by name, nil for null.
local function given_of(self)
  local given = rawget(self, "_given")
  if given then return given end
  given = self:get_config()
  for name, value in pairs(given) do
    if value == json.null then given[name] = nil end
  end
  return given
end

---- random numbers -------------------------------------------------------------------------------------------------------------------

-- How many pictures x holds, for shapes of random tensors.
function image_layer.rows(x) return shapes.of(tensor.raw_shape(x))[1] end

-- Height and width of pictures x {n, height, width, channels}.
function image_layer.size(x)
  local dims = tensor.raw_shape(x)
  return dims[2], dims[3]
end

-- The options of a draw of a layer. In a trace its numbers follow from the seed and the step; eager calls count on.
function image_layer.options(self, options)
  options.seed = rawget(self, "_draws") or nil
  return options
end

-- Numbers from low to high, {n, ...} for each of the n pictures.
function image_layer.uniform(self, x, low, high, ...)
  return random.uniform({ image_layer.rows(x), ... }, image_layer.options(self, { minval = low, maxval = high }))
end

-- For each picture, {n, 1, 1, 1}: true with a probability that is itself drawn between the two of `factor`.
function image_layer.chance(self, x, factor)
  return ops.lt(image_layer.uniform(self, x, 0, 1, 1, 1, 1), image_layer.uniform(self, x, factor[1], factor[2], 1, 1, 1))
end

-- Begins the draws of a call.
local function begin_draws(self)
  local seed = given_of(self).seed
  if seed == nil then return end
  if C.flow_trace_depth(native.context) > 0 or not rawget(self, "_draws") then rawset(self, "_draws", random.SeedGenerator(seed)) end
end

---- pixels ---------------------------------------------------------------------------------------------------------------------------

-- Values of one range as those of another.
function image_layer.rescale(x, from, to)
  if from[1] == to[1] and from[2] == to[2] then return x end
  return (x - from[1]) / (from[2] - from[1]) * (to[2] - to[1]) + to[1]
end

---- calls ----------------------------------------------------------------------------------------------------------------------------

-- A transformation of pictures x with their shape, which boxes are moved by, as Keras has it in there.
local function noted(drawn, x)
  drawn.input_shape = { unpack(tensor.raw_shape(x)) }
  return drawn
end

-- Numbers for pictures x; nil: they stay unchanged.
function image_layer.draw(self, x)
  local definition = image_layer.definitions[self._record_name]
  begin_draws(self)
  return noted(definition.draw and definition.draw(self, x, given_of(self)) or {}, x)
end
function image_layer.change(self, x, drawn)
  return image_layer.definitions[self._record_name].change(self, x, given_of(self), drawn)
end

-- {n, height, width, channels} of one picture or several, in the layer's dtype, and what brings results back to that form.
local function batch_of(self, x)
  local rank = #tensor.raw_shape(x)
  if rank ~= 3 and rank ~= 4 then
    raise("%s: input has %d dimensions, expected {height, width, channels} or {batch, height, width, channels}", object.title(self), rank)
  end
  x = x:to(self.compute_dtype)
  if rank == 4 then return x, function(y) return y end end
  return ops.expand_dims(x, 1), function(y) return ops.squeeze(y, 1) end
end

-- Random layers change pictures in training only, others (definition.always) in each call. A single picture {height, width, channels} is a
-- batch of one on the way.
function ImageLayer:call(inputs, options)
  local x, back = batch_of(self, inputs)
  local definition = image_layer.definitions[self._record_name]
  if not options.training and not definition.always then return back(x) end
  return back(image_layer.change(self, x, image_layer.draw(self, x)))
end

-- What becomes of one thing that belongs to pictures, by the name that it has in a table.
local CHANGES = { labels = "labels", segmentation_masks = "masks" }
local SINGLE = { labels = "label", segmentation_masks = "segmentation_mask" }

-- What the layer makes of boxes left, top, right, bottom {n, k, 4} in pictures of this size, and the size of the new pictures; of layers
-- that move no pixels the same.
function image_layer.moved(self, found, drawn, height, width)
  local move = image_layer.definitions[self._record_name].moves
  if not move then return found, height, width end
  local y, new_height, new_width = move(self, found, given_of(self), drawn, height, width)
  return y, new_height or height, new_width or width
end

-- Boxes by the names that they have in data, changed as the pictures were.
local function change_boxes(self, found, drawn, single)
  local definition = image_layer.definitions[self._record_name]
  if definition.boxes then return definition.boxes(self, found, given_of(self), drawn, single) end
  if not definition.moves and not definition.masks then return found end
  if not definition.moves then
    raise("%s: bounding_boxes is not supported: boxes are not moved along with pictures", object.title(self))
  end
  return boxes.change(self, found, drawn, image_layer.moved)
end

-- Pictures by name, with what belongs to them: a table of the same names.
function image_layer.call_named(self, inputs, options)
  options = errors.check_options(object.title(self), options, { training = true })
  if inputs.images == nil then raise("%s: data by name has its pictures as images = x", object.title(self)) end
  local training = options.training
  local definition, result = image_layer.definitions[self._record_name], {}
  for name, value in pairs(inputs) do result[name] = value end
  if training == nil then training = scopes.own().training end
  if training == nil then training = true end
  local x, back = batch_of(self, ops.operand(inputs.images, nil, object.title(self)))
  result.images = back(x)
  if not training and not definition.always then return result end
  local drawn = image_layer.draw(self, x)
  result.images = back(image_layer.change(self, x, drawn))
  local single = #tensor.raw_shape(result.images) == 3
  for name, key in pairs(CHANGES) do
    if inputs[name] ~= nil and definition[key] then
      local value = key == "masks" and ops.operand(inputs[name], nil, object.title(self)) or inputs[name]
      result[name] = definition[key](self, value, given_of(self), drawn, single)
    end
  end
  if inputs.bounding_boxes ~= nil then result.bounding_boxes = change_boxes(self, inputs.bounding_boxes, drawn, single) end
  return result
end

---- Keras' methods -------------------------------------------------------------------------------------------------------------------

-- Gives a class get_random_transformation, and transform_images and others, which apply what it gave. transform_single_image and others,
-- Keras' names for one picture, are the same functions: these take one {height, width, channels} as well as a batch.
function image_layer.add_methods(class)
  takes "data: data, training: boolean = true, seed?: whole"
  function class:get_random_transformation(data, training, seed)
    if not training then return nil end
    if arguments.is_options(data) then data = data.images end
    local x = batch_of(self, ops.operand(data, nil, object.title(self)))
    if seed == nil then return image_layer.draw(self, x) end
    local before = rawget(self, "_draws")
    rawset(self, "_draws", random.SeedGenerator(seed))
    return native.between(function() end, function() rawset(self, "_draws", before) end, function()
      local draw = image_layer.definitions[self._record_name].draw
      return noted(draw and draw(self, x, given_of(self)) or {}, x)
    end)
  end

  takes "images: data, transformation?: table, training: boolean = true"
  function class:transform_images(images, transformation, training)
    local x, back = batch_of(self, ops.operand(images, nil, object.title(self)))
    local definition = image_layer.definitions[self._record_name]
    if not definition.always and (not training or transformation == nil) then return back(x) end
    return back(image_layer.change(self, x, transformation or {}))
  end
  class.transform_single_image = class.transform_images

  for name, key in pairs(CHANGES) do
    takes "data: data, transformation?: table, training: boolean = true"
    class["transform_" .. name] = function(self, data, transformation, training)
      local definition = image_layer.definitions[self._record_name]
      if key == "masks" then data = ops.operand(data, nil, object.title(self)) end
      if not definition[key] or not definition.always and (not training or transformation == nil) then return data end
      return definition[key](self, data, given_of(self), transformation or {}, key == "masks" and #tensor.raw_shape(data) == 3)
    end
    class["transform_single_" .. SINGLE[name]] = class["transform_" .. name]
  end

  takes "bounding_boxes: table, transformation?: table, training: boolean = true"
  function class:transform_bounding_boxes(data, transformation, training)
    local always = image_layer.definitions[self._record_name].always
    if not always and (not training or transformation == nil) then return data end
    return change_boxes(self, data, transformation or {}, data.boxes ~= nil and boxes.rank(data.boxes) == 2)
  end
  class.transform_single_bounding_box = class.transform_bounding_boxes
  boxes.install(class)
end
image_layer.add_methods(ImageLayer)

-- Also takes data by name, { images =, bounding_boxes =, labels =, ... }, whose parts change together.
function ImageLayer:_call(inputs, options)
  if not arguments.is_options(inputs) then return Layer._call(self, inputs, options) end
  return image_layer.call_named(self, inputs, options)
end

---- classes --------------------------------------------------------------------------------------------------------------------------

-- A class of that name; see above.
function image_layer.define(name, parameters, definition)
  local class, names, position = object.class(name, ImageLayer), {}, {}
  for i, parameter in ipairs(parameters) do
    names[i] = parameter:match "^[%w_]+"
    position[names[i]] = i
  end
  image_layer.definitions[name] = definition
  signature.takes(table.concat(parameters, ", ") .. (#names > 0 and ", " or "") .. "{ name?: string, trainable: boolean = true, " ..
    "dtype?, bounding_box_format?: string }")
  signature.constructor(class, "flow.layers." .. name, function(...)
    local values, given = { ... }, {}
    for i, parameter in ipairs(names) do given[parameter] = values[i] end
    for parameter, bounds in pairs(definition.factors or {}) do
      given[parameter] = image_layer.factor(name, parameter, given[parameter], bounds)
    end
    if given.value_range ~= nil or table.concat(names, " "):find "value_range" then
      given.value_range = check_range(name, given.value_range)
    end
    local self = object.new(class):_prepare(name, values[#names + 1])
    rawset(self, "_given", given)
    boxes.give(self, values[#names + 1].bounding_box_format)
    if definition.prepare then definition.prepare(self, given, name) end
    return self
  end)

  function class:_missing(key) return self._given[key] ~= nil, self._given[key], self._given end
  function class:_set_missing(key, value)
    if not position[key] then return false end
    local options = {}
    for parameter, old in pairs(self._given) do options[parameter] = old end
    options[key], options.name = value, self.name      -- a layer that is made for its checks, and takes no name from later ones
    rawset(self, "_given", class(options)._given)
    if definition.prepare then definition.prepare(self, self._given, name) end
    layer_config.changed(self)
    return true
  end

  function class:get_config()
    local config = entries.base(self)
    config.data_format = "channels_last"
    for _, parameter in ipairs(names) do
      local value = self._given[parameter]
      if value == nil then value = json.null end
      if definition.write then value = definition.write(parameter, value) end
      config[parameter] = type(value) == "table" and value ~= json.null and json.list { unpack(value) } or value
    end
    return boxes.write(self, config)
  end

  function class._from_config(_, content)
    if content.data_format == "channels_first" then raise("%s: data_format \"channels_first\" is not supported", name) end
    local options = entries.options(content)
    options.dtype, options.data_format = entries.dtype(content), nil
    return class(options)
  end
  return class
end

return image_layer
