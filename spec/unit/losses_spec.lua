-- losses_spec.lua: loss and metric objects: reductions, weights, names and options. Values against Keras are in spec/golden.
local support = require "spec.support.init"
local flow = require "flow"
local losses, metrics = flow.losses, flow.metrics
local message_of = support.message_of

describe("a loss", function()
  local y_true, y_pred = flow.tensor { { 0 }, { 0 }, { 0 } }, flow.tensor { { 1 }, { 2 }, { 3 } }

  it("has the gradient 0 for other classes where the label's probability is 0 or theirs is", function()
    local p = flow.Variable { { 0.25, 0.75, 0 }, { 0, 1, 0 } }
    local loss, tape = losses.CategoricalGeneralizedCrossEntropy { q = 0.5, reduction = "sum" }, flow.GradientTape()
    local value = tape:record(function() return loss(flow.tensor({ 0, 2 }, { dtype = "int32" }), p:value()) end)
    assert.near(1 + 2, value:item(), 1e-6)      -- (1 - p^q) / q
    assert.same({ { -2, 0, 0 }, { 0, 0, -math.huge } }, tape:gradient(value, { p })[1]:totable())
  end)

  it("is the mean of the values per sample, and reduces as asked", function()
    assert.near(14 / 3, losses.MeanSquaredError()(y_true, y_pred):item(), 1e-6)
    assert.near(14 / 3, losses.MeanSquaredError("mean")(y_true, y_pred):item(), 1e-6)
    assert.near(14, losses.MeanSquaredError { reduction = "sum" } (y_true, y_pred):item(), 1e-6)
    assert.same({ 1, 4, 9 }, losses.MeanSquaredError { reduction = "none" } (y_true, y_pred):totable())
    assert.same({ 1, 4, 9 }, losses.MeanSquaredError { reduction = false } (y_true, y_pred):totable())      -- None
    local Own = losses.Loss:extend "Own"
    function Own:init() losses.Loss.init(self, { reduction = false }) end
    function Own:call(a, b) return (a - b):square():mean(-1) end
    assert.same({ 1, 4, 9 }, Own()(y_true, y_pred):totable())
    assert.same({ 1, 4, 9 }, losses.mean_squared_error(y_true, y_pred):totable())
    assert.same({ 1, 2, 3 }, losses.mae(y_true, y_pred):totable())
  end)

  it("divides weighted sums by the number of values", function()
    for _, weights in ipairs { { 1, 0, 1 }, flow.tensor { { 1 }, { 0 }, { 1 } } } do
      assert.near(10 / 3, losses.MeanSquaredError()(y_true, y_pred, weights):item(), 1e-6)
      assert.near(10, losses.MeanSquaredError { reduction = "sum" } (y_true, y_pred, weights):item(), 1e-6)
      local values = losses.MeanSquaredError { reduction = "none" } (y_true, y_pred, weights)
      assert.same({ 1, 0, 9 }, values:reshape({ 3 }):totable())
      assert.equal(type(weights) == "table" and 1 or 2, values.rank)      -- as in Keras: weights {n, 1} give values {n, 1}
    end
    local zeros = flow.zeros { 2, 3, 1, 4 }
    assert.same({ 2, 3 }, losses.MeanSquaredError { reduction = "none" } (zeros, zeros, flow.ones { 2, 1 }).shape)
    assert.truthy(message_of(function() losses.MeanSquaredError()(y_true, y_pred, { 1, 2 }) end):find("do not broadcast", 1, true))
    assert.truthy(message_of(function() losses.MeanSquaredError()(y_true, y_pred, flow.ones { 3, 2 }) end)
      :find("sample_weight {3, 2} has more dimensions than the values {3}", 1, true))
  end)

  it("divides weighted sums by the sum of the weights where asked", function()
    local loss = losses.MeanSquaredError { reduction = "mean_with_sample_weight" }
    assert.near(14 / 3, loss(y_true, y_pred):item(), 1e-6)
    assert.near((1 + 0.5 * 4 + 2 * 9) / 3.5, loss(y_true, y_pred, { 1, 0.5, 2 }):item(), 1e-6)
    assert.equal(0, loss(y_true, y_pred, { 0, 0, 0 }):item())
    assert.near((1 + 2 * 9) / 3, loss(y_true, y_pred, flow.tensor({ 1, 0, 2 }, { dtype = "int32" })):item(), 1e-6)
    -- A weight for two values counts once: Keras divides by the sum of the weights as they are given.
    local pairs_of = losses.MeanAbsoluteError { reduction = "mean_with_sample_weight" }
    local rows = flow.tensor { { { 1 }, { 2 } }, { { 3 }, { 4 } } }
    assert.near((1 * 3 + 3 * 7) / 4, pairs_of(flow.zeros { 2, 2, 1 }, rows, { 1, 3 }):item(), 1e-6)
  end)

  it("reads Keras' reduction None, which files hold as null", function()
    local loss = losses.deserialize { class_name = "MeanSquaredError", config = { reduction = require "flow.json".null } }
    assert.equal("none", loss.reduction)
    assert.same({ 1, 4, 9 }, loss(y_true, y_pred):totable())
  end)

  -- The numbers of Keras 3.15 on TensorFlow.
  it("trains on the sum of the values with the reduction none, and reports their mean", function()
    local x, y = (flow.arange(8) / 8):reshape { 4, 2 }, flow.arange(4):reshape { 4, 1 }
    local Own = flow.Model:extend "Own"
    function Own:train_step(data)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return self:compute_loss(data[1], data[2], self(data[1], { training = true })) end)
      self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
      return { loss = loss }
    end
    for class, eagerly in pairs { [flow.Model] = false, [flow.Model:extend "Plain"] = true, [Own] = false } do
      local input = flow.Input { 2 }
      local model = class { inputs = input, outputs = flow.layers.Dense(1, { kernel_initializer = "ones" })(input) }
      model:compile { optimizer = flow.optimizers.SGD(0.1), loss = losses.MeanSquaredError { reduction = "none" }, run_eagerly = eagerly }
      assert.same({ 0.703125 }, model:fit(x, y, { batch_size = 4, verbose = 0 }).history.loss)
      local weights = model:get_weights()
      assert.same({ { { 1.3125 }, { 1.375 } }, { 0.5 } }, { weights[1]:totable(), weights[2]:totable() })
      assert.equal(0.1668701171875, model:evaluate(x, y, { batch_size = 3, verbose = 0 }).loss)
    end
  end)

  it("takes Keras' options by position and by name", function()
    local labels, logits = flow.tensor({ 1 }, { dtype = "int32" }), flow.tensor { { 0, 0 } }
    assert.near(math.log(2), losses.SparseCategoricalCrossentropy(true)(labels, logits):item(), 1e-6)
    assert.near(math.log(2), losses.SparseCategoricalCrossentropy { from_logits = true } (labels, logits):item(), 1e-6)
    assert.near(0.75, losses.Huber(0.5)({ { 0 } }, { { 1.75 } }):item(), 1e-6)
    assert.near(math.log(2), losses.CategoricalCrossentropy { from_logits = true, axis = 2 } ({ { 0, 1 } }, logits):item(), 1e-6)
  end)

  it("takes labels of 0 and 1 for -1 and 1 where all labels of the batch are such, as Keras", function()
    local hinge, scores = losses.Hinge { reduction = "none" }, { { 0.5 }, { 0.25 }, { 0.75 } }
    assert.same({ 1.5, 0.75, 0.25 }, hinge({ { 0 }, { 1 }, { 1 } }, scores):totable())
    assert.same({ 1, 0.75, 1.75 }, hinge({ { 0 }, { 1 }, { -1 } }, scores):totable())
    assert.same({ 1, 0.875, 0.25 }, hinge({ { 0 }, { 0.5 }, { 1 } }, scores):totable())
  end)

  -- Expected values: Keras 3.13.
  it("leaves a class out, and out of the divisor of its mean", function()
    local labels = flow.tensor({ { 0 }, { 255 }, { 1 } }, { dtype = "uint8" })
    local probabilities, weights = flow.tensor { { 0.3, 0.7 }, { 0.1, 0.9 }, { 0.4, 0.6 } }, { 1, 2, 3 }
    local function loss(reduction) return losses.SparseCategoricalCrossentropy { ignore_class = 255, reduction = reduction } end
    assert.near(0.85739917, loss("sum_over_batch_size")(labels, probabilities):item(), 1e-6)
    assert.near(1.3682247, loss("mean")(labels, probabilities, weights):item(), 1e-6)
    assert.near(2.7364495, loss("sum")(labels, probabilities, weights):item(), 1e-6)
    local values = loss("none")(labels, probabilities, weights):totable()
    for i, expected in ipairs { 1.2039728, 0, 1.5324767 } do assert.near(expected, values[i], 1e-6) end
    assert.equal("SparseCategoricalCrossentropy: ignore_class is a label, a number, got true",
      message_of(function() losses.SparseCategoricalCrossentropy { ignore_class = true } end))
  end)

  it("that leaves a class out, looks at all labels or at the weights of a batch, is the same for several replicas", function()
    local x, y = flow.random.normal({ 10, 3 }, { seed = 1 }), flow.tensor({ 0, 9, 9, 9, 1, 2, 0, 9, 1, 1 }, { dtype = "int32" })
    local signs = flow.tensor { { 1 }, { 0 }, { 1 }, { 0 }, { 0 }, { -1 }, { 1 }, { 1 }, { 0 }, { 1 } }
    local function train(strategy, loss, outputs, targets, weights)
      flow.set_random_seed(4)
      local model = strategy.scope(function()
        return flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(outputs) }
      end)
      model:compile { optimizer = flow.optimizers.SGD(0.5), loss = loss() }
      local history = model:fit(x, targets, { epochs = 4, batch_size = 10, shuffle = false, verbose = 0, sample_weight = weights })
      return history.history.loss
    end
    local function ignore() return losses.SparseCategoricalCrossentropy { from_logits = true, ignore_class = 9 } end
    flow.config.set_logical_devices("cpu", 4)
    local one, four = flow.distribute.OneDeviceStrategy "cpu", flow.distribute.MirroredStrategy()
    local function weighted() return losses.Huber { reduction = "mean_with_sample_weight" } end
    local weights = flow.random.uniform { signs.shape[1] }
    for _, case in ipairs { { ignore, 3, y }, { losses.Hinge, 1, signs }, { weighted, 1, signs, weights } } do
      local expected, found = train(one, unpack(case)), train(four, unpack(case))
      assert.truthy(expected[4] < expected[1])
      for i = 1, 4 do assert.near(expected[i], found[i], 1e-5) end
    end
  end)

  -- Values: the example of Keras' Dice, whose axes count from 0.
  it("of sets are taken over any axes, of a file, too", function()
    local truth = flow.tensor { { { { 1 }, { 1 } }, { { 0 }, { 0 } } }, { { { 1 }, { 1 } }, { { 0 }, { 0 } } } }
    local guess = flow.tensor { { { { 0 }, { 1 } }, { { 0 }, { 1 } } }, { { { 0.4 }, { 0 } }, { { 0 }, { 0.9 } } } }
    local of_samples = losses.Dice { axis = { 2, 3, 4 }, reduction = "none" }
    for i, expected in ipairs { 0.5, 0.75757575 } do assert.near(expected, of_samples(truth, guess)[i]:item(), 1e-6) end
    assert.near(0.6164384, losses.Dice()(truth, guess):item(), 1e-6)
    local model = flow.Sequential { flow.layers.Input { 2, 2, 1 }, flow.layers.Activation("linear") }
    model:compile { loss = losses.Dice { axis = { 2, -2, 4 } } }
    local path = support.file("dice.keras", "")
    model:save(path)
    local again = flow.load_model(path)
    assert.near((0.5 + 0.75757575) / 2, again:evaluate(guess, truth, { verbose = 0 }).loss, 1e-6)
    assert.same({ 1, -2, 3 }, again.loss.config.config.axis)
    assert.equal("dice: entry 2 of axis is not an axis of y_pred, which has 4 dimensions",
      message_of(function() losses.Dice { axis = { 1, 5 } }(truth, guess) end))
    assert.equal('dice: axis must be a number or a list of numbers, found "x"',
      message_of(function() losses.Dice { axis = "x" }(truth, guess) end))
  end)

  it("names what it was given wrongly", function()
    assert.equal('SparseCategoricalCrossentropy: unknown option "from_logit"; did you mean "from_logits"?',
      message_of(function() losses.SparseCategoricalCrossentropy { from_logit = true } end))
    assert.truthy(message_of(function() losses.MeanSquaredError { reduction = "non" } end):find('reduction is the string "non"', 1, true))
    assert.equal('flow.losses has no "Sparse"; did you mean "sparse_categorical_crossentropy"?',
      message_of(function() return losses.Sparse end))
    assert.equal("sparse_categorical_crossentropy: label 5 of row 2 is outside 0..1", message_of(function()
      losses.SparseCategoricalCrossentropy(true)(flow.tensor({ 0, 5 }, { dtype = "int32" }), flow.ones { 2, 2 })
    end))
    assert.truthy(message_of(function() losses.MeanSquaredError()(flow.ones { 2, 3 }, flow.ones { 2, 2 }) end)
      :find("mean_squared_error", 1, true))
    assert.truthy(message_of(function() losses.get(3) end):find("a loss is an object, a name or a function", 1, true))
    assert.truthy(message_of(function() losses.get("mean_square_error") end):find('did you mean "mean_squared_error"?', 1, true))
  end)

  it("may be a function", function()
    local loss = losses.get(function(a, b) return (a - b):abs():sum(-1) end)
    assert.near(2, loss(y_true, y_pred):item(), 1e-6)
  end)
