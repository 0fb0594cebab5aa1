-- init.lua: flow.layers: a constructor for every layer record of the library, Input, and the base class Layer.
--
-- The room: layers and the symbolic tensors they are called on. May use: tensor.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local arguments = require "flow.arguments"
local signature = require "flow.signature"
local symbolic = require "flow.layers.symbolic"
local tensor = require "flow.tensor"
local Layer = require "flow.layers.layer"
local several = require "flow.layers.several"
local lora = require "flow.layers.kernels.lora"
local legacy_options = require "flow.layers.legacy_options"

local C, raise = native.C, errors.raise

symbolic.install_operators(require "flow.tensor.ops")

-- Layers that are written in Lua, by the modules that have them: loaded when they are first named.
local MODULES = {
  lookup = "StringLookup IntegerLookup", text_vectorization = "TextVectorization", categories = "CategoryEncoding Discretization",
  hashing = "Hashing HashedCrossing", ["recurrent.bidirectional"] = "Bidirectional",
  ["recurrent.time_distributed"] = "TimeDistributed", ["recurrent.rnn"] = "RNN StackedRNNCells",
  adaptive_pooling = "AdaptiveAveragePooling1D AdaptiveAveragePooling2D AdaptiveAveragePooling3D AdaptiveMaxPooling1D "
    .. "AdaptiveMaxPooling2D AdaptiveMaxPooling3D",
  lambda = "Lambda", ["classes.wrapper"] = "Wrapper", ["images.pipeline"] = "Pipeline", spectral_normalization = "SpectralNormalization",
  spectrograms = "MelSpectrogram STFTSpectrogram",
  ["images.random_colors"] = "RandomBrightness RandomColorDegeneration RandomColorJitter RandomGaussianBlur RandomGrayscale RandomHue "
    .. "RandomInvert RandomPosterization RandomSaturation RandomSharpness Solarization AutoContrast",
  ["images.random_places"] = "RandomTranslation RandomShear RandomPerspective RandomElasticTransform RandomErasing RandomCrop",
  ["images.histograms"] = "Equalization ContrastLimitedAdaptiveHistogramEqualization",
  ["images.mixing"] = "MixUp CutMix RandAugment AugMix MaxNumBoundingBoxes",
}
local IN_LUA = {}
for module, names in pairs(MODULES) do
  for name in names:gmatch "%S+" do IN_LUA[name] = "flow.layers." .. module end
end

-- Functions beside the classes of layers that merge.
local MERGING = { add = true, average = true, concatenate = true, dot = true, maximum = true, minimum = true, multiply = true,
  subtract = true }

-- Names that are not layers, by the modules that have them.
local BESIDE = { InputSpec = "flow.layers.classes.input_spec" }

local define      -- the class of a record

-- A class that is written in Lua, whose layers take input_shape as those of records do: what a Sequential begins with.
local function with_input_shape(class)
  local metatable = getmetatable(class)
  local made = metatable.__call
  function metatable.__call(self, ...)
    local last = select(-1, nil, ...)
    if type(last) ~= "table" or getmetatable(last) or last.input_shape == nil then return made(self, ...) end
    local given, count, rest = { ... }, select("#", ...), {}
    for key, value in pairs(last) do rest[key] = value end
    given[count], rest.input_shape = rest, nil
    local layer = made(self, unpack(given, 1, count))
    rawset(layer, "input_shape_given", last.input_shape)
    return layer
  end
  return class
end

-- Classes are made when they are first named: most programs name few. The name may be another one of Keras' for a record: MaxPool2D.
local layers = signature.module("flow.layers", { Layer = Layer }, function(module, name)
  if IN_LUA[name] then
    rawset(module, name, with_input_shape(require(IN_LUA[name])[name]))
    return rawget(module, name)
  end
  if BESIDE[name] then
    rawset(module, name, require(BESIDE[name])[name])
    return rawget(module, name)
  end
  if MERGING[name] then
    require "flow.layers.merging"
    return rawget(module, name)
  end
  local index = type(name) == "string" and C.flow_layer_class_find(name) or -1
  if index < 0 then return nil end
  local own = native.string(C.flow_layer_class_name(index))
  return rawget(module, own) or define(own, index)
end)

-- Parameters whose values are axes: Lua counts them from 1, the records from 0.
local AXIS = { axis = true, axes = true, attention_axes = true }

-- Raises if a layer is made of what it should be called on: layers.Flatten(x).
local function refuse_inputs(name, first)
  local entry = first
  if type(first) == "table" and not getmetatable(first) then entry = first[1] end
  if native.is_tensor(entry) or symbolic.is(entry) then
    errors.raise("layers.%s makes a layer, which is then called: write layers.%s()(x), with the layer's options in the first parentheses; "
      .. "got %s", name, name, errors.describe(first))
  end
