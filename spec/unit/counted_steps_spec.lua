-- counted_steps_spec.lua: steps that compute with the number of rows of a batch: random tensors for batches of 4 rows, products of rows by
-- rows. They are traced for each number of rows, and give what they give eagerly.
local support = require "spec.support.init"
local message_of = support.message_of
local flow = require "flow"
local layers = flow.layers

flow.log.sink = function() end
flow.config.set_logical_devices("cpu", 2)
local x, y = flow.random.normal({ 10, 3 }, { seed = 1 }), flow.random.normal({ 10, 2 }, { seed = 2 })

--- The losses of two epochs with batches of 4, 4 and 2 rows, traced and eagerly: make() gives a model that is compiled with the options.
local function check(make, data)
  local losses = {}
  for i, eagerly in ipairs { false, true } do
    flow.set_random_seed(5)
    local model = make { optimizer = flow.optimizers.SGD(0.001), run_eagerly = eagerly }
    losses[i] = model:fit(data or flow.data.Dataset.from_tensor_slices({ x, y }):batch(4), { epochs = 2, verbose = 0 }).history.loss
    assert.equal(data and 2 or 10, #(data and losses[i] or model:predict(x, { verbose = 0 })))
  end
  for epoch = 1, 2 do assert.truthy(math.abs(losses[1][epoch] - losses[2][epoch]) < 1e-5, losses[1][epoch] .. " " .. losses[2][epoch]) end
  return losses[1]
end

describe("a model for one number of rows", function()
  it("trains on arrays that hold several batches of that many rows", function()
    local Rows = layers.Layer:extend "RowsOfFour"
    function Rows:call(rows) return rows:reshape({ 12, 1 }):reshape({ 4, 3 }) end      -- known for batches of 4
    local input = flow.Input({ 3 }, { batch_size = 4 })
    local model = flow.Model(input, layers.Dense(2)(Rows()(input)))
    model:compile { optimizer = "sgd", loss = "mse" }
    local history = model:fit(x[{ { 1, 8 } }], y[{ { 1, 8 } }], { batch_size = 4, epochs = 2, verbose = 0 }).history
    assert.is_true(history.loss[2] < history.loss[1])
  end)

  -- Targets {rows} and predictions {rows, 4} broadcast for batches of 1 and of 4 rows alone, as in Keras.
  it("takes and refuses the same batches whatever ran before", function()
    local targets = flow.arange(12):to "float32"
    local function said(warm, rows, size, options)
      local model = flow.Sequential { flow.Input { 3 }, layers.Dense(4, { kernel_initializer = "ones" }) }
      model:compile { optimizer = "sgd", loss = "mse" }
      if warm then model:train_on_batch(x[{ { 1, warm } }], targets[{ { 1, warm } }]) end
      local before = model.weights[1]:totable()
      local all = { batch_size = size, verbose = 0, shuffle = false }
      for name, value in pairs(options or {}) do all[name] = value end
      local ok, problem = pcall(model.fit, model, x[{ { 1, rows } }], targets[{ { 1, rows } }], all)
      assert.equal(ok, model.weights[1]:totable()[1][1] ~= before[1][1])      -- what is refused at once has trained nothing
      return ok, ok or problem:match "mean_squared_error: .*"
    end
    for _, warm in ipairs { false, 1, 4 } do
      assert.is_true(said(warm, 3, 1))
      assert.is_true(said(warm, 7, 4, { steps_per_epoch = 1 }))
      local ok, problem = said(warm, 3, 4)
      assert.is_false(ok)
      assert.truthy(problem:find("y_true {3} and y_pred {3, 4} do not fit", 1, true), problem)
    end
  end)
end)

describe("a step that computes with the rows of a batch", function()
  local Scaled = flow.Model:extend "Scaled"
  function Scaled:init() self.dense = layers.Dense(2, { kernel_initializer = "ones" }) end
  function Scaled:call(rows) return self.dense(rows) end
  function Scaled:train_step(data)
    local rows, targets = unpack(data)
    local factors = flow.reshape(flow.arange(1, 5, 1, { dtype = "float32" }), { 4, 1 })      -- of batches of 4
    local tape = flow.GradientTape()
    local loss = tape:record(function() return (factors * self.dense(rows) - targets):square():mean() end)
    self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
    return { loss = loss }
  end
  local fours = flow.data.Dataset.from_tensor_slices({ x, y }):batch(4, { drop_remainder = true })
  local function scaled(options)
    local model = Scaled()
    model:compile(options)
    return model
  end

  it("with tensors of as many rows", function()
    check(scaled, fours)
    local model = scaled { optimizer = "sgd" }
    model:fit(fours, { verbose = 0 })
    local traces = model._traces
    model:fit(fours, { epochs = 3, verbose = 0 })
    assert.equal(traces, model._traces)      -- it is found again
  end)

  it("which replicas share is refused", function()
    local model
    flow.distribute.MirroredStrategy { devices = { "cpu:0", "cpu:1" } }.scope(function() model = scaled { optimizer = "sgd" } end)
    local text = message_of(function() model:fit(fours, { verbose = 0 }) end)
    assert.truthy(text:find("the number of rows is not known while tracing", 1, true), text)
  end)

  it("says what fails where the rows are known", function()
    local Wrong = Scaled:extend "Wrong"
    function Wrong:train_step(data)
      local rows = flow.reshape(self.dense(data[1]), { 4, 2 })
      return { loss = flow.sum(rows, { axes = 2 }) }
    end
    local model = Wrong()
    model:compile { optimizer = "sgd" }
    local text = message_of(function() model:fit(fours, { verbose = 0 }) end)
    assert.truthy(text:find('unknown option "axes"', 1, true), text)
  end)

  it("in its loss", function()
    check(function(options)
      local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2, { kernel_initializer = "ones" }) }
      options.loss = function(y_true, y_pred)      -- the distances of all pairs of rows
        local products = flow.tensordot(y_pred, y_pred, { axes = { 2, 2 } }) - flow.tensordot(y_true, y_true, { axes = { 2, 2 } })
        return flow.reshape(products, { -1 }):square():mean()
      end
      model:compile(options)
      return model
    end)
  end)

  it("in the activity_regularizer of a layer of a graph", function()
    local Orthogonal = flow.regularizers.Regularizer:extend "Orthogonal"
    function Orthogonal:call(values)
      local matrices = values:reshape { -1, 2, 2 }
      local products = flow.tensordot(matrices, matrices, { axes = { 3, 3 } })
      return 0.01 * flow.sum((flow.reshape(products, { -1, 2, 2 }) - flow.eye(2)):square())
    end
    local losses = check(function(options)
      local input = flow.Input { 3 }
      local hidden = layers.Dense(4, { kernel_initializer = "ones", activity_regularizer = Orthogonal() })(input)
      local model = flow.Model { inputs = input, outputs = layers.Dense(2, { kernel_initializer = "ones" })(hidden) }
      options.loss = "mse"
      model:compile(options)
      return model
    end)
    assert.truthy(losses[2] < losses[1])
  end)
