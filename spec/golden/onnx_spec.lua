--- Exported ONNX models in ONNX Runtime against model:predict: every layer that has a golden case, ops in layers written in Lua, the
-- bench nets. Runs where $FLOW_PYTHON, or python3, has onnx and onnxruntime (pip install onnx onnxruntime).
local support = require "spec.support.init"
local flow = require "flow"
local golden = require "spec.support.golden"
local nets = require "flow.cli.bench_nets"
local layers = flow.layers

local TOLERANCE = 1e-5
local python = os.getenv("FLOW_PYTHON") or "python3"
local _, missing = support.run(python .. " -c 'import onnx, onnxruntime'")

local cases = {}
local function add(name, make) cases[#cases + 1] = { name = name, make = make } end

for _, case in ipairs(golden.manifest.layers) do
  if not case.training then
    add("layer " .. case.name, function()
      local model, x = golden.layer_model(case), golden.make_all(case.inputs)
      for i, input in ipairs(model.inputs) do x[i] = x[i]:to(input.dtype) end      -- indices of a model whose input is not of integers
      return model, x
    end)
  end
end

-- Ops of layers that have no form in ONNX, which the error of export names.
local WITHOUT_FORM = { slice_gradient = true }

-- What each does to x {3, 6, 6, 4} between 0 and 2 after a convolution, whose values are channels first in the file.
local formulas = {
  arithmetic = function(x) return (x + 1) * 2 - x / 3 + (2 - x) ^ 2 end,
  signs = function(x) return -x:abs() + flow.sign(x) + flow.square(x) end,
  roots = function(x) return flow.sqrt(x:abs() + 1) + flow.rsqrt(x:abs() + 1) + flow.reciprocal(x:abs() + 2) end,
  logarithms = function(x) return flow.log(x:abs() + 1) + flow.log1p(x:abs()) + flow.expm1(x) - flow.exp(x) end,
  waves = function(x)
    return flow.sin(x) + flow.cos(x) + flow.tan(flow.tanh(x)) + flow.tanh(x) + flow.sigmoid(x) + flow.erf(x) + flow.softplus(x)
  end,
  rounding = function(x) return flow.floor(3 * x) + flow.ceil(3 * x) + flow.round(3 * x) end,
  comparing = function(x) return flow.where(x:lt(0.5), x, -x) + flow.where(x:ge(0.2), x * 0, x) + x:ne(0):to("float32") end,
  logic = function(x)
    local a, b = x:gt(0), x:le(0.5)
    return flow.where(flow.logical_and(a, b), x, x + 1) + flow.where(flow.logical_or(a, flow.logical_not(b)), x, x + 2)
  end,
  extremes = function(x) return flow.maximum(x, 0.3) + flow.minimum(x, 0.1) + flow.mod(x, 0.7) + flow.divide_no_nan(x, flow.relu(x)) end,
  remainders = function(x)
    local whole = flow.round(4 * x)
    local function below_zero(zero) return flow.where(flow.reciprocal(zero):lt(0), 1, 0) end
    return flow.mod(whole * 12345.678, 0.7) + flow.mod(whole * 12345.678, -0.7) + flow.mod(0.7, whole + 0.25) +
      below_zero(flow.mod(whole, -1)) + below_zero(flow.mod(whole, 1)) + flow.minimum(flow.mod(whole, math.huge), 5)
  end,
  finite = function(x) return flow.is_finite(x / flow.relu(x)):to("float32") end,
  integers = function(x) return (x * 100):to("int32") end,
  saturated = function(x) return (x * 300 + 100):to("uint8") end,
  wide_integers = function(x) return (x:to("float64") * 0 + 2147483600):to("int32") - 2147483000 end,
  saturated_wide = function(x) return flow.sign((x * 1e30):to("int64")) + flow.sign((x:to("float64") * 1e30):to("int64")) end,
  channel_sums = function(x) return x:sum(-1) end,
  kept_sums = function(x) return x:sum({ 2, 3 }, true) * x end,
  width_sums = function(x) return x:sum(3) end,
  batch_mean = function(x) return x - x:mean(1, true) end,
  whole_mean = function(x) return x - x:mean() end,
  mean_of_pairs = function(x)
    local means = x:mean { 2, 3 }
    return x + flow.square(means:reshape { -1, 1, 4 } - means:reshape { 1, -1, 4 }):mean()
  end,
  greatest = function(x) return x:max({ 2, 4 }) + x:min({ 2, 4 }) + flow.prod(x * 0.1 + 1, { 2, 4 }) + flow.logsumexp(x, { 2, 4 }) end,
  any_all = function(x) return flow.where(flow.any(x:gt(1), { 2, 3 }), 1, 2) + flow.where(flow.all(x:gt(-1), { 2, 3 }), 10, 20) end,
  spectrum = function(x)
    local re, im = flow.rfft(x:reshape { -1, 6, 24 })
    return flow.irfft({ re * 0.5, im }, 24) + flow.fft { x:reshape { -1, 6, 24 }, x:reshape { -1, 6, 24 } * 2 }
  end,
  positions = function(x) return x:argmax(-1) end,
  position_in_rows = function(x) return x:reshape { -1, 144 }:argmin(2) end,
  swapped = function(x) return x:transpose { 1, 3, 2, 4 } + x:transpose { 1, 2, 4, 3 }:reshape { -1, 6, 6, 4 } end,
  slices = function(x) return flow.concat({ x[{ {}, { 2, 4 } }], x[{ {}, { 1, 3 } }] }, 3) end,
  channel_slices = function(x) return flow.concat({ x[{ {}, {}, {}, { 1, 2 } }], x }, 4) end,
  regrouped = function(x) return x:reshape { -1, 4 }:softmax():reshape { -1, 36, 4 } end,
  softmax_of_rows = function(x) return flow.softmax(x, 2) + flow.log_softmax(x, -1) end,
  broadcast = function(x) return x:mean({ 2, 3 }, true):broadcast_to { -1, 6, 6, 4 } + x end,
  products = function(x) return x:reshape { -1, 36, 4 }:matmul(x:reshape { -1, 36, 4 }:transpose { 1, 3, 2 }) end,
  planes = function(x) return x * flow.reshape(flow.arange(24), { 6, 4 }) + flow.reshape(flow.arange(6), { 6, 1, 1 }) end,
}

local Formula = layers.Layer:extend("Formula")
function Formula:call(x) return self.formula(x) end

local function formula_model(formula)
  local layer = Formula()
  layer.formula = formula
  local input = flow.Input { 6, 6, 3 }
  local h = layers.Conv2D(4, 3, { padding = "same" })(input)
  return flow.Model { inputs = input, outputs = layer(h) }, { flow.random.uniform({ 3, 6, 6, 3 }, { seed = 3 }) * 3 - 1 }
end

local names = {}
for name in pairs(formulas) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do add("formula " .. name, function() return formula_model(formulas[name]) end) end

for _, name in ipairs { "flowers", "mnist", "mlp", "resnet20", "mobilenet", "strided", "unet", "odd" } do
  add("net " .. name, function()
    local model, shape = nets[name]()
    return model, { flow.random.uniform({ 2, unpack(shape) }, { seed = 5 }) * 255 }
  end)
end

for _, resizing in ipairs { { "nearest" }, { "bilinear" }, { "bicubic" }, { "bilinear", true }, { "bicubic", true } } do
  for _, size in ipairs { 5, 12, 17 } do
    add(("resizing %s%s %d"):format(resizing[1], resizing[2] and " antialias" or "", size), function()
      local input = flow.Input { 8, 11, 3 }
      local layer = layers.Resizing(size, size, { interpolation = resizing[1], antialias = resizing[2] or false })
      return flow.Model { inputs = input, outputs = layer(input) }, { flow.random.uniform({ 2, 8, 11, 3 }, { seed = 5 }) }
    end)
  end
end

add("several inputs and outputs", function()
  local a, b = flow.Input({ 8, 8, 3 }, { name = "image" }), flow.Input({ 5 }, { name = "facts", dtype = "int32" })
  local h = layers.GlobalMaxPooling2D()(layers.Conv2D(4, 3, { activation = "relu" })(a))
  local shared = layers.Dense(6)
  local both = layers.Concatenate()({ shared(h), layers.Dense(3)(b) })
  local model = flow.Model { inputs = { a, b }, outputs = { layers.Dense(2, { name = "left" })(both), shared(h), h } }
  local facts = flow.tensor({ { 1, 2, 3, 4, 5 }, { 0, 0, 0, 0, 0 }, { 5, 4, 3, 2, 1 } }, { dtype = "int32" })
  return model, { flow.random.uniform({ 3, 8, 8, 3 }, { seed = 1 }), facts }
end)

add("forty tensors side by side", function()
  local input, parts = flow.Input { 6 }, {}
  for i = 1, 40 do parts[i] = layers.Dense(2)(input) end
  return flow.Model { inputs = input, outputs = layers.Concatenate()(parts) }, { flow.random.uniform({ 3, 6 }, { seed = 3 }) }
end)

add("a layer called twice, an input given back", function()
  local input = flow.Input { 5, 5, 2 }
  local conv = layers.Conv2D(2, 3, { padding = "same" })
  return flow.Model { inputs = input, outputs = { conv(conv(input)), input } }, { flow.random.uniform({ 2, 5, 5, 2 }, { seed = 1 }) }
end)

-- Variables, inputs, outputs and what the file makes up may be called alike; outputs may be one tensor.
add("names that others have", function()
  local input = flow.Input({ 4 }, { name = "kernel" })
  local hidden = layers.Dense(4, { name = "dense" })(input)
  local first, second = layers.Dense(3, { name = "bias" })(hidden), layers.Dense(2, { name = "gamma" })(hidden)
  local third = layers.LayerNormalization { name = "Identity_1" }(second)
  local model = flow.Model { inputs = input, outputs = { first, third, first, input, hidden } }
  return model, { flow.random.uniform({ 3, 4 }, { seed = 1 }) }
end)

add("layers of one name in several models", function()
  local function inner(name)
    local x = flow.Input({ 4 }, { name = "x" })
    return flow.Model { inputs = x, outputs = layers.Dense(4, { name = "y" })(x), name = name }
  end
  local input = flow.Input({ 4 }, { name = "y" })
  local a, b = inner "a", inner "b"
  return flow.Model { inputs = input, outputs = { a(input), b(input) } }, { flow.random.uniform({ 3, 4 }, { seed = 1 }) }
end)

add("image layers that only train", function()
  local model = flow.Sequential { layers.Input { 12, 12, 3 }, layers.RandomFlip(), layers.RandomRotation(0.1), layers.RandomZoom(0.2),
    layers.RandomContrast(0.1), layers.Dropout(0.5), layers.CenterCrop(8, 6),
    layers.Normalization { mean = { 1, 2, 3 }, variance = { 4, 5, 6 } },
    layers.Conv2D(4, 3, { activation = "softmax" }) }
  return model, { flow.random.uniform({ 2, 12, 12, 3 }, { seed = 1 }) }
end)

-- Keras' activations by their names, where this build has them.
for _, activation in ipairs { "relu", "sigmoid", "tanh", "softmax", "softplus", "softsign", "elu", "selu", "gelu", "swish", "exponential",
                              "leaky_relu", "relu6", "silu", "hard_sigmoid", "log_softmax", "mish", "hard_silu" } do
  if pcall(layers.Activation, activation) then
    add("activation " .. activation, function()
      local model = flow.Sequential { layers.Input { 7, 7, 2 }, layers.Conv2D(5, 3), layers.Activation(activation) }
      return model, { flow.random.uniform({ 2, 7, 7, 2 }, { seed = 1 }) * 4 - 2 }
    end)
  end
end

local function export(case, folder, file)
  flow.set_random_seed(3)
  local model, x = case.make()
  local y = model:predict(#x == 1 and x[1] or x, { verbose = 0 })
  model:export(folder .. "/" .. file .. ".onnx")
  for i, t in ipairs(x) do flow.save_npy(("%s/%s.x%d.npy"):format(folder, file, i), t) end
  for i, t in ipairs(flow.is_tensor(y) and { y } or y) do flow.save_npy(("%s/%s.y%d.npy"):format(folder, file, i), t) end
end

describe("ONNX Runtime gives what predict gives:", function()
  if missing ~= 0 then
    pending("not tested: " .. python .. " has no onnx and onnxruntime; name one that has in FLOW_PYTHON")
    return
  end
  local results

  setup(function()
    local folder = support.folder()
    results = {}
    for i, case in ipairs(cases) do
      local ok, problem = pcall(export, case, folder, ("%04d"):format(i))
      if not ok then results[i] = tostring(problem) end
    end
    local output = support.run(("%s %sspec/golden/onnx_check.py %s"):format(python, support.root, folder))
    for number, found in output:gmatch("(%d+)\t([^\n]*)\n") do results[tonumber(number)] = found end
    results.output = output
    flow.io.rmtree(folder)
  end)

  for i, case in ipairs(cases) do
    it(case.name, function()
      local found = results[i] or "no result: " .. results.output
      if WITHOUT_FORM[found:match "export: the op (%S+) has no ONNX form"] then return end
      assert.is_truthy(tonumber(found), found)
      assert.is_true(tonumber(found) <= TOLERANCE, "difference " .. found)
    end)
  end
end)
