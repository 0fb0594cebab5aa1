-- feature_space.lua: flow.utils.FeatureSpace: tables of raw features by name, strings and numbers, to one vector or to a table of encoded
-- features. Names, defaults and results are Keras' (keras.src.layers.preprocessing.feature_space). It is called on values, in ds:map, and
-- gives the Inputs and symbolic tensors that models begin with.
--
--   local space = flow.utils.FeatureSpace { features = { age = "float_normalized", job = "string_categorical" }, crosses = { ... } }
--   space:adapt(ds:map(function(x, y) return x end))
--   ds = ds:map(function(x, y) return space(x), y end)

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local ops = require "flow.tensor.ops"
local strings = require "flow.tensor.strings"
local host_calls = require "flow.tensor.host_calls"
local symbolic = require "flow.layers.symbolic"
local arguments = require "flow.arguments"
local names = require "flow.names"

local C, raise = native.C, errors.raise
local takes = signature.takes
local WHAT = "FeatureSpace"

local FeatureSpace = object.class("FeatureSpace")
local Feature = object.class("Feature")
local Cross = object.class("Cross")

local function layers() return require "flow.layers" end

---- kinds of features -------------------------------------------------------------------------------------------------------

local function feature(dtype, preprocessor, output_mode)
  return object.new(Feature, { dtype = dtype, preprocessor = preprocessor, output_mode = output_mode })
end

local MODES = "output_mode: 'int'|'one_hot' = 'one_hot'"

-- A feature of your own: preprocessor: a layer, or a function. dtype: of the raw values.
takes "dtype: string, preprocessor: any, output_mode: 'int'|'one_hot'|'float'"
function FeatureSpace.feature(dtype, preprocessor, output_mode)
  if not signature.is_callable(preprocessor) then
    raise("%s.feature: preprocessor is a layer or a function, got %s", WHAT, errors.describe(preprocessor))
  end
  return feature(dtype, preprocessor, output_mode)
end

local function named(name, kind) return (name or names.auto(kind)) .. "_preprocessor" end

takes "name?: string"
function FeatureSpace.float(name)
  local made = feature("float32", false, "float")
  rawset(made, "name", name)
  return made
end

takes "scale: number = 1, offset: number = 0, name?: string"
function FeatureSpace.float_rescaled(scale, offset, name)
  return feature("float32", layers().Rescaling(scale, offset, { name = named(name, "float_rescaled") }), "float")
end

takes "name?: string"
function FeatureSpace.float_normalized(name)
  return feature("float32", layers().Normalization { axis = -1, name = named(name, "float_normalized") }, "float")
end

takes("num_bins: count, bin_boundaries?: list, " .. MODES .. ", name?: string")
function FeatureSpace.float_discretized(num_bins, boundaries, mode, name)
  return feature("float32", layers().Discretization { num_bins = num_bins, bin_boundaries = boundaries,
                                                      name = named(name, "float_discretized") }, mode)
end

takes("max_tokens?: count, num_oov_indices: whole = 1, " .. MODES .. ", name?: string")
function FeatureSpace.integer_categorical(most, oov, mode, name)
  return feature("int32", layers().IntegerLookup { max_tokens = most, num_oov_indices = oov, name = named(name, "integer_categorical") },
    mode)
end

takes("max_tokens?: count, num_oov_indices: whole = 1, " .. MODES .. ", name?: string")
function FeatureSpace.string_categorical(most, oov, mode, name)
  return feature("string", layers().StringLookup { max_tokens = most, num_oov_indices = oov, name = named(name, "string_categorical") },
    mode)
end

takes("num_bins: count, " .. MODES .. ", name?: string")
function FeatureSpace.string_hashed(num_bins, mode, name)
  return feature("string", layers().Hashing { num_bins = num_bins, name = named(name, "string_hashed") }, mode)
end

takes("num_bins: count, " .. MODES .. ", name?: string")
function FeatureSpace.integer_hashed(num_bins, mode, name)
  return feature("int32", layers().Hashing { num_bins = num_bins, name = named(name, "integer_hashed") }, mode)
end

-- The features of these names as one: their values together fall into one of crossing_dim bins.
takes("feature_names: list, crossing_dim: count, " .. MODES)
function FeatureSpace.cross(feature_names, dim, mode)
  for i = 1, errors.check_list(WHAT .. ".cross: feature_names", feature_names) do
    if type(feature_names[i]) ~= "string" then
      raise("%s.cross: entry %d of feature_names is %s, expected the name of a feature", WHAT, i, errors.describe(feature_names[i]))
    end
  end
  if #feature_names < 2 then raise("%s.cross takes at least two names of features, got %d", WHAT, #feature_names) end
  return object.new(Cross, { feature_names = feature_names, crossing_dim = dim, output_mode = mode,
                             name = table.concat(feature_names, "_X_") })
