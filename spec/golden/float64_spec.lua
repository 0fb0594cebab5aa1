-- float64_spec.lua: layers with dtype = "float64": models of them train and predict as Keras' (float64.py), and are written and read back.
-- Each layer alone is compared in layers_spec.lua.
local support = require "spec.support.init"
local flow = require "flow"
local golden = require "spec.support.golden"

local layers, optimizers = flow.layers, flow.optimizers
local cases = require "spec.golden.float64"

-- Learning rates are float32 here, in which those of the cases are exact.
local NEAR = 5e-9

local function near(expected, found, what)
  assert.equal(#expected, #found, what)
  for i, x in ipairs(expected) do
    local off = math.abs(x - found[i])
    assert.is_true(off <= NEAR * math.max(1, math.abs(x)), ("%s %d: %.12g, Keras has %.12g"):format(what, i, found[i], x))
  end
end

local function flat(t) return t:reshape({ -1 }):totable() end

local function net(dtype)
  return flow.Sequential { layers.Input { 6 }, layers.Dense(5, { activation = "tanh", dtype = dtype }),
    layers.BatchNormalization { dtype = dtype }, layers.Dense(3, { dtype = dtype }) }
end

local function compiled(case)
  local model = net "float64"
  model:set_weights(golden.make_all(case.weights))
  model:compile { optimizer = optimizers[case.optimizer](case.options), loss = "mse" }
  return model
end

describe("a model in float64", function()
  for i, case in ipairs(cases) do
    it(("trains by %s as Keras' does (%d)"):format(case.optimizer, i), function()
      local model, x, y = compiled(case), golden.make(case.x), golden.make(case.y)
      for _, v in ipairs(model.weights) do assert.equal("float64", v.dtype, v.path) end
      local losses = {}
      for step = 1, #case.losses do losses[step] = model:train_on_batch(x, y).loss end
      near(case.losses, losses, "loss")
      for k, v in ipairs(model.weights) do near(case.trained[k], flat(v:value()), v.path) end
      local predictions = model:predict(x, { verbose = 0 })
      assert.equal("float64", predictions.dtype)
      near(case.predictions, flat(predictions), "prediction")
    end)
  end

  it("is written and read back with its optimizer, and saved in checkpoints", function()
    local case = cases[4]
    local model, x, y = compiled(case), golden.make(case.x), golden.make(case.y)
    model:train_on_batch(x, y)
    local path, folder = support.path ".keras", support.folder()
    model:save(path)
    local saved = flow.train.Checkpoint { model = model, optimizer = model.optimizer }:save(folder .. "/state")
    local read, restored = flow.load_model(path), compiled(case)
    flow.train.Checkpoint { model = restored, optimizer = restored.optimizer }:restore(saved)
    local loss = model:train_on_batch(x, y).loss
    for _, other in ipairs { read, restored } do
      assert.equal(loss, other:train_on_batch(x, y).loss)
      for k, v in ipairs(model.weights) do
        assert.equal("float64", other.weights[k].dtype)
        assert.same(flat(v:value()), flat(other.weights[k]:value()), v.path)
      end
      for k, v in ipairs(model.optimizer.variables) do
        assert.equal(v.dtype, other.optimizer.variables[k].dtype)
        assert.same(flat(v:value()), flat(other.optimizer.variables[k]:value()), v.path)
      end
    end
  end)

  it("begins with numbers that float32 does not have", function()
    local layer = layers.Dense(2, { dtype = "float64", kernel_initializer = flow.initializers.Constant(0.1) })
    layer:build { 1, 1 }
    assert.same({ { 0.1, 0.1 } }, layer.kernel:value():totable())
    assert.same({ "float64", "float64", "float64" }, { layer.dtype, layer.compute_dtype, layer.variable_dtype })
    local Own = layers.Layer:extend "Own64"
    function Own:build() self.gain = self:add_weight { name = "gain", shape = { 1 }, initializer = flow.initializers.Constant(0.1) } end
    function Own:call(x) return x * self.gain end
    local own = Own { dtype = "float64" }
    assert.same({ { 0.1 } }, own(flow.ones { 1, 1 }):totable())
    assert.equal("float64", own.gain.dtype)
  end)

  it("is the policy of all layers where that is set", function()
    flow.mixed_precision.set_global_policy "float64"
    finally(function() flow.mixed_precision.set_global_policy "float32" end)
    local model = net()
    assert.equal("float64", model(flow.ones { 1, 6 }).dtype)
    assert.equal("float64", model.layers[1].dtype_policy.name)
  end)

  it("trains on several replicas as on one", function()
    flow.config.set_logical_devices("cpu", 2)
    local case = cases[5]
    local x, y, several = golden.make(case.x), golden.make(case.y), nil
    local function dense() return flow.Sequential { layers.Input { 6 }, layers.Dense(3, { dtype = "float64" }) } end
    flow.distribute.MirroredStrategy({ "cpu:0", "cpu:1" }).scope(function()
      several = dense()
      several:compile { optimizer = optimizers.Adam(0.01), loss = "mse" }
    end)
    local one = dense()
    one:set_weights(several:get_weights())
    one:compile { optimizer = optimizers.Adam(0.01), loss = "mse" }
    for _ = 1, 4 do assert.near(one:train_on_batch(x, y).loss, several:train_on_batch(x, y).loss, 1e-14) end
    near(flat(one.weights[1]:value()), flat(several.weights[1]:value()), "kernel")
  end)
end)
