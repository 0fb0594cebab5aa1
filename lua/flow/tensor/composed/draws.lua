-- draws.lua: random numbers that follow from two numbers, as tf.random.stateless_uniform and its like draw them, which may be tensors of a
-- trace; flow.random.Generator, which makes such pairs; and the draws of tf.image, which take one seed, such a pair, or none.

local native = require "flow.ffi"
local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local random = require "flow.tensor.random"
local tools = require "flow.tensor.composed.tools"
local signature = require "flow.signature"

local ops, takes, raise = tools.ops, signature.takes, errors.raise
local draws = {}

---- bits -------------------------------------------------------------------------------------------

-- SplitMix64 (G. Steele, D. Lea and C. Flood, "Fast splittable pseudorandom number generators", 2014): 64 bits that follow from 64.
local STEP, FIRST, SECOND = -7046029254386353131LL, -4658895280553007687LL, -7723592293110705685LL
local LOW_BITS = { [30] = 0x3ffffffffLL, [27] = 0x1fffffffffLL, [31] = 0x1ffffffffLL, [40] = 0xffffffLL, [11] = 0x1fffffffffffffLL }

local function whole(value) return tools.constant({ value }, "int64") end

-- The upper bits, which come in from the left as zeros.
local function shift(z, by) return ops.bitwise_and(ops.right_shift(z, by), whole(LOW_BITS[by])) end

local function mix(z)
  z = ops.bitwise_xor(z, shift(z, 30)) * whole(FIRST)
  z = ops.bitwise_xor(z, shift(z, 27)) * whole(SECOND)
  return ops.bitwise_xor(z, shift(z, 31))
end

-- 64 random bits for each of `count` elements; stream tells several draws of one seed apart.
local function bits(count, seed, stream)
  local first, second = tools.part(seed, 1, 1, 1), tools.part(seed, 1, 2, 2)
  local key = mix(mix(first + whole(STEP)) + second * whole(STEP) + whole(stream or 0))
  return mix(key + (tensor.arange(count, { dtype = "int64" }) + whole(1)) * whole(STEP))
end

-- Floats from 0 to below 1 that a dtype can tell apart.
local function fractions(count, seed, dtype, stream)
  if dtype == "float64" then return shift(bits(count, seed, stream), 11):to "float64" * 2 ^ -53 end
  return shift(bits(count, seed, stream), 40):to "float32" * 2 ^ -24
end

---- seeds ------------------------------------------------------------------------------------------

-- Two whole numbers, a list or a tensor, as an int64 tensor {2}.
local function pair_of(seed, what)
  local is_list = type(seed) == "table" and not getmetatable(seed)
  if not is_list and not native.is_tensor(seed) then raise("%s: a seed is two whole numbers, got %s", what, errors.describe(seed)) end
  seed = ops.operand(is_list and tensor.tensor(seed, { dtype = "int64" }) or seed, nil, what)
  local dims = tools.dims(seed)
  if #dims ~= 1 or dims[1] ~= 2 or tools.is_float(seed) then
    raise("%s: a seed is two whole numbers, got %s", what, errors.describe(seed))
  end
  return seed:to "int64"
end

-- For draws.uniform: a seed of two numbers.
function draws.pair(seed, what) return { pair = pair_of(seed, what) } end

local function count_of(shape, what)
  local count = 1
  for _, n in ipairs(shape) do count = count * tools.whole(n, 0, what, "a size") end
  return count
end

-- Uniform numbers from low to below high; seed: nil, a number or a SeedGenerator as flow.random takes them, or a draws.pair.
function draws.uniform(shape, low, high, seed, what)
  if type(seed) == "table" and seed.pair then
    return ops.reshape(fractions(count_of(shape, what), seed.pair, "float32"), shape) * (high - low) + low
  end
  return random.uniform(shape, { minval = low, maxval = high, seed = seed })
end

---- flow.random.stateless_... ----------------------------------------------------------------------

local function finish(x, shape, dtype) return ops.reshape(x, shape):to(dtype) end

-- From minval to below maxval, floats from 0 to 1 unless they are given; whole numbers need maxval.
takes "shape: list, seed: data, minval: number = 0, maxval?: number, dtype: string = 'float32', { alg?; }"
function random.stateless_uniform(shape, seed, low, high, dtype)
  local what = "flow.random.stateless_uniform"
  local pair, count = pair_of(seed, what), count_of(shape, "random.stateless_uniform")
  if dtype:find("int", 1, true) then
    if not high then raise("%s: whole numbers need maxval", what) end
    if high <= low then raise("%s: maxval is above minval, got %g and %g", what, low, high) end
    local x = ops.floor(fractions(count, pair, "float64") * (high - low)) + low
    return finish(ops.minimum(x, high - 1), shape, dtype)
  end
  local x = fractions(count, pair, dtype)
  return finish(x * ((high or 1) - low) + low, shape, dtype)
end

-- G. Box and M. Muller, "A note on the generation of random normal deviates", 1958.
takes "shape: list, seed: data, mean: number = 0, stddev: number = 1, dtype: string = 'float32', { alg?; }"
function random.stateless_normal(shape, seed, mean, stddev, dtype)
  local pair, count = pair_of(seed, "flow.random.stateless_normal"), count_of(shape, "random.stateless_normal")
  local radius = ops.sqrt(ops.log(1 - fractions(count, pair, dtype, 1)) * -2)
  return finish(radius * ops.cos(fractions(count, pair, dtype, 2) * (2 * math.pi)) * stddev + mean, shape, dtype)
