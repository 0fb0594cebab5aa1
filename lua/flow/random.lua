-- random.lua: random tensors. They are counter-based: a seed and an element's index make a number, so equal seeds give
-- equal tensors on every machine. Without { seed = n } each call draws a fresh seed from the global one, and in a traced
-- function every run draws anew.

local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local devices = require "flow.devices"
local ops = require "flow.ops"

local C, raise = native.C, errors.raise
local context = native.context
local random = {}

local out = native.out("flow_tensor")

local function check_seed(what, seed)
  if type(seed) ~= "number" or seed ~= math.floor(seed) or seed < 0 or seed >= 2 ^ 53 then
    raise("%s: a seed is a whole number from 0, got %s", what, errors.describe(seed))
  end
  return seed
end

-- flow.set_random_seed(n): makes all that follows reproducible.
function random.set_seed(seed)
  C.flow_context_seed(context, check_seed("flow.set_random_seed", seed))
  random.global_seed = seed
end
random.check_seed = check_seed
random.global_seed = false    -- of set_seed, if it was called: shuffled datasets mix it with their own

-- Where the drawing of seeds stands: for checkpoints, flow.train.Checkpoint { random = flow.random }.
function random.get_state()
  return { context = native.text(C.flow_context_save, context), global_seed = random.global_seed or nil }
end
function random.set_state(_, state)
  native.check(C.flow_context_restore(context, state.context))
  random.global_seed = state.global_seed or false
end

-- A seed of the caller's, or a fresh one.
function random.seed_of(what, options)
  if options.seed ~= nil then return check_seed(what, options.seed) end
  return C.flow_context_next_seed(context)
end

local function draw(what, op, shape, dtype, low, high, options)
  native.pressure()
  local seed = random.seed_of(what, options)
  local attributes = native.attributes()
  local r = attributes.random
  r.rank, r.dtype = #shape, native.dtype(dtype)
  if #shape > C.FLOW_MAX_RANK then raise("%s: a tensor has at most %d dimensions, got %d", what, C.FLOW_MAX_RANK, #shape) end
  for i = 1, #shape do r.dims[i - 1] = shape[i] end
  r.low, r.high, r.seed = low, high, seed
  r.keyed_by_step = options.seed == nil and C.flow_trace_depth(context) > 0 and 1 or 0
  devices.within(tensor.device_number(options.device), native.try, C.flow_apply, context, C.flow_op_find(op), nil, 0, attributes, out)
  return native.tensor(out[0])
end

local function number(what, name, value, default)
  if value == nil then return default end
  if type(value) ~= "number" then raise("%s: %s is a number, got %s", what, name, errors.describe(value)) end
  return value
end

local NORMAL = { seed = true, dtype = true, device = true, mean = true, stddev = true }

local function normal(name, op)
  local what = "flow.random." .. name
  return function(...)
    local shape, options = tensor.shape_and_options(what, NORMAL, ...)
    return draw(what, op, shape, options.dtype or "float32", number(what, "mean", options.mean, 0),
      number(what, "stddev", options.stddev, 1), options)
  end
end

-- normal({2, 2} [, { mean = 0, stddev = 1, seed =, dtype = }]); truncated_normal redraws beyond two standard deviations.
random.normal = normal("normal", "random_normal")
random.truncated_normal = normal("truncated_normal", "random_truncated_normal")

local UNIFORM = { seed = true, dtype = true, device = true, minval = true, maxval = true }

-- uniform({2, 2} [, { minval = 0, maxval = 1, seed =, dtype = }]): minval <= x < maxval.
function random.uniform(...)
  local what = "flow.random.uniform"
  local shape, options = tensor.shape_and_options(what, UNIFORM, ...)
  local low, high = number(what, "minval", options.minval, 0), number(what, "maxval", options.maxval, 1)
  if low > high then raise("%s: minval %g is larger than maxval %g", what, low, high) end
  return draw(what, "random_uniform", shape, options.dtype or "float32", low, high, options)
end

-- randint({2, 2}, minval, maxval [, options]): whole numbers, minval <= x < maxval.
function random.randint(shape, minval, maxval, options)
  local what = "flow.random.randint"
  if type(minval) == "table" then
    options = minval
    minval, maxval = options.minval, options.maxval
  end
  options = errors.check_options(what, options, UNIFORM)
  local dims = tensor.shape_and_options(what, {}, shape)
  local low, high = number(what, "minval", minval, 0), number(what, "maxval", maxval)
  if not high or low >= high then raise("%s: needs minval < maxval, got %s and %s", what, tostring(minval), tostring(maxval)) end
  return draw(what, "random_uniform", dims, options.dtype or "int32", low, high, options)
end

-- permutation(n [, { seed = }]): the positions 1 .. n in random order, int64.
function random.permutation(n, options)
  local what = "flow.random.permutation"
  if type(n) == "table" then n = n[1] end
  options = errors.check_options(what, options, { seed = true })
  if type(n) ~= "number" or n < 0 or n ~= math.floor(n) then raise("%s: n is a whole number from 0, got %s", what, errors.describe(n)) end
  local order = tensor.arange(1, n + 1, { dtype = "int64", device = "cpu" })
  native.check(C.flow_tensor_shuffle(order.p, random.seed_of(what, options)))
  return tensor.to_device(order, devices.current())
end

-- shuffle(x [, { seed = }]): a copy of x with its rows in random order.
function random.shuffle(x, options)
  local what = "flow.random.shuffle"
  options = errors.check_options(what, options, { seed = true })
  x = ops.operand(x, nil, what)
  local home = C.flow_tensor_device(native.pointer(x))
  x = tensor.on_host(x):contiguous()
  local p = tensor.need_value(x, what)
  local rows = #x
  local order = tensor.arange(0, rows, { dtype = "int64", device = "cpu" })
  native.check(C.flow_tensor_shuffle(order.p, random.seed_of(what, options)))
  local result = tensor.new(C.flow_tensor_dtype(p), tensor.raw_shape(x))
  native.check(C.flow_tensor_gather_rows(p, order.p, 0, rows, result.p))
  return tensor.to_device(result, home)
end

return random