end)

describe("a metric", function()
  it("keeps a running mean until it is reset", function()
    local metric = metrics.SparseCategoricalAccuracy()
    assert.equal("sparse_categorical_accuracy", metric.name)
    assert.equal(0, metric:result())
    metric:update_state(flow.tensor({ 0, 1 }, { dtype = "int32" }), { { 1, 0 }, { 1, 0 } })
    assert.equal(0.5, metric:result())
    metric:update_state(flow.tensor({ 0, 0 }, { dtype = "int32" }), { { 1, 0 }, { 1, 0 } })
    assert.equal(0.75, metric:result())
    metric:reset_state()
    assert.equal(0, metric:result())
    metric:update_state(flow.tensor({ 0, 1 }, { dtype = "int32" }), { { 1, 0 }, { 1, 0 } }, { 1, 3 })
    assert.equal(0.25, metric:result())
  end)

  it("leaves out values whose label is ignore_class, whatever the prediction, along any axis", function()
    local p = flow.tensor { { { 0.2, 0 / 0 }, { 0.5, 0 / 0 }, { 0.3, 0 / 0 } } }
    local labels = flow.tensor({ { 1, 255 } }, { dtype = "uint8" })
    local loss = flow.losses.SparseCategoricalCrossentropy { axis = 2, ignore_class = 255 }
    assert.is_near(-math.log(0.5), loss(labels, p):item(), 1e-6)
    assert.same({ 0 }, { loss:call(labels, p)[{ 1, 2 }]:item() })
    assert.equal(0, flow.metrics.sparse_categorical_crossentropy(labels, p, { axis = 2, ignore_class = 255 })[{ 1, 2 }]:item())
    local metric = flow.metrics.deserialize(flow.metrics.serialize(metrics.SparseCategoricalCrossentropy { axis = 2, ignore_class = 255 }))
    assert.is_near(-math.log(0.5), metric(labels, p, flow.tensor { { 1, 1 } }), 1e-6)
  end)

  it("takes the input of a softmax along the loss's axis only", function()
    local logits, labels = flow.Variable { { 1, 2 }, { 3, 5 } }, flow.tensor { { 1, 0 }, { 0, 1 } }
    local function loss_of(softmax_axis, loss_axis)
      local tape = flow.GradientTape()
      return tape:record(function()
        return flow.losses.CategoricalCrossentropy { axis = loss_axis }(labels, flow.softmax(logits:value(), softmax_axis))
      end):item()
    end
    local function of(p, axis) return flow.losses.CategoricalCrossentropy { axis = axis }(labels, p):item() end
    for softmax_axis = 1, 2 do
      local p = flow.softmax(logits:value(), softmax_axis)
      for loss_axis = 1, 2 do assert.is_near(of(p, loss_axis), loss_of(softmax_axis, loss_axis), 1e-5) end
    end
  end)

  it("weighs a loss that is one number for the batch, as Keras does", function()
    local loss = flow.losses.Dice()
    local y, p = flow.tensor { { 1, 0 }, { 0, 1 } }, flow.tensor { { 0.5, 0.25 }, { 0.5, 1 } }
    assert.is_near(loss(y, p):item() * 2, loss(y, p, flow.tensor { 1, 3 }):item(), 1e-6)
  end)

  it("measures root_mean_squared_error of values that a mask leaves out, too, as Keras does", function()
    local p = flow.tensor { { 1, 1 }, { 3, 3 } }
    p._keras_mask = flow.tensor({ 1, 0 }, { dtype = "bool" })
    assert.is_near(math.sqrt(5), metrics.RootMeanSquaredError()(flow.zeros { 2, 2 }, p), 1e-6)
    assert.is_near(1, metrics.MeanSquaredError()(flow.zeros { 2, 2 }, p), 1e-6)
  end)

  it("averages values", function()
    local mean = metrics.Mean("m")
    mean:update_state { 1, 2, 3 }
    mean:update_state(6)
    assert.equal(3, mean:result())
    assert.equal("m", mean.name)
    assert.same({ "m/total", "m/count" }, { mean.variables[1].path, mean.variables[2].path })
  end)

  it("of one sample find no variance, whatever squares round to", function()
    local score = metrics.R2Score { class_aggregation = false }
    score:update_state({ { 0.3, -1.7, 0.123 } }, { { 0.1, 0.2, 0.3 } })
    assert.same({ 0, 0, 0 }, score:result())      -- Keras: where the quotient is infinite
  end)

  it("counts exactly beyond 2^24", function()
    local mean = metrics.Mean("m")
    mean.count:assign(2 ^ 24)
    mean:update_state { 1 }
    assert.equal(2 ^ 24 + 1, mean.count:item())
  end)

  it("names what it was given wrongly", function()
    assert.equal('SparseCategoricalAccuracy: unknown option "k"', message_of(function() metrics.SparseCategoricalAccuracy { k = 1 } end))
    assert.equal('flow.metrics has no "Accurate"', message_of(function() return metrics.Accurate end))
    assert.truthy(message_of(function() metrics.get("acuracy") end):find('did you mean "accuracy"?', 1, true))
    assert.truthy(message_of(function() metrics.Mean { nam = "x" } end):find('did you mean "name"?', 1, true))
    local binary = metrics.BinaryAccuracy { threshold = 0.9, name = "strict" }
    binary:update_state({ { 1 }, { 1 } }, { { 0.8 }, { 0.95 } })
    assert.same({ "strict", 0.5 }, { binary.name, binary:result() })
  end)
end)