end

-- Normal numbers at most two standard deviations from the mean.
takes "shape: list, seed: data, mean: number = 0, stddev: number = 1, dtype: string = 'float32', { alg?; }"
function random.stateless_truncated_normal(shape, seed, mean, stddev, dtype)
  local what = "random.stateless_truncated_normal"
  local pair, count = pair_of(seed, "flow." .. what), count_of(shape, what)
  local WITHIN = 0.9544997361036416      -- of all are within two standard deviations
  local x = ops.erfinv((fractions(count, pair, dtype) * 2 - 1) * WITHIN) * math.sqrt(2)
  return finish(ops.clip(x, -2, 2) * stddev + mean, shape, dtype)
end

---- flow.random.Generator --------------------------------------------------------------------------

-- Makes seeds and numbers, one after the other, that follow from its seed. In a trace they follow from it, too, and every run draws others.
local Generator = object.class("Generator")

local function next_pair(self)
  if tensor.is_tracing() then
    local seeds = random.SeedGenerator(self.seed)
    seeds.count = random.next_count(self, "drawn") - 1
    return random.randint({ 2 }, 0, 2 ^ 31 - 1, { seed = seeds }):to "int64"
  end
  rawset(self, "drawn", self.drawn + 1)
  return tools.constant({ self.seed, self.drawn }, "int64")
end

-- `count` seeds for the stateless functions, the columns of an int64 tensor {2, count}.
takes "count: count = 1"
function Generator:make_seeds(count)
  local pair = next_pair(self)
  return ops.stack({ shift(bits(count, pair, 1), 11), shift(bits(count, pair, 2), 11) }, 1)
end
takes "shape: list, minval: number = 0, maxval?: number, dtype: string = 'float32'"
function Generator:uniform(shape, low, high, dtype) return random.stateless_uniform(shape, next_pair(self), low, high, dtype) end
takes "shape: list, mean: number = 0, stddev: number = 1, dtype: string = 'float32'"
function Generator:normal(shape, mean, stddev, dtype) return random.stateless_normal(shape, next_pair(self), mean, stddev, dtype) end
takes "shape: list, mean: number = 0, stddev: number = 1, dtype: string = 'float32'"
function Generator:truncated_normal(shape, mean, stddev, dtype)
  return random.stateless_truncated_normal(shape, next_pair(self), mean, stddev, dtype)
end

-- Whole numbers of which each that the dtype holds is as likely.
takes "shape: list, dtype: string = 'int64'"
function Generator:uniform_full_int(shape, dtype)
  local all, what = { int8 = true, uint8 = true, int32 = true, int64 = true }, "Generator:uniform_full_int"
  if not all[dtype] then raise("%s: the dtype is int8, uint8, int32 or int64, got %s", what, errors.describe(dtype)) end
  local x = bits(count_of(shape, what), next_pair(self))
  if dtype == "int64" then return ops.reshape(x, shape) end
  local low, below = dtype:find "^u" and 0 or dtype == "int8" and -128 or -2147483648, dtype == "int32" and 2 ^ 32 or 2 ^ 8
  return finish(ops.bitwise_and(x, whole(below - 1)) + whole(low), shape, dtype)
end

local function made(seed)
  return object.new(Generator, { seed = seed, drawn = 0, traced = {} })
end

-- A list of generators that draw other numbers than this one and than each other.
takes "count: count = 1"
function Generator:split(count)
  local list, seeds = {}, self:make_seeds(count):totable()[1]
  for i = 1, count do list[i] = made(tonumber(seeds[i])) end
  return list
end
-- As if it had just been made of this seed.
takes "seed: whole"
function Generator:reset_from_seed(seed)
  rawset(self, "seed", seed)
  rawset(self, "drawn", 0)
  rawset(self, "traced", {})
end

-- Where it is, for checkpoints: flow.train.Checkpoint { generator = generator }.
function Generator:get_state() return { seed = self.seed, drawn = self.drawn, traced = self.traced } end
function Generator:set_state(state)
  if type(state) ~= "table" or type(state.seed) ~= "number" or type(state.drawn) ~= "number" then
    raise("Generator:set_state takes what get_state gave, got %s", errors.describe(state))
  end
  rawset(self, "seed", state.seed)
  rawset(self, "drawn", state.drawn)
  rawset(self, "traced", state.traced or {})
end
Generator.fields.state = Generator.get_state

random.Generator = signature.module "flow.random.Generator"
takes "seed: whole, { alg?; }"
function random.Generator.from_seed(seed) return made(seed) end
-- A generator that continues another one: state is the other's get_state(), or its field state.
takes "state: table, { alg?; }"
function random.Generator.from_state(state)
  local generator = made(0)
  generator:set_state(state)
  return generator
end
-- Of a fresh seed of the global ones.
takes "{ alg?; }"
function random.Generator.from_non_deterministic_state() return made(random.seed_of("flow.random.Generator", {})) end

return draws
