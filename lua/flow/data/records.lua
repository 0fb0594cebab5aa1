-- records.lua: flow.data.TFRecordWriter: records, or tf.train.Examples out of Lua values, into a file that TensorFlow reads.
--
--   local writer = flow.data.TFRecordWriter("train.tfrecord", { compression_type = "GZIP" })
--   writer:write("any bytes")
--   writer:write_example { image = "bytes", label = 7, xs = { 1.5, 2 }, t = flow.zeros { 3 } }
--   writer:close()                                   the file appears here, whole
--
-- Strings make bytes; whole numbers, and tensors of integers and booleans, make int64; other numbers and tensors make float32.
-- Where that is not what is meant (floats that happen to be whole), a second table says it: writer:write_example({ xs = { 1, 2 } },
-- { xs = "float32" }).

local native = require "flow.ffi"
local errors = require "flow.errors"
local signature = require "flow.signature"
local object = require "flow.object"

local C, check, raise = native.C, native.check, errors.raise

local records = signature.module "flow.data"

local KINDS = { bytes = true, float32 = true, int64 = true }
local writer_out, example_out = native.out("flow_record_writer"), native.out("flow_example")

-- Whether a value is a number of a feature: a number, a boolean or a 64-bit integer.
local function is_number(value)
  return type(value) == "number" or type(value) == "boolean" or native.is_int64(value)
end

-- Whether int64 holds such a number as it is.
local function is_whole(value)
  return type(value) ~= "number" or (value == math.floor(value) and math.abs(value) <= 2 ^ 53)
end

-- "bytes", "float32" or "int64": what the values of a list are.
local function kind_of(name, values)
  local kind
  for i, value in ipairs(values) do
    local found
    if type(value) == "string" then found = "bytes"
    elseif is_number(value) then found = is_whole(value) and "int64" or "float32"
    else raise("write_example: feature %q holds %s; it takes strings, numbers and tensors", name, errors.describe(value)) end
    if kind and kind ~= found and (kind == "bytes" or found == "bytes") then
      raise("write_example: feature %q mixes strings and numbers (value %d is %s)", name, i, errors.describe(value))
    end
    kind = (kind == "float32" or found == "float32") and "float32" or found
  end
  return kind or "int64"
end

-- The number of an entry, for a feature of this kind; raises for any other value.
local function check_number(name, value, kind)
  if not is_number(value) then raise("write_example: feature %q is %s, it holds %s", name, kind, errors.describe(value)) end
  if kind == "int64" and not is_whole(value) then
    raise("write_example: feature %q is int64, it holds %s", name, errors.describe(value))
  end
  return type(value) == "boolean" and (value and 1 or 0) or value
end

-- Adds a feature of a list of texts or numbers, which is copied.
local function add_list(example, name, values, kind)
  if kind == "bytes" then
    for _, value in ipairs(values) do
      if type(value) ~= "string" then raise("write_example: feature %q is bytes, it holds %s", name, errors.describe(value)) end
      check(C.flow_example_add_bytes(example, name, value, #value))
    end
    return
  end
  local numbers = native.array(kind == "int64" and "int64_t" or "float", math.max(#values, 1))
  for i, value in ipairs(values) do
    value = check_number(name, value, kind)
    numbers[i - 1] = kind == "float32" and tonumber(value) or value
  end
  local add = kind == "int64" and C.flow_example_add_integers or C.flow_example_add_floats
  check(add(example, name, numbers, #values))
end

-- Adds a feature of a tensor's elements, row by row; kind: "bytes" of a uint8 tensor, "int64", "float32", or nil for what its dtype says.
local function add_tensor(example, name, tensor, kind)
  kind = kind or (tensor.dtype:find("float") and "float32" or "int64")
  if kind == "bytes" then
    if tensor.dtype ~= "uint8" then raise("write_example: feature %q is bytes: give a string or a uint8 tensor", name) end
    tensor = tensor:to("cpu"):clone()
    return check(C.flow_example_add_bytes(example, name, C.flow_tensor_data(native.pointer(tensor)), tensor.size))
  end
  tensor = tensor:to("cpu"):to(kind):clone()
  local add = kind == "int64" and C.flow_example_add_integers or C.flow_example_add_floats
  check(add(example, name, native.data(tensor), tensor.size))
end

-- An Example under construction out of { name = value or list or tensor }.
local function make_example(features, kinds)
  if type(features) ~= "table" then raise("write_example takes a table of features, got %s", errors.describe(features)) end
  if kinds ~= nil and type(kinds) ~= "table" then raise("write_example: kinds are a table of names, got %s", errors.describe(kinds)) end
  for name, kind in pairs(kinds or {}) do
    if not KINDS[kind] then
      raise("write_example: the kind of %q is \"bytes\", \"float32\" or \"int64\", got %s", tostring(name), errors.describe(kind))
    end
  end
  check(C.flow_example_new(example_out))
  local example = native.own(example_out, C.flow_example_release)
  for name, value in pairs(features) do
    if type(name) ~= "string" or name:find("\0", 1, true) then
      raise("write_example: the name of a feature is a string without NUL, got %s", errors.describe(name))
    end
    local kind = kinds and kinds[name]
    if native.is_tensor(value) then
      add_tensor(example, name, value, kind)
    else
      local values = type(value) == "table" and value or { value }
      errors.check_list(("write_example: feature %q"):format(name), values)
      if signature.is_named(values) then
        raise("write_example: feature %q is a table with names, expected a string, a number, a tensor or a list", name)
      end
      kind = kind or kind_of(name, values)
      if kind == "bytes" and #values == 0 then raise("write_example: feature %q is an empty list of bytes", name) end
      add_list(example, name, values, kind)
    end
  end
  return example
end

-- The bytes of a tf.train.Example: what write_example writes as one record.
function records.serialize_example(features, kinds)
  local example = make_example(features, kinds)
  local size = C.flow_example_serialize(example, nil, 0)
  if size < 0 then raise("%s", native.string(C.flow_last_error())) end
  local bytes = native.array("char", math.max(size, 1))
  C.flow_example_serialize(example, bytes, size)
  native.close(example, C.flow_example_release)
  return native.string(bytes, size)
end

local Writer = object.class("TFRecordWriter")

-- Appends a record.
function Writer:write(bytes)
  if type(bytes) ~= "string" then raise("TFRecordWriter: a record is a string of bytes, got %s", errors.describe(bytes)) end
  check(C.flow_record_writer_write(self._handle, bytes, #bytes))
end

-- Appends a record that is a tf.train.Example; see the head of the file.
function Writer:write_example(features, kinds)
  local example = make_example(features, kinds)
  check(C.flow_record_writer_write_example(self._handle, example))
  native.close(example, C.flow_example_release)
end

-- Ends the file, which appears at its path here; a second call does nothing. A writer that is collected without this leaves no file.
function Writer:close()
  if self._closed then return end
  self._closed = true
  check(C.flow_record_writer_close(self._handle))
end

-- TFRecordWriter(path [, { compression_type = "" | "GZIP" | "ZLIB" }])
signature.takes "path, { compression_type: string = '' }"
function records.TFRecordWriter(path, options)
  path = require("flow.io").path(path, "TFRecordWriter")
  local compression = options.compression_type
  check(C.flow_record_writer_new(path, compression, writer_out))
  local writer = object.new(Writer)
  rawset(writer, "_handle", native.own(writer_out, C.flow_record_writer_release))
  rawset(writer, "_closed", false)
  return writer
end

return records
