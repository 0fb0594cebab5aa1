-- moving_average_spec.lua: use_ema, by which optimizers keep moving averages of the weights, and the callback SwapEMAWeights. Averages that
-- overwrite the weights are compared with Keras' in spec/golden.
local setup = require "spec.support.nets.optimizers"
local support = require "spec.support.init"
local flow = require "flow"
local optimizers = flow.optimizers
local message_of = support.message_of

local Plain, x, y, new_model, fit = setup.Plain, setup.x, setup.y, setup.new, setup.fit
local copies, same, near = setup.values, setup.same, setup.near

-- The callback's list gets the weights after each batch.
local function watcher(list)
  local Watch = flow.callbacks.Callback:extend("Watch")
  function Watch:on_train_batch_end() list[#list + 1] = copies(self.model.trainable_variables) end
  return Watch()
end

-- What averages with this momentum would be of a list of weights: after the first update the weights, then the mean of both.
local function averages_of(list, momentum)
  local result = list[1]
  for k = 2, #list do
    local next_result = {}
    for i, average in ipairs(result) do next_result[i] = average * momentum + list[k][i] * (1 - momentum) end
    result = next_result
  end
  return result
end

local CLASSES = { SGD = optimizers.SGD, Adam = optimizers.Adam, Lion = optimizers.Lion, Nadam = optimizers.Nadam, Plain = Plain,
                  Ftrl = optimizers.Ftrl, Lamb = optimizers.Lamb, Adafactor = optimizers.Adafactor, Muon = optimizers.Muon }

describe("averages of the weights", function()
  it("come before the slots, and follow the weights", function()
    local v, w = flow.Variable({ 1, 2 }, { name = "v" }), flow.Variable({ 4 }, { name = "w" })
    local sgd = optimizers.SGD { learning_rate = 1, momentum = 0.5, use_ema = true, ema_momentum = 0.75 }
    sgd:apply({ flow.tensor { 1, 1 }, flow.tensor { 2 } }, { v, w })
    local names = {}
    for i, entry in ipairs(sgd.variables) do names[i] = entry.path end
    assert.same({ "sgd/iteration", "sgd/learning_rate", "sgd/v_average", "sgd/w_average", "sgd/v_momentum", "sgd/w_momentum" }, names)
    assert.same({ 0, 1 }, sgd.variables[3]:totable())
    assert.same({ 2 }, sgd.variables[4]:totable())
    sgd:apply({ flow.tensor { 0, 4 }, flow.tensor { 0 } }, { v, w })      -- v becomes { -0.5, -3.5 }, w 1
    assert.same({ -0.125, -0.125 }, sgd.variables[3]:totable())
    assert.same({ 1.75 }, sgd.variables[4]:totable())
    sgd:finalize_variable_values { v }
    assert.same({ -0.125, -0.125 }, v:totable())
    assert.same({ 1 }, w:totable())
  end)

  for name, class in pairs(CLASSES) do
    it("are what fit ends with: " .. name, function()
      local list = {}
      local model = new_model(class { learning_rate = 0.05, use_ema = true, ema_momentum = 0.8 })
      fit(model, { callbacks = { watcher(list) } })
      assert.equal(12, #list)
      near(averages_of(list, 0.8), copies(model.trainable_variables), 1e-6)
      local without = new_model(class { learning_rate = 0.05 })
      fit(without)
      near(list[12], copies(without.trainable_variables), 1e-6)      -- they change no update
    end)
  end

  it("are the same on two replicas", function()
    flow.config.set_logical_devices("cpu", 2)
    local strategy = flow.distribute.MirroredStrategy { "cpu:0", "cpu:1" }
    for _, class in pairs(CLASSES) do
      local options, model = { learning_rate = 0.05, use_ema = true, ema_momentum = 0.8, ema_overwrite_frequency = 5 }, nil
      strategy.scope(function() model = new_model(class(options)) end)
      fit(model)
      local alone = new_model(class(options))
      fit(alone)
      near(copies(alone.trainable_variables), copies(model.trainable_variables), 1e-4)
    end
  end)

  it("stay as they are where a loss scale finds a gradient that is not finite", function()
    for _, class in pairs(CLASSES) do
      for _, wrap in ipairs { function(f) return f end, flow.fn } do
        local w = flow.Variable { 1, 2 }
        local inner = class { learning_rate = 0.5, use_ema = true, ema_overwrite_frequency = 2 }
        local optimizer = optimizers.LossScaleOptimizer(inner, { initial_scale = 4 })
        local step = wrap(function(g) optimizer:apply_gradients({ g }, { w }) end)
        step(flow.tensor { 4, 8 })
        local before, value = copies(inner.variables), w:totable()
        step(flow.tensor { 1, 1 / 0 })
        same(before, copies(inner.variables))
        assert.same(value, w:totable())
        step(flow.tensor { 4, 8 })
        same({ w:value() }, { optimizer:_average_of(w):value() })
      end
    end
  end)

  it("go on from a backup and from a file to the last bit", function()
    for _, class in pairs(CLASSES) do
      local folder = support.file("x", ""):match("^(.*)/")
      local function run(...)
        local model = new_model(class { learning_rate = 0.05, use_ema = true, ema_momentum = 0.7, ema_overwrite_frequency = 5 })
        local ok, problem = pcall(fit, model, { callbacks = { ... } })
        return model, not ok and problem or nil
      end
      local count, Bomb = 0, flow.callbacks.Callback:extend("Bomb")
      function Bomb:on_train_batch_end()
        count = count + 1
        if count == 7 then error("bang") end
      end
      local backup, expected = flow.callbacks.BackupAndRestore, run()
      assert.matches("bang", select(2, run(backup(folder .. "/backup", { save_freq = 3 }), Bomb())))
      local found, problem = run(backup(folder .. "/backup", { save_freq = 3 }))
      assert.is_nil(problem)
      same(copies(expected.weights), copies(found.weights))
      same(copies(expected.optimizer.variables), copies(found.optimizer.variables))

      expected:save(folder .. "/m.keras")
      local again = flow.load_model(folder .. "/m.keras", { custom_objects = { Plain = Plain } })
      fit(expected)
      fit(again)
      same(copies(expected.weights), copies(again.weights))
    end
  end)

  it("refuse options that mean nothing", function()
    assert.matches("SGD: ema_momentum is %-1, expected a number from 0 to 1",
      message_of(function() optimizers.SGD { ema_momentum = -1 } end))
    assert.matches("Adam: ema_overwrite_frequency is 0, expected a whole number from 1",
      message_of(function() optimizers.Adam { use_ema = true, ema_overwrite_frequency = 0 } end))
  end)
end)

describe("SwapEMAWeights", function()
  local swap = flow.callbacks.SwapEMAWeights

  it("validates with the averages, and trains on with the weights", function()
    local function run(...)
      local model = new_model(optimizers.SGD { learning_rate = 0.1, use_ema = true, ema_momentum = 0.9 })
      local history = fit(model, { callbacks = { ... }, validation_data = { x, y } })
      return model, history.history
    end
    local list = {}
    local model, swapped = run(swap(), watcher(list))
    local other, plain = run()
    same(copies(other.weights), copies(model.weights))
    assert.same(plain.loss, swapped.loss)
    for epoch = 1, 3 do
      local first = {}
      for k = 1, 4 * epoch do first[k] = list[k] end
      local judge = new_model("sgd")
      judge:set_weights(averages_of(first, 0.9))
      assert.near(judge:evaluate(x, y, { verbose = 0, batch_size = 10 }).loss, swapped.val_loss[epoch], 1e-5)
      assert.is_true(math.abs(plain.val_loss[epoch] - swapped.val_loss[epoch]) > 1e-3)
    end
  end)

  it("leaves the averages in the model between epochs, if it is told to", function()
    local seen, list = {}, {}
    local See = flow.callbacks.Callback:extend("See")
    function See:on_epoch_end() seen[#seen + 1] = copies(self.model.trainable_variables) end
    local model = new_model(optimizers.Adam { learning_rate = 0.1, use_ema = true, ema_momentum = 0.9 })
    fit(model, { callbacks = { swap { swap_on_epoch = true }, See(), watcher(list) } })
    for epoch = 1, 3 do
      local first = {}
      for k = 1, 4 * epoch do first[k] = list[k] end
      near(averages_of(first, 0.9), seen[epoch], 1e-5)
    end
    near(seen[3], copies(model.trainable_variables), 0)
  end)

  it("a fit without a step leaves the weights unchanged", function()
    for _, eager in ipairs { false, true } do
      local model = new_model("sgd")
      model:compile { optimizer = optimizers.SGD { learning_rate = 0.1, use_ema = true }, loss = "mse", run_eagerly = eager }
      local before = copies(model.weights)
      fit(model, { initial_epoch = 5 })
      same(before, copies(model.weights))
      model.optimizer:build(model.trainable_variables)
      model.optimizer:finalize_variable_values(model.trainable_variables)
      same(before, copies(model.weights))
    end
  end)

  it("says that the optimizer keeps none", function()
    local model = new_model("sgd")
    assert.equal('SwapEMAWeights: SGD "sgd" keeps no averages of the model\'s weights: make it with use_ema = true, and train before '
      .. "evaluating", message_of(function() model:evaluate(x, y, { verbose = 0, callbacks = { swap() } }) end))
  end)
end)