describe("functions of flow.losses and flow.metrics given to compile", function()
  local x, y = flow.random.normal({ 7, 3 }, { seed = 1 }), flow.random.uniform({ 7, 2 }, { seed = 2 })

  local function compiled(loss, metric)
    flow.set_random_seed(1)
    local model = flow.Sequential { flow.layers.Input { 3 }, flow.layers.Dense(2, { activation = "sigmoid" }) }
    model:compile { optimizer = "sgd", loss = loss, metrics = { metric } }
    return model
  end

  it("are what their names are, in training and in files", function()
    local pairs_of = { mean_squared_error = "mean_absolute_error", binary_crossentropy = "binary_accuracy", huber = "kl_divergence" }
    for loss, metric in pairs(pairs_of) do
      local named, model = compiled(loss, metric), compiled(flow.losses[loss], flow.metrics[metric])
      local options = { epochs = 2, batch_size = 4, verbose = 0, shuffle = false }
      assert.same(named:fit(x, y, options).history, model:fit(x, y, options).history)
      local path = support.path "functions.keras"
      model:save(path)
      assert.same(named:evaluate(x, y, { verbose = 0 }), flow.load_model(path):evaluate(x, y, { verbose = 0 }))
      local function entry(name) return { module = "builtins", class_name = "function", config = name, registered_name = "function" } end
      assert.same({ entry(loss), entry(metric) }, { model:get_compile_config().loss, model:get_compile_config().metrics[1] })
    end
  end)

  it("have one name, whatever alias they are given by, as in Keras", function()
    local history = compiled(flow.losses.mse, flow.metrics.mae):fit(x, y, { verbose = 0 }).history
    assert.truthy(history.mean_absolute_error)
  end)
end)