end

-- A feature as a script names it.
local function read_feature(self, name, value)
  if object.is(value, Feature) then return value end
  local given = self._given
  local with = { float_discretized = given.num_discretization_bins, integer_hashed = given.hashing_dim, string_hashed = given.hashing_dim }
  local kinds = { "float", "float_normalized", "float_rescaled", "float_discretized", "integer_categorical", "string_categorical",
                  "integer_hashed", "string_hashed" }
  for _, kind in ipairs(kinds) do
    if kind == value then
      if with[kind] then return FeatureSpace[kind](with[kind], { name = name }) end
      return FeatureSpace[kind] { name = name }
    end
  end
  raise("%s: feature %q is %s, expected one of %s, or what FeatureSpace.%s() and others return", WHAT, name, errors.describe(value),
    table.concat(kinds, ", "), kinds[1])
end

-- A Cross of a list of names, or of a Cross; raises where it names a feature that the space does not have.
local function read_cross(self, value)
  local cross = value
  if not object.is(cross, Cross) then
    if type(value) ~= "table" or #value < 2 then
      raise("%s: a cross is a list of at least two names of features, got %s", WHAT, errors.describe(value))
    end
    cross = FeatureSpace.cross(value, self._given.crossing_dim)
  end
  for _, name in ipairs(cross.feature_names) do
    if not self.features[name] then
      raise("%s: the cross %s names %q, which is not one of the features%s", WHAT, cross.name, tostring(name),
        errors.suggestion(tostring(name), self._names))
    end
  end
  return cross
end

---- making ------------------------------------------------------------------------------------------------------------------

local DEFAULTS = { output_mode = "concat", crossing_dim = 32, hashing_dim = 32, num_discretization_bins = 32 }
local KNOWN = { features = true, output_mode = true, crosses = true, crossing_dim = true, hashing_dim = true,
                num_discretization_bins = true, name = true }

local sorted = names.sorted

-- The arguments as one table with all defaults, whether they came as (features, options) or as one table with features in it.
local function read_arguments(first, options)
  local given = {}
  for name, value in pairs(DEFAULTS) do given[name] = value end
  if options == nil and type(first) == "table" and type(first.features) == "table" and not getmetatable(first.features) then
    first, options = first.features, first
  end
  for name, value in pairs(errors.check_options(WHAT, options, KNOWN)) do given[name] = value end
  given.features = first
  if type(first) ~= "table" or getmetatable(first) or not arguments.is_options(first) or next(first) == nil then
    raise("%s: features is a table such as { age = \"float\", job = \"string_categorical\" }, got %s", WHAT, errors.describe(first))
  end
  if given.output_mode ~= "concat" and given.output_mode ~= "dict" then
    raise("%s: output_mode is \"concat\" or \"dict\", got %s", WHAT, errors.describe(given.output_mode))
  end
  for name in pairs(first) do
    if type(name) ~= "string" then raise("%s: the features have names, found the key %s", WHAT, tostring(name)) end
  end
  if given.crosses ~= nil then errors.check_list(WHAT .. ": crosses", given.crosses) end
  return given
end

takes("features: any, { output_mode?, crosses?, crossing_dim?, hashing_dim?, num_discretization_bins?, name? }", true)
signature.constructor(FeatureSpace, "flow.utils.FeatureSpace", function(features, options)
  local given = read_arguments(features, options)
  local self = object.new(FeatureSpace, { _given = given, _names = sorted(given.features), features = {}, preprocessors = {},
    crossers = {}, crosses = {}, output_mode = given.output_mode, _is_adapted = false, _encoders = {}, _inputs = {}, _encoded = false,
    name = given.name or names.auto(WHAT) })
  for _, name in ipairs(self._names) do
    self.features[name] = read_feature(self, name, given.features[name])
    self.preprocessors[name] = self.features[name].preprocessor or nil
  end
  for i, value in ipairs(given.crosses or {}) do
    self.crosses[i] = read_cross(self, value)
    self.crossers[self.crosses[i].name] = layers().HashedCrossing { num_bins = self.crosses[i].crossing_dim, name = self.crosses[i].name }
  end
  return self
end)

---- adapt -------------------------------------------------------------------------------------------------------------------

