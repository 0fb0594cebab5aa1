-- random_variates.lua: numbers of other distributions than the uniform and the normal, made of those, in eager and traced functions; and
-- SeedGenerator. random.lua loads it when one of them is asked for.

local errors = require "flow.errors"
local object = require "flow.object"
local tensor = require "flow.tensor"
local ops = require "flow.tensor.ops"
local random = require "flow.tensor.random"
local signature = require "flow.signature"

local raise, takes = errors.raise, signature.takes

-- Options of the next draw of several that one call makes: with a seed each draw has its own seed, which follows from it.
local function draws_of(options)
  local count = 0
  return function()
    count = count + 1
    local own = { dtype = "float32", device = options.device }
    if random.is_generator(options.seed) then own.seed = options.seed
    elseif options.seed ~= nil then own.seed = random.following_seed(random.check_seed("flow.random", options.seed), count) end
    return own
  end
end

-- Uniform numbers that are not 0.
local function open_uniform(shape, options)
  options.minval = 2 ^ -24
  return random.uniform(shape, options)
end

-- Labels from 0, num_samples for each row of logits {batch, classes}: {batch, num_samples}. The class of the largest of logit + Gumbel
-- noise.
takes "logits, num_samples: count, { dtype = 'int32', seed?; }"
function random.categorical(logits, num_samples, options)
  logits = ops.operand(logits, nil, "flow.random.categorical")
  local shape = require("flow.tensor.shapes").of(tensor.raw_shape(logits))
  if #shape ~= 2 then raise("flow.random.categorical: logits {batch, classes}, got %d axes", #shape) end
  local noise = open_uniform({ shape[1], num_samples, shape[2] }, draws_of(options)())
  local gumbel = -ops.log(-ops.log(noise))
  return (ops.argmax(ops.expand_dims(logits:to("float32"), 2) + gumbel, 3) - 1):to(options.dtype)
end

-- G. Marsaglia and W. Tsang, "A simple method for generating gamma variables", 2000: each attempt is taken with a probability of 95 %
-- at least; of this many one is. alpha below 1: that of alpha + 1 times U^(1 / alpha).
local ATTEMPTS = 12

-- An element that is accepted in none of the attempts, which all elements make, gets d, a value near the mean.
local function gamma(shape, alpha, next_options)
  local small = ops.lt(alpha, 1)
  local d = ops.where(small, alpha + 1, alpha) - 1 / 3
  local c = ops.rsqrt(d * 9)
  local result, done
  for _ = 1, ATTEMPTS do
    local x, u = random.normal(shape, next_options()), open_uniform(shape, next_options())
    local v = 1 + c * x
    local cube = v * v * v
    local taken = ops.logical_and(ops.gt(v, 0),
      ops.lt(ops.log(u), ops.square(x) * 0.5 + d - d * cube + d * ops.log(ops.maximum(cube, 1e-30))))
    local value = d * ops.maximum(cube, 0)
    result = result and ops.where(ops.logical_or(done, ops.logical_not(taken)), result, value) or ops.where(taken, value, d)
    done = done and ops.logical_or(done, taken) or taken
  end
  return result * ops.where(small, ops.pow(open_uniform(shape, next_options()), 1 / ops.minimum(alpha, 1)), 1)
end

local function parameter(value, what) return ops.operand(value, nil, what):to("float32") end

-- Density x^(alpha - 1) e^-x / Gamma(alpha). alpha: a number, or a tensor that broadcasts to the shape.
takes "shape, alpha, { dtype = 'float32', seed?; device? }"
function random.gamma(shape, alpha, options)
  return gamma(shape, parameter(alpha, "flow.random.gamma"), draws_of(options)):to(options.dtype)
end

local function beta(shape, a, b, next_options)
  local x, y = gamma(shape, a, next_options), gamma(shape, b, next_options)
  return x / ops.maximum(x + y, 1e-30)
end

