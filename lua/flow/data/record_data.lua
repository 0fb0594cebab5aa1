-- record_data.lua: flow.data.TFRecordDataset and flow.data.parse_example: from files of records to components.
--
--   local ds = flow.data.TFRecordDataset { "a.tfrecord", "b.tfrecord", compression_type = "GZIP", num_parallel_reads = 2 }
--   ds = ds:map(flow.data.parse_example { image = "bytes", label = "int64", xs = { "float32", { 2, 3 } } })
--   for image, label, xs in ds:iter() do ... end
--
-- Components come in the order of the names, sorted; a list says another one: parse_example { { "xs", "float32" }, { "image", "bytes" } }.

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"

local C, check, raise = native.C, native.check, errors.raise

local FEATURE = { default = true }
local DTYPES = { bytes = "uint8", string = "uint8", float32 = "float32", int64 = "int64" }
local dataset_out, function_out = native.out("flow_dataset"), native.out("flow_function")

-- Names and numbers of a table apart: options, list.
local function split(value)
  local options, list = {}, {}
  for key, entry in pairs(value) do
    if type(key) == "number" then list[key] = entry else options[key] = entry end
  end
  return options, list
end

-- A feature's dtype, shape and default: "int64", { "float32", { 2, 3 } }, { "float32", { 2 }, default = 0 }, { "int64", {-1} }.
local function feature_of(name, value)
  local dtype, shape, options = value, {}, {}
  if type(value) == "table" then
    local list
    options, list = split(value)
    dtype, shape = list[1], list[2] or {}
  end
  errors.check_options(("parse_example: feature %q"):format(name), options, FEATURE)
  if not DTYPES[dtype] then
    raise("parse_example: feature %q is \"bytes\", \"float32\" or \"int64\", or one of them with a shape; got %s", name,
      errors.describe(dtype))
  end
  if type(shape) == "number" then shape = { shape } end
  if type(shape) ~= "table" then raise("parse_example: the shape of feature %q is a list, got %s", name, errors.describe(shape)) end
  for axis = 1, errors.check_list(("parse_example: the shape of feature %q"):format(name), shape) do
    if type(shape[axis]) ~= "number" or shape[axis] < -1 or shape[axis] > 2 ^ 53 or shape[axis] ~= math.floor(shape[axis]) then
      raise("parse_example: size %d of feature %q is %s, expected a whole number, or -1 for a list of any length", axis, name,
        errors.describe(shape[axis]))
    end
  end
  return DTYPES[dtype], shape, options.default
end

-- Adds a feature to the function that parses; the library refuses a name that comes twice.
local function add(handle, name, value)
  if type(name) ~= "string" then raise("parse_example: the name of a feature is a string, got %s", errors.describe(name)) end
  local dtype, shape, default = feature_of(name, value)
  local initial
  if default ~= nil then
    initial = native.array("double", 1)
    if type(default) ~= "number" and not native.is_int64(default) or default > 2 ^ 53 or default < -2 ^ 53 then
      raise("parse_example: the default of feature %q is %s, expected a number up to 2^53", name, errors.describe(default))
    end
    initial[0] = tonumber(default)
  end
  local dims, rank = native.dims(shape)
  check(C.flow_function_parse_example_add(handle, name, native.dtype(dtype), rank, dims, initial))
end

local record_data = signature.module "flow.data"

-- What ds:map takes: see above.
function record_data.parse_example(features)
  if type(features) ~= "table" then raise("parse_example takes a table of features, got %s", errors.describe(features)) end
  local named, list = split(features)
  local names = require("flow.names").sorted(named)
  check(C.flow_function_parse_example(function_out))
  local handle = native.own(function_out, C.flow_function_release)
  for _, entry in ipairs(list) do
    if type(entry) ~= "table" then raise("parse_example: an entry of a list is { name, dtype, shape }, got %s", errors.describe(entry)) end
    add(handle, entry[1], { entry[2], entry[3], default = entry.default })
  end
  for _, name in ipairs(names) do add(handle, name, named[name]) end
  if #list + #names == 0 then raise("parse_example: no feature is asked for") end
  return require "flow.data".element_function(handle)
end

-- TFRecordDataset(path), TFRecordDataset({ paths }, options) or TFRecordDataset { path, path, compression_type = "GZIP" }.
signature.takes "filenames, { compression_type = '', num_parallel_reads: whole = 0 }"
function record_data.TFRecordDataset(files, named)
  local given, list = type(files) == "table" and files or { files }, {}
  local count = errors.check_list("TFRecordDataset", given)
  local paths = native.array("const char *", math.max(count, 1))
  for i = 1, count do
    list[i] = require("flow.io").path(given[i], "TFRecordDataset: file " .. i)
    paths[i - 1] = list[i]
  end
  local compression, parallel = named.compression_type, named.num_parallel_reads
  if type(compression) ~= "string" or type(parallel) ~= "number" then
    raise("TFRecordDataset: compression_type is a string and num_parallel_reads a number, got %s and %s", errors.describe(compression),
      errors.describe(parallel))
  end
  native.keep(list)
  check(C.flow_dataset_records(paths, #list, compression, parallel, dataset_out))
  return require "flow.data".wrap(native.own(dataset_out, C.flow_dataset_release))
end

return record_data