describe("weights that are more than the values", function()
  it("count each value once for each of its weights in the mean", function()
    local y, p, weights = flow.tensor { { 1 }, { 2 }, { 1 } }, flow.tensor { { 1 }, { 1 }, { 2 } }, flow.tensor { 1, 2, 3 }
    local cosine = -5 / 6      -- of the columns, one value
    for reduction, expected in pairs { sum_over_batch_size = cosine * 2, mean = cosine * 2, sum = cosine * 6,
                                       mean_with_sample_weight = cosine } do
      local loss = flow.losses.CosineSimilarity { axis = 1, reduction = reduction }
      assert.near(expected, loss(y, p, weights):item(), 1e-5)
    end
  end)
end)

describe("metrics of decisions", function()
  it("compare predictions of 16 bits as float32: those below the top k are below every threshold", function()
    local y, p = { { 1, 0, 1, 1 }, { 0, 1, 1, 0 } }, { { 0.5, 0.25, 0.125, 0.75 }, { 0.875, 0.5, 0.25, 0.125 } }
    for _, dtype in ipairs { "bfloat16", "float16", "float32", "float64" } do
      local recall = flow.metrics.Recall { top_k = 1 }
      recall:update_state(flow.tensor(y, { dtype = dtype }), flow.tensor(p, { dtype = dtype }))
      assert.near(1 / 5, recall:result(), 1e-6)
    end
  end)
end)
