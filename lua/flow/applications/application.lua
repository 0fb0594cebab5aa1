-- application.lua: what the applications share: their arguments, the shape of their input, the classifier on top, and weights from files
-- that Keras distributes. An application is a record:
--
--   name           of the model, or a function of the options and the shape that gives it
--   default_size   of the pictures with the classifier on top, or a function of the shape that was asked for; least_size: the smallest that
--                  the layers take
--   any_size       the classifier takes pictures of any size
--   named_pooling  the pooling after the body has Keras' name "avg_pool"; top_pooling: with the classifier only
--   bottom         function(x, options) -> x: what follows the body without a classifier, in place of the pooling that was asked for
--   options        what it takes besides the arguments that all have, as a signature has them
--   body           function(x, options) -> x: the layers from the input to the last features
--   top            function(x, options) -> x: the classifier; without it the mean over each picture and a Dense layer "predictions"
--   files          function(options, shape) -> address of the weights on ImageNet, for include_top or without
--
-- make() checks the arguments, finds the shape of the input and the file of the weights, calls body and then top, bottom or a pooling on a
-- symbolic input, and loads the weights.

local host = require "flow.host"
local errors = require "flow.errors"
local layers = require "flow.layers"
local symbolic = require "flow.layers.symbolic"
local models = require "flow.models"

local raise = errors.raise
local application = {}

-- In the order in which most applications of Keras take them.
application.COMMON = "include_top: boolean = true, weights?: string|boolean, input_tensor?: any, input_shape?: list, " ..
  "pooling?: 'avg'|'max'|boolean, classes: count = 1000, classifier_activation?: any, name?: string"

local function shape_text(shape)
  local parts = {}
  for axis, length in ipairs(shape) do parts[axis] = tostring(length) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

---- the input ----------------------------------------------------------------------------------------------------------------------

-- {rows, columns, channels}, -1 for a size that is not known, as Keras' obtain_input_shape finds them
-- (keras/src/applications/imagenet_utils.py): what input_shape or else input_tensor says, else the application's default size with the
-- classifier, any size without it. Raises for a shape that the layers, the classifier or the weights do not take.
local function input_shape(what, record, options)
  local shape, size = options.input_shape, record.default_size
  if not shape and options.input_tensor then shape = { unpack(options.input_tensor.shape, 2) } end
  if type(size) == "function" then size = size(shape) end
  local standard = { size, size, 3 }
  if options.weights == "imagenet" and options.include_top then
    if shape and shape_text(shape) ~= shape_text(standard) then
      raise("%s: with the classifier and the weights of ImageNet input_shape is %s, got %s; leave it out, or take include_top = false",
        what, shape_text(standard), shape_text(shape))
    end
    return standard
  end
  if not shape then return options.include_top and standard or { -1, -1, 3 } end
  if #shape ~= 3 then raise("%s: input_shape is {rows, columns, channels}, got %s", what, shape_text(shape)) end
  for axis = 1, 3 do
    local length = shape[axis]
    if type(length) ~= "number" or length ~= math.floor(length) or length < 1 and (length ~= -1 or axis == 3) then
      raise("%s: entry %d of input_shape is %s, expected a whole number from 1, or -1 for rows and columns of any number", what, axis,
        errors.describe(length))
    end
  end
  for axis = 1, 2 do
    if shape[axis] ~= -1 and shape[axis] < record.least_size then
      raise("%s: input_shape %s is too small, its layers take pictures of %d x %d and more", what, shape_text(shape), record.least_size,
        record.least_size)
    end
    if shape[axis] == -1 and options.include_top and not record.any_size then
      raise("%s: the classifier needs pictures of a known size, input_shape is %s; take include_top = false for any size", what,
        shape_text(shape))
    end
  end
  if options.weights == "imagenet" and shape[3] ~= 3 then
    raise("%s: the weights of ImageNet are for 3 channels, input_shape is %s", what, shape_text(shape))
  end
  return shape
end

---- weights ------------------------------------------------------------------------------------------------------------------------

-- Sets weights to "imagenet" where nothing is said.
local function check_weights(what, options)
  local weights = options.weights
  if weights == nil then options.weights = "imagenet" end
  if weights == true then raise("%s: weights is \"imagenet\", the path of a file, or false for random ones, got true", what) end
  if options.weights == "imagenet" and options.include_top and options.classes ~= 1000 then
    raise("%s: the weights of ImageNet are for 1000 classes, got classes = %d; take include_top = false and a Dense layer of your own, " ..
      "or weights = false", what, options.classes)
  end
  if options.weights and options.include_top and options.classifier_activation ~= nil and options.classifier_activation ~= "softmax" and
    options.classifier_activation ~= false then
    raise("%s: with weights from a file classifier_activation is \"softmax\" or false, got %s", what,
      errors.describe(options.classifier_activation))
  end