-- Density proportional to x^(alpha - 1) (1 - x)^(beta - 1).
takes "shape, alpha, beta, { dtype = 'float32', seed?; device? }"
function random.beta(shape, a, b, options)
  return beta(shape, parameter(a, "flow.random.beta"), parameter(b, "flow.random.beta"), draws_of(options)):to(options.dtype)
end

-- How many of `counts` attempts of a probability succeed. While many are left (L. Devroye, "Non-Uniform Random Variate Generation",
-- X.4.3), the middle one of as many uniform numbers, a beta variate, says on which side of the probability half of them are; the last few
-- are drawn.
local FEW = 16
takes "shape, counts, probabilities, { dtype = 'float32', seed?; device? }"
function random.binomial(shape, counts, probabilities, options)
  local what, next_options = "flow.random.binomial", draws_of(options)
  local n, p = parameter(counts, what), parameter(probabilities, what)
  if tensor.is_symbolic(n) then raise("%s: counts need values in a trace, as they say how many numbers are drawn", what) end
  local most = n.size > 0 and ops.max(n):item() or 0
  if most == math.huge then raise("%s: counts are whole numbers, one of them is infinite", what) end
  local successes = random.uniform(shape, next_options()) * 0
  n, p = n + successes, p + successes
  while most > FEW do
    local many = ops.gt(n, FEW)
    local i = ops.floor((n + 1) * 0.5)
    local middle = beta(shape, ops.maximum(i, 1), ops.maximum(n + 1 - i, 1), next_options)
    local below = ops.logical_and(many, ops.le(middle, p))
    local above = ops.logical_and(many, ops.gt(middle, p))
    successes = successes + ops.where(below, i, 0)
    p = ops.clip(ops.where(below, (p - middle) / ops.maximum(1 - middle, 1e-30), ops.where(above, p / ops.maximum(middle, 1e-30), p)), 0, 1)
    n = ops.where(below, n - i, ops.where(above, i - 1, n))
    most = math.floor(most / 2)
  end
  for attempt = 1, FEW do
    local hit = ops.logical_and(ops.lt(random.uniform(shape, next_options()), p), ops.ge(n, attempt))
    successes = successes + hit:to("float32")
  end
  return successes:to(options.dtype)
end

-- x with each element 0 with a probability of rate, the others divided by 1 - rate; noise_shape: of the mask, 1 where it is repeated.
takes "x, rate: number, { noise_shape?, seed?; }"
function random.dropout(x, rate, options)
  x = ops.operand(x, nil, "flow.random.dropout")
  if not (rate >= 0 and rate < 1) then raise("flow.random.dropout: the rate is from 0 to below 1, got %g", rate) end
  local shape = options.noise_shape or require("flow.tensor.shapes").of(tensor.raw_shape(x))
  local kept = ops.ge(random.uniform(shape, { seed = options.seed }), rate)
  return ops.where(kept, x / (1 - rate), 0):to(x.dtype)
end

---- SeedGenerator ----------------------------------------------------------------------------------

local Generator = object.class("SeedGenerator")
Generator.metatable.gives_seeds = true

-- A different seed at each call, which all follow from the first.
function Generator:next()
  return random.following_seed(self.seed, random.next_count(self, "count") * 7919)
end
-- Where it is, for checkpoints.
function Generator:get_state() return { seed = self.seed, count = self.count, traced = self.traced } end
function Generator:set_state(state)
  if type(state) ~= "table" or type(state.seed) ~= "number" or type(state.count) ~= "number" then
    raise("SeedGenerator:set_state takes what get_state gave, got %s", errors.describe(state))
  end
  self.seed, self.count, self.traced = state.seed, state.count, state.traced or {}
end
Generator.metatable.__tostring = function(self) return ("SeedGenerator (seed=%d, %d drawn)"):format(self.seed, self.count) end

-- A generator is given as { seed = generator }, and gives seeds one after the other; generator:next() is the next one.
takes "seed?: whole"
function random.SeedGenerator(seed)
  return object.new(Generator, { seed = random.seed_of("flow.random.SeedGenerator", { seed = seed }), count = 0, traced = {} })
end

return random
