-- loss_scale_spec.lua: flow.optimizers.LossScaleOptimizer: when the scale grows and shrinks, what a skipped step leaves, by hand, in fit,
-- on an emulated GPU, with replicas, in files.
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"
local flow = require "flow"
local layers, optimizers = flow.layers, flow.optimizers
local message_of = support.message_of

local function largest_difference(a, b) return (a - b):abs():max():item() end

local function bits(list)
  local result = {}
  for i, v in ipairs(list) do result[i] = v:value():to("cpu"):flatten():totable() end
  return result
end

local INNER = {
  SGD = { momentum = 0.9 }, Adam = { amsgrad = true }, AdamW = {}, RMSprop = { momentum = 0.5, centered = true }, Adagrad = {},
  Adadelta = {}, Adamax = {}, Nadam = {}, Ftrl = {}, Lamb = {}, Adafactor = {}, Muon = {}, ScheduleFreeAdamW = {},
}

local devices = { "cpu" }
if not emulated.missing() then devices[2] = "gpu:0" end

for _, device in ipairs(devices) do
  describe("LossScaleOptimizer on " .. device, function()
    local function on(f)
      return function() if device == "cpu" then f() else flow.device(device, f) end end
    end

    it("doubles the scale after this many finite steps, halves it and skips the step otherwise", on(function()
      local w = flow.Variable(flow.tensor { 1, 2 })
      local scaled = optimizers.LossScaleOptimizer(optimizers.SGD(0.25), { initial_scale = 8, dynamic_growth_steps = 2 })
      local function apply(a, b)
        local scale = scaled.dynamic_scale:item()
        scaled:apply_gradients({ flow.tensor { a * scale, b * scale } }, { w })
        return { scaled.dynamic_scale:item(), scaled.step_counter:item(), scaled.iterations, w:value():totable() }
      end
      assert.same({ 8, 1, 1, { 0.75, 1.5 } }, apply(1, 2))
      assert.same({ 16, 0, 2, { 0.5, 1 } }, apply(1, 2))
      assert.same({ 16, 1, 3, { 0.5, 0.5 } }, apply(0, 2))
      assert.same({ 8, 0, 3, { 0.5, 0.5 } }, apply(1, math.huge))
      assert.same({ 4, 0, 3, { 0.5, 0.5 } }, apply(0 / 0, 0))
      assert.same({ 2, 0, 3, { 0.5, 0.5 } }, apply(0, -math.huge))
      assert.same({ 2, 1, 4, { 0.25, 0.5 } }, apply(1, 0))
      assert.same({ 4, 0, 5, { 0.25, 0 } }, apply(0, 2))
    end))

    for name, options in pairs(INNER) do
      it("leaves all of " .. name .. " as it is in a skipped step", on(function()
        local a, b = flow.Variable(flow.random.normal({ 40, 50 }, { seed = 1 })), flow.Variable(flow.ones { 7 })
        local inner = optimizers[name](options)
        local plain, scaled = optimizers[name](options), optimizers.LossScaleOptimizer(inner, { initial_scale = 4 })
        local c, d = flow.Variable(a:value()), flow.Variable(b:value())
        local function gradient(i) return flow.random.normal({ 40, 50 }, { seed = 10 + i }), flow.full({ 7 }, 0.1 * i) end
        local g, h = gradient(1)
        scaled:apply_gradients({ g * 4, h * 4 }, { a, b })
        local before = bits(inner.variables)
        local weights = bits { a, b }
        scaled:apply_gradients({ g * 4, h / 0 }, { a, b })
        assert.same(before, bits(inner.variables))
        assert.same(weights, bits { a, b })
        assert.equal(2, scaled.dynamic_scale:item())
        local g2, h2 = gradient(2)
        scaled:apply_gradients({ g2 * 2, h2 * 2 }, { a, b })
        plain:apply_gradients({ g, h }, { c, d })
        plain:apply_gradients({ g2, h2 }, { c, d })
        assert.same(bits { c, d }, bits { a, b })        -- the scales are powers of two
        assert.same(bits(plain.variables), bits(inner.variables))
      end))
    end

    it("clips what the scale was taken out of", on(function()
      for option, expected in pairs { clipnorm = { 0.6, 0.8 }, global_clipnorm = { 0.6, 0.8 }, clipvalue = { 1, 1 } } do
        local w = flow.Variable(flow.zeros { 2 })
        local scaled = optimizers.LossScaleOptimizer(optimizers.SGD(1, { [option] = 1 }), { initial_scale = 1024 })
        scaled:apply_gradients({ flow.tensor { -3 * 1024, -4 * 1024 } }, { w })
        local found = w:value():totable()
        for i = 1, 2 do assert.near(expected[i], found[i], 1e-6) end
        scaled:apply_gradients({ flow.tensor { math.huge, 0 } }, { w })
        assert.same(found, w:value():totable())
        assert.equal(512, scaled.dynamic_scale:item())
      end
    end))

    it("does not grow beyond float32", on(function()
      local w = flow.Variable(flow.zeros { 1 })
      local scaled = optimizers.LossScaleOptimizer(optimizers.SGD(1), { initial_scale = 2 ^ 127, dynamic_growth_steps = 1 })
      scaled:apply_gradients({ flow.ones { 1 } }, { w })
      assert.equal(2 ^ 127, scaled.dynamic_scale:item())
    end))

    it("is taken along by a tape, in a loop that the user writes", on(function()
      flow.set_random_seed(1)
      local dense = layers.Dense(3, { dtype = "mixed_float16" })
      local x = flow.random.normal({ 8, 5 }, { seed = 2 })
      dense(x)
      local start = dense.kernel:value()
      local function trained(traced)
        dense.kernel:assign(start)
        dense.bias:assign(flow.zeros { 3 })
        local scaled = optimizers.LossScaleOptimizer(optimizers.SGD(0.5), { initial_scale = 2 ^ 20, dynamic_growth_steps = 3 })
        local function step(batch)
          local tape = flow.GradientTape()
          local target, loss = tape:record(function()
            local value = ((dense(batch):to("float32") - 1) ^ 2):mean()
            return scaled:scale_loss(value), value
          end)
          scaled:apply_gradients(tape:gradient(target, dense.trainable_variables), dense.trainable_variables)
          return loss
        end
        local f, seen = traced and flow.fn(step) or step, {}
        for i = 1, 12 do seen[i] = { f(x):item(), scaled.dynamic_scale:item(), scaled.step_counter:item(), scaled.iterations } end
        return seen
      end
      for _, seen in ipairs { trained(false), trained(true) } do
        assert.same({ 2 ^ 19, 0, 0 }, { unpack(seen[1], 2) })
        assert.equal(seen[1][1], seen[2][1])
        assert.is_true(seen[12][1] < 0.9 * seen[1][1] and seen[12][4] > 4 and seen[12][4] < 12)
      end
    end))
  end)
