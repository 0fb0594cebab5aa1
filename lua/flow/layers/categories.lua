-- categories.lua: CategoryEncoding and Discretization: whole numbers to encodings, and numbers to the bins that they fall into. Both are
-- made of ops, so that they run anywhere in a model. Names, defaults and results are Keras' (keras.src.layers.preprocessing).

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local json = require "flow.json"
local signature = require "flow.signature"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local Layer = require "flow.layers.layer"
local entries = require "flow.layers.entries"
local passes = require "flow.tensor.passes"

local raise = errors.raise

local CategoryEncoding = object.class("CategoryEncoding", Layer)
local Discretization = object.class("Discretization", Layer)

local function check_mode(title, mode, among)
  for _, name in ipairs(among) do
    if name == mode then return mode end
  end
  raise("%s: output_mode is %s, got %s", title, table.concat(among, ", "), errors.describe(mode))
end

local function refuse_sparse(title, sparse)
  if sparse then raise("%s: sparse = true is not supported: results are plain tensors", title) end
end

-- Categories {..., n} as Keras encodes them (keras.src.utils.numerical_utils.encode_categorical_inputs): {..., depth}, or for "one_hot"
-- {..., n, depth}, without an n that is 1; float32. weights: of "count", of the numbers' shape, or nil.
local function encode(numbers, mode, depth, weights)
  local rank = #numbers.shape
  if rank == 0 then numbers, rank = numbers:expand_dims(1), 1 end
  if mode == "one_hot" and rank > 1 and numbers.shape[rank] == 1 then numbers = numbers:squeeze(-1) end
  local rows = numbers:one_hot(depth)
  if mode == "one_hot" then return rows end
  if mode == "multi_hot" then return rows:max(-2) end
  if weights then rows = rows * weights:expand_dims(-1) end
  return rows:sum(-2)
end

local function options_of(content) return require("flow.layers.entries").options(content) end

---- CategoryEncoding ---------------------------------------------------------------------------------------------------------

signature.takes("num_tokens: count, output_mode: string = 'multi_hot', sparse: boolean = false, "
  .. "{ name?: string, trainable: boolean = true, dtype? }")
signature.constructor(CategoryEncoding, "flow.layers.CategoryEncoding", function(num_tokens, output_mode, sparse, options)
  refuse_sparse("CategoryEncoding", sparse)
  if output_mode == "binary" then output_mode = "multi_hot" end
  check_mode("CategoryEncoding", output_mode, { "multi_hot", "one_hot", "count" })
  local self = object.new(CategoryEncoding):_prepare("CategoryEncoding", options)
  rawset(self, "_given", { num_tokens = num_tokens, output_mode = output_mode })
  return self
end)

-- Numbers from 0 to num_tokens - 1; count_weights, of the same shape, goes with "count".
signature.takes "inputs, { count_weights?, training? }"
function CategoryEncoding:call(inputs, options)
  local given, weights = self._given, options and options.count_weights
  if weights ~= nil and given.output_mode ~= "count" then
    raise("%s: count_weights goes with output_mode \"count\", got %q", object.title(self), given.output_mode)
  end
  if not inputs.dtype:find("int") then inputs = inputs:to("int32") end
  if not tensor.is_symbolic(inputs) and inputs.size > 0 then
    local low, high = inputs:min():item(), inputs:max():item()
    if low < 0 or high >= given.num_tokens then
      raise("%s: its inputs are from 0 to num_tokens - 1 = %d, found %g to %g", object.title(self), given.num_tokens - 1, low, high)
    end
  end
  return encode(inputs, given.output_mode, given.num_tokens, weights)
end

function CategoryEncoding:get_config()
  local config = entries.base(self)
  config.num_tokens, config.output_mode = self._given.num_tokens, self._given.output_mode
  return config
end

function CategoryEncoding._from_config(class, content) return class(options_of(content)) end

---- Discretization -----------------------------------------------------------------------------------------------------------

signature.takes("bin_boundaries?: list, num_bins?: count, epsilon: number = 0.01, output_mode: string = 'int', sparse: boolean = false, "
  .. "dtype?, name?: string, { trainable: boolean = true }")
signature.constructor(Discretization, "flow.layers.Discretization", function(boundaries, num_bins, epsilon, output_mode, sparse, _, name,
    options)
  refuse_sparse("Discretization", sparse)
  check_mode("Discretization", output_mode, { "int", "one_hot", "multi_hot", "count" })
  if not boundaries and not num_bins then
    raise "Discretization: give bin_boundaries, or num_bins and adapt() it to data"
  end
  for i, boundary in ipairs(boundaries or {}) do
    if type(boundary) ~= "number" or i > 1 and boundary <= boundaries[i - 1] then
      raise("Discretization: bin_boundaries is a list of growing numbers, entry %d is %s", i, errors.describe(boundary))
    end
  end
  local self = object.new(Discretization):_prepare("Discretization", { name = name, trainable = options.trainable })
  rawset(self, "_given", { num_bins = num_bins, epsilon = epsilon, output_mode = output_mode })
  rawset(self, "_boundaries", boundaries or false)
  rawset(self, "_is_static", boundaries ~= nil and num_bins == nil)
  return self
end)

function Discretization.fields.bin_boundaries(self) return self._boundaries or nil end

