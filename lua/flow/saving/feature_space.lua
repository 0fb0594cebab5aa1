-- feature_space.lua: flow.utils.FeatureSpace in .keras files, as Keras writes it: config.json describes features and crosses, the layers
-- that prepare them are in the lists "preprocessors" and "crossers", in the order of the features in config.json.

local errors = require "flow.errors"
local json = require "flow.json"
local entries = require "flow.layers.entries"
local Layer = require "flow.layers.layer"
local feature_space = require "flow.layers.feature_space"
local config = require "flow.saving.config"
local custom_objects = require "flow.custom_objects"

local raise, FeatureSpace = errors.raise, feature_space.FeatureSpace
local space_files = {}

feature_space.above.files = function() return require "flow.saving.keras" end      -- also of a space that a script had from a file only

local MODULE = "keras.src.layers.preprocessing.feature_space"
local IDENTITY = "TFDIdentity"      -- of a feature that is used as it is
local NUMBERS = { "crossing_dim", "hashing_dim", "num_discretization_bins" }

-- What weights.lua walks through in place of a space: its layers in lists. A layer for two features is one.
local Parts = Layer:extend "FeatureSpace"

local function parts_of(space, names)
  local parts, preprocessors, crossers = Parts { name = space.name }, {}, {}
  for _, name in ipairs(names) do preprocessors[#preprocessors + 1] = space.preprocessors[name] end
  for _, cross in ipairs(space.crosses) do crossers[#crossers + 1] = space.crossers[cross.name] end
  parts.preprocessors, parts.crossers = preprocessors, crossers
  return parts
end

---- writing -----------------------------------------------------------------------------------------------------------------------------

local function entry_of(class_name, content)
  return { module = MODULE, class_name = class_name, registered_name = class_name, config = content }
end

local COLUMN = { input_shape = json.list { json.null, 1 } }

local function identity(name)
  local entry = entry_of(IDENTITY, { name = name .. "_preprocessor", trainable = true, dtype = entries.policy "float32" })
  entry.build_config = COLUMN
  return entry
end

-- config.json of a space, and its layers as a tree that has the variables.
function space_files.describe(space)
  local given, features, crosses, built = space._given, {}, json.list(), {}
  for _, name in ipairs(space._names) do
    local feature = space.features[name]
    local layer = feature.preprocessor
    if layer and not (type(layer) == "table" and layer._built ~= nil) then
      raise("%s: feature %q is prepared by a function, which files do not hold: use a layer", space.name, name)
    end
    local entry = layer and entries.inner(layer) or identity(name)
    features[name] = entry_of("Feature", { dtype = feature.dtype, preprocessor = entry, output_mode = feature.output_mode })
    built[name] = entry.build_config or {}
  end
  for i, cross in ipairs(space.crosses) do
    crosses[i] = entry_of("Cross", { feature_names = json.list { unpack(cross.feature_names) }, crossing_dim = cross.crossing_dim,
                                     output_mode = cross.output_mode })
  end
  local content = { features = features, crosses = #crosses > 0 and crosses or json.null, output_mode = space.output_mode }
  for _, name in ipairs(NUMBERS) do content[name] = given[name] end
  return { module = "keras.utils", class_name = "FeatureSpace", registered_name = json.null, config = content,
           build_config = built }, parts_of(space, space._names)
end

---- reading -----------------------------------------------------------------------------------------------------------------------------

local function read_preprocessor(entry, reader, what)
  if type(entry) ~= "table" or entry == json.null then raise("%s: %s has no preprocessor", reader.path, what) end
  return entry.class_name ~= IDENTITY and config.read(entry, reader) or nil
end

-- The space of config.json with blank variables, and its layers. text: config.json itself, which has the order of features.
function space_files.make(entry, text, path, options)
  local reader = { path = path, custom = custom_objects.all(options.custom_objects), calls = 0 }
  local content = entries.table_field(entry, "config", path)
  local given, names = { features = {}, crosses = {}, output_mode = content.output_mode }, json.keys(text, "config", "features")
  for _, name in ipairs(names) do
    local what = ("feature %q"):format(name)
    local feature = entries.table_field(entries.table_field(content.features, name, path), "config", path .. ": " .. what)
    local layer = read_preprocessor(feature.preprocessor, reader, what)
    if layer then given.features[name] = FeatureSpace.feature(feature.dtype, layer, feature.output_mode)
    else given.features[name] = FeatureSpace.float(name) end
  end
  for i, cross in ipairs(entries.given(content.crosses) and content.crosses or {}) do
    local one = entries.table_field(cross, "config", path .. ": crosses")
    given.crosses[i] = FeatureSpace.cross({ unpack(entries.table_field(one, "feature_names", path .. ": crosses")) }, one.crossing_dim,
      one.output_mode)
  end
  for _, name in ipairs(NUMBERS) do given[name] = content[name] end
  local space = FeatureSpace(given)
  rawset(space, "_is_adapted", true)
  return space, parts_of(space, names)
end

return space_files
