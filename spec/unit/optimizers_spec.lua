-- optimizers_spec.lua: optimizer objects: options, updates, learning rate, variables. Updates against Keras are in spec/golden.
local support = require "spec.support.init"
local flow = require "flow"
local optimizers = flow.optimizers
local message_of = support.message_of

describe("an optimizer", function()
  it("takes options by position and by name, with Keras' defaults", function()
    assert.near(0.01, optimizers.SGD().learning_rate, 1e-9)
    assert.near(0.001, optimizers.Adam().learning_rate, 1e-9)
    assert.near(0.5, optimizers.SGD(0.5).learning_rate, 1e-9)
    assert.near(0.5, optimizers.Adam { learning_rate = 0.5, beta_1 = 0.8 } .learning_rate, 1e-9)
    assert.equal("adam", optimizers.Adam().name)
    assert.equal("mine", optimizers.Adam { name = "mine" } .name)
  end)

  it("updates variables, and counts and rates read as numbers", function()
    local w = flow.Variable { 1, 2 }
    local sgd = optimizers.SGD(0.5)
    assert.equal(0, sgd.iterations)
    sgd:apply_gradients({ flow.tensor { 1, 1 } }, { w })
    assert.same({ 0.5, 1.5 }, w:totable())
    assert.equal(1, sgd.iterations)
    sgd.learning_rate = 0.25
    sgd:apply_gradients { { flow.tensor { 2, 2 }, w } }      -- Keras' form: pairs
    assert.same({ 0, 1 }, w:totable())
    assert.equal(2, sgd.iterations)
    assert.equal("number", type(sgd.learning_rate))
  end)

  it("leaves out variables without a gradient", function()
    local a, b = flow.Variable(1), flow.Variable(1)
    optimizers.SGD(1):apply_gradients({ nil, flow.tensor(1) }, { a, b })
    assert.same({ 1, 0 }, { a:item(), b:item() })
  end)

  it("keeps one order of variables: iterations, learning rate, slots", function()
    local w, v = flow.Variable({ 1, 2 }, { name = "w" }), flow.Variable({ 1 }, { name = "v" })
    local adam = optimizers.Adam()
    assert.equal(2, #adam.variables)
    adam:build { w, v }
    local sizes = {}
    for i, variable in ipairs(adam.variables) do sizes[i] = variable.size end
    assert.same({ 1, 1, 2, 2, 1, 1 }, sizes)
    adam:apply_gradients({ flow.tensor { 1, 1 }, flow.tensor { 1 } }, { w, v })
    assert.equal(adam.variables[1]:item(), adam.iterations)
    assert.near(0.1, adam.variables[3]:totable()[1], 1e-6)      -- m = (1 - beta_1) g
  end)

  -- Lion's update is a formula of ordinary ops in a plan's commit tail, not an op with kernels.
  it("runs formulas in a trace as at once, update after update", function()
    local function train(step_of)
      local v, w = flow.Variable { 1, -2, 3 }, flow.Variable { 0.5, 4 }
      local lion = optimizers.Lion { learning_rate = 0.25, beta_1 = 0.5, weight_decay = 0.5 }
      lion:build { v, w }
      local step = step_of(function(g, h)
        lion:apply_gradients({ g, h }, { v, w })
        lion:apply_gradients({ g * w:value():sum() - 1 }, { v })
        return v:value():sum()
      end)
      local sums = {}
      for i = 1, 5 do sums[i] = step(flow.random.normal({ 3 }, { seed = i }), flow.random.normal({ 2 }, { seed = 9 * i })):item() end
      return { v:totable(), w:totable(), sums, lion.variables[3]:value():totable(), lion.iterations }
    end
    assert.same(train(function(f) return f end), train(flow.fn))
  end)

  it("writes nothing of a formula where the loss scale refuses the gradients", function()
    local w = flow.Variable { 1, 2 }
    local scaled = optimizers.LossScaleOptimizer(optimizers.Lion(0.5), { initial_scale = 4 })
    local step = flow.fn(function(g)
      scaled:apply_gradients({ g }, { w })
      return g:sum()
    end)
    step(flow.tensor { 4, -8 })
    assert.same({ 0.5, 2.5 }, w:totable())
    local momentum = scaled.inner_optimizer.variables[3]:value():totable()
    step(flow.tensor { 1 / 0, -8 })
    assert.same({ 0.5, 2.5 }, w:totable())
    assert.same(momentum, scaled.inner_optimizer.variables[3]:value():totable())
    assert.equal(1, scaled.iterations)
  end)

  it("trains two models, each with its own optimizer, on shared variables", function()
    local w = flow.Variable { 1 }
    optimizers.SGD(0.5):apply_gradients({ flow.tensor { 1 } }, { w })
    optimizers.SGD(0.25):apply_gradients({ flow.tensor { 1 } }, { w })
    assert.same({ 0.25 }, w:totable())
  end)

  it("names what it was given wrongly, and works on", function()
    local w, sgd = flow.Variable { 1 }, optimizers.SGD(1)
    assert.truthy(message_of(function() optimizers.Adam { lr = 3 } end):find(
      'Adam: unknown option "lr"; use learning_rate. It takes: ', 1, true))
    assert.truthy(message_of(function() optimizers.Adam(-1) end):find("learning_rate is -1", 1, true))
    assert.truthy(message_of(function() optimizers.Adam("fast") end):find("learning_rate", 1, true))
    assert.equal('flow.optimizers has no "Adm"; did you mean "Adam"?', message_of(function() return optimizers.Adm end))
    local text = message_of(function() optimizers.get "adm" end)
    assert.truthy(text:find('there is no optimizer "adm"; did you mean "adam"?'
      .. ' There are adadelta, adafactor, adagrad, adam, adamax, adamw, ftrl, lamb, lion, muon, nadam, rmsprop, schedulefreeadamw, sgd',
      1, true), text)
    assert.truthy(message_of(function() sgd.learning_rate = -1 end):find("a number of at least 0, got the number -1", 1, true))
    assert.truthy(message_of(function() sgd.learning_rate = 0 / 0 end):find("a number of at least 0", 1, true))
    assert.truthy(message_of(function() sgd:apply_gradients({ flow.ones { 1 } }, { 3 }) end):find("entry 1 of the variables", 1, true))
    local number = message_of(function() sgd:apply_gradients({ 3 }, { w }) end)
    assert.truthy(number:find("gradient 1 is the number 3, expected a tensor", 1, true), number)
    assert.truthy(#message_of(function() sgd:apply_gradients({ flow.ones { 2 } }, { w }) end) > 0)
    assert.truthy(message_of(function() sgd:apply_gradients(3) end):find("a list of gradients and a list of variables", 1, true))
    assert.truthy(message_of(function() optimizers.get(3) end):find("an optimizer is an object", 1, true))
    assert.truthy(message_of(function() optimizers.get("adm") end):find('did you mean "adam"?', 1, true))
    sgd:apply_gradients({ flow.ones { 1 } }, { w })
    assert.same({ 0 }, w:totable())
    assert.equal(1, sgd.iterations)
  end)
end)

describe("optimizers that look at single variables", function()
  local function says(text, f) assert.truthy(message_of(f):find(text, 1, true), message_of(f)) end

  it("say what they were given wrongly", function()
    says("Muon: entry 1 of exclude_layers is the string \"a.*\", expected a part of variables' names",
      function() optimizers.Muon { exclude_layers = { "a.*" } } end)
    says('Lamb: unknown option "beta1"; did you mean "beta_1"?', function() optimizers.Lamb { beta1 = 0.5 } end)
    says("Lamb: beta_1 is the string \"x\", expected a number", function() optimizers.Lamb(0.1, "x") end)
    says("Muon: ns_steps is the number 1.5, expected a whole number from 0", function() optimizers.Muon { ns_steps = 1.5 } end)
    says("Adafactor: learning_rate is -1, expected a number of at least 0", function() optimizers.Adafactor(-1) end)
    says("Ftrl: learning_rate_power is 1, expected a number of at most 0", function() optimizers.Ftrl { learning_rate_power = 1 } end)
    for _, momentum in ipairs { -0.1, 9 } do
      says("SGD: momentum is " .. momentum .. ", expected a number from 0 to 1", function() optimizers.SGD { momentum = momentum } end)
    end
    says("Lion: beta_1 is 0, expected a number above 0 and at most 1", function() optimizers.Lion { beta_1 = 0 } end)
    says("Ftrl: l1_regularization_strength is -1", function() optimizers.Ftrl { l1_regularization_strength = -1 } end)
    says("LossScaleOptimizer wraps an optimizer: extend that one's class", function() optimizers.LossScaleOptimizer:extend "Mine" end)
  end)

  it("are found by name in any case, and made again from their configs, in which None is false", function()
    for _, name in ipairs { "Adafactor", "Lamb", "Muon", "ScheduleFreeAdamW" } do
      assert.equal(name, optimizers.get(name:lower()):get_config() and require("flow.object").class_of(optimizers.get(name)).name)
    end
    local muon = optimizers.Muon { rms_rate = false, adam_weight_decay = false, weight_decay = false, nesterov = false }
    local again = optimizers.from_json(muon:to_json())
    assert.equal(muon:to_json(), again:to_json())
    assert.same({ false, false, false, false }, { again.rms_rate, again.adam_weight_decay, again.weight_decay, again.nesterov })
    assert.is_false(again:get_config().use_ema)
    assert.is_nil(again:get_config().weight_decay)
  end)

  it("Muon leaves embeddings, vectors and what exclude_layers names to AdamW", function()
    local named = {}
    for i, entry in ipairs { { "hidden/kernel", { 3, 4 } }, { "hidden/bias", { 4 } }, { "my_Embedding/embeddings", { 5, 2 } },
                             { "output/kernel", { 4, 2 } } } do
      named[i] = flow.Variable(flow.ones(entry[2]), { name = entry[1] })
    end
    local function velocities(options)
      local muon, list = optimizers.Muon(options), {}
      muon:build(named)
      for _, v in ipairs(muon.variables) do list[#list + 1] = v.path:match("^muon/(.*)_velocity$") end
      return list
    end
    assert.same({ "hidden/bias", "my_Embedding/embeddings" }, velocities {})
    assert.same({ "hidden/bias", "my_Embedding/embeddings", "output/kernel" }, velocities { exclude_layers = { "output" } })
    assert.same({ "hidden/bias" }, velocities { exclude_embeddings = false })
    local muon = optimizers.Muon { learning_rate = 1, adam_weight_decay = 0.5, weight_decay = false }
    muon:exclude_from_weight_decay { var_names = { "embeddings" } }
    local zeros = {}
    for i, v in ipairs(named) do zeros[i] = flow.zeros(v.shape) end
    muon:apply_gradients(zeros, named)
    assert.same({ 1, 0.5, 1, 1 }, { named[1]:max():item(), named[2]:max():item(), named[3]:max():item(), named[4]:max():item() })
  end)
end)

---- schedules ---------------------------------------------------------------------------------------------------------------------

local schedules = optimizers.schedules
local Warmup = schedules.LearningRateSchedule:extend("Warmup")
function Warmup:call(step) return (step + 1):minimum(4) * (self.target / 4) end

local function problem_of(f)
  return (message_of(f):gsub("^[^\n]-%.lua:%d+: ", ""))
end

describe("a learning rate schedule", function()
  it("is called with a step and gives a number", function()
    local schedule = schedules.ExponentialDecay(0.5, 10, 0.25)
    assert.equal("number", type(schedule(0)))
    assert.near(0.5, schedule(0), 1e-7)
    assert.near(0.25, schedule(5), 1e-7)
    assert.near(0.25, schedule(flow.tensor(5)), 1e-7)
    assert.near(0.125, Warmup { target = 0.25 }(1), 1e-7)
  end)

  it("gives the rate of every update, the count of updates as its step", function()
    for _, schedule in ipairs { schedules.PiecewiseConstantDecay({ 0, 1 }, { 0.5, 0.25, 0.125 }), Warmup { target = 1 } } do
      local w, sgd = flow.Variable { 8 }, optimizers.SGD { learning_rate = schedule }
      local expected = 8
      for step = 0, 5 do
        assert.equal(schedule(step), sgd.learning_rate)
        sgd:apply_gradients({ flow.tensor { 1 } }, { w })
        expected = expected - schedule(step)
        assert.equal(expected, w:item())
      end
    end
  end)

  it("gives the same bits in an eager update, in fit, in train_on_batch and in a traced function", function()
    local x, y = flow.random.normal({ 12, 3 }, { seed = 1 }), flow.random.normal({ 12, 1 }, { seed = 2 })
    local function weights_after(schedule, train)
      flow.set_random_seed(5)
      local model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(1) }
      model:compile { optimizer = optimizers.Adam { learning_rate = schedule }, loss = "mse" }
      train(model)
      assert.equal(6, model.optimizer.iterations)
      return model:get_weights()[1]:totable()
    end
    local function batch(i)
      local rows = { { 4 * (i % 3) + 1, 4 * (i % 3) + 4 } }
      return x[rows], y[rows]
    end
    for _, schedule in ipairs { schedules.CosineDecay { initial_learning_rate = 0.1, decay_steps = 5 }, Warmup { target = 0.25 } } do
      local fitted = weights_after(schedule, function(model)
        model:fit(x, y, { batch_size = 4, epochs = 2, shuffle = false, verbose = 0 })
      end)
      local by_batches = weights_after(schedule, function(model)
        for i = 0, 5 do model:train_on_batch(batch(i)) end
      end)
      local traced = weights_after(schedule, function(model)
        local step = flow.fn(function(a, b)
          local tape = flow.GradientTape()
          local loss = tape:record(function() return (model(a, { training = true }) - b):square():mean() end)
          model.optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
          return loss
        end)
        for i = 0, 5 do step(batch(i)) end
      end)
      assert.same(fitted, by_batches)
      for i = 1, #fitted do assert.near(fitted[i][1], traced[i][1], 1e-6) end
    end
  end)

  it("goes on where the count of updates stands: what a checkpoint restores is enough", function()
    local function optimizer() return optimizers.SGD { learning_rate = schedules.InverseTimeDecay(1, 1, 1), momentum = 0.5 } end
    local g, w, v = flow.tensor { 1 }, flow.Variable { 8 }, flow.Variable { 0 }
    local first, second = optimizer(), optimizer()
    for _ = 1, 3 do first:apply_gradients({ g }, { w }) end
    second:build { v }
    v:assign(w:value())
    for i, variable in ipairs(second.variables) do variable:assign(first.variables[i]:value()) end
    assert.equal(first.learning_rate, second.learning_rate)
    first:apply_gradients({ g }, { w })
    second:apply_gradients({ g }, { v })
    assert.equal(w:item(), v:item())
  end)

  it("leaves no learning rate among the variables, and none to be assigned", function()
    local adam = optimizers.Adam { learning_rate = schedules.CosineDecay(0.1, 10) }
    assert.equal(1, #adam.variables)
    assert.truthy(problem_of(function() adam.learning_rate = 1 end):find(
      'Adam "adam": this optimizer was created with the schedule CosineDecay', 1, true))
    assert.near(0.1, adam.learning_rate, 1e-7)
  end)

  it("names what is wrong with its options", function()
    assert.equal("CosineDecay: decay_steps is 0, expected a number above 0", problem_of(function() schedules.CosineDecay(0.1, 0) end))
    assert.equal("PiecewiseConstantDecay: 2 boundaries and 2 values, expected one more value than boundaries",
      problem_of(function() schedules.PiecewiseConstantDecay({ 1, 2 }, { 1, 2 }) end))
    assert.equal("PiecewiseConstantDecay: boundary 2, 1, is less than the one before it, 3",
      problem_of(function() schedules.PiecewiseConstantDecay({ 3, 1 }, { 1, 2, 3 }) end))
    assert.truthy(problem_of(function() schedules.CosineDecay { initial_learning_rate = 1 } end):find('"decay_steps" is missing', 1, true))
    assert.truthy(problem_of(function() schedules.CosineDecya() end):find('did you mean "CosineDecay"?', 1, true))
    assert.equal('CosineDecay: a step is a number, got the string "a"', problem_of(function() schedules.CosineDecay(1, 2)("a") end))
    local Wrong = schedules.LearningRateSchedule:extend("Wrong")
    assert.equal("Wrong: the class has no call(self, step)", problem_of(function() Wrong {}(1) end))
    function Wrong:call() return flow.zeros { 2 } end        -- luacheck: ignore self
    assert.equal("Wrong: call() gave a tensor of 2 elements, expected one", problem_of(function() Wrong {}(1) end))
  end)

  it("comes back from a config with its optimizer", function()
    local schedule = schedules.PolynomialDecay(0.5, 7, { cycle = true })
    local text = optimizers.RMSprop { learning_rate = schedule, centered = true, name = "r" } :to_json()
    local function refused(config) return problem_of(function() optimizers.from_json(config) end) end
    local again = optimizers.from_json(text)
    assert.equal('RMSprop "r"', tostring(again))
    assert.near(0.5, again.learning_rate, 1e-7)
    assert.equal(text, again:to_json())
    assert.truthy(refused("{"):find("JSON", 1, true))
    assert.truthy(refused("[]"):find("class_name", 1, true))
    assert.truthy(refused('{"class_name": "NoSuchOptimizer", "config": {}}'):find('no optimizer "NoSuchOptimizer"', 1, true))
    assert.truthy(refused('{"class_name": "SGD", "config": {"momentum": {}}}'):find("momentum", 1, true))
    assert.truthy(refused('{"class_name": "SGD", "config": {"mass": 1}}'):find('unknown option "mass"', 1, true))
  end)
end)

---- clipping and decay ------------------------------------------------------------------------------------------------------------

describe("clipping and weight decay", function()
  it("clip what the whole step gave, over runs that do not touch", function()
    local w, gap, v = flow.Variable { 0, 0 }, flow.Variable { 0 }, flow.Variable { 0 }
    local sgd = optimizers.SGD { learning_rate = 1, global_clipnorm = 1 }
    sgd:build { w, gap, v }
    sgd:apply_gradients({ flow.tensor { 2, 0 }, nil, flow.tensor { 1.5 } }, { w, gap, v })       -- norm 2.5
    assert.near(-0.8, w:totable()[1], 1e-6)
    assert.near(-0.6, v:item(), 1e-6)
    assert.equal(0, gap:item())
  end)

  it("give the same weights where gradients reach other optimizers as products", function()
    local function weights(options)
      flow.set_random_seed(3)
      local model = flow.Sequential { flow.layers.Input { 256 }, flow.layers.Dense(256) }
      options.learning_rate = 0.5
      model:compile { optimizer = optimizers.SGD(options), loss = "mse" }
      for i = 1, 3 do
        model:train_on_batch(flow.random.normal({ 8, 256 }, { seed = i }), flow.random.normal({ 8, 256 }, { seed = i + 9 }))
      end
      return model:get_weights()[1]
    end
    local free = weights {}
    for _, option in ipairs { "clipnorm", "clipvalue", "global_clipnorm" } do
      local found = weights { [option] = 1e6 }                                                     -- clips nothing
      assert.is_true((found - free):abs():max():item() < 1e-6, option)
      assert.is_true((weights { [option] = 1e-4 } - free):abs():max():item() > 1e-4, option)
    end
  end)

  it("undo the scale of the loss first, so that it changes nothing but what rounds to 0", function()
    local function weights(factor)
      flow.set_random_seed(3)
      local model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(2) }
      local sgd = optimizers.SGD { learning_rate = 0.5, clipnorm = 0.3, loss_scale_factor = factor }
      model:compile { optimizer = factor and optimizers.from_json(sgd:to_json()) or sgd, loss = "mse" }
      local logs = model:train_on_batch(flow.random.normal({ 8, 4 }, { seed = 1 }), flow.random.normal({ 8, 2 }, { seed = 2 }))
      return { logs.loss, model:get_weights()[1]:totable() }
    end
    assert.same(weights(nil), weights(1024))
    assert.equal("SGD: loss_scale_factor is 0, expected a number above 0",
      problem_of(function() optimizers.SGD { loss_scale_factor = 0 } end))
  end)

  it("leave out the variables that the user names", function()
    local function decayed(exclude)
      local kernel, bias = flow.Variable({ 1 }, { name = "dense/kernel" }), flow.Variable({ 1 }, { name = "dense/bias" })
      local sgd = optimizers.SGD { learning_rate = 0.5, weight_decay = 0.5 }
      exclude(sgd, kernel, bias)
      sgd:apply_gradients({ flow.zeros { 1 }, flow.zeros { 1 } }, { kernel, bias })
      return { kernel:item(), bias:item() }
    end
    assert.same({ 0.75, 0.75 }, decayed(function() end))
    assert.same({ 0.75, 1 }, decayed(function(sgd) sgd:exclude_from_weight_decay { var_names = { "bias" } } end))
    assert.same({ 1, 0.75 }, decayed(function(sgd, kernel) sgd:exclude_from_weight_decay { kernel } end))
    assert.same({ 1, 1 }, decayed(function(sgd, kernel) sgd:exclude_from_weight_decay({ kernel }, { "bias" }) end))
    local w, sgd = flow.Variable { 1 }, optimizers.SGD { weight_decay = 0.5 }
    sgd:build { w }
    assert.truthy(problem_of(function() sgd:exclude_from_weight_decay { w } end):find("expected before the first update", 1, true))
  end)

  it("exclude each other as in Keras, and say so", function()
    assert.equal("SGD: clipnorm and clipvalue are given, expected one of them",
      problem_of(function() optimizers.SGD { clipnorm = 1, clipvalue = 2 } end))
    assert.equal("SGD: global_clipnorm is -1, expected a number of at least 0",
      problem_of(function() optimizers.SGD { global_clipnorm = -1 } end))
    assert.equal("SGD: gradient_accumulation_steps is 1, expected a whole number from 2",
      problem_of(function() optimizers.SGD { gradient_accumulation_steps = 1 } end))
  end)

  it("keep slots in Keras' order", function()
    local function names(optimizer)
      local list = {}
      optimizer:build { flow.Variable({ 1, 2 }, { name = "a" }), flow.Variable({ 1 }, { name = "b" }) }
      for i = 3, #optimizer.variables do list[#list + 1] = optimizer.variables[i].path end
      return table.concat(list, " ")
    end
    assert.equal("adam/a_momentum adam/a_velocity adam/b_momentum adam/b_velocity adam/a_velocity_hat adam/b_velocity_hat",
      names(optimizers.Adam { amsgrad = true }))
    assert.equal("rm_sprop/a_velocity rm_sprop/b_velocity rm_sprop/a_momentum rm_sprop/b_momentum rm_sprop/a_average_gradient "
      .. "rm_sprop/b_average_gradient",
      names(optimizers.RMSprop { momentum = 0.5, centered = true }))
  end)

  it("square the gradient of an id that stands twice as the sum of both, as chapter 8 of the guide says", function()
    local embedding, adam = flow.layers.Embedding(3, 1, { embeddings_initializer = "ones" }), optimizers.Adam()
    local function step(ids)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (embedding(flow.tensor(ids, { dtype = "int32" })) * 2):sum() end)
      adam:apply_gradients(tape:gradient(loss, { embedding.embeddings }), { embedding.embeddings })
    end
    step { 0, 0, 1 }
    local velocity = adam.variables[4]:value():reshape { -1 }:totable()      -- 0.001 g^2
    for i, expected in ipairs { 0.016, 0.004, 0 } do assert.near(expected, velocity[i], 1e-8) end
  end)

  it("are read from a file with one slot, where there is a schedule and one variable", function()
    local function new(kernel)
      local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1, { use_bias = false, kernel_initializer = kernel }) }
      local rate = optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)
      model:compile { loss = "mse", optimizer = optimizers.SGD { learning_rate = rate, momentum = 0.9 } }
      return model
    end
    local model, x, y = new "ones", flow.tensor { { 1, 2 }, { 3, 4 } }, flow.zeros { 2, 1 }
    for _ = 1, 3 do model:train_on_batch(x, y) end
    local path = support.folder() .. "/one.keras"
    model:save(path)
    local again = flow.load_model(path)
    assert.equal(3, again.optimizer.iterations)
    assert.equal(model:train_on_batch(x, y).loss, again:train_on_batch(x, y).loss)
    assert.same(model:get_weights()[1]:totable(), again:get_weights()[1]:totable())
  end)
end)
