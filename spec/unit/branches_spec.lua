-- branches_spec.lua: operations whose formulas branch give in C, which reads them from a file, what they give in Lua: at the places where
-- branches meet, at zeros of both signs, at what is infinite and at NaN, to the last bit.
local flow = require "flow"
local model_files = require "spec.support.model_files"
local native = require "flow.ffi"
local support = require "spec.support.init"

local layers = flow.layers

local PLACES = { 0, -0.0, 0.5, -0.5, 1, -1, 2, -2, 3, -3, 3.75, 6, -6, 1e-40, 1 / 0, -1 / 0, 0 / 0 }

-- By name, functions of one or two tensors.
local CALLS = {
  elu_2 = function(a) return flow.elu(a, 2) end, elu_1 = function(a) return flow.elu(a, 1) end,
  round_1 = function(a) return flow.round(a, 1) end,
  leaky_relu_0 = function(a) return flow.leaky_relu(a, 0) end, leaky_relu_2 = function(a) return flow.leaky_relu(a, 0.2) end,
  leaky_relu_5 = function(a) return flow.leaky_relu(a, 0.5) end, celu_2 = function(a) return flow.celu(a, 2) end,
  clip = function(a) return flow.clip(a, -1, 2) end, clip_at_0 = function(a) return flow.clip(a, 0, 3) end,
  gelu_exact = function(a) return flow.gelu(a, false) end, gelu = function(a) return flow.gelu(a) end,
  threshold = function(a) return flow.threshold(a, 0.5, -1) end, hard_shrink_1 = function(a) return flow.hard_shrink(a, 1) end,
  soft_shrink_1 = function(a) return flow.soft_shrink(a, 1) end,
  power = function(a, b) return flow.pow(a, b) end,
}
for name in ([[abs exp expm1 square reciprocal sign floor ceil round is_finite isnan logical_not relu relu6 sigmoid softplus softsign silu
               selu elu leaky_relu hard_sigmoid hard_silu log sqrt rsqrt log1p tanh erf isinf isposinf isneginf trunc exp2 cbrt log2 log10
               log_sigmoid tanh_shrink hard_tanh sparse_sigmoid sparse_plus celu hard_shrink soft_shrink sinc deg2rad
               arctan arcsinh i0]]):gmatch "%S+" do
  CALLS[name] = CALLS[name] or function(a) return flow[name](a) end
end
for name in ([[add sub mul div mod divide_no_nan maximum minimum eq ne lt le gt ge logical_and logical_or arctan2 hypot fmod fmax fmin
               logaddexp logaddexp2 heaviside floor_divide]]):gmatch "%S+" do
  CALLS[name] = function(a, b) return flow[name](a, b) end
end

local first, second = {}, {}
for _, a in ipairs(PLACES) do
  for _, b in ipairs(PLACES) do
    first[#first + 1], second[#second + 1] = { a }, { b }
  end
end
first, second = flow.tensor(first), flow.tensor(second)

-- With one NaN for all of them, whose bits say nothing.
local function numbers(list)
  local result = {}
  for i, t in ipairs(list) do
    local is_nan = flow.ne(t, t)
    result[2 * i - 1], result[2 * i] = is_nan, flow.where(is_nan, flow.zeros_like(t), t)
  end
  return result
end

-- The variables after one step of training, in Lua and in C. Each pair of places is a row of two tables, so that each has its own slope.
local function trained(call, path)
  local rows, row = first.shape[1], flow.Input({ 1 }, { dtype = "int32" })
  local a, b = layers.Embedding(rows, 1), layers.Embedding(rows, 1)
  local left, right = a(row), b(row)
  local model = flow.Model { inputs = row, outputs = call(left, right) + left * 0.25 + right * 0.25 }      -- both have a gradient
  a.embeddings:assign(first)
  b.embeddings:assign(second)
  model:compile { optimizer = flow.optimizers.SGD(1), loss = "mse" }
  model:save(path)
  local x, y = flow.arange(0, rows):to("int32"):reshape { rows, 1 }, flow.full({ rows, 1, 1 }, 0.25)
  model:train_on_batch(x, y)
  local out = native.out("flow_model")
  native.check(native.C.flow_model_load(native.context, path, out))
  local in_c = native.own(out, native.C.flow_model_release)
  native.check(native.C.flow_model_train(native.context, in_c, native.pointers { x }, 1, native.pointer(y), native.array("double", 1)))
  native.check(native.C.flow_model_save(in_c, path))
  native.close(in_c, native.C.flow_model_release)
  return model:get_weights(), flow.load_model(path):get_weights()
end

describe("operations whose formulas branch", function()
  local names = {}
  for name in pairs(CALLS) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    it("give the same in C: " .. name, function()
      local a, b = flow.Input { 1 }, flow.Input { 1 }
      local model = flow.Model { inputs = { a, b }, outputs = { CALLS[name](a, b), b - a } }
      local path = support.file("branches.keras", "")
      model:save(path)
      local expected = numbers(model_files.predicted(model, { first, second }))
      model_files.assert_same_bits(expected, numbers(model_files.predict_in_c(path, { first, second })), "C")
      if CALLS[name](first, second).dtype == "float32" then
        local in_lua, in_c = trained(CALLS[name], path)
        model_files.assert_same_bits(numbers(in_lua), numbers(in_c), "trained in C")
      end
    end)
  end
end)
