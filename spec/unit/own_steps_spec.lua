-- own_steps_spec.lua: Keras' guide "Customizing what happens in fit()", line by line, and what else steps of a model's own may do under
-- compile and fit.
local support = require "spec.support.init"
local message_of = support.message_of
local flow = require "flow"
local layers = flow.layers

flow.log.sink = function() end
local unpack_data = flow.utils.unpack_x_y_sample_weight

local function same_weights(a, b)
  assert.equal(#a.weights, #b.weights)
  for i, v in ipairs(a.weights) do assert.same(v:value():totable(), b.weights[i]:value():totable()) end
end

local function regression(rows)
  return flow.random.uniform({ rows, 32 }, { seed = 1 }), flow.random.uniform({ rows, 1 }, { seed = 2 })
end

-- A model of this class, with the same weights each time.
local function new_model(class)
  flow.set_random_seed(3)
  local inputs = flow.Input { 32 }
  return class { inputs = inputs, outputs = layers.Dense(1)(inputs) }
end

-- Keras: self.optimizer.apply(tape.gradient(loss, trainable_vars), trainable_vars) of a loss made by f.
local function update(self, f)
  local tape = flow.GradientTape()
  local loss = tape:record(f)
  self.optimizer:apply(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
  return loss
end

local function results_of(self)
  local results = {}
  for _, m in ipairs(self.metrics) do results[m.name] = m:result() end
  return results
end

describe("Customizing what happens in fit()", function()
  it("a first simple example", function()
    local CustomModel = flow.Model:extend "CustomModel"
    function CustomModel:train_step(data)
      local x, y = unpack(data)
      local y_pred
      local loss = update(self, function()
        y_pred = self(x, { training = true })
        return self:compute_loss { y = y, y_pred = y_pred }
      end)
      for _, metric in ipairs(self.metrics) do
        if metric.name == "loss" then metric:update_state(loss) else metric:update_state(y, y_pred) end
      end
      return results_of(self)
    end
    local x, y = regression(1000)
    local histories, models = {}, {}
    for i, class in ipairs { CustomModel, flow.Model } do
      models[i] = new_model(class)
      models[i]:compile { optimizer = "adam", loss = "mse", metrics = { "mae" } }
      histories[i] = models[i]:fit(x, y, { epochs = 3, verbose = 0 }).history
    end
    assert.equal(1, models[1]._traces)
    same_weights(models[1], models[2])
    assert.same(histories[2].mae, histories[1].mae)
    assert.equal(3, #histories[1].loss)
    assert.truthy(histories[1].loss[3] < histories[1].loss[1])
    -- the last of the 32 batches has 8 rows, and the override counts it as much as any other
    assert.near(histories[2].loss[3], histories[1].loss[3], 0.01)
    assert.not_equal(histories[2].loss[3], histories[1].loss[3])
  end)

  it("going lower-level", function()
    local CustomModel = flow.Model:extend "CustomModel"
    function CustomModel:compile(optimizer)
      flow.Model.compile(self, { optimizer = optimizer })
      self.loss_tracker, self.mae_metric = flow.metrics.Mean { name = "loss" }, flow.metrics.MeanAbsoluteError { name = "mae" }
      self.loss_fn = flow.losses.MeanSquaredError()
    end
    function CustomModel:train_step(data)
      local x, y = unpack(data)
      local y_pred
      local loss = update(self, function()
        y_pred = self(x, { training = true })
        return self.loss_fn(y, y_pred)
      end)
      self.loss_tracker:update_state(loss)
      self.mae_metric:update_state(y, y_pred)
      return { loss = self.loss_tracker:result(), mae = self.mae_metric:result() }
    end
    function CustomModel:metrics() return { self.loss_tracker, self.mae_metric } end
    local x, y = regression(1000)
    local model = new_model(CustomModel)
    model:compile("adam")
    local history = model:fit(x, y, { epochs = 5, verbose = 0 }).history
    local plain = new_model(flow.Model)
    plain:compile { optimizer = "adam", loss = "mse", metrics = { "mae" } }
    local expected = plain:fit(x, y, { epochs = 5, verbose = 0 }).history
    same_weights(model, plain)
    assert.same({ "loss", "mae" }, model.metrics_names)
    assert.same(expected.mae, history.mae)
  end)

  it("supporting sample_weight and class_weight", function()
    local CustomModel = flow.Model:extend "CustomModel"
    function CustomModel:train_step(data)
      local x, y, sample_weight = unpack_data(data)
      local y_pred
      local loss = update(self, function()
        y_pred = self(x, { training = true })
        return self:compute_loss { y = y, y_pred = y_pred, sample_weight = sample_weight }
      end)
      for _, metric in ipairs(self.metrics) do
        if metric.name == "loss" then metric:update_state(loss) else metric:update_state(y, y_pred, sample_weight) end
      end
      return results_of(self)
    end
    local x, y = regression(1000)
    local sw = flow.random.uniform({ 1000, 1 }, { seed = 4 })
    local function train(class, options)
      local model = new_model(class)
      model:compile { optimizer = "adam", loss = "mse", weighted_metrics = { "mae" } }
      return model, model:fit(x, options.y or y, { epochs = 3, verbose = 0, sample_weight = options.sw, class_weight = options.cw }).history
    end
    local model, history = train(CustomModel, { sw = sw })
    local plain, expected = train(flow.Model, { sw = sw })
    same_weights(model, plain)
    assert.same(expected.mae, history.mae)
    local labels = y:gt(0.5):to("float32")
    local by_class, expected_by_class = train(CustomModel, { y = labels, cw = { [0] = 1, [1] = 3 } }),
      train(flow.Model, { y = labels, cw = { [0] = 1, [1] = 3 } })
    same_weights(by_class, expected_by_class)
    local unweighted = train(CustomModel, { y = labels })
    assert.not_equal(unweighted.weights[1]:value():sum():item(), by_class.weights[1]:value():sum():item())
  end)

  it("providing your own evaluation step", function()
    local CustomModel = flow.Model:extend "CustomModel"
    function CustomModel:test_step(data)
      local x, y = unpack(data)
      local y_pred = self(x, { training = false })
      local loss = self:compute_loss { y = y, y_pred = y_pred }
      for _, metric in ipairs(self.metrics) do
        if metric.name == "loss" then metric:update_state(loss) else metric:update_state(y, y_pred) end
      end
      return results_of(self)
    end
    local x, y = regression(1000)
    local model, plain = new_model(CustomModel), new_model(flow.Model)
    for _, m in ipairs { model, plain } do m:compile { loss = "mse", metrics = { "mae" } } end
    local how = { verbose = 0, batch_size = 100 }
    local results, expected = model:evaluate(x, y, how), plain:evaluate(x, y, how)
    assert.near(expected.loss, results.loss, 1e-6)
    assert.equal(expected.mae, results.mae)
    local history = model:fit(x, y, { verbose = 0, validation_data = { x, y } }).history
    assert.truthy(history.val_mae[1] > 0 and history.val_loss[1] > 0)
  end)

  it("GAN end to end", function()
    local GAN = flow.Model:extend "GAN"
    function GAN:init(options)
      self.discriminator, self.generator, self.latent_dim = options.discriminator, options.generator, options.latent_dim
      self.d_loss_tracker, self.g_loss_tracker = flow.metrics.Mean { name = "d_loss" }, flow.metrics.Mean { name = "g_loss" }
    end
    function GAN:metrics() return { self.d_loss_tracker, self.g_loss_tracker } end
    function GAN:compile(d_optimizer, g_optimizer, loss_fn)
      flow.Model.compile(self)
      self.d_optimizer, self.g_optimizer, self.loss_fn = d_optimizer, g_optimizer, loss_fn
    end
    function GAN:train_step(real_images)
      local batch_size = flow.shape(real_images)[1]
      local random_latent_vectors = flow.random.normal { batch_size, self.latent_dim }
      local generated_images = self.generator(random_latent_vectors)
      local combined_images = flow.concat({ generated_images, real_images }, 1)
      local labels = flow.concat({ flow.ones { batch_size, 1 }, flow.zeros { batch_size, 1 } }, 1)
      labels = labels + 0.05 * flow.random.uniform(flow.shape(labels))
      local tape = flow.GradientTape()
      local d_loss = tape:record(function() return self.loss_fn(labels, self.discriminator(combined_images)) end)
      self.d_optimizer:apply(tape:gradient(d_loss, self.discriminator.trainable_weights), self.discriminator.trainable_weights)
      random_latent_vectors = flow.random.normal { batch_size, self.latent_dim }
      local misleading_labels = flow.zeros { batch_size, 1 }
      tape = flow.GradientTape()
      local g_loss = tape:record(function()
        return self.loss_fn(misleading_labels, self.discriminator(self.generator(random_latent_vectors)))
      end)
      self.g_optimizer:apply(tape:gradient(g_loss, self.generator.trainable_weights), self.generator.trainable_weights)
      self.d_loss_tracker:update_state(d_loss)
      self.g_loss_tracker:update_state(g_loss)
      return { d_loss = self.d_loss_tracker:result(), g_loss = self.g_loss_tracker:result(), last = d_loss }
    end
    flow.config.set_logical_devices("cpu", 3)
    local images = flow.data.Dataset.from_tensor_slices(flow.random.uniform({ 100, 20 }, { seed = 3 })):batch(32)      -- the last has 4
    -- Losses of three epochs and the sum of all weights, on that many replicas.
    local function train(replicas)
      flow.set_random_seed(1)
      local devices, gan = {}, nil
      for i = 1, replicas do devices[i] = ("cpu:%d"):format(i - 1) end
      flow.distribute.MirroredStrategy { devices = devices }.scope(function()
        gan = GAN { latent_dim = 16,
          discriminator = flow.Sequential { layers.Dense(32), layers.LeakyReLU(0.2), layers.Dense(1) },
          generator = flow.Sequential { layers.Dense(32), layers.LeakyReLU(0.2), layers.Dense(20, { activation = "sigmoid" }) } }
        local function adam() return flow.optimizers.Adam { learning_rate = 0.01 } end
        gan:compile(adam(), adam(), flow.losses.BinaryCrossentropy { from_logits = true })
      end)
      local history, numbers, sum = gan:fit(images, { epochs = 3, verbose = 0 }).history, {}, 0
      for _, name in ipairs { "d_loss", "g_loss", "last" } do
        for _, number in ipairs(history[name]) do numbers[#numbers + 1] = number end
      end
      for _, w in ipairs(gan.weights) do sum = sum + w:value():abs():sum():item() end
      numbers[#numbers + 1] = sum
      assert.equal(1, gan._traces)
      return numbers, history
    end
    local one, history = train(1)
    assert.truthy(history.d_loss[3] < history.d_loss[1])
    for replicas = 2, 3 do
      local several = train(replicas)
      assert.equal(10, #several)
      for i, number in ipairs(one) do assert.near(number, several[i], 2e-5 * math.max(1, math.abs(number))) end
    end
  end)
end)

describe("a step that compares tensors", function()
  it("says where, and runs eagerly where it is told to", function()
    local Own = flow.Model:extend "Own"
    function Own:init() self.dense = layers.Dense(1) end
    function Own:call(x) return self.dense(x) end
    function Own:train_step(data)
      local x, y = unpack_data(data)
      local loss = update(self, function() return self:compute_loss { y = y, y_pred = self(x, { training = true }) } end)
      if loss:item() > 1e6 then error("it diverges") end
      return { loss = loss }
    end
    local x, y = regression(40)
    local model = Own()
    model:compile { optimizer = "sgd", loss = "mse" }
    local text = message_of(function() model:fit(x, y, { verbose = 0 }) end)
    assert.truthy(text:find("item(): this tensor has no value while f is traced (", 1, true), text)
    assert.truthy(text:find("own_steps_spec.lua:", 1, true), text)
    model:compile { optimizer = "sgd", loss = "mse", run_eagerly = true }
    local history = model:fit(x, y, { epochs = 4, verbose = 0, batch_size = 40, validation_data = { x, y } }).history
    assert.truthy(history.loss[4] < history.loss[1] and history.val_loss[4] < history.val_loss[1])
    assert.same({ 40, 1 }, model:predict(x, { verbose = 0 }).shape)
  end)
end)

-- An autoencoder with noise, its own optimizer and metric, a field that is a number, and Dropout.
local Noisy = flow.Model:extend "Noisy"
function Noisy:init(options)
  self.width = options.width
  self.net = flow.Sequential { layers.Dense(options.width, { activation = "relu" }), layers.Dropout(0.2), layers.Dense(4) }
  self.total = flow.metrics.Mean { name = "total" }
end
function Noisy:call(x) return self.net(x) end
function Noisy:metrics() return { self.total } end
function Noisy:compile(rate)
  flow.Model.compile(self)
  self.own_optimizer = flow.optimizers.Adam(rate)
end
function Noisy:train_step(x)
  x = flow.is_tensor(x) and x or x[1]
  local noise = 0.1 * flow.random.normal(flow.shape(x))
  local tape = flow.GradientTape()
  local loss = tape:record(function() return (self(x + noise, { training = true }) - x):square():mean() end)
  self.own_optimizer:apply_gradients(tape:gradient(loss, self.trainable_weights), self.trainable_weights)
  self.total:update_state(loss)
  return { total = self.total:result(), share = self.total:result() / 2, last = loss, rate = 3 }
end
function Noisy:test_step(data)
  local x = flow.utils.unpack_x_y_sample_weight(data)
  self.total:update_state((self(x) - x):square():mean())
  return { total = self.total:result() }
end
function Noisy:predict_step(data)
  local x = flow.utils.unpack_x_y_sample_weight(data)
  return { self(x), x * 2 }
end

local numbers = flow.random.normal({ 50, 4 }, { seed = 5 })

local function new_noisy()
  flow.clear_session()
  flow.set_random_seed(7)
  local model = Noisy { width = 8 }
  model:compile(0.05)
  return model
end

describe("a model with its own steps", function()
  it("goes on from a backup with the same bits, in the middle of an epoch, with arrays and data sets", function()
    local function shuffled() return flow.data.Dataset.from_tensor_slices(numbers):shuffle(50, { seed = 2 }):batch(8) end
    for _, make in ipairs { function() return numbers, 8 end, shuffled } do
      local folder = support.folder()
      local function fit(stop_at)
        local model, seen, data, size = new_noisy(), 0, make()
        local ok, history = pcall(model.fit, model, data, { epochs = 3, verbose = 0, batch_size = size, callbacks = {
          flow.callbacks.LambdaCallback { on_train_batch_end = function()
            seen = seen + 1
            if seen == stop_at then error("bang") end
          end },
          stop_at ~= false and flow.callbacks.BackupAndRestore(folder .. "/backup", { save_freq = 2 }) or nil } })
        return ok, ok and history.history or history, model
      end
      local sound, expected, whole = fit(false)
      assert.truthy(sound, expected)
      assert.falsy((fit(11)))
      local ok, history, model = fit(nil)
      assert.truthy(ok, history)
      same_weights(whole, model)
      assert.same(expected, history)
      for i, v in ipairs(whole.own_optimizer.variables) do
        assert.same(v:value():totable(), model.own_optimizer.variables[i]:value():totable())
      end
    end
  end)

  it("runs by single batches, in executions, and forgets nothing between them", function()
    local model = new_noisy()
    local results = model:train_on_batch(numbers)
    assert.near(results.total, results.last, 1e-6)
    assert.near(results.total / 2, results.share, 1e-6)
    assert.equal(3, results.rate)
    assert.truthy(model:test_on_batch(numbers).total > 0)
    local outputs = model:predict_on_batch(numbers)
    assert.same((numbers * 2):totable(), outputs[2]:totable())
    assert.same({ 50, 4 }, model:predict(numbers, { verbose = 0 })[1].shape)
    assert.equal(1, model.own_optimizer.iterations)
  end)

  it("is saved with its class and read back", function()
    local model = new_noisy()
    model:fit(numbers, { verbose = 0 })
    local path = support.folder() .. "/noisy.keras"
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { Noisy = Noisy }, compile = false })
    same_weights(model, again)
    again:compile(0.05)
    assert.truthy(again:fit(numbers, { verbose = 0 }).history.total[1] > 0)
  end)

  it("scales losses in mixed precision as the built-in step does", function()
    local Own = flow.Model:extend "Own"
    function Own:train_step(data)
      local x, y = unpack(data)
      local tape = flow.GradientTape()
      local _, scaled = tape:record(function()
        local loss = self:compute_loss(x, y, self(x, { training = true }))
        return loss, self.optimizer:scale_loss(loss)
      end)
      self.optimizer:apply_gradients(tape:gradient(scaled, self.trainable_variables), self.trainable_variables)
      return {}
    end
    flow.mixed_precision.set_global_policy("mixed_float16")
    local x, y = regression(64)
    local models = {}
    for i, class in ipairs { Own, flow.Model } do
      models[i] = new_model(class)
      models[i]:compile { optimizer = "adam", loss = "mse" }
      models[i]:fit(x, y, { epochs = 2, verbose = 0 })
    end
    flow.mixed_precision.set_global_policy("float32")
    same_weights(models[1], models[2])
    assert.equal(models[2].optimizer.iterations, models[1].optimizer.iterations)
  end)

  it("adds what layers add to the loss, and losses that are sums, once, whatever the number of replicas", function()
    local function train(replicas, loss)
      flow.set_random_seed(2)
      local devices, model = {}, nil
      for i = 1, replicas do devices[i] = ("cpu:%d"):format(i - 1) end
      flow.distribute.MirroredStrategy { devices = devices }.scope(function()
        local inputs = flow.Input { 4 }
        model = (flow.Model:extend "Plain") { inputs = inputs, outputs = layers.Dense(4, { kernel_regularizer = "l2" })(inputs) }
        model:compile { optimizer = flow.optimizers.SGD(0.01), loss = loss }
      end)
      return model:fit(numbers, numbers, { epochs = 2, batch_size = 16, shuffle = false, verbose = 0 }).history.loss, model:get_weights()
    end
    local MSE = flow.losses.MeanSquaredError
    for _, loss in ipairs { "mse", MSE { reduction = "sum" }, MSE { reduction = "none" } } do
      local one, weights = train(1, loss)
      for replicas = 2, 3 do
        local several, theirs = train(replicas, loss)
        for i, value in ipairs(one) do assert.near(value, several[i], 1e-5 * value) end
        for i, w in ipairs(weights) do assert.truthy((w - theirs[i]):abs():max():item() < 1e-5) end
      end
    end
  end)

  it("says what is wrong with what a step returns", function()
    local Own = flow.Model:extend "Own"
    function Own:init() self.dense = layers.Dense(2) end
    function Own:call(x) return self.dense(x) end
    function Own:train_step(x) return self.what(self.dense(x)) end
    local function message(what)
      local model = Own()
      model.what = what
      model:compile()
      local ok, text = pcall(model.fit, model, numbers, { verbose = 0 })
      assert.falsy(ok)
      return text
    end
    assert.truthy(message(function(t) return t end):find("train_step returns a table of names with numbers, such as { loss", 1, true))
    assert.truthy(message(function() return { loss = "x" } end):find('"loss" is the string "x", expected a number', 1, true))
  end)

  it("may take one target for several outputs in its own loss", function()
    local Own = flow.Model:extend("Own")
    function Own:compute_loss(x, y, y_pred) return (y - y_pred[1]):square():mean() + (y - y_pred[2]):square():mean() end
    local input = flow.Input { 2 }
    local zeros = { kernel_initializer = "zeros" }
    local model = Own(input, { layers.Dense(1, zeros)(input), layers.Dense(1, zeros)(input) })
    model:compile { optimizer = "sgd", metrics = { { "mae" }, { "mae" } } }
    local x, y = flow.ones { 4, 2 }, flow.full({ 4, 1 }, 3)
    local history = model:fit(x, y, { verbose = 0 }).history
    assert.same({ 18 }, history.loss)
    local first, second = unpack(model.metrics_names, #model.metrics_names - 1)
    assert.same({ { 3 }, { 0 } }, { history[first], history[second] })      -- Keras goes through metrics and targets side by side
    model:set_weights { flow.zeros { 2, 1 }, flow.zeros { 1 }, flow.zeros { 2, 1 }, flow.zeros { 1 } }
    assert.same({ 18 }, model:fit(flow.data.Dataset.from_tensor_slices({ x, y }):batch(4), { verbose = 0 }).history.loss)
  end)

  it("may return several numbers, of which their mean is shown, as in Keras", function()
    local Own = flow.Model:extend("Own")
    function Own:call(x) return x end
    function Own:train_step(x) return { loss = x:mean(), each = x:sum(2) } end
    local model, rows = Own(), flow.tensor { { 1, 2 }, { 3, 4 }, { 5, 6 } }
    model:compile()
    for _, eager in ipairs { false, true } do
      model:compile { run_eagerly = eager }
      assert.same({ 7 }, model:fit(rows, { verbose = 0, batch_size = 3 }).history.each)
    end
  end)
end)

describe("rows of a batch in a trace", function()
  it("stand in shapes and formulas, and draw what the same shape draws eagerly", function()
    local f = flow.fn(function(x)
      local n = flow.shape(x)[1]
      return flow.random.normal({ n, 3 }, { seed = 7 }), flow.random.truncated_normal({ n }, { seed = 8 }),
        flow.random.randint({ n, 2 }, 0, 10, { seed = 9 }), flow.random.uniform(x.shape, { seed = 10 }), x:sum() / n,
        flow.concat({ flow.ones { n, 1 }, flow.zeros { n, 1 } }, 1) + flow.zeros { 2 * n, 1 }, x:reshape { n, 2, 2 },
        flow.full({ 1, 4 }, 2):broadcast_to { n, 4 }
    end)
    for rows = 5, 3, -1 do
      local normal, truncated, whole, uniform, mean, both, reshaped, spread = f(flow.ones { rows, 4 })
      assert.same(flow.random.normal({ rows, 3 }, { seed = 7 }):totable(), normal:totable())
      assert.same(flow.random.truncated_normal({ rows }, { seed = 8 }):totable(), truncated:totable())
      assert.same(flow.random.randint({ rows, 2 }, 0, 10, { seed = 9 }):totable(), whole:totable())
      assert.same(flow.random.uniform({ rows, 4 }, { seed = 10 }):totable(), uniform:totable())
      assert.equal(4, mean:item())
      assert.equal(rows, both:sum():item())
      assert.same({ 2 * rows, 1 }, both.shape)
      assert.same({ rows, 2, 2 }, reshaped.shape)
      assert.equal(8 * rows, spread:sum():item())
    end
    assert.equal(1, f.traces)
  end)

  it("are told apart in the gradient of batches that were joined", function()
    local function gradients(x, y)
      local tape = flow.GradientTape()
      tape:watch { x, y }
      local loss = tape:record(function()
        local all = flow.concat({ x, flow.concat({ y, x * 2 }, 1), y }, 1)
        return (all ^ 2 * flow.concat({ x, x, x, x }, 1)):sum()
      end)
      return unpack(tape:gradient(loss, { x, y }))
    end
    local traced = flow.fn(gradients)
    for rows = 4, 2, -1 do
      local x, y = flow.random.normal({ rows, 2, 3 }, { seed = 1 }), flow.random.normal({ rows, 2, 3 }, { seed = 2 })
      local dx, dy = gradients(x, y)
      local of_x, of_y = traced(x, y)
      assert.truthy((dx - of_x):abs():max():item() < 1e-5 and (dy - of_y):abs():max():item() < 1e-5)
    end
    assert.same({ 1, nil }, { traced.traces, (next(traced.fixed)) })
  end)

  it("are refused where they cannot be, and are numbers outside of traces", function()
    assert.same({ 2, 3 }, flow.shape(flow.zeros { 2, 3 }))
    local kept
    flow.fn(function(x)
      kept = flow.shape(x)[1]
      return x
    end)(flow.zeros { 2, 3 })
    assert.truthy(message_of(function() flow.zeros { kept } end):find("the rows of a batch in a trace that has ended", 1, true))
    local model
    flow.distribute.MirroredStrategy { devices = { "cpu:0", "cpu:1" } }.scope(function() model = new_noisy() end)
    function model.train_step(_, x) return { loss = flow.zeros { 3, flow.shape(x)[1] }:sum() } end
    assert.truthy(message_of(function() model:fit(numbers, { verbose = 0 }) end)
      :find("dimension 2 is the rows of a batch, which only the first one can be", 1, true))
  end)
end)