end)

describe("a graph that computes with the rows of a batch", function()
  it("has the shapes that any number of rows gives, and runs on those of each batch", function()
    local GroupDeviation = layers.Layer:extend "GroupDeviation"      -- as in StyleGAN
    function GroupDeviation:call(rows)
      local groups = flow.reshape(rows, { 2, -1, rows.shape[-1] })
      return flow.concat({ rows, flow.tile(flow.std(groups, { axis = 1 }), { 2, 1 }) }, -1)
    end
    local input = flow.Input { 3 }
    local deviations = GroupDeviation()(input)
    assert.equal("(None, 6)", tostring(deviations.shape))
    assert.equal("(3,)", tostring(input[1].shape))
    assert.equal("(2, None, 3)", tostring(flow.reshape(input, { 2, -1, 3 }).shape))
    local model = flow.Model { inputs = input, outputs = layers.Dense(2, { kernel_initializer = "ones" })(deviations) * input[1][1] }
    model:compile { optimizer = flow.optimizers.SGD(0.001), loss = "mse" }
    assert.equal(3, #model:fit(x, y, { batch_size = 4, epochs = 3, verbose = 0 }).history.loss)
    local found = model:predict(x[{ { 1, 4 } }], { verbose = 0 })
    local again = model(x[{ { 1, 4 } }])
    for i = 1, 4 do assert.truthy((found[i] - again[i]):abs():max():item() < 1e-5) end
  end)

  it("names what no number of rows would allow", function()
    local text = message_of(function() flow.reshape(flow.Input { 3 }, { 5, 7 }) end)
    assert.truthy(text:find("reshape: shape {None, 3} does not have the elements of {5, 7}", 1, true), text)
  end)
end)

describe("a model that is not a graph", function()
  it("gets the inputs that elements have as parts", function()
    local Sum = flow.Model:extend "Sum"
    function Sum:init() self.dense = layers.Dense(1, { kernel_initializer = "ones" }) end
    function Sum:call(inputs) return self.dense(inputs[1] * inputs[2]) end
    function Sum:compute_loss(values, y_true, y_pred)
      assert.equal(2, #values)
      return (y_pred - (y_true or 1)):square():mean()
    end
    local Batches = flow.utils.PyDataset:extend "Batches"
    function Batches:__len__() return 2 end
    function Batches:__getitem__(index)
      local part = x[{ { 1 + 5 * index, 5 + 5 * index } }]
      if self.with_targets then return { part, part + 1 }, flow.ones { 5, 1 } end
      return { { part, part + 1 } }      -- Python: return ((a, b),)
    end
    for _, with_targets in ipairs { false, true } do
      local model = Sum()
      model:compile { optimizer = "sgd" }
      local history = model:fit(Batches { with_targets = with_targets }, { epochs = 3, verbose = 0, shuffle = false }).history
      assert.truthy(history.loss[3] < history.loss[1])
      assert.same({ 10, 1 }, model:predict(Batches { with_targets = with_targets }, { verbose = 0 }).shape)
    end
  end)
end)
