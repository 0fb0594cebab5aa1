-- random.lua: random tensors. They are counter-based: a seed and an element's index make a number, so equal seeds give
-- equal tensors on every machine. Without { seed = n } each call draws a fresh seed from the global one, and in a traced
-- function every run draws new numbers; so it does with a SeedGenerator as the seed, whose seeds follow from its own alone.

local debug = require("flow.host").debug
local native = require "flow.ffi"
local errors = require "flow.errors"
local tensor = require "flow.tensor"
local devices = require "flow.devices"
local ops = require "flow.tensor.ops"
local scopes = require "flow.scopes"
local signature = require "flow.signature"

local C, raise = native.C, errors.raise
local context = native.context
local takes = signature.takes
-- What other files have is loaded when it is asked for.
local VARIATES, DRAWS, SAMPLERS = "flow.tensor.random_variates", "flow.tensor.composed.draws", "flow.tensor.composed.candidate_samplers"
local ELSEWHERE = { categorical = VARIATES, gamma = VARIATES, beta = VARIATES, binomial = VARIATES, dropout = VARIATES,
  uniform_candidate_sampler = SAMPLERS, log_uniform_candidate_sampler = SAMPLERS, SeedGenerator = VARIATES, Generator = DRAWS,
  stateless_uniform = DRAWS, stateless_normal = DRAWS, stateless_truncated_normal = DRAWS }
local random = signature.module("flow.random", nil, function(module, name)
  if not ELSEWHERE[name] then return nil end
  require(ELSEWHERE[name])
  return rawget(module, name)
end)
local internal = signature.internal(random)

local out = native.out("flow_tensor")

local function check_seed(what, seed)
  if type(seed) ~= "number" or seed ~= math.floor(seed) or seed < 0 or seed >= 2 ^ 53 then
    local below = type(seed) == "number" and seed >= 2 ^ 53 and " and below 2^53" or ""
    raise("%s: a seed is a whole number from 0%s, got %s", what, below, errors.describe(seed))
  end
  return seed
end

-- flow.set_random_seed(n): makes all that follows reproducible.
function random.set_seed(seed)
  C.flow_context_seed(context, check_seed("flow.set_random_seed", seed))
  random.global_seed = seed
end
internal.check_seed = check_seed
random.global_seed = false    -- of set_seed, if it was called: shuffled datasets mix it with their own