end

-- Where Keras keeps what it has fetched.
local function folder() return host.os.getenv "KERAS_HOME" or (host.os.getenv "HOME" or ".") .. "/.keras" end

-- The path of a file of Keras' that was fetched. Raises where it is missing, with the address to get it from: nothing here uses the
-- network.
function application.fetched(what, address)
  local name = address:match "[^/]*$"
  local path = folder() .. "/models/" .. name
  local file = host.io.open(path, "rb")
  if not file then
    raise("%s: %s does not exist, and nothing is downloaded: get it from %s, or name another file", what, path,
      address)
  end
  file:close()
  return path
end

---- models -------------------------------------------------------------------------------------------------------------------------

-- The mean ("avg") or the largest value ("max") over each picture, or x itself for another kind. named: the layer has Keras' name.
local function pool(x, kind, named)
  if kind == "avg" then return layers.GlobalAveragePooling2D { name = named and "avg_pool" or nil }(x) end
  if kind == "max" then return layers.GlobalMaxPooling2D { name = named and "max_pool" or nil }(x) end
  return x
end
application.pool = pool

-- The activation of the classifier; linear: false was given.
function application.activation(options)
  if options.classifier_activation == nil then return "softmax" end
  return options.classifier_activation or "linear"
end

-- The usual classifier, whose pooling has the name "avg_pool" where `named`.
function application.classify(x, options, named)
  x = pool(x, "avg", named)
  return layers.Dense(options.classes, { activation = application.activation(options), name = "predictions" })(x)
end

-- What follows the body: the classifier, or without it what the record or the option pooling says.
local function end_of(x, record, options)
  if not options.include_top then
    if record.bottom then return record.bottom(x, options) end
    return pool(x, options.pooling, record.named_pooling)
  end
  if record.top then return record.top(x, options) end
  return application.classify(x, options, record.named_pooling or record.top_pooling)
end

-- The inputs that a symbolic tensor is computed from: one, or a list of several in the order in which a walk from the tensor meets them;
-- itself, if it is one. As keras.utils.get_source_inputs.
local function sources(t)
  local list, seen = {}, {}
  local function visit(one)
    if seen[one] then return end
    seen[one] = true
    if #one.node.inputs == 0 then list[#list + 1] = one end
    for _, input in ipairs(one.node.inputs) do visit(input) end
  end
  visit(t)
  return #list == 1 and list[1] or list
end

-- The path of the file that the weights are read from; nil: they stay random. Raises where it is missing.
local function file_of(what, record, options, shape)
  if options.weights == "imagenet" then return application.fetched(what, record.files(options, shape)) end
  if not options.weights then return nil end
  if not require("flow.io").exists(options.weights) then
    raise('%s: weights is "imagenet", the path of a file or false; there is no file %q', what, options.weights)
  end
  return options.weights
end

-- The model of a record; what: the function's name, for messages; options: its arguments. What is wrong with these, a missing file
-- included, is said before a layer is made.
function application.make(what, record, options)
  check_weights(what, options)
  local input = options.input_tensor
  if input and not symbolic.is(input) then
    raise("%s: input_tensor is what flow.Input or a layer called on it gives, got %s", what, errors.describe(input))
  end
  local shape = input_shape(what, record, options)
  local file = file_of(what, record, options, shape)
  input = input or layers.Input(shape)
  local x = end_of(record.body(input, options), record, options)
  local name = options.name or type(record.name) == "function" and record.name(options, shape) or record.name
  local model = models.Model { inputs = sources(input), outputs = x, name = name }
  if file then model:load_weights(file) end
  return model
end

---- what the layers share ------------------------------------------------------------------------------------------------------------

-- The margins before a convolution of stride 2 without padding: Keras' correct_pad.
function application.margins(x, kernel)
  local half = math.floor(kernel / 2)
  local margins = {}
  for axis = 2, 3 do
    local size = x.shape[axis]
    margins[axis - 1] = { half - (size == -1 and 1 or 1 - size % 2), half }
  end
  return margins
end

-- A number of filters that 8 divides, not more than a tenth below what was asked for.
function application.divisible(filters)
  local rounded = math.max(8, math.floor((filters + 4) / 8) * 8)
  return rounded < 0.9 * filters and rounded + 8 or rounded
end

return application
