-- input_spec.lua: what a layer says of its inputs, layer.input_spec: a flow.layers.InputSpec, or a list of one for each input, false for
-- one of which nothing is said. Every call is compared with it before anything is computed or built, as in Keras:
--
--   function Pooled:init() self.input_spec = layers.InputSpec { ndim = 3, axes = { [-1] = 8 } } end
--
-- Sizes that are not known fit. Built-in layers check their inputs themselves; of them the field says what Keras' layers say.

local errors = require "flow.errors"
local native = require "flow.ffi"
local object = require "flow.object"
local signature = require "flow.signature"
local symbolic = require "flow.layers.symbolic"
local several = require "flow.layers.several"

local raise = errors.raise

local InputSpec = object.class("InputSpec")
local input_spec = { InputSpec = InputSpec }

---- specs ---------------------------------------------------------------------------------------------------------------------

local function is_any(size) return size == -1 or size == false end

local function check_sizes(what, sizes)
  for key, size in pairs(sizes) do
    if not is_any(size) and (type(size) ~= "number" or size < 0 or size % 1 ~= 0) then
      raise("%s: entry %s is %s, expected a size, or -1 for any", what, tostring(key), errors.describe(size))
    end
  end
end

-- The axes of a spec with `most` axes at most, if that is not nil.
local function check_axes(axes, most)
  for axis in pairs(axes) do
    if type(axis) ~= "number" or axis % 1 ~= 0 or axis == 0 then
      raise("InputSpec: axes has sizes by axes, from 1 or from -1 for the last one, got %s", errors.describe(axis))
    elseif most and math.abs(axis) > most then
      raise("InputSpec: axes names axis %d of inputs with %d axes at most", axis, most)
    end
  end
  check_sizes("InputSpec: axes", axes)
end

-- axes: sizes by the number of their axis. allow_last_axis_squeeze: a last axis of one entry may be there or not.
signature.takes("dtype?: string, shape?: list, ndim?: whole, max_ndim?: whole, min_ndim?: whole, axes?: table, " ..
  "allow_last_axis_squeeze: boolean = false, name?: string, optional: boolean = false")
signature.constructor(InputSpec, "flow.layers.InputSpec", function(dtype, shape, ndim, max_ndim, min_ndim, axes, squeeze, name, optional)
  if dtype and dtype ~= "string" then native.dtype(dtype) end
  if shape then
    errors.check_holes("InputSpec: shape", shape)
    check_sizes("InputSpec: shape", shape)
    if ndim and ndim ~= #shape then raise("InputSpec: shape has %d axes, ndim says %d", #shape, ndim) end
    ndim = #shape
  end
  check_axes(axes or {}, ndim or max_ndim)
  return object.new(InputSpec, { dtype = dtype, shape = shape, ndim = ndim, max_ndim = max_ndim, min_ndim = min_ndim, axes = axes or {},
                                 allow_last_axis_squeeze = squeeze, name = name, optional = optional })
end)

function InputSpec:get_config()
  return { dtype = self.dtype, shape = self.shape, ndim = self.ndim, max_ndim = self.max_ndim, min_ndim = self.min_ndim,
           axes = next(self.axes) and self.axes or nil, optional = self.optional or nil }
end
object.static(InputSpec, "from_config", function(class, config)
  object.check_config("InputSpec", config)
  return class(config)
end)
for field in ("dtype shape ndim max_ndim min_ndim name"):gmatch "%S+" do
  InputSpec.fields[field] = function() return nil end      -- where it is not given
end

---- checks --------------------------------------------------------------------------------------------------------------------

local function text_of(shape)
  local parts = {}
  for i, size in ipairs(shape) do parts[i] = is_any(size) and "None" or tostring(size) end
  return "{" .. table.concat(parts, ", ") .. "}"
end

-- What of one input does not fit its spec, and what was found; nil: it fits. dtype: in which the layer gets it.
local function problem_of(spec, shape, dtype)
  local rank = #shape
  if spec.ndim and not spec.allow_last_axis_squeeze and rank ~= spec.ndim then return "ndim = " .. spec.ndim, "ndim = " .. rank end
  if spec.max_ndim and rank > spec.max_ndim then return "ndim of at most " .. spec.max_ndim, "ndim = " .. rank end
  if spec.min_ndim and rank < spec.min_ndim then return "ndim of at least " .. spec.min_ndim, "ndim = " .. rank end
  if spec.dtype and dtype ~= spec.dtype then return "dtype " .. spec.dtype, dtype end
  for axis, size in pairs(spec.axes) do
    local found = shape[axis > 0 and axis or rank + 1 + axis]
    if not is_any(size) and found ~= size and not (found and is_any(found)) then
      return ("a size of %d on axis %d"):format(size, axis), found and tostring(found) or "no such axis"
    end
  end
  if not spec.shape then return nil end
  local wanted, given = #spec.shape, rank
  if spec.allow_last_axis_squeeze then
    if shape[rank] == 1 then given = given - 1 end
    if spec.shape[wanted] == 1 then wanted = wanted - 1 end
  end
  for axis = 1, math.min(wanted, given) do      -- as in Keras, which compares no more
    if not is_any(spec.shape[axis]) and not is_any(shape[axis]) and spec.shape[axis] ~= shape[axis] then
      return "shape " .. text_of(spec.shape), "shape " .. text_of(shape)
    end
  end
