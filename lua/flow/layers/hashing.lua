-- hashing.lua: Hashing and HashedCrossing: strings and whole numbers to bins, by the hashes that TensorFlow uses. Names, defaults and
-- results are Keras' (keras.src.layers.preprocessing.hashing and hashed_crossing).

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local signature = require "flow.signature"
local strings = require "flow.tensor.strings"
local HostLayer = require "flow.layers.host_layer"
local IndexLookup = require("flow.layers.lookup").IndexLookup

local C, check, raise = native.C, native.check, errors.raise
local lookup_out, tensor_out, function_out = native.out("flow_lookup"), native.out("flow_tensor"), native.out("flow_function")

local Hashing = object.class("Hashing", HostLayer)
local HashedCrossing = object.class("HashedCrossing", HostLayer)

local ENCODE = { int = C.FLOW_ENCODE_INT, one_hot = C.FLOW_ENCODE_ONE_HOT, multi_hot = C.FLOW_ENCODE_MULTI_HOT,
                 count = C.FLOW_ENCODE_COUNT }

-- The options of a layer's config that are given.
local function options_of(content)
  local entries = require "flow.layers.entries"
  local options = entries.options(content)
  options.dtype = entries.dtype(content)
  return options
end

-- The dtype of the result: whole numbers for "int".
local function dtype_of(title, mode, dtype)
  if mode ~= "int" then return dtype or "float32" end
  if dtype ~= nil and dtype ~= "int32" and dtype ~= "int64" then
    raise("%s: with output_mode \"int\" dtype is \"int32\" or \"int64\", got %s", title, errors.describe(dtype))
  end
  return dtype or "int64"
end