-- Whether a layer learns from data, and was not given what it would learn.
local function is_adaptable(layer)
  if type(layer) ~= "table" or not object.has(layer, "adapt") or rawget(layer, "_is_static") then return false end
  if object.class_of(layer).name ~= "Normalization" then return true end
  layer:build { -1, 1 }
  return #layer.weights > 0
end

local function has_rank(value, rank)
  return #(type(value) == "string" and {} or value.shape) == rank
end

-- A value of a script with one more axis, where it has fewer than two.
local function as_column(value)
  if strings.are(value) then
    value = type(value) == "string" and strings.of({ value }, { 1 }) or strings.tensor(WHAT, value)
    return has_rank(value, 1) and value:reshape { -1, 1 } or value
  end
  value = ops.operand(value, nil, WHAT)
  if has_rank(value, 0) then value = value:expand_dims(1) end
  return has_rank(value, 1) and value:expand_dims(-1) or value
end

-- A data set of one feature, in batches with a last axis.
local function column_dataset(dataset, name)
  local one = dataset:map(function(x)
    if type(x) ~= "table" or x[name] == nil then raise("%s: elements have no feature %q", WHAT, name) end
    return x[name]
  end)
  local spec = one.element_spec[1]
  if #spec.shape == 0 then one = one:batch(32) end
  if spec.dtype == "string" or #spec.shape > 1 then return one end
  return one:map(function(x) return x:expand_dims(-1) end)
end

-- Learns what the preprocessors need: vocabularies, means, boundaries. data: a Dataset of tables of features, in batches or not, or one
-- table.
takes("dataset: any", true)
function FeatureSpace:adapt(data)
  local is_dataset = type(data) == "table" and getmetatable(data) and object.has(data, "iter")
  if not is_dataset and (type(data) ~= "table" or getmetatable(data)) then
    raise("%s: adapt() takes a Dataset of tables of features, or a table of them, got %s", WHAT, errors.describe(data))
  end
  for _, name in ipairs(self._names) do
    local layer = self.preprocessors[name]
    if is_adaptable(layer) then
      if not is_dataset and data[name] == nil then raise("%s: adapt() finds no feature %q in the data", WHAT, name) end
      layer:adapt(is_dataset and column_dataset(data, name) or as_column(data[name]))
    end
  end
  self._is_adapted = true
end

-- Raises while a feature has not learned from data; asks only until all have.
local function check_adapted(self)
  if self._is_adapted then return end
  for _, name in ipairs(self._names) do
    if is_adaptable(self.preprocessors[name]) then
      raise("%s: call adapt(data) before it is used: feature %q learns from data", WHAT, name)
    end
  end
  self._is_adapted = true
end

---- encoding ----------------------------------------------------------------------------------------------------------------

-- How many numbers a feature's preprocessor gives, for one_hot.
local function cardinality(name, layer)
  local class = type(layer) == "table" and object.class_of(layer).name
  if class == "IntegerLookup" or class == "StringLookup" then return layer:vocabulary_size() end
  if class == "CategoryEncoding" then return layer._given.num_tokens end
  if class == "Discretization" or class == "Hashing" or class == "HashedCrossing" then return layer._given.num_bins end
  raise("%s: feature %q has output_mode \"one_hot\", but how many numbers its preprocessor gives is not known: use \"int\"", WHAT, name)
end

-- A preprocessed feature as its output_mode says; what is to be joined to others has to be numbers.
local function encoded(self, name, spec, layer, value)
  if value == nil then raise("%s: the preprocessor of feature %q returned nothing, expected a tensor", WHAT, name) end
  if spec.output_mode == "one_hot" then
    if not self._encoders[name] then
      self._encoders[name] = layers().CategoryEncoding { num_tokens = cardinality(name, layer), output_mode = "multi_hot" }
    end
    return self._encoders[name](value)
  end
  if self.output_mode == "concat" and (strings.are(value) or not value.dtype:find("float")) then
    raise("%s: feature %q is not encoded, it is %s, which cannot be joined to others: use output_mode = \"dict\"", WHAT, name,
      strings.are(value) and "strings" or value.dtype)
  end
  return value
end