-- Calls f(name, function) for each traced function that is in use, in the order in which they were made.
local function for_traced(f)
  local fn, list = debug.getregistry()._LOADED["flow.tensor.fn"], {}      -- package.loaded, also in a state without package
  for made, number in pairs(fn and fn._living or {}) do list[#list + 1] = { made, number } end
  table.sort(list, function(a, b) return a[2] < b[2] end)
  for _, entry in ipairs(list) do f(fn.name_of(entry[1]), entry[1]) end
end

-- Where the drawing of seeds is, and, of traced functions, how often each ran and where it was first traced, from which it draws: for
-- checkpoints, flow.train.Checkpoint { random = flow.random }.
function random:get_state()
  local runs, traces = {}, {}
  for_traced(function(name, made)
    if made.first_draws then runs[name], traces[name] = made.runs, made.first_draws end
  end)
  return { context = native.text(C.flow_context_save, context), global_seed = self.global_seed or nil, runs = runs, traces = traces }
end
function random:set_state(state)
  if type(state) ~= "table" or type(state.context) ~= "string" then
    raise("flow.random:set_state takes what get_state gave, got %s", errors.describe(state))
  end
  native.check(C.flow_context_restore(context, state.context))
  self.global_seed = state.global_seed or false
  if not state.runs then return end      -- of an older version
  for_traced(function(name, made)
    if state.runs[name] then made.runs, made.first_draws = state.runs[name], state.traces[name] end
  end)
end

-- Counts a generator's field up by one and returns it. What a trace takes from a generator begins, whenever it is traced, where it was at
-- the first trace of its owner, a function or a step of a model: plans that are made again are equal. generator.traced keeps where.
function internal.next_count(generator, field)
  local owner = C.flow_trace_depth(context) > 0 and scopes.own().draws_owner
  local count = generator[field]
  if owner then
    generator.traced[owner.name] = generator.traced[owner.name] or count
    count = owner.at[generator] or generator.traced[owner.name]
    owner.at[generator] = count + 1
  end
  rawset(generator, field, math.max(generator[field], count + 1))
  return count + 1
end

-- A SeedGenerator may stand for a seed, as in Keras: it gives the next of its seeds.
local function is_generator(seed)
  local metatable = type(seed) == "table" and getmetatable(seed)
  return metatable and rawget(metatable, "gives_seeds") or false
end
internal.is_generator = is_generator

-- The seed number `count` of those that follow from one: (seed * 1000003 + count) modulo 2^53, in 64-bit integers, since the product of a
-- large seed is beyond what a Lua number holds exactly, and all counts would give the same.
function internal.following_seed(seed, count)
  local sum = native.cast("uint64_t", seed) * 1000003ULL + native.cast("uint64_t", count)
  return tonumber(sum % 2ULL ^ 53)
end

-- A seed of the caller, or a fresh one.
function internal.seed_of(what, options)
  local seed = options.seed
  if seed == nil then return C.flow_context_next_seed(context) end
  return is_generator(seed) and seed:next() or check_seed(what, seed)
end

-- Rows of a batch, which only a traced function has, count through the global batch: replicas draw different ones, as one alone would.
-- Of several times the rows each time is drawn by itself, so that this holds in tensors that are joined, too.
local draw

local function draw_times(what, op, shape, dtype, low, high, options)
  local parts, times = {}, -shape[1]
  for i = 1, times do parts[i] = draw(what, op, { -1, unpack(shape, 2) }, dtype, low, high, options, i - 1) end
  return ops.concat(parts, 1)
end

-- stream: tells tensors of one seed apart.
function draw(what, op, shape, dtype, low, high, options, stream)
  if shape[1] and shape[1] < -1 then return draw_times(what, op, shape, dtype, low, high, options) end
  local seed = random.seed_of(what, options)
  local attributes = native.attributes()
  local r = attributes.random
  r.rank, r.dtype = #shape, native.dtype(dtype)
  if #shape > C.FLOW_MAX_RANK then raise("%s: a tensor has at most %d dimensions, got %d", what, C.FLOW_MAX_RANK, #shape) end
  for i = 1, #shape do r.dims[i - 1] = shape[i] end
  r.low, r.high, r.seed, r.stream = low, high, seed, stream or 0
  local is_fixed = options.seed ~= nil and not is_generator(options.seed)
  r.keyed_by_step = not is_fixed and C.flow_trace_depth(context) > 0 and 1 or 0
  r.own_seed = options.seed ~= nil and 1 or 0
  devices.within(tensor.device_number(options.device), native.try, C.flow_apply, context, C.flow_op_find(op), nil, 0, attributes, out)
  return native.tensor(out[0])
end

local NORMAL = "shape..., { mean: number = 0, stddev: number = 1, dtype = 'float32', seed?, device? }"

local function normal(name, op)
  local what = "flow.random." .. name
  takes(NORMAL)
  return function(shape, options)
    return draw(what, op, tensor.check_dims(what, shape), options.dtype, options.mean, options.stddev, options)
  end
end

-- normal({2, 2} [, { mean = 0, stddev = 1, seed =, dtype = }]); truncated_normal redraws beyond two standard deviations.
random.normal = normal("normal", "random_normal")
random.truncated_normal = normal("truncated_normal", "random_truncated_normal")

-- uniform({2, 2} [, { minval = 0, maxval = 1, seed =, dtype = }]): minval <= x < maxval.
takes "shape..., { minval: number = 0, maxval: number = 1, dtype = 'float32', seed?, device? }"
function random.uniform(shape, options)
  local what = "flow.random.uniform"
  local low, high = options.minval, options.maxval
  if not (low <= high) then raise("%s: minval %g is larger than maxval %g", what, low, high) end
  return draw(what, "random_uniform", tensor.check_dims(what, shape), options.dtype, low, high, options)
end

-- randint({2, 2}, minval, maxval [, options]): whole numbers, minval <= x < maxval.
takes "shape, minval: number = 0, maxval: number, { dtype = 'int32', seed?; device? }"
function random.randint(shape, minval, maxval, options)
  local what = "flow.random.randint"
  if type(options.dtype) ~= "string" or not options.dtype:find "int" then
    raise("%s: dtype is one of whole numbers, such as \"int32\", got %s", what, errors.describe(options.dtype))
  end
  if not (minval < maxval) then raise("%s: needs minval < maxval, got %s and %s", what, tostring(minval), tostring(maxval)) end
  return draw(what, "random_uniform", tensor.check_dims(what, shape), options.dtype, minval, maxval, options)
end

-- 0 .. n - 1 in random order, int64, on the host.
local function drawn_order(what, n, options)
  local order = tensor.arange(0, n, { dtype = "int64", device = "cpu" })
  native.check(C.flow_tensor_shuffle(order.p, random.seed_of(what, options)))
  return order
end

-- The same in a traced function, where each run draws another one: the order of random keys. A seed that is given fixes it; where n is
-- known, to the order of an eager call. n: -1 for the rows of the batch.
local function traced_order(what, n, options)
  local is_fixed = options.seed ~= nil and not is_generator(options.seed)
  if is_fixed and n >= 0 then return tensor.to_device(drawn_order(what, n, options), devices.current()) end
  return require("flow.tensor.composed.tools").argsort(draw(what, "random_uniform", { n }, "float32", 0, 1, options), 1, false, 0)
end

-- permutation(n [, { seed = }]): the positions 1 .. n in random order, int64.
takes "n: whole, { seed?; }"
function random.permutation(n, options)
  local what = "flow.random.permutation"
  if C.flow_trace_depth(context) > 0 and n > 0 then return traced_order(what, n, options):to("int64") + 1 end
  return tensor.to_device(drawn_order(what, n, options) + 1, devices.current())
end

-- shuffle(x [, { axis = 1, seed = }]): a copy of x with its rows, or what is along another axis, in random order.
takes "x, { axis: integer = 1, seed?; }"
function random.shuffle(x, options)
  local what = "flow.random.shuffle"
  x = ops.operand(x, nil, what)
  if options.axis ~= 1 then
    return ops.swapaxes(random.shuffle(ops.swapaxes(x, 1, options.axis), { seed = options.seed }), 1, options.axis)
  end
  if C.flow_trace_depth(context) > 0 or C.flow_tape_depth(context) > 0 then
    local rows = tensor.raw_shape(x)[1]
    if not rows then raise("%s: a scalar has no rows", what) end
    if rows == 0 then return x end
    return require("flow.tensor.composed.tools").rows_in_order(x, traced_order(what, rows, options))
  end
  local home = C.flow_tensor_device(native.pointer(x))
  x = tensor.on_host(x):contiguous()
  local p = tensor.need_value(x, what)
  local rows = #x
  local order = drawn_order(what, rows, options)
  local result = tensor.new(C.flow_tensor_dtype(p), tensor.raw_shape(x))
  native.check(C.flow_tensor_gather_rows(p, order.p, 0, rows, result.p))
  return tensor.to_device(result, home)
end

return random
