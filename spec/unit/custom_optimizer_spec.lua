-- custom_optimizer_spec.lua: optimizers written in Lua: against the library's, under clipping, decay, schedules, loss scales, replicas and
-- in files; and what is said about wrong ones.
local setup = require "spec.support.nets.optimizers"
local support = require "spec.support.init"
local flow = require "flow"
local optimizers = flow.optimizers
local message_of = support.message_of

-- Keras 3's Adam (keras/src/optimizers/adam.py), as a Keras user would port it.
local LuaAdam = optimizers.Optimizer:extend("LuaAdam")
function LuaAdam:init(options)
  options = options or {}
  self.beta_1, self.beta_2, self.epsilon = options.beta_1 or 0.9, options.beta_2 or 0.999, 1e-7
end
function LuaAdam:build(variables)
  self.momentums, self.velocities = self:add_optimizer_variables(variables, { "momentum", "velocity" })
end
function LuaAdam:update_step(gradient, variable, learning_rate)
  local i = self:_get_variable_index(variable)
  local m, v = self.momentums[i], self.velocities[i]
  local step = (self.iterations + 1):to("float32")
  local alpha = learning_rate * (1 - self.beta_2 ^ step):sqrt() / (1 - self.beta_1 ^ step)
  m:assign_add((gradient - m) * (1 - self.beta_1))
  self:assign_add(v, (gradient:square() - v) * (1 - self.beta_2))
  variable:assign_sub(m * alpha / (v:sqrt() + self.epsilon))
end
function LuaAdam:get_config() return { beta_1 = self.beta_1, beta_2 = self.beta_2 } end

local Plain, x, y, new_model = setup.Plain, setup.x, setup.y, setup.new
local copies, same, assert_near = setup.values, setup.same, setup.near

-- 20 updates: 5 epochs of 4 batches.
local function fit(model) return setup.fit(model, { epochs = 5 }) end