end

-- The projections inside of attentions, which Keras keeps in fields with an underscore, too.
local function add_projections(class)
  for _, name in ipairs { "query_dense", "key_dense", "value_dense", "output_dense" } do
    local function find(self) return require "flow.layers.kernels.projections" (self, name) end
    class.fields[name], class.fields["_" .. name] = find, find
  end
  function class:_collect(list, seen)
    local from = #list
    return lora.arrange(self, Layer._collect(self, list, seen), from)
  end
  function class:_collect_trainable(list, seen, asks_inside)
    local from = #list
    return lora.arrange(self, Layer._collect_trainable(self, list, seen, asks_inside), from)
  end
end

local function add_hook_and_projections(class)
  require("flow.layers.classes.attention_hook").install(class)
  add_projections(class)
end

-- What classes have beside their records, by their names: functions of the class.
local MORE = {
  Normalization = function(class) require "flow.layers.normalization" (class) end,
  MultiHeadAttention = add_hook_and_projections, CachedMultiHeadAttention = add_hook_and_projections,
  GroupQueryAttention = add_projections,
}
for _, name in ipairs { "Conv1D", "Conv2D", "Conv3D" } do
  MORE[name] = function(class) require("flow.layers.classes.convolution_hook").install(class) end
end
for _, name in ipairs { "SimpleRNN", "LSTM", "GRU", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D" } do      -- see recurrent/states.lua
  MORE[name] = function(class)
    require "flow.layers.recurrent.reset" (class)
    require "flow.layers.recurrent.cell_of" (class)
  end
end
local HAS_BOXES = {}      -- that take bounding_box_format
for _, name in ipairs { "RandomFlip", "RandomRotation", "RandomZoom", "RandomContrast", "CenterCrop", "Resizing" } do
  HAS_BOXES[name] = true
  MORE[name] = function(class) require "flow.layers.images.of_records" (class) end
end
-- The sizes of the states of cells, and of what they give.
for name, states in pairs { SimpleRNNCell = 1, LSTMCell = 2, GRUCell = 1 } do
  MORE[name] = function(class)
    local fields = class.fields
    function fields.output_size(self) return self:get_config().units end
    function fields.state_size(self) return states == 1 and self.output_size or { self.output_size, self.output_size } end
    signature.takes "batch_size: count"
    class.get_initial_state = function(self, batch_size)
      local list = {}
      for i = 1, states do list[i] = tensor.zeros { batch_size, self.output_size } end
      return list
    end
  end
end

-- Makes the class of a built-in layer, when it is first named, from the library's record: its arguments, their types and defaults. index:
-- of the record. What Lua adds to a class (MORE, lora.lua) is added here.
function define(name, index)
  local class = object.class(name, Layer)
  local parameters = {}
  for i = 0, C.flow_layer_class_argument_count(index) - 1 do
    parameters[i + 1] = native.string(C.flow_layer_class_argument(index, i))
  end
  local records = #parameters
  if HAS_BOXES[name] then parameters[records + 1] = "bounding_box_format" end
  parameters.first_is_single = arguments.is_single(C.flow_layer_class_argument_type(index, 0))
  local positional, trains_alone = C.flow_layer_class_positional(index), C.flow_layer_class_trains_alone(index) ~= 0
  function class.fields._trains_alone() return trains_alone end
  local named_inputs = several.record(index)
  if named_inputs then function class.fields._named_inputs() return named_inputs end end
  signature.of_record(class, "flow.layers." .. name, parameters, positional, function(...)
    refuse_inputs(name, (...))
    local named = legacy_options(name, parameters, arguments.named(name, parameters, positional, ...))
    local axes = named.axis
    for parameter in pairs(AXIS) do
      if named[parameter] ~= nil then named[parameter] = arguments.zero_based(name, parameter, named[parameter]) end
    end
    local change, format = lora.take(name, named), named.bounding_box_format
    named.bounding_box_format = nil
    local layer = Layer.from_record(class, named)
    if format ~= nil then require("flow.layers.images.boxes").give(layer, format) end
    if change then rawset(layer, "_lora_wanted", change) end
    if axes == false then axes = {} end                   -- None: no axes
    rawset(layer, "_axes", axes or false)                 -- as they were given
    return layer
  end, function(i) return i < records and C.flow_layer_class_argument_type(index, i) or nil end,
    function(i) return i < records and C.flow_layer_class_argument_default(index, i) or nil end)
  lora.install(class, Layer)
  if MORE[name] then MORE[name](class) end
  layers[name] = class
  return class
end

-- InputLayer: where a model's data comes in. It has no variables and does nothing.
local InputLayer = object.class("InputLayer", Layer)
function InputLayer:call(x) return x end
layers.InputLayer = InputLayer

-- Keras' Input(tensor = t): t, which may not be beside a shape or dtype that it does not have.
local function given_tensor(t, shape, known)
  if not symbolic.is(t) then
    raise("Input: tensor is a symbolic tensor, as flow.Input or a layer gives one, got %s", errors.describe(t))
  end
  local expected = known.batch_shape or shape and { t.shape[1], unpack(shape) }
  if expected and symbolic.shape_text(expected) ~= symbolic.shape_text(t.shape) or known.dtype and known.dtype ~= t.dtype then
    raise("Input: tensor is %s of %s, which is not the shape or the dtype beside it", symbolic.shape_text(t.shape), t.dtype)
  end
  return t
end

local NIL = "entry %d is nil: -1, or false, stands for a size that is not known, None in Python; or is a name misspelt?"

-- Input {28, 28, 1} or Input({28, 28, 1}, { dtype =, name = }): a symbolic tensor to build a functional model from.
-- batch_size: of models with layers that keep a state for each row of a batch; others take any number of rows.
-- tensor: a symbolic tensor with which the model begins in the place of a new one.
signature.takes("shape?: gaps, { dtype?, name?, batch_size?: count, batch_shape?: list, sparse?: boolean, tensor?, " ..
  "optional: boolean = false } -- Input { 28, 28, 1 }")
function layers.Input(shape, known)
  if known.optional then
    raise("Input: an input that may be left out is not supported: make another model without it, of the same layers, or give zeros")
  end
  if known.sparse then raise("Input: sparse tensors are not supported: leave sparse out, and give the tensor with its zeros") end
  if known.tensor ~= nil then return given_tensor(known.tensor, shape, known) end
  local rows, whole = known.batch_size, known.batch_shape
  if whole then
    if shape ~= nil or rows then raise("Input: batch_shape is the shape with the batch size before it: give nothing else of a shape") end
    errors.check_list("Input: batch_shape", whole)
    if type(whole[1]) == "number" and whole[1] >= 1 and whole[1] % 1 == 0 then rows = whole[1]
    elseif whole[1] ~= -1 then
      raise("Input: batch_shape begins with the number of rows, or -1 for any, got %s", errors.describe(whole[1]))
    end
    shape = { unpack(whole, 2) }
  end
  if type(shape) ~= "table" or getmetatable(shape) then
    raise("Input: the shape is a list such as {28, 28, 1}, got %s", errors.describe(shape))
  end
  local sizes = {}
  for i = 1, errors.check_list("Input: the shape", shape, NIL) do sizes[i] = shape[i] == false and -1 or shape[i] end
  shape = sizes
  local layer = object.new(InputLayer):_prepare("InputLayer", { name = known.name })
  rawset(layer, "_built", true)
  rawset(layer, "_input_shape", { rows or -1, unpack(shape) })
  return symbolic.input(layer, shape, known.dtype or "float32", rows)
end

-- input_shape: what Keras 2 called the shape.
signature.takes("shape?, { input_shape?, dtype?, name?, batch_size?: count, batch_shape?: list, sparse?: boolean, input_tensor?, " ..
  "optional: boolean = false }")
signature.constructor(InputLayer, "flow.layers.InputLayer", function(shape, known)
  if shape ~= nil and known.input_shape ~= nil then raise("InputLayer: the shape is given twice, as shape and as input_shape") end
  if shape == nil then shape = known.input_shape end
  return layers.Input(shape, { dtype = known.dtype, name = known.name, batch_size = known.batch_size,
                               batch_shape = known.batch_shape, sparse = known.sparse, tensor = known.input_tensor,
                               optional = known.optional }).layer
end)

signature.names_of(layers, function()
  local names = layers._names_in_lua()
  for _, beside in ipairs { MERGING, BESIDE } do
    for name in pairs(beside) do names[#names + 1] = name end
  end
  for index = 0, C.flow_layer_class_count() - 1 do names[#names + 1] = native.string(C.flow_layer_class_name(index)) end
  table.sort(names)
  return names
end)

-- The class of a layer that is written in Lua here, or nil; whether there is a layer of that name.
function layers._in_lua(name) return IN_LUA[name] and layers[name] end
function layers._knows(name) return IN_LUA[name] ~= nil or C.flow_layer_class_find(name) >= 0 end
-- Their names, sorted.
function layers._names_in_lua()
  return require("flow.names").sorted(IN_LUA)
end

return layers