-- The number of boundaries that are not above a value is its bin; that of NaN, as in Keras, is the last one.
function Discretization:call(inputs)
  local boundaries, given = self._boundaries, self._given
  if not boundaries then raise("%s has no bins yet: adapt() it to data, or give it bin_boundaries", object.title(self)) end
  local bins
  if #boundaries == 0 then
    bins = (inputs:to("float32") * 0):to("int32")
  else
    local limits = tensor.tensor(boundaries, { dtype = "float32" })
    bins = inputs:to("float32"):expand_dims(-1):lt(limits):logical_not():to("int32"):sum(-1)
  end
  if given.output_mode == "int" then return bins:to("int32") end
  return encode(bins, given.output_mode, #boundaries + 1)
end

---- what adapt() learns: keras.src.layers.preprocessing.discretization ---------------------------------------------------------

-- numpy's order: NaNs are last. table.sort() with < alone has no order for them.
local function is_before(a, b) return a < b or a == a and b ~= b end

-- numpy.interp: f at x of the line through the points (xs, fs).
local function interpolate(x, xs, fs)
  if x <= xs[1] then return fs[1] end
  for i = 2, #xs do
    if x <= xs[i] then return fs[i - 1] + (fs[i] - fs[i - 1]) * (x - xs[i - 1]) / (xs[i] - xs[i - 1]) end
  end
  return fs[#fs]
end

-- A summary is { values =, weights = }: sorted values, each for as many as its weight. Shortened to 1 / epsilon of them.
local function compress(summary, epsilon)
  local count, total, cumulative, shares = #summary.values, 0, {}, {}
  if count * epsilon < 1 then return summary end
  for i, weight in ipairs(summary.weights) do
    total = total + weight
    cumulative[i] = total
  end
  for i, sum in ipairs(cumulative) do shares[i] = sum / total end
  local short, before = { values = {}, weights = {} }, 0
  for k = 0, math.ceil(1 / epsilon) - 1 do
    local share = epsilon + k * epsilon
    local sum = interpolate(share, shares, cumulative)
    short.values[k + 1], short.weights[k + 1] = interpolate(share, shares, summary.values), sum - before
    before = sum
  end
  return short
end

-- Of a list of numbers.
local function summarize(values, epsilon)
  table.sort(values, is_before)
  local step = math.max(#values * epsilon, 1)
  local summary, first, stride = { values = {}, weights = {} }, math.floor(step - 1), math.floor(step)
  for i = first + 1, #values, stride do
    summary.values[#summary.values + 1] = values[i]
    summary.weights[#summary.values] = step
  end
  return summary
end

-- One summary of two, again of about 1 / epsilon values. A summary is { values = sorted, weights = how many numbers each stands for }.
local function merge(a, b, epsilon)
  local points, merged = {}, { values = {}, weights = {} }
  for _, summary in ipairs { a, b } do
    for i, value in ipairs(summary.values) do points[#points + 1] = { value, summary.weights[i] } end
  end
  table.sort(points, function(x, y) return is_before(x[1], y[1]) end)
  for i, point in ipairs(points) do merged.values[i], merged.weights[i] = point[1], point[2] end
  return compress(merged, epsilon)
end

-- Finds boundaries that part data (a Dataset, a tensor, a list) into num_bins bins with equally many values, within epsilon.
signature.takes "data: data, steps?: count"
function Discretization:adapt(data, steps)
  local given, summary = self._given, { values = {}, weights = {} }
  if self._is_static then raise("%s was given bin_boundaries, so it cannot adapt to data: give num_bins", object.title(self)) end
  local function add(x)
    if not native.is_tensor(x) then x = ops.operand(x, nil, "adapt") end
    if x.size > 0 then
      summary = merge(summarize(x:to("float32"):reshape({ -1 }):totable(), given.epsilon), summary, given.epsilon)
    end
  end
  if passes.is_dataset(data) then
    local done = 0
    for x in passes.adapt(self, data, steps, true) do
      if steps and done >= steps then break end
      add(x)
      done = done + 1
    end
  else
    add(data)
  end
  if #summary.values == 0 then raise("%s: adapt() found no data", object.title(self)) end
  local values, boundaries = compress(summary, 1 / given.num_bins).values, {}
  for i = 1, #values - 1 do boundaries[i] = tensor.scalar(native.dtype "float32", values[i]):item() end
  rawset(self, "_boundaries", boundaries)
end

function Discretization:get_config()
  local given, list = self._given, json.list()
  for i, boundary in ipairs(self._boundaries or {}) do list[i] = boundary end
  return { name = self.name, dtype = "float32", epsilon = given.epsilon, sparse = false,
           num_bins = given.num_bins or json.null, output_mode = given.output_mode,
           bin_boundaries = self._boundaries and list or json.null }
end

-- A config has num_bins and the boundaries that adapt() has found; the constructor takes only one of them.
function Discretization._from_config(class, content)
  local options = options_of(content)
  local boundaries = options.bin_boundaries
  if options.num_bins then options.bin_boundaries = nil end
  local self = class(options)
  rawset(self, "_boundaries", boundaries or false)
  return self
end

return { CategoryEncoding = CategoryEncoding, Discretization = Discretization }