-- Joins lists of any length: an op takes MAX_OPERANDS of them.
local function concatenate(list)
  local most = C.FLOW_MAX_OPERANDS
  while #list > 1 do
    local shorter = {}
    for first = 1, #list, most do
      local part = { unpack(list, first, math.min(first + most - 1, #list)) }
      if #part == 1 then shorter[#shorter + 1] = part[1]
      elseif symbolic.is(part[1]) then shorter[#shorter + 1] = layers().Concatenate { axis = -1 }(part)
      else shorter[#shorter + 1] = ops.concat(part, -1) end
    end
    list = shorter
  end
  return list[1]
end

-- What preprocessors give, with crosses and encodings.
local function merge(self, values)
  local results, list = {}, {}
  for _, name in ipairs(self._names) do
    results[name] = encoded(self, name, self.features[name], self.preprocessors[name], values[name])
    list[#list + 1] = results[name]
  end
  local crosses = {}
  for _, cross in ipairs(self.crosses) do crosses[cross.name] = cross end
  for _, name in ipairs(sorted(crosses)) do
    local inputs = {}
    for i, input in ipairs(crosses[name].feature_names) do inputs[i] = values[input] end
    results[name] = encoded(self, name, crosses[name], self.crossers[name], self.crossers[name](inputs))
    list[#list + 1] = results[name]
  end
  return self.output_mode == "dict" and require "flow.classes.printed" (results) or concatenate(list)
end

-- One value of a call: a row of one value becomes {1}.
local function preprocess(self, name, value)
  local layer, wanted = self.preprocessors[name], self.features[name].dtype
  local on_host = type(layer) == "table" and layer._on_host
  if wanted == "string" and native.is_tensor(value) then raise("%s: feature %q takes strings, got numbers", WHAT, name) end
  local component, spec = host_calls.component(value)
  if component and on_host then
    local rank = #spec.shape
    return layer(rank < 2 and host_calls.column(value) or value)
  end
  if not component and strings.are(value) then
    local single = type(value) == "string"
    value = single and strings.of({ value }, { 1 }) or as_column(value)
    if layer then value = layer(value) end
    return single and native.is_tensor(value) and has_rank(value, 2) and value:squeeze(1) or value
  end
  value = ops.operand(value, nil, WHAT)
  local single = has_rank(value, 0)
  if on_host then return layer(single and value:expand_dims(1) or as_column(value)) end
  value = as_column(value)
  if wanted == "float32" and value.dtype ~= "float32" then value = value:to "float32" end
  if layer then value = layer(value) end
  return single and value:squeeze(1) or value
end

-- Raises unless the data is a table with exactly the features of the space.
local function check_features(self, data)
  if type(data) ~= "table" or getmetatable(data) then
    raise("%s is called on a table of features by name, got %s", WHAT, errors.describe(data))
  end
  for name in pairs(data) do
    if not self.features[name] then
      raise("%s: %q is not one of the features%s", WHAT, tostring(name), errors.suggestion(tostring(name), self._names))
    end
  end
  for _, name in ipairs(self._names) do
    if data[name] == nil then raise("%s: the data has no feature %q", WHAT, name) end
  end
end

-- Tables of features: lists, tensors, or components of a data set in ds:map.
function FeatureSpace:_call(data)
  check_adapted(self)
  check_features(self, data)
  local values = {}
  for _, name in ipairs(self._names) do values[name] = preprocess(self, name, data[name]) end
  return merge(self, values)
end

---- models ------------------------------------------------------------------------------------------------------------------

-- The features as Inputs, {batch, 1} each, by name.
function FeatureSpace:get_inputs()
  for _, name in ipairs(self._names) do
    self._inputs[name] = self._inputs[name] or layers().Input({ 1 }, { dtype = self.features[name].dtype, name = name })
  end
  return require "flow.classes.printed" (self._inputs)
end

-- What the preprocessors give for these Inputs, by name.
function FeatureSpace:get_preprocessed_features()
  check_adapted(self)
  local values, inputs = {}, self:get_inputs()
  for _, name in ipairs(self._names) do      -- in their order, which layers' names in files follow
    local layer = self.preprocessors[name]
    values[name] = layer and layer(inputs[name]) or inputs[name]
  end
  return values
end

-- The encoded features of these Inputs: one symbolic tensor, or a table of them.
function FeatureSpace:get_encoded_features()
  if not self._encoded then self._encoded = merge(self, self:get_preprocessed_features()) end
  return self._encoded
end

-- Passed here by the room above: files(): saving/feature_space.lua and what writes it.
local feature_space = { FeatureSpace = FeatureSpace, above = {} }

-- space:save("space.keras"): with all that adapt() has learned. flow.load_model(path) reads it, and so does Keras.
takes "filepath: path"
function FeatureSpace:save(path)
  if not path:find "%.keras$" then raise("%s: save: %q: the path must end in .keras", self.name, path) end
  check_adapted(self)
  feature_space.above.files().save_space(self, require("flow.io").path(path))
end

return feature_space
