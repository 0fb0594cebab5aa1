-- accumulation_spec.lua: gradient_accumulation_steps, by which an optimizer updates once in N calls with the mean of their gradients. Its
-- numbers are compared with Keras' in spec/golden.
local setup = require "spec.support.nets.optimizers"
local support = require "spec.support.init"
local flow = require "flow"
local layers, optimizers = flow.layers, flow.optimizers
local new_model, fit, values, same, near = setup.new, setup.fit, setup.values, setup.same, setup.near

local CLASSES = { SGD = optimizers.SGD, Adam = optimizers.Adam, Nadam = optimizers.Nadam, Plain = setup.Plain,
                  Ftrl = optimizers.Ftrl, Lamb = optimizers.Lamb, Muon = optimizers.Muon }

describe("gradient_accumulation_steps", function()
  it("keeps accumulators after averages and before the slots of the class, and counts calls in its variable", function()
    local v, w = flow.Variable({ 0, 1 }, { name = "v" }), flow.Variable({ 2 }, { name = "w" })
    local sgd = optimizers.SGD { learning_rate = 1, momentum = 0.5, use_ema = true, gradient_accumulation_steps = 2 }
    sgd:build { v, w }
    local names = {}
    for i, variable in ipairs(sgd.variables) do names[i] = variable.path end
    assert.same({ "sgd/iteration", "sgd/learning_rate", "sgd/v_average", "sgd/w_average", "sgd/v_gradient_accumulator",
                  "sgd/w_gradient_accumulator", "sgd/v_momentum", "sgd/w_momentum" }, names)
    assert.equal(1, sgd:apply_gradients({ flow.tensor { 4, 8 }, flow.tensor { 1 } }, { v, w }))
    assert.same({ { 0, 1 }, { 2 }, { 4, 8 }, { 1 }, 0 },
      { v:totable(), w:totable(), sgd.variables[5]:totable(), sgd.variables[6]:totable(), sgd.iterations })
    assert.equal(2, sgd:apply_gradients({ flow.tensor { 0, 4 }, flow.tensor { 3 } }, { v, w }))
    assert.same({ { -2, -5 }, { 0 }, { 0, 0 }, { 0 }, 1 },
      { v:totable(), w:totable(), sgd.variables[5]:totable(), sgd.variables[6]:totable(), sgd.iterations })
    assert.equal(2, sgd.variables[1]:value():item())
  end)

  it("drops what a variable has accumulated whose gradient the last call lacks, as Keras does", function()
    local v, w = flow.Variable { 1 }, flow.Variable { 1 }
    local sgd = optimizers.SGD { learning_rate = 1, gradient_accumulation_steps = 2 }
    sgd:apply_gradients({ flow.tensor { 2 }, flow.tensor { 2 } }, { v, w })
    sgd:apply_gradients({ flow.tensor { 4 } }, { v, w })
    assert.same({ { -2 }, { 1 } }, { v:totable(), w:totable() })
    sgd:apply_gradients({ flow.tensor { 0 }, flow.tensor { 0 } }, { v, w })
    sgd:apply_gradients({ flow.tensor { 0 }, flow.tensor { 8 } }, { v, w })
    assert.same({ { -2 }, { -3 } }, { v:totable(), w:totable() })
  end)

  for name, class in pairs(CLASSES) do
    it("makes of two halves of a batch one update of " .. name, function()
      local halves = new_model(class { learning_rate = 0.05, gradient_accumulation_steps = 2 })
      fit(halves)
      local whole = new_model(class { learning_rate = 0.05 })
      fit(whole, { batch_size = 20 })
      near(values(whole.weights), values(halves.weights), 1e-5)
      assert.same({ 6, 6 }, { whole.optimizer.iterations, halves.optimizer.iterations })
    end)

    it("is the same on two replicas, with " .. name, function()
      flow.config.set_logical_devices("cpu", 2)
      local strategy, model = flow.distribute.MirroredStrategy { "cpu:0", "cpu:1" }, nil
      for _, clip in ipairs { "clipnorm", "global_clipnorm" } do
        local options = { learning_rate = 0.05, gradient_accumulation_steps = 3, [clip] = 0.2 }
        strategy.scope(function() model = new_model(class(options)) end)
        fit(model, { epochs = 4 })
        local alone = new_model(class(options))
        fit(alone, { epochs = 4 })
        near(values(alone.weights), values(model.weights), 1e-4)
        assert.equal(5, model.optimizer.iterations)
      end
    end)

    it("goes on from a file that was written between two updates of " .. name, function()
      local path = support.folder() .. "/m.keras"
      local options = { learning_rate = 0.05, gradient_accumulation_steps = 5, use_ema = true, ema_momentum = 0.9 }
      local model = new_model(class(options))
      fit(model)
      assert.same({ 2, 12 }, { model.optimizer.iterations, model.optimizer.variables[1]:value():item() })
      model:save(path)
      local again = flow.load_model(path, { custom_objects = { Plain = setup.Plain } })
      assert.equal(5, again.optimizer:get_config().gradient_accumulation_steps)
      fit(model)
      fit(again)
      same(values(model.weights), values(again.weights))
      same(values(model.optimizer.variables), values(again.optimizer.variables))
    end)

    it("is the same in a traced function, with " .. name, function()
      local ends = {}
      for i, wrap in ipairs { function(f) return f end, flow.fn } do
        local v, w = flow.Variable { 1, -2, 3 }, flow.Variable(0.5)
        local optimizer = class { learning_rate = 0.02, weight_decay = 0.02, clipnorm = 0.5, gradient_accumulation_steps = 3 }
        local step = wrap(function(factor)
          local tape = flow.GradientTape()
          local loss = tape:record(function() return ((v * factor - 1) ^ 2):sum() * w + w * w end)
          optimizer:apply_gradients(tape:gradient(loss, { v, w }), { v, w })
          return loss
        end)
        for k = 1, 20 do step(flow.tensor(k % 3 + 1)) end
        ends[i] = values { v, w, unpack(optimizer.variables) }
      end
      near(ends[1], ends[2], 1e-6)
    end)
  end

  it("counts updates for an optimizer in Lua, and calls for a schedule", function()
    local Counts, seen = setup.Plain:extend("Counts"), {}
    function Counts:update_step(gradient, variable, rate)
      seen[#seen + 1] = { self.iterations:item(), rate:item() }
      setup.Plain.update_step(self, gradient, variable, rate)
    end
    local schedule = optimizers.schedules.PiecewiseConstantDecay({ 2, 5 }, { 3, 2, 1 })
    local optimizer, v = Counts { learning_rate = schedule, gradient_accumulation_steps = 4 }, flow.Variable { 0 }
    for _ = 1, 8 do optimizer:apply_gradients({ flow.tensor { 1 } }, { v }) end
    assert.same({ { 0, 2 }, { 1, 1 } }, { seen[4], seen[8] })
    assert.same({ -3 }, v:totable())
  end)

  it("leaves out a call whose gradients a loss scale finds not finite", function()
    for _, wrap in ipairs { function(f) return f end, flow.fn } do
      local v, inner = flow.Variable { 1, 1 }, optimizers.SGD { learning_rate = 1, gradient_accumulation_steps = 2 }
      local optimizer = optimizers.LossScaleOptimizer(inner, { initial_scale = 2 })
      local step = wrap(function(g) optimizer:apply_gradients({ g }, { v }) end)
      step(flow.tensor { 2, 4 })                   -- 1, 2 after the scale
      step(flow.tensor { 1, 1 / 0 })               -- the scale becomes 1
      assert.same({ { 1, 1 }, { 1, 2 }, 1 }, { v:totable(), inner.variables[3]:totable(), inner.variables[1]:value():item() })
      step(flow.tensor { 3, 4 })
      assert.same({ { -1, -2 }, { 0, 0 }, 1 }, { v:totable(), inner.variables[3]:totable(), optimizer.iterations })
    end
  end)

  it("draws other masks of dropout in each call", function()
    local masks = {}
    flow.set_random_seed(1)
    local model = flow.Sequential { layers.Input { 64 }, layers.Dropout(0.5), layers.Dense(1, { use_bias = false }) }
    local optimizer = optimizers.SGD { learning_rate = 1, gradient_accumulation_steps = 2 }
    model:compile { optimizer = optimizer, loss = function(_, y) return y:mean(-1) end }
    local callback = flow.callbacks.LambdaCallback { on_train_batch_end = function()
      masks[#masks + 1] = optimizer.variables[3]:value():totable()
    end }
    model:fit(flow.ones { 1, 64 }, flow.zeros { 1, 1 }, { epochs = 3, batch_size = 1, verbose = 0, callbacks = { callback } })
    assert.not_same(masks[1], masks[3])
  end)
end)