-- A category for each value, as Keras encodes it: one_hot leaves a last axis of size 1 out.
local function encoded_shape(mode, shape, depth)
  local result = { unpack(shape) }
  if mode == "int" then return result end
  if mode == "one_hot" then
    if #result > 1 and result[#result] == 1 then result[#result] = nil end
    result[1] = result[1] or 1
  else
    result[#result] = nil
  end
  result[#result + 1] = depth
  return result
end

---- Hashing ----------------------------------------------------------------------------------------------------------------

signature.takes("num_bins: count, mask_value?, salt?, output_mode: string = 'int', sparse: boolean = false, "
  .. "{ name?: string, trainable: boolean = true, dtype? }")
signature.constructor(Hashing, "flow.layers.Hashing", function(num_bins, mask_value, salt, output_mode, sparse, options)
  IndexLookup._refuse("Hashing", "sparse", sparse)
  output_mode = IndexLookup._mode("Hashing", output_mode, { "int", "one_hot", "multi_hot", "count" })
  if mask_value ~= nil and type(mask_value) ~= "string" and not (type(mask_value) == "number" and mask_value % 1 == 0) then
    raise("Hashing: mask_value is a string or a whole number, got %s", errors.describe(mask_value))
  end
  local self = object.new(Hashing):_prepare("Hashing", { name = options.name, trainable = options.trainable })
  rawset(self, "_given", { num_bins = num_bins, mask_value = mask_value, salt = IndexLookup._salt("Hashing", salt),
    output_mode = output_mode, dtype = dtype_of("Hashing", output_mode, options.dtype) })
  rawset(self, "_lookups", {})
  return self
end)

-- A lookup in an empty vocabulary, whose buckets are the bins; what is masked has bin 0.
local function lookup_of(self, is_text)
  local key, given = is_text and "text" or "numbers", self._given
  if self._lookups[key] then return self._lookups[key] end
  local options, mask, kept = native.new("flow_lookup_options"), nil, nil
  local masked = given.mask_value ~= nil and given.num_bins > 1
  options.encode, options.dtype, options.length = C.FLOW_ENCODE_INT, native.dtype "int64", -1
  options.buckets = given.num_bins - (masked and 1 or 0)
  if given.salt then
    options.hash = C.FLOW_HASH_SIP
    for i = 0, 1 do options.key[i] = native.cast("uint64_t", native.cast("int64_t", given.salt[i + 1])) end
  end
  if masked then
    options.has_mask = 1
    mask, kept = strings.view("Hashing", { is_text and given.mask_value or ("%.0f"):format(given.mask_value) })
  end
  if not masked and given.output_mode ~= "int" then
    options.encode, options.depth, options.dtype = ENCODE[given.output_mode], given.num_bins, native.dtype(given.dtype)
  elseif given.output_mode == "int" then
    options.dtype = native.dtype(given.dtype)
  end
  native.keep { kept, mask, options }
  check(C.flow_lookup_new(options, mask, nil, nil, lookup_out))
  self._lookups[key] = native.own(lookup_out, C.flow_lookup_release)
  return self._lookups[key]
end

-- Of host_layer.lua: checks what the layer is called on and returns the spec of its result.
function Hashing:_takes(specs)
  local spec, given = specs[1], self._given
  local is_text = spec.dtype == "string"
  self:_need("strings or numbers", spec.dtype ~= "bool", spec.dtype)
  if given.mask_value ~= nil and (type(given.mask_value) == "string") ~= is_text then
    raise("%s: mask_value is %s, the input holds %s", object.title(self), errors.describe(given.mask_value),
      is_text and "strings" or "numbers of " .. spec.dtype)
  end
  return { shape = encoded_shape(given.output_mode, spec.shape, given.num_bins), dtype = given.dtype }
end

-- Applies a lookup of the library to a tensor or to strings; a new tensor of the same shape.
local function look_up(handle, value)
  local view, kept = strings.view("Hashing", value)
  native.keep { kept, view }
  check(C.flow_lookup_apply(handle, view, tensor_out))
  return native.tensor(tensor_out[0])
end

-- {batch, 1} as {batch, depth}, a single number as {1, depth}.
local function one_hot(numbers, depth, dtype)
  local shape = { unpack(numbers.shape) }
  if #shape > 1 and shape[#shape] == 1 then numbers = numbers:squeeze(-1) end
  if #shape == 0 then numbers = numbers:expand_dims(1) end
  return numbers:one_hot(depth):to(dtype)
end

-- Numbers of bins encoded by ops, where the bin of the mask is counted like any other.
local function encode(self, numbers)
  local given, mode = self._given, self._given.output_mode
  if mode == "int" then return numbers end
  if mode == "one_hot" then return one_hot(numbers, given.num_bins, given.dtype) end
  if #numbers.shape == 0 then numbers = numbers:expand_dims(1) end
  local all = numbers:one_hot(given.num_bins)
  all = mode == "multi_hot" and all:max(-2) or all:sum(-2)
  return all:to(given.dtype)
end

function Hashing:_apply(values)
  local is_text, given = not native.is_tensor(values[1]), self._given
  local numbers = look_up(lookup_of(self, is_text), values[1])
  if given.mask_value ~= nil and given.num_bins > 1 then return encode(self, numbers) end
  return numbers
end

-- Of host_layer.lua, in a data set's function: a step that the library runs on its threads, or, with a mask and an encoding, one of Lua.
function Hashing:_step(components, specs, result)
  local given, is_text = self._given, specs[1].dtype == "string"
  if given.mask_value ~= nil and given.num_bins > 1 and given.output_mode ~= "int" then
    return { call = function(value) return self:_apply { value } end, component = components[1], spec = result }
  end
  native.keep(self)
  check(C.flow_function_lookup(lookup_of(self, is_text), components[1] - 1, HostLayer._form(specs[1]), function_out))
  return { handle = native.own(function_out, C.flow_function_release) }
end

function Hashing:get_config()
  local given, config = self._given, self:_base_config()
  config.dtype.config.name = given.dtype
  config.num_bins, config.mask_value, config.output_mode, config.sparse = given.num_bins, IndexLookup._or_null(given.mask_value),
    given.output_mode, false
  config.salt = IndexLookup._list_or_null(given.salt)
  return config
end

function Hashing._from_config(class, content) return class(options_of(content)) end

---- HashedCrossing ---------------------------------------------------------------------------------------------------------

function HashedCrossing.fields._several() return true end
function HashedCrossing.fields._takes_whole() return true end

signature.takes("num_bins: count, output_mode: string = 'int', sparse: boolean = false, name?: string, dtype?, "
  .. "{ trainable: boolean = true }")
signature.constructor(HashedCrossing, "flow.layers.HashedCrossing", function(num_bins, output_mode, sparse, name, dtype, options)
  IndexLookup._refuse("HashedCrossing", "sparse", sparse)
  output_mode = IndexLookup._mode("HashedCrossing", output_mode, { "int", "one_hot" })
  local self = object.new(HashedCrossing):_prepare("HashedCrossing", { name = name, trainable = options.trainable })
  rawset(self, "_given", { num_bins = num_bins, output_mode = output_mode, dtype = dtype_of("HashedCrossing", output_mode, dtype) })
  return self
end)

function HashedCrossing:_takes(specs)
  local given, first = self._given, specs[1]
  if #specs < 2 then raise("%s is called on a list of at least two tensors, got %d", object.title(self), #specs) end
  for i, spec in ipairs(specs) do
    self:_need("strings or whole numbers", spec.dtype == "string" or spec.dtype:find("int"), spec.dtype)
    local same = #spec.shape == #first.shape
    for axis = 1, #first.shape do same = same and spec.shape[axis] == first.shape[axis] end
    if not same or #spec.shape > 2 or #spec.shape == 2 and spec.shape[2] ~= 1 then
      raise("%s: its inputs have one shape, {}, {batch} or {batch, 1}; input %d has {%s}", object.title(self), i,
        table.concat(spec.shape, ", "))
    end
  end
  return { shape = encoded_shape(given.output_mode, first.shape, given.num_bins), dtype = given.dtype }
end

local function finish(self, numbers)
  local given = self._given
  return given.output_mode == "int" and numbers:to(given.dtype) or one_hot(numbers, given.num_bins, given.dtype)
end

function HashedCrossing:_apply(values)
  local views, kept = native.array("flow_strings", #values), {}
  for i, value in ipairs(values) do
    local view, own = strings.view("HashedCrossing", value)
    views[i - 1], kept[i] = view, own
  end
  native.keep { kept, views }
  check(C.flow_hash_crossing(views, #values, self._given.num_bins, tensor_out))
  return finish(self, native.tensor(tensor_out[0]))
end

function HashedCrossing:_step(components, specs)
  local given = self._given
  local numbers, forms = native.array("int", #components), native.array("int", #components)
  for i, component in ipairs(components) do numbers[i - 1], forms[i - 1] = component - 1, HostLayer._form(specs[i]) end
  check(C.flow_function_crossing(numbers, forms, #components, given.num_bins, function_out))
  return { handle = native.own(function_out, C.flow_function_release) }
end

-- In ds:map the step gives numbers; what they are encoded as is traced.
function HashedCrossing:_call(inputs, options)
  local host_calls = require "flow.tensor.host_calls"
  local given = self._given
  local is_whole = given.output_mode == "int" and given.dtype == "int64" or not host_calls.recorder()
  if is_whole then return HostLayer._call(self, inputs, options) end
  local plain = HashedCrossing { num_bins = given.num_bins }
  return finish(self, HostLayer._call(plain, inputs, options))
end

function HashedCrossing:get_config()
  local given = self._given
  return { name = self.name, dtype = given.dtype, num_bins = given.num_bins, output_mode = given.output_mode, sparse = false }
end

function HashedCrossing._from_config(class, content) return class(options_of(content)) end

return { Hashing = Hashing, HashedCrossing = HashedCrossing }