end

describe("LossScaleOptimizer", function()
  after_each(function() flow.mixed_precision.set_global_policy("float32") end)

  local function net(options)
    flow.clear_session()
    flow.set_random_seed(3)
    options = options or {}
    flow.mixed_precision.set_global_policy(options.policy or "mixed_float16")
    local model = flow.Sequential {
      layers.Input { 8, 8, 1 }, layers.Conv2D(6, 3, { activation = "relu" }), layers.MaxPooling2D(),
      layers.Flatten(), layers.Dense(32, { activation = "relu" }), layers.Dense(3, { dtype = "float32" }),
    }
    model:compile { optimizer = options.optimizer or "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true },
                    auto_scale_loss = options.auto_scale_loss }
    return model
  end

  local function data()
    local y = flow.random.randint({ 96 }, 0, 3, { seed = 4 })
    return flow.random.normal({ 96, 8, 8, 1 }, { seed = 5 }) + y:to("float32"):reshape { 96, 1, 1, 1 }, y
  end
  local HOW = { epochs = 4, batch_size = 24, verbose = 0, shuffle = false }

  local function fitted(options)
    local model = net(options)
    local x, y = data()
    return model, model:fit(x, y, HOW).history.loss
  end

  it("is put around the optimizer by compile under mixed_float16", function()
    local scaled = net().optimizer
    assert.equal("loss_scale_optimizer", scaled.name)
    assert.equal("adam", scaled.inner_optimizer.name)
    assert.same({ 2 ^ 15, 2000 }, { scaled.initial_scale, scaled.dynamic_growth_steps })
    assert.equal("adam", net({ auto_scale_loss = false }).optimizer.name)
    local own = optimizers.LossScaleOptimizer(optimizers.SGD(0.1), 16, 5, "mine")
    assert.equal(own, net({ optimizer = own }).optimizer)
    assert.equal("mine", own.name)
    flow.mixed_precision.set_global_policy("mixed_bfloat16")
    local model = flow.Sequential { layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse" }
    assert.equal("sgd", model.optimizer.name)
  end)

  it("hands the inner optimizer's rate and counts through", function()
    local model = fitted()
    local scaled = model.optimizer
    assert.equal(scaled.inner_optimizer.iterations, scaled.iterations)
    assert.equal(16, scaled.iterations)
    assert.equal(16, scaled.step_counter:item())
    scaled.learning_rate = 0.25
    assert.equal(0.25, scaled.inner_optimizer.learning_rate)
    local names = {}
    for i = 1, 6 do names[i] = scaled.variables[i].path end
    assert.same({ "loss_scale_optimizer/iteration", "loss_scale_optimizer/learning_rate", "loss_scale_optimizer/step_counter",
                  "loss_scale_optimizer/dynamic_scale", "adam/iteration", "adam/learning_rate" }, names)
  end)

  it("keeps gradients that float16 would lose", function()
    local function moved(auto)
      flow.mixed_precision.set_global_policy("mixed_float16")
      local model = flow.Sequential {
        layers.Input { 4 }, layers.Dense(1, { kernel_initializer = "ones" }), layers.Dense(1, { dtype = "float32" }),
      }
      model:compile { optimizer = flow.optimizers.SGD(1e6), loss = "mse", loss_weights = { 1e-9 }, auto_scale_loss = auto }
      local before = model.layers[1].kernel:value()
      model:train_on_batch(flow.ones { 4, 4 }, flow.zeros { 4, 1 })
      return (model.layers[1].kernel:value() - before):abs():max():item()
    end
    assert.equal(0, moved(false))
    assert.is_true(moved(true) > 0)
  end)

  it("trains as float32 does", function()
    local _, mixed = fitted()
    local _, plain = fitted { policy = "float32" }
    for i = 1, 4 do assert.near(plain[i], mixed[i], 0.02 * plain[1]) end
    assert.is_true(plain[4] < 0.9 * plain[1] and mixed[4] ~= plain[4])
  end)

  it("skips a step of fit and goes on", function()
    local scaled = optimizers.LossScaleOptimizer(optimizers.Adam(), { initial_scale = 2 ^ 40, dynamic_growth_steps = 4 })
    local model, losses = fitted { optimizer = scaled }
    assert.is_true(scaled.iterations < 16 and scaled.dynamic_scale:item() < 2 ^ 40)
    assert.equal(losses[1], losses[1])
    for _, v in ipairs(model.weights) do assert.is_true(v:value():isfinite():all():item() ~= 0) end
  end)

  -- Where float16 overflows depends on what is added up in it. A sample with a huge weight is too much for it everywhere.
  local function with_outlier(scope)
    local scaled = optimizers.LossScaleOptimizer(optimizers.SGD(0.05, { momentum = 0.5 }), { dynamic_growth_steps = 2 })
    local model
    scope(function() model = net { optimizer = scaled } end)
    local x, y = data()
    local weights = flow.ones { 96 }:totable()
    weights[30] = 1e30                        -- in the second of four batches
    model:fit(x, y, { epochs = 4, batch_size = 24, verbose = 0, shuffle = false, sample_weight = flow.tensor(weights) })
    return { scaled.dynamic_scale:item(), scaled.step_counter:item(), scaled.iterations }, model
  end

  local function agree(a, b)
    for i, v in ipairs(a.trainable_variables) do
      local difference = largest_difference(v:value():to("cpu"), b.trainable_variables[i]:value():to("cpu"))
      assert.is_true(difference < 1e-2, v.name .. " differs by " .. difference)
    end
  end

  it("agrees between one replica and two, of which one overflows", function()
    flow.config.set_logical_devices("cpu", 2)
    local strategy = flow.distribute.MirroredStrategy { "cpu:0", "cpu:1" }
    local alone, one = with_outlier(function(f) f() end)
    local together, two = with_outlier(function(f) strategy:scope(f) end)
    assert.same({ 2 ^ 15, 0, 12 }, alone)      -- four are skipped; of the three after each the first two double the scale
    assert.same(alone, together)
    agree(one, two)
  end)

  for _, reduce in ipairs { "NcclAllReduce", "HierarchicalCopyAllReduce", "ReductionToOneDevice" } do
    it("agrees between one replica and two on GPUs, of which one overflows: " .. reduce, function()
      if not devices[2] then return pending(emulated.missing()) end
      local strategy = flow.distribute.MirroredStrategy { devices = { "gpu:0", "gpu:1" },
                                                          cross_device_ops = flow.distribute[reduce]() }
      local alone, one = with_outlier(function(f) f() end)
      local together, two = with_outlier(function(f) strategy:scope(f) end)
      assert.same(alone, together)
      agree(one, two)
    end)
  end

  it("skips the same steps in fit on a GPU, whose plans are recorded", function()
    if not devices[2] then return pending(emulated.missing()) end
    local here, one = with_outlier(function(f) f() end)
    local there, two = with_outlier(function(f) flow.device("gpu:0", f) end)
    assert.same(here, there)
    assert.equal("gpu:0", two.optimizer.dynamic_scale.device)
    agree(one, two)
  end)

  local function goes_on_alike(a, b)
    local x, y = data()
    assert.same(bits(a.optimizer.variables), bits(b.optimizer.variables))
    for _ = 1, 3 do assert.equal(a:train_on_batch(x, y).loss, b:train_on_batch(x, y).loss) end
    assert.same(bits(a.optimizer.variables), bits(b.optimizer.variables))
  end

  local function scaled_net()
    return net { optimizer = optimizers.LossScaleOptimizer(optimizers.Adam(), { initial_scale = 2 ^ 22, dynamic_growth_steps = 3 }) }
  end

  local function trained()
    local model = scaled_net()
    local x, y = data()
    for _ = 1, 8 do model:train_on_batch(x, y) end
    return model
  end

  it("is saved with the model", function()
    local model, path = trained(), support.file("m.keras", "")
    model:save(path)
    flow.mixed_precision.set_global_policy("float32")
    local loaded = flow.load_model(path)
    assert.equal(2 ^ 22, loaded.optimizer.initial_scale)
    assert.equal(3, loaded.optimizer.dynamic_growth_steps)
    goes_on_alike(model, loaded)
  end)

  it("is saved with the weights and in checkpoints", function()
    local model = trained()
    local path, prefix = support.file("m.weights.h5", ""), support.file("checkpoint", "")
    model:save_weights(path)
    local again = scaled_net()
    again:load_weights(path)
    local saved = flow.train.Checkpoint { model = model, optimizer = model.optimizer }:write(prefix)
    local count = model.optimizer.iterations
    goes_on_alike(model, again)
    local third = scaled_net()
    flow.train.Checkpoint { model = third, optimizer = third.optimizer }:restore(saved)
    assert.equal(count, third.optimizer.iterations)
    local fourth = scaled_net()
    fourth:load_weights(path)
    goes_on_alike(third, fourth)
  end)

  it("finds its optimizer in a file without a scale, and the other way round", function()
    local x, y = data()
    local plain, path = net { auto_scale_loss = false }, support.file("plain.weights.h5", "")
    plain:train_on_batch(x, y)
    plain:save_weights(path)
    local scaled = net()
    scaled:load_weights(path)
    assert.equal(1, scaled.optimizer.iterations)
    assert.same(bits(plain.optimizer.variables), bits(scaled.optimizer.inner_optimizer.variables))
    scaled:train_on_batch(x, y)
    scaled:save_weights(path)
    plain:load_weights(path)
    assert.equal(2, plain.optimizer.iterations)
    assert.same(bits(plain.optimizer.variables), bits(scaled.optimizer.inner_optimizer.variables))
  end)

  it("is described as Keras describes it", function()
    local scaled = optimizers.LossScaleOptimizer(optimizers.SGD(optimizers.schedules.ExponentialDecay(0.5, 10, 0.5)), { initial_scale = 4 })
    local text = scaled:to_json()
    assert.matches('"class_name": ?"LossScaleOptimizer"', text)
    assert.matches('"inner_optimizer": ?{"module": ?"keras.optimizers", ?"class_name": ?"SGD"', text)
    local again = optimizers.from_json(text)
    assert.equal(text, again:to_json())
    assert.equal(4, again.dynamic_scale:item())
    assert.matches("learning rate cannot be set", message_of(function() again.learning_rate = 1 end))
  end)

  it("says what it cannot do", function()
    local adam = optimizers.Adam()
    local function refuses(text, ...)
      local given = { ... }
      local message = message_of(function() optimizers.LossScaleOptimizer(unpack(given)) end)
      assert.truthy(message:find(text, 1, true), message)
    end
    refuses("inner_optimizer is an optimizer such as flow.optimizers.Adam(), got the string \"adam\"", "adam")
    refuses("got a LossScaleOptimizer", optimizers.LossScaleOptimizer(adam))
    refuses("initial_scale is -1, expected a float32 number above 0", adam, -1)
    refuses("initial_scale is 1e+39", adam, 1e39)
    refuses("dynamic_growth_steps is 0.5, expected a whole number from 1", adam, 2, 0.5)
    refuses("initial_scale", adam, { initial_scal = 2 })
    local text = optimizers.LossScaleOptimizer(adam):to_json():gsub('"initial_scale"', '"clipnorm"')
    assert.matches('option "clipnorm", which belongs to the inner optimizer', message_of(function() optimizers.from_json(text) end))
  end)
end)
