-- candidate_samplers.lua: classes drawn at random beside the true ones, for losses over a few of many classes, as tf.random's
-- uniform_candidate_sampler and log_uniform_candidate_sampler draw them. random.lua loads it when one of them is asked for.

local errors = require "flow.errors"
local tensor = require "flow.tensor"
local random = require "flow.tensor.random"
local tools = require "flow.tensor.composed.tools"
local signature = require "flow.signature"

local ops, raise, takes = tools.ops, errors.raise, signature.takes

-- `count` classes out of 0 to range - 1, as class_of(uniform number) draws them, and how many draws that took: unique ones are drawn until
-- there are enough.
local function draw(what, count, unique, range, seed, class_of)
  if unique and count > range then
    raise("%s: num_sampled is %d, but there are only %d different classes: range_max", what, count, range)
  end
  local classes, is_there, tries, round = {}, {}, 0, 0
  while #classes < count do
    round = round + 1
    local numbers = random.uniform({ math.max(count, 16) }, { seed = seed and random.following_seed(seed, round) })
    for _, u in ipairs(numbers:totable()) do
      local class = math.min(class_of(u), range - 1)
      if #classes < count then
        tries = tries + 1
        if not (unique and is_there[class]) then classes[#classes + 1] = class end
        is_there[class] = true
      end
    end
  end
  return tensor.tensor(classes, { dtype = "int64" }), tries
end

-- Both samplers. class_of: as above; probability_of(classes): of each of a tensor of classes.
local function sample(what, true_classes, num_true, count, unique, range, seed, class_of, probability_of)
  true_classes = ops.operand(true_classes, "int64", what)
  if tensor.is_symbolic(true_classes) then
    raise("%s: it draws as often as it takes, which a trace cannot: call it before, or in a generator of a data set", what)
  end
  if true_classes.rank ~= 2 or true_classes.shape[2] ~= num_true then
    raise("%s: true_classes is {batch, num_true}, {batch, %d}, got %s", what, num_true, tensor.shape_text(true_classes.shape))
  end
  if seed ~= nil then random.check_seed(what, seed) end
  local classes, tries = draw(what, count, unique, range, seed, class_of)
  local function expected(list)
    local p = probability_of(list:to "float32")
    return unique and -ops.expm1(tries * ops.log1p(-p)) or p * count
  end
  return classes, expected(true_classes), expected(classes)
end

-- Classes {num_sampled}, all of the same probability, and how often each of true_classes {batch, num_true} and of these is expected among
-- them. unique: no class twice.
takes "true_classes, num_true: count, num_sampled: count, unique: boolean, range_max: count, seed?: whole, name?: string"
function random.uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed)
  return sample("flow.random.uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, range_max, seed,
    function(u) return math.floor(u * range_max) end, function(classes) return ops.zeros_like(classes) + 1 / range_max end)
end

-- The same for classes in the order of how frequent they are, as words are: class c has the probability
-- (log(c + 2) - log(c + 1)) / log(range_max + 1).
takes "true_classes, num_true: count, num_sampled: count, unique: boolean, range_max: count, seed?: whole, name?: string"
function random.log_uniform_candidate_sampler(true_classes, num_true, num_sampled, unique, range_max, seed)
  local all = math.log(range_max + 1)
  return sample("flow.random.log_uniform_candidate_sampler", true_classes, num_true, num_sampled, unique, range_max, seed,
    function(u) return math.max(math.floor(math.exp(u * all)) - 1, 0) end,
    function(classes) return ops.log1p(1 / (classes + 1)) / all end)
end

return random