describe("an optimizer written in Lua", function()
  local schedule = optimizers.schedules.ExponentialDecay(0.05, 7, 0.5)
  local Halving = optimizers.schedules.LearningRateSchedule:extend("Halving")
  function Halving:call(step) return 0.05 * 0.5 ^ (step / 8) end
  local settings = {
    { "with defaults", {} }, { "with a rate", { learning_rate = 0.05 } }, { "with clipnorm", { learning_rate = 0.05, clipnorm = 0.3 } },
    { "with clipvalue", { learning_rate = 0.05, clipvalue = 0.1 } }, { "with global_clipnorm", { global_clipnorm = 0.2 } },
    { "with decay", { learning_rate = 0.05, weight_decay = 0.1 } }, { "with a schedule", { learning_rate = schedule } },
    { "with a schedule in Lua", { learning_rate = Halving() } }, { "with loss_scale_factor", { loss_scale_factor = 64 } },
  }
  for _, case in ipairs(settings) do
    it("is the built-in one " .. case[1] .. ", in fit", function()
      local models = {}
      for i, class in ipairs { optimizers.Adam, LuaAdam } do
        models[i] = new_model(class(case[2]))
        fit(models[i])
        models[i] = { weights = copies(models[i].weights), variables = copies(models[i].optimizer.variables),
                      rate = models[i].optimizer.learning_rate, iterations = models[i].optimizer.iterations }
      end
      assert_near(models[1].weights, models[2].weights, 1e-6)
      assert_near(models[1].variables, models[2].variables, 1e-6)
      assert.equal(20, models[2].iterations)
      assert.near(models[1].rate, models[2].rate, 1e-9)
    end)
  end

  it("is the built-in one in loops of the user's, at once and traced", function()
    for _, wrap in ipairs { function(f) return f end, flow.fn } do
      local ends = {}
      for i, class in ipairs { optimizers.Adam, LuaAdam } do
        local v, w = flow.Variable { 1, -2, 3 }, flow.Variable(0.5)
        local optimizer = class { learning_rate = 0.02, weight_decay = 0.02 }
        optimizer:exclude_from_weight_decay { w }
        local step = wrap(function(factor)
          local tape = flow.GradientTape()
          local loss = tape:record(function() return ((v * factor - 1) ^ 2):sum() * w + w * w end)
          optimizer:apply_gradients(tape:gradient(loss, { v, w }), { v, w })
          return loss
        end)
        for k = 1, 20 do step(flow.tensor(k % 3 + 1)) end
        ends[i] = { v, w }
      end
      assert_near(ends[1], ends[2], 1e-6)
    end
  end)

  it("is the built-in one on two replicas", function()
    flow.config.set_logical_devices("cpu", 2)
    local strategy, ends = flow.distribute.MirroredStrategy { "cpu:0", "cpu:1" }, {}
    for _, clip in ipairs { { clipnorm = 0.3 }, { global_clipnorm = 0.2 }, {} } do
      for i, class in ipairs { optimizers.Adam, LuaAdam } do
        local model
        strategy.scope(function() model = new_model(class(clip)) end)
        fit(model)
        ends[i] = copies(model.weights)
      end
      assert_near(ends[1], ends[2], 1e-6)
      local alone = new_model(LuaAdam(clip))
      fit(alone)
      assert_near(alone.weights, ends[2], 1e-5)
    end
  end)

  it("writes nothing where a loss scale finds a gradient that is not finite", function()
    for _, wrap in ipairs { function(f) return f end, flow.fn } do
      local w = flow.Variable { 1, 2 }
      local inner = LuaAdam { learning_rate = 0.5 }
      local optimizer = optimizers.LossScaleOptimizer(inner, { initial_scale = 4 })
      local step = wrap(function(g) optimizer:apply_gradients({ g }, { w }) end)
      step(flow.tensor { 4, 8 })
      local before = copies(inner.variables)
      local value = w:totable()
      assert.near(0.5, value[1], 1e-4)
      step(flow.tensor { 1, 1 / 0 })
      same(before, inner.variables)
      assert.same(value, w:totable())
      assert.equal(2, optimizer.dynamic_scale:item())
      assert.equal(1, inner.iterations)
      step(flow.tensor { 1, 1 })
      assert.equal(2, inner.iterations)
    end
  end)

  it("trains under mixed_float16, whose loss scale compile() adds", function()
    flow.mixed_precision.set_global_policy("mixed_float16")
    local ends = {}
    local ok, problem = pcall(function()
      for i, class in ipairs { optimizers.Adam, LuaAdam } do
        local model = new_model(class())
        assert.is_true(rawget(model.optimizer, "inner_optimizer") ~= nil)
        fit(model)
        ends[i] = copies(model.weights)
      end
    end)
    flow.mixed_precision.set_global_policy("float32")
    assert(ok, problem)
    assert_near(ends[1], ends[2], 1e-6)
  end)

  it("goes on from a file to the last bit", function()
    local path = support.file("m.keras", "")
    local expected = new_model(LuaAdam { beta_1 = 0.8, learning_rate = schedule, name = "mine" })
    fit(expected)
    expected:save(path)
    local again = flow.load_model(path, { custom_objects = { LuaAdam = LuaAdam } })
    assert.equal(0.8, again.optimizer.beta_1)
    assert.equal('LuaAdam "mine"', tostring(again.optimizer))
    assert.equal("ExponentialDecay", require("flow.json").decode(again.optimizer:to_json()).config.learning_rate.class_name)
    same(expected.optimizer.variables, again.optimizer.variables)
    fit(expected)
    fit(again)
    same(expected.weights, again.weights)
    same(expected.optimizer.variables, again.optimizer.variables)

    local scaled = new_model(optimizers.LossScaleOptimizer(LuaAdam { beta_1 = 0.7 }, { initial_scale = 8 }))
    fit(scaled)
    scaled:save(path)
    again = flow.load_model(path, { custom_objects = { LuaAdam = LuaAdam } })
    assert.equal(0.7, again.optimizer.inner_optimizer.beta_1)
    fit(scaled)
    fit(again)
    same(scaled.weights, again.weights)
  end)

  it("goes on from a checkpoint and from a backup to the last bit", function()
    local folder = support.file("x", ""):match("^(.*)/")
    local first = new_model(LuaAdam { learning_rate = 0.05 })
    fit(first)
    local saved = flow.train.Checkpoint { model = first } :save(folder .. "/checkpoint")
    fit(first)
    local second = new_model(LuaAdam { learning_rate = 0.05 })
    flow.train.Checkpoint { model = second } :restore(saved)
    fit(second)
    same(first.weights, second.weights)
    same(first.optimizer.variables, second.optimizer.variables)

    local batches = 0
    local Bomb = flow.callbacks.Callback:extend("Bomb")
    function Bomb:on_train_batch_end()
      batches = batches + 1
      if batches == 9 then error("bang") end
    end
    local function run(...)
      local model = new_model(optimizers.LossScaleOptimizer(LuaAdam { learning_rate = 0.05 }))
      local ok, problem = pcall(model.fit, model, x, y, { batch_size = 10, epochs = 5, verbose = 0, callbacks = { ... } })
      return model, not ok and problem or nil
    end
    local expected = run()
    local backup = flow.callbacks.BackupAndRestore
    assert.matches("bang", select(2, run(backup(folder .. "/backup", { save_freq = 3 }), Bomb())))
    local found, problem = run(backup(folder .. "/backup", { save_freq = 3 }))
    assert.is_nil(problem)
    same(expected.weights, found.weights)
    same(expected.optimizer.variables, found.optimizer.variables)
  end)

  it("needs nothing but update_step, and can be extended again", function()
    local Twice = Plain:extend("Twice")
    function Twice:update_step(gradient, variable, rate) Plain.update_step(self, gradient * 2, variable, rate) end
    local w = flow.Variable { 1, 2 }
    local optimizer = Twice { learning_rate = 0.5 }
    optimizer:apply({ flow.tensor { 1, 1 } }, { w })
    assert.same({ 0, 1 }, w:totable())
    optimizer.learning_rate = 0.25
    optimizer:apply({ flow.tensor { 1, 1 } }, { w })
    assert.same({ -0.5, 0.5 }, w:totable())
    assert.equal(2, #optimizer.variables)
    assert.equal("twice", optimizer.name)
    assert.equal(0.25, optimizer:get_config().learning_rate)
  end)

  it("sees in update_step what it has assigned, and what it read before", function()
    local Keeping = optimizers.Optimizer:extend("Keeping")
    function Keeping:build(variables) self.before = self:add_variable_from_reference(variables[1], "before") end
    function Keeping:update_step(gradient, variable, rate)
      self.before:assign(variable)
      variable:assign(5)
      variable:assign_sub(gradient * rate)
      self.seen = variable:totable()
    end
    local w = flow.Variable({ 1, 2 }, { name = "w" })
    local optimizer = Keeping { learning_rate = 1 }
    optimizer:apply({ flow.tensor { 1, 2 } }, { w })
    assert.same({ 4, 3 }, w:totable())
    assert.same({ 4, 3 }, optimizer.seen)
    assert.same({ 1, 2 }, optimizer.before:totable())
    assert.equal("keeping/w_before", optimizer.before.path)
  end)
end)

it("an optimizer written in Lua is closed with its model", function()
  local model = new_model(LuaAdam())
  fit(model)
  local optimizer = model.optimizer
  model:close()
  assert.matches("closed", message_of(function() optimizer:apply_gradients({ flow.ones { 2 } }, { flow.Variable { 1, 2 } }) end))
end)

describe("a wrong optimizer in Lua", function()
  local function apply(optimizer, variable, gradient)
    optimizer:apply_gradients({ gradient or flow.tensor { 1, 1 } }, { variable or flow.Variable { 1, 2 } })
  end
  local function class_of(name, step)
    local class = optimizers.Optimizer:extend(name)
    class.update_step = step
    return class
  end

  it("is told of options that nearly have a name, and of values that are wrong", function()
    assert.equal('LuaAdam: there is no option "learnig_rate", did you mean "learning_rate"?',
      message_of(function() LuaAdam { learnig_rate = 0.1 } end))
    assert.matches("Plain: ema_momentum is 2, expected a number from 0 to 1", message_of(function() Plain { ema_momentum = 2 } end))
    assert.matches("Plain: clipnorm and clipvalue are given", message_of(function() Plain { clipnorm = 1, clipvalue = 1 } end))
    assert.matches("Plain takes a table of options", message_of(function() Plain(0.1) end))
    assert.matches("is extended, not made", message_of(function() optimizers.Optimizer() end))
  end)

  it("is told that update_step is missing, or wrote nothing", function()
    local Empty = optimizers.Optimizer:extend("Empty")
    assert.matches('^Empty "empty" has no update_step%(%)', message_of(apply, Empty()))
    local Forgetful = class_of("Forgetful", function() end)
    local w = flow.Variable({ 1, 2 }, { name = "w" })
    assert.equal('Forgetful "forgetful": update_step() assigned nothing to the variable "w": call '
      .. "variable:assign_sub(...) or another assignment at its end", message_of(apply, Forgetful { weight_decay = 0.5 }, w))
    assert.same({ 1, 2 }, w:totable())
  end)

  it("raises at the line of update_step, and leaves every variable unchanged", function()
    local calls = 0
    local Second = class_of("Second", function(_, gradient, variable)
      calls = calls + 1
      variable:assign_sub(gradient)
      if calls == 2 then error("bang") end
    end)
    local v, w = flow.Variable { 1, 2 }, flow.Variable { 3, 4 }
    local optimizer = Second()
    local text = message_of(function() optimizer:apply_gradients({ flow.ones { 2 }, flow.ones { 2 } }, { v, w }) end)
    assert.equal("bang", text)
    assert.same({ { 1, 2 }, { 3, 4 } }, { v:totable(), w:totable() })
    assert.equal(0, optimizer.iterations)
    assert.equal(0.001, tonumber(("%.6g"):format(optimizer.learning_rate)))
    v:assign { 7, 7 }      -- nothing is deferred any more
    assert.same({ 7, 7 }, v:totable())
  end)

  it("is told of shapes that do not fit, where it assigns", function()
    local Wrong = class_of("Wrong", function(_, gradient, variable) variable:assign(gradient:reshape { 2, 1 } * flow.ones { 1, 3 }) end)
    assert.equal('assign to variable "w": value has shape {2, 3}, the variable {2}',
      message_of(apply, Wrong(), flow.Variable({ 1, 2 }, { name = "w" })))
    assert.matches('^Wrong: the gradient for "w" is float32 {3}, expected float32 {2}',
      message_of(apply, Wrong(), flow.Variable({ 1, 2 }, { name = "w" }), flow.ones { 3 }))
  end)

  it("trains only what it was built for", function()
    local optimizer = LuaAdam { name = "a" }
    apply(optimizer)
    assert.equal('LuaAdam "a": variable "other" is not among the variables that it was built for',
      message_of(apply, optimizer, flow.Variable({ 1, 2 }, { name = "other" })))
    assert.matches("add_variable_from_reference takes a variable, got the number 3",
      message_of(function() optimizer:add_variable_from_reference(3) end))
  end)
end)
