-- constraints_spec.lua: what weights are projected onto after updates: values, options, files, every way to update, and what is refused.
-- Against Keras: spec/golden/layer_options_spec.lua.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local layers, constraints = flow.layers, flow.constraints
local message_of = support.message_of

local function fails(part, f)
  local text = message_of(f)
  assert.truthy(text:find(part, 1, true), text)
end

local function same(wanted, found) assert.near(0, (flow.tensor(wanted) - found):abs():max():item(), 1e-6) end

-- Dense with a constraint on its kernel, which pulls to values that it refuses.
local function new_model(constraint, options)
  flow.set_random_seed(4)
  local named = { kernel_constraint = constraint }
  for name, value in pairs(options or {}) do named[name] = value end
  return flow.Sequential { layers.Input { 3 }, layers.Dense(2, named), layers.Dense(1) }
end
local x, y = flow.random.normal({ 16, 3 }, { seed = 1 }), flow.random.normal({ 16, 1 }, { seed = 2 })

local function norms(model) return model.layers[1].kernel:value():square():sum(1):sqrt():totable() end

describe("constraints", function()
  it("are formulas of Keras, along axes from 1", function()
    same({ { 0.6, 0.1 }, { 0.8, 0.2 } }, constraints.MaxNorm(1)(flow.tensor { { 3, 0.1 }, { 4, 0.2 } }))
    same({ { 0.54 }, { 0.72 } }, constraints.MinMaxNorm(0.9, 0.5)(flow.tensor { { 3 }, { 4 } }))      -- an empty range: Keras gives 0.9
    same({ { 1, 1 }, { 1, 1 } }, constraints.UnitNorm { axis = 2 }(flow.tensor { { 3, 0 }, { 5, 0 } }) + flow.tensor { { 0, 1 }, { 0, 1 } })
    same({ { 0.6, 0 }, { 0.8, 0 } }, constraints.unit_norm { axis = { 1, 2 } } { { 3, 0 }, { 4, 0 } })
    same({ 0, 2 }, constraints.NonNeg()({ -1, 2 }))
    same({ { 1.5 }, { 2 } }, constraints.MinMaxNorm { min_value = 1, max_value = 2, rate = 0.5, axis = -1 } { { 2 }, { 2 } } -
      flow.tensor { { 0.5 }, { 0 } })
    same({ { 0.75 } }, constraints.min_max_norm(1, 2, 0.5) { { 0.5 } })
  end)

  it("hold after each update of every optimizer, in fit and in a loop of one's own", function()
    for _, name in ipairs { "SGD", "Adam", "RMSprop", "Nadam", "Lion", "Adagrad" } do
      local model = new_model(constraints.MaxNorm(0.5, 1), { bias_constraint = "non_neg" })
      model:compile { optimizer = flow.optimizers[name](0.1), loss = "mse" }
      model:fit(x, y, { epochs = 3, batch_size = 4, verbose = 0 })
      for _, norm in ipairs(norms(model)) do assert.is_true(norm <= 0.5 + 1e-5, name) end
      assert.is_true(model.layers[1].bias:value():min():item() >= 0)
    end
    local v = flow.Sequential { layers.Input { 2 }, layers.Dense(1, { kernel_constraint = "unit_norm" }) }
    local optimizer = flow.optimizers.SGD(1)
    optimizer:apply_gradients({ flow.tensor { { -30 }, { -40 } } }, { v.layers[1].kernel })
    assert.near(1, v.layers[1].kernel:value():square():sum():item(), 1e-5)
    local before = v.layers[1].kernel:value() * 1
    optimizer:apply_gradients({ nil, flow.ones { 1 } }, { v.layers[1].kernel, v.layers[1].bias })      -- no gradient, nothing to project
    same(before, v.layers[1].kernel:value())
  end)

  it("hold for optimizers written in Lua, under a loss scale, and on several replicas as on one", function()
    local Plain = flow.optimizers.Optimizer:extend "Plain"
    function Plain:update_step(gradient, v, rate) v:assign(v:value() - gradient * rate) end
    local scaled = flow.optimizers.LossScaleOptimizer(flow.optimizers.SGD(0.1), { initial_scale = 8 })
    for _, optimizer in ipairs { Plain { learning_rate = 0.1 }, scaled } do
      local model = new_model(constraints.UnitNorm())
      model:compile { optimizer = optimizer, loss = "mse" }
      model:fit(x, y, { epochs = 2, batch_size = 4, verbose = 0 })
      for _, norm in ipairs(norms(model)) do assert.near(1, norm, 1e-5) end
    end
    local weights = {}
    flow.config.set_logical_devices("cpu", 2)
    for replicas, devices in ipairs { { "cpu:0" }, { "cpu:0", "cpu:1" } } do
      local strategy, model = flow.distribute.MirroredStrategy { devices = devices }, nil
      strategy.scope(function()
        model = new_model(constraints.MinMaxNorm(0.2, 0.4, 0.5))
        model:compile { optimizer = flow.optimizers.Adam(0.1), loss = "mse" }
      end)
      model:fit(x, y, { epochs = 2, batch_size = 8, verbose = 0, shuffle = false })
      weights[replicas] = model.layers[1].kernel:value():totable()
    end
    same(weights[1], flow.tensor(weights[2]))
  end)

  it("stand in files, which train on with them, in C, too", function()
    local model = new_model(constraints.MaxNorm { max_value = 0.5, axis = { 1 } }, { bias_constraint = constraints.MinMaxNorm(0, 1, 0.5) })
    model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
    local config = model.layers[1]:get_config()
    assert.same({ "MaxNorm", 0.5, { 0 }, "keras.constraints" }, { config.kernel_constraint.class_name,
      config.kernel_constraint.config.max_value, config.kernel_constraint.config.axis, config.kernel_constraint.module })
    assert.same({ min_value = 0, max_value = 1, rate = 0.5, axis = 0 }, config.bias_constraint.config)
    local path = support.file("constrained.keras", "")
    model:save(path)
    local again = flow.load_model(path)
    assert.equal(model:to_json(), again:to_json())
    again:train_on_batch(x, y)
    for _, norm in ipairs(norms(again)) do assert.is_true(norm <= 0.5 + 1e-5) end
    local out, loss = native.out("flow_model"), native.array("double", 1)
    native.try(native.C.flow_model_load, native.context, path, out)
    local in_c = native.own(out, native.C.flow_model_release)
    native.try(native.C.flow_model_train, native.context, in_c, native.pointers { x }, 1, native.pointer(y), loss)
    native.check(native.C.flow_model_save(in_c, path))
    local trained = flow.load_model(path)
    same(again.layers[1].kernel:value():totable(), trained.layers[1].kernel:value())
  end)

  it("can be written in Lua", function()
    local Box = constraints.Constraint:extend "Box"
    function Box:call(w) return w:clip(-self.most, self.most) end
    for _, constraint in ipairs { Box { most = 0.25 }, function(w) return w:clip(-0.25, 0.25) end } do
      local Scale = layers.Layer:extend "Scale"
      function Scale:build() self.gain = self:add_weight { name = "gain", shape = { 3 }, initializer = "ones", constraint = constraint } end
      function Scale:call(inputs) return inputs * self.gain end
      local model = flow.Sequential { layers.Input { 3 }, Scale(), layers.Dense(1) }
      model:compile { optimizer = "sgd", loss = "mse" }
      model:fit(x, y, { batch_size = 4, verbose = 0 })
      assert.is_true(model.layers[1].gain:value():abs():max():item() <= 0.25)
    end
    local w = layers.Layer:extend("Other") { name = "other" }
    w:add_weight { name = "a", shape = { 2 }, initializer = "ones", constraint = constraints.MaxNorm(1) }
    fails("constraint is one such as", function() w:add_weight { name = "b", shape = { 2 }, constraint = 3 } end)
    fails("constraint is one such as", function() w:add_weight { name = "b", shape = { 2 }, constraint = "l2" } end)
  end)

  it("say what is wrong with their options", function()
    fails('kernel_constraint "maxnorm" is not known; did you mean "max_norm"?', function()
      layers.Dense(1, { kernel_constraint = "maxnorm" })
    end)
    fails("axis is 0; axes count from 1", function() constraints.MaxNorm { axis = 0 } end)
    fails('unknown option "max"', function() constraints.MaxNorm { max = 1 } end)
    fails("axis 3 (counted from 1) of UnitNorm is not one of the 2 axes", function()
      layers.Dense(1, { kernel_constraint = constraints.UnitNorm(3) }):build { -1, 4 }
    end)
    fails("axis 3 (counted from 1) of MaxNorm", function() constraints.MaxNorm(1, 3) { { 1 } } end)
    fails("axis must be an axis or a list of axes", function() layers.Dense(1, { kernel_constraint = constraints.MaxNorm(1, 1.5) }) end)
  end)
end)
