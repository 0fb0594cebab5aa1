-- mixed_precision_spec.lua: layers that compute in 16 bits on weights of 32.
local support = require "spec.support.init"
local flow = require "flow"
local layers, mixed_precision = flow.layers, flow.mixed_precision
local steps = require "flow.train.steps"

local function problem_of(f)
  local ok, problem = pcall(f)
  assert.is_false(ok)
  return tostring(problem)
end

local function largest_difference(a, b)
  return (a:to("float64") - b:to("float64")):abs():max():item()
end

-- What bfloat16 holds of x, as float32.
local function rounded(x) return x:to("bfloat16"):to("float32") end

describe("mixed_precision", function()
  after_each(function() mixed_precision.set_global_policy("float32") end)

  it("computes in bfloat16 what it keeps in float32", function()
    local x = flow.random.normal({ 5, 40 }, { seed = 1 })
    local dense = layers.Dense(7, { dtype = "mixed_bfloat16", bias_initializer = "glorot_uniform" })
    local y = dense(x)
    assert.equal("bfloat16", y.dtype)
    assert.equal("float32", dense.kernel.dtype)
    local expected = rounded(rounded(rounded(x):matmul(rounded(dense.kernel:value()))) + rounded(dense.bias:value()))
    assert.equal(0, largest_difference(expected, y))
    assert.is_true(largest_difference(x:matmul(dense.kernel:value()) + dense.bias:value(), y) > 1e-4)
  end)

  it("is what layers get that name no dtype", function()
    local before = layers.Dense(2)
    mixed_precision.set_global_policy("mixed_bfloat16")
    assert.equal("mixed_bfloat16", mixed_precision.global_policy().name)
    local inside, own = layers.Dense(2), layers.Dense(2, { dtype = "float32" })
    local by_policy = layers.Dense(2, { dtype = mixed_precision.Policy("mixed_bfloat16") })
    assert.same({ "float32", "bfloat16", "float32", "bfloat16" },
      { before.compute_dtype, inside.compute_dtype, own.compute_dtype, by_policy.compute_dtype })
    assert.same({ "float32", "float32", "mixed_bfloat16" }, { inside.dtype, inside.variable_dtype, inside.dtype_policy.name })
    assert.equal("float32", own(inside(flow.ones { 1, 3 })).dtype)
  end)

  it("leaves integers and float64 unchanged", function()
    mixed_precision.set_global_policy("mixed_bfloat16")
    assert.equal("bfloat16", layers.Embedding(5, 3)(flow.tensor({ { 1, 4 } }, { dtype = "int32" })).dtype)
    assert.equal("float64", layers.Flatten()(flow.zeros({ 2, 2 }, { dtype = "float64" })).dtype)
  end)

  it("normalizes in float32", function()
    local x = flow.random.normal({ 64, 3 }, { seed = 2 }) + 100          -- bfloat16 has steps of 0.5 there
    local mixed, plain = layers.BatchNormalization { dtype = "mixed_bfloat16" }, layers.BatchNormalization()
    local y = mixed(x, { training = true })
    assert.equal("bfloat16", y.dtype)
    assert.is_true(largest_difference(plain(x, { training = true }), y) < 0.02)
    assert.equal(0, largest_difference(plain.moving_mean:value(), mixed.moving_mean:value()))
  end)

  it("casts for layers written in Lua", function()
    local seen = {}
    local Scale = layers.Layer:extend("Scale")
    function Scale:build() self.gain = self:add_weight { name = "gain", shape = { 3 }, initializer = "ones" } end
    function Scale:call(x)
      seen[1], seen[2] = x.dtype, self.gain:value().dtype
      return x * self.gain
    end
    mixed_precision.set_global_policy("mixed_bfloat16")
    local scale = Scale()
    assert.equal("bfloat16", scale(flow.ones { 2, 3 }).dtype)
    assert.same({ "bfloat16", "bfloat16" }, seen)
    assert.equal("float32", scale.gain:value().dtype)
  end)

  local function train(policy)
    flow.set_random_seed(3)
    mixed_precision.set_global_policy(policy)
    local model = flow.Sequential {
      layers.Input { 8, 8, 1 }, layers.Conv2D(6, 3, { activation = "relu" }), layers.BatchNormalization(), layers.MaxPooling2D(),
      layers.Flatten(), layers.Dropout(0.1), layers.Dense(32, { activation = "relu" }), layers.Dense(3, { dtype = "float32" }),
    }
    model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true }, metrics = { "accuracy" } }
    local y = flow.random.randint({ 96 }, 0, 3, { seed = 4 })
    local x = flow.random.normal({ 96, 8, 8, 1 }, { seed = 5 }) + y:to("float32"):reshape { 96, 1, 1, 1 }
    return model, model:fit(x, y, { epochs = 6, batch_size = 24, verbose = 0 }).history.loss, x
  end

  it("trains as float32 does", function()
    finally(function() flow.config.set_precision "fast" end)
    flow.config.set_precision "exact"      -- else plans of the CPU keep float32 between ops
    local _, plain = train "float32"
    local model, mixed = train "mixed_bfloat16"
    local differs = false
    for i = 1, #plain do
      assert.is_true(math.abs(plain[i] - mixed[i]) < 0.15 * plain[1], ("epoch %d: %g and %g"):format(i, plain[i], mixed[i]))
      differs = differs or plain[i] ~= mixed[i]
    end
    assert.is_true(differs and mixed[#mixed] < 0.7 * mixed[1])
    for _, v in ipairs(model.weights) do assert.equal("float32", v.dtype) end
  end)

  local function net(policy)
    flow.set_random_seed(3)
    mixed_precision.set_global_policy(policy)
    local model = flow.Sequential {
      layers.Input { 8, 8, 1 }, layers.Conv2D(6, 3, { activation = "relu" }), layers.BatchNormalization(), layers.MaxPooling2D(),
      layers.Flatten(), layers.Dense(32, { activation = "relu" }), layers.Dense(3),
    }
    model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    return model
  end

  local function step_of(policy)
    local x, y = flow.zeros { 4, 8, 8, 1 }, flow.zeros({ 4 }, { dtype = "int32" })
    return steps.describe(steps.get(net(policy), "train", { x, y }, { x = 1, y = 1, weights = 0 }, 4))
  end

  -- Whether the processor multiplies bfloat16 numbers (AVX512-BF16): products round then what they multiply.
  local function products_round() return step_of("mixed_bfloat16"):find(" bfloat16 ", 1, true) ~= nil end

  it("trains on the CPU by float32's ops, without casts between them", function()
    assert.equal(step_of "float32", (step_of("mixed_bfloat16"):gsub("bfloat16  ", "tiled     ")))
    assert.truthy(step_of("mixed_float16"):find("float16{", 1, true))
  end)

  it("rounds in exact mode what eager calls round", function()
    local x = flow.random.normal({ 5, 8, 8, 1 }, { seed = 6 })
    finally(function() flow.config.set_precision("fast") end)
    flow.config.set_precision("exact")
    assert.truthy(step_of("mixed_bfloat16"):find("bfloat16{", 1, true))
    local model = net "mixed_bfloat16"
    assert.equal(0, largest_difference(model(x), model:predict(x, { verbose = 0 })))
  end)

  it("is saved with the layers", function()
    local model, _, x = train "mixed_bfloat16"
    local path = support.path(".keras")
    model:save(path)
    mixed_precision.set_global_policy("float32")
    local loaded = flow.load_model(path)
    os.remove(path)
    assert.equal("mixed_bfloat16", loaded.layers[1].dtype_policy.name)
    assert.equal("float32", loaded.layers[#loaded.layers].dtype_policy.name)
    assert.equal(0, largest_difference(model:predict(x, { verbose = 0 }), loaded:predict(x, { verbose = 0 })))
  end)

  -- Losses of four steps and a prediction of a net with moves between its ops, by policy and precision.
  local function results(policy, precision)
    mixed_precision.set_global_policy(policy)
    flow.config.set_precision(precision)
    flow.set_random_seed(5)
    local input = layers.Input { 12, 12, 3 }
    local x = layers.BatchNormalization()(layers.Conv2D(8, 3, { padding = "same", activation = "relu" })(input))
    x = layers.Concatenate() { layers.MaxPooling2D()(x), layers.AveragePooling2D()(x) }
    x = layers.Permute { 2, 1, 3 }(x)
    x = layers.Dense(6, { activation = "silu" })(layers.Reshape { 18, 32 }(x))
    local output = layers.Dense(4, { dtype = "float32" })(layers.Flatten()(x))
    local model = flow.Model { inputs = input, outputs = output }
    model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    local data = flow.random.normal({ 40, 12, 12, 3 }, { seed = 6 })
    local labels = flow.random.uniform({ 40 }, { maxval = 4, dtype = "int32", seed = 7 })
    local history = model:fit(data, labels, { epochs = 4, batch_size = 16, verbose = 0, shuffle = false })
    local last = model.layers[#model.layers - 1]
    local inner = flow.Model { inputs = input, outputs = last.output }
    local losses, prediction, half = history.history.loss, model:predict(data, { verbose = 0 }), inner:predict(data, { verbose = 0 })
    flow.config.set_precision "fast"
    return losses, prediction, half
  end

  it("rounds nothing between the ops of a plan on the CPU, unless results must be exact", function()
    local near = products_round() and 2000 or 1
    local losses, prediction, half = results("float32", "fast")
    local mixed_losses, mixed_prediction, mixed_half = results("mixed_bfloat16", "fast")
    for i, loss in ipairs(losses) do assert.is_true(math.abs(mixed_losses[i] - loss) < near * 1e-6) end
    assert.is_true(largest_difference(prediction, mixed_prediction) < near * 1e-5)
    assert.equal("bfloat16", mixed_half.dtype)                          -- what a plan returns keeps its dtype
    assert.is_true(largest_difference(half, mixed_half) < (near > 1 and 0.02 or 0.004) * half:abs():max():item())
    local exact_losses, exact_prediction = results("mixed_bfloat16", "exact")
    assert.is_true(largest_difference(prediction, exact_prediction) > 1e-4)
    for i, loss in ipairs(exact_losses) do assert.is_true(math.abs(loss - losses[i]) < 0.05) end
  end)

  it("leaves casts alone that a script writes", function()
    local x = flow.random.normal({ 500 }, { seed = 1 })
    local round = flow.fn(function(value) return value:to("bfloat16"):to("float32") end)
    assert.equal(0, largest_difference(round(x), rounded(x)))
    assert.is_true(largest_difference(round(x), x) > 1e-4)
  end)

  it("says what it cannot do", function()
    assert.truthy(problem_of(function() mixed_precision.set_global_policy("mixed_bfloat61") end):find("did you mean", 1, true))
    assert.truthy(problem_of(function() mixed_precision.set_global_policy(16) end):find("a policy is a text", 1, true))
    assert.truthy(problem_of(function() layers.Dense(2, { dtype = "float16" }) end):find("not supported", 1, true))
  end)
end)
