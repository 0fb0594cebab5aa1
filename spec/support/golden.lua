--- Golden cases (spec/golden): the formula that stands for inputs and weights, the stored results, and the comparison.
local ffi = require "ffi"
local assert = require "luassert"
local flow = require "flow"
local native = require "flow.ffi"
local luassert = require "luassert"
local sequence = require "spec.support.sequence"
require "spec.support.precision"

ffi.cdef "int memcmp(const void *a, const void *b, size_t bytes);"

local golden = {}
local folder = debug.getinfo(1, "S").source:match("^@(.*)support/golden%.lua$") .. "golden/"
local families = {}          -- the values that were read, by family

--- golden.manifest.losses, ...: the cases of a family; golden.manifest.layers: those of all families layers/NAME, with their family.
golden.manifest = setmetatable({}, { __index = function(manifest, name)
  local cases = {}
  if name == "layers" then
    for _, file in ipairs(flow.io.gfile.listdir(folder .. "manifest/layers")) do
      local family = "layers/" .. file:match("^(.*)%.lua$")
      for _, case in ipairs(dofile(folder .. "manifest/" .. family .. ".lua")) do
        case.family = family
        cases[#cases + 1] = case
      end
    end
  else
    cases = dofile(folder .. "manifest/" .. name .. ".lua")
  end
  manifest[name] = cases
  return cases
end })

--- Fills `into` with value(u): u is the same sequence as `unit` in generate.py.
local function each_unit(into, count, seed, value) sequence(into, count, seed * 668265263, value) end

local function size_of(shape)
  local size = 1
  for _, dim in ipairs(shape) do size = size * dim end
  return size
end

--- The tensor that an entry { shape, seed, low, high }, { shape, seed, classes } or { shape, seed, one_hot } stands for.
function golden.make(entry)
  local count = size_of(entry.shape)
  local values
  if entry.one_hot then
    local rows, classes = entry.shape[1], entry.shape[2]
    local labels = native.array("int32_t", rows)
    each_unit(labels, rows, entry.seed, function(u) return math.floor(u * classes) end)
    values = native.array("float", count)
    for row = 0, rows - 1 do values[row * classes + labels[row]] = 1 end
    return flow.frombuffer(values, entry.shape, "float32")
  end
  if entry.classes then
    local classes = entry.classes
    values = native.array("int32_t", count)
    each_unit(values, count, entry.seed, function(u) return math.floor(u * classes) end)
    return flow.frombuffer(values, entry.shape, "int32")
  end
  local low, width = entry.low, entry.high - entry.low
  values = native.array("float", count)
  each_unit(values, count, entry.seed, function(u) return low + u * width end)
  return flow.frombuffer(values, entry.shape, "float32")
end

function golden.make_all(entries)
  local list = {}
  for i, entry in ipairs(entries) do list[i] = golden.make(entry) end
  return list
end

--- The stored result `where` of a family ("losses", "layers/basics", ...): its values, counted from 0, and their number.
function golden.stored(family, where)
  if not families[family] then families[family] = flow.load_npy(folder .. "values/" .. family .. ".npy") end
  return ffi.cast("const float *", families[family]:data()) + where.offset, size_of(where.shape)
end

--- Fails unless `actual` has the stored shape and every element is within tolerance * max(1, largest stored magnitude).
function golden.check(family, where, actual, tolerance)
  local what = where.name
  assert(actual ~= nil, what .. " is missing")
  luassert.are.same(where.shape, golden.dims(actual), what .. ": shape")
  local expected, size = golden.stored(family, where)
  local flat = actual:reshape({ size }):totable()
  local largest, worst, at = 1, 0, 0
  for i = 0, size - 1 do
    largest = math.max(largest, math.abs(expected[i]))
    local difference = math.abs(flat[i + 1] - expected[i])
    if not (difference <= worst) then worst, at = difference, i end          -- a NaN becomes the worst
  end
  if not (worst <= tolerance * largest) then
    error(string.format("%s: element %d of %d is %.9g, Keras has %.9g: off by %.2g, allowed %.2g", what, at + 1, size, flat[at + 1],
      expected[at], worst, tolerance * largest), 2)
  end
end

--- The shape of a tensor as a plain list.
function golden.dims(tensor)
  local dims = {}
  for i = 1, #tensor.shape do dims[i] = tensor.shape[i] end
  return dims
end

--- Whether two tensors of one shape are the same, bit for bit.
function golden.same_bits(a, b)
  assert(a.dtype == "float32" and b.dtype == "float32")
  return ffi.C.memcmp(a:data(), b:data(), 4 * size_of(golden.dims(a))) == 0
end

--- A layer for { class =, options = }, the same of each in a list, else the value.
local function with_layers(value)
  if type(value) ~= "table" then return value end
  local result = {}
  for key, entry in pairs(value.class and value.options or value) do result[key] = with_layers(entry) end
  return value.class and flow.layers[value.class](result) or result
end

--- The case's options with attention_axes and lists of axes as Lua counts them: from 1, or from the end.
function golden.options(case)
  local options = {}
  for name, value in pairs(case.options) do options[name] = with_layers(value) end
  local axes = options.attention_axes and {}
  for i, axis in ipairs(options.attention_axes or {}) do axes[i] = axis + 1 end
  options.attention_axes = axes
  if type(options.axis) == "table" then
    local list = {}
    for i, axis in ipairs(options.axis) do list[i] = axis < 0 and axis or axis + 1 end
    options.axis = list
  end
  return options
end

--- Calls a layer as a case of golden.manifest.layers says, on tensors of any kind.
function golden.call_layer(case, layer, inputs)
  if not case.call then return layer(#inputs > 1 and inputs or inputs[1]) end
  local function tensors(value)
    if type(value) == "number" then return inputs[value] end
    local list = {}
    for i, entry in ipairs(value) do list[i] = tensors(entry) end
    return list
  end
  local arguments, options = tensors(case.call.arguments), {}
  for name, value in pairs(case.call.named) do options[name] = tensors(value) end
  for name, value in pairs(case.call.options) do options[name] = value end
  arguments[#arguments + 1] = options
  local result = layer(unpack(arguments))
  return case.output and result[case.output] or result
end

--- A model of the one layer of a case of golden.manifest.layers, with the case's weights.
function golden.layer_model(case)
  local inputs = {}
  for i, entry in ipairs(case.inputs) do
    inputs[i] = flow.Input({ unpack(entry.shape, 2) }, { dtype = case.call and entry.classes and "int32" or nil })
  end
  local layer = flow.layers[case.layer](golden.options(case))
  local model = flow.Model { inputs = #inputs > 1 and inputs or inputs[1], outputs = golden.call_layer(case, layer, inputs) }
  model:set_weights(golden.make_all(case.weights))
  return model
end

return golden