end

-- What a layer is called on as a list, in the order of its specs: by their names if all have one and the inputs come by name.
local function listed(layer, specs, inputs)
  if type(inputs) ~= "table" or getmetatable(inputs) then return { inputs } end
  if inputs[1] ~= nil or next(inputs) == nil then return inputs end
  local list = {}
  for i, spec in ipairs(specs) do
    local name = spec and spec.name
    if not name then
      for k, key in ipairs(require("flow.names").sorted(inputs)) do list[k] = inputs[key] end
      return list
    end
    if inputs[name] == nil and not spec.optional then
      raise("%s: its input_spec names an input %q, which is not given", object.title(layer), name)
    end
    list[i] = inputs[name] or false
  end
  return list
end

local FLOATS = { float32 = true, float16 = true, bfloat16 = true }

-- Raises unless what the layer is called on, one tensor or a table of several, fits its input_spec.
function input_spec.check(layer, inputs)
  local specs = rawget(layer, "_input_spec")
  local list = listed(layer, specs, inputs)
  local count = 0
  for i = 1, #list do count = list[i] ~= nil and i or count end
  if count ~= #specs then raise("%s: its input_spec is of %d inputs, it is called on %d", object.title(layer), #specs, count) end
  for i, spec in ipairs(specs) do
    local x = list[i]
    if spec and not (spec.optional and not x) then
      local shape, dtype = symbolic.is(x) and x.shape or symbolic.dims(x), x.dtype
      if FLOATS[dtype] and layer._autocasts then dtype = layer.compute_dtype end
      local wanted, found = problem_of(spec, shape, dtype)
      if wanted then
        raise("%s: input %d does not fit its input_spec: expected %s, found %s; the shape of the input is %s", object.title(layer), i,
          wanted, found, text_of(shape))
      end
    end
  end
end

-- The same of a call on several tensors: of its first argument.
function input_spec.check_call(layer, call) input_spec.check(layer, several.first(layer, call)) end

---- the field -----------------------------------------------------------------------------------------------------------------

-- What Keras' built-in layers say: axes of inputs that are pictures or sequences, by the number in the class's name; others.
local EXACT = { "^Average", "^Max", "^Global", "^Cropping", "^UpSampling", "^ZeroPadding", "^SpatialDropout" }
local MIN_NDIM = { Dense = 2, Flatten = 1 }
local NDIM = { RepeatVector = 2, LSTM = 3, GRU = 3, SimpleRNN = 3 }

local function of_record(layer)
  local name = layer._record_name
  local sizes, shape = tonumber(name:match "(%d)D$" or name:match "(%d)DTranspose$"), layer._built and rawget(layer, "_input_shape")
  local axes = shape and type(shape[1]) == "number" and { [-1] = shape[#shape] } or nil
  for _, pattern in ipairs(EXACT) do
    if sizes and name:find(pattern) then return InputSpec { ndim = sizes + 2 } end
  end
  if name:find "^ConvLSTM" then return InputSpec { ndim = sizes + 3 } end
  if name == "Permute" then return InputSpec { ndim = #layer.dims + 1 } end
  if NDIM[name] then return InputSpec { ndim = NDIM[name] } end
  local least = sizes and name:find "Conv" and sizes + 2 or MIN_NDIM[name]
  return least and InputSpec { min_ndim = least, axes = name ~= "Flatten" and axes or nil } or nil
end

-- What a graph of layers says: the shapes and names of its inputs.
local function of_inputs(inputs)
  local specs = {}
  for i, input in ipairs(inputs) do
    specs[i] = InputSpec { shape = { unpack(input.shape) }, name = input.name, allow_last_axis_squeeze = true }
  end
  return specs
end

-- layer.input_spec, nil where nothing is said; and what it is set to.
function input_spec.of(layer)
  if rawget(layer, "_input_spec_given") then return layer._input_spec_given end
  if layer._handle then return of_record(layer) end
  local inputs = rawget(layer, "inputs")
  return inputs and of_inputs(inputs) or nil
end

-- A list of specs of what a script gives: one, a list, or a table by the names of inputs; nil: none.
local function specs_of(title, value)
  if value == nil or value == false then return nil end
  if object.is(value, InputSpec) then return { value } end
  if type(value) ~= "table" or getmetatable(value) then
    raise("%s: input_spec is a flow.layers.InputSpec or a list of them, got %s", title, errors.describe(value))
  end
  local specs = {}
  if value[1] ~= nil then
    for i = 1, errors.check_list(title .. ": input_spec", value) do specs[i] = value[i] end
  else
    for i, name in ipairs(require("flow.names").sorted(value)) do specs[i] = value[name] end
  end
  for i, spec in ipairs(specs) do
    if spec and not object.is(spec, InputSpec) then
      raise("%s: entry %d of input_spec is %s, expected a flow.layers.InputSpec, or false", title, i, errors.describe(spec))
    end
  end
  return #specs > 0 and specs or nil
end

function input_spec.set(layer, value)
  local specs = specs_of(object.title(layer), value)
  rawset(layer, "_input_spec_given", specs and value)
  rawset(layer, "_input_spec", specs)
end

return input_spec
