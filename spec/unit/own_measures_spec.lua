-- own_measures_spec.lua: losses and metrics that are written in Lua, and metrics whose state is more than a mean: alone, in files, and
-- under strategies.
local support = require "spec.support.init"
local flow = require "flow"
local layers, metrics = flow.layers, flow.metrics
local message_of = support.message_of

local Off = metrics.Metric:extend("Off")
function Off:init(options)
  self.factor = options and options.factor or 1
  self.sum, self.rows = self:add_weight { name = "sum" }, self:add_variable { name = "rows" }
end
function Off:update_state(y_true, y_pred)
  self.sum:assign_add((y_true - y_pred):abs():sum() * self.factor)
  self.rows:assign_add(metrics.rows(y_pred))
end
function Off:result() return self.sum / self.rows end
function Off:get_config() return { factor = self.factor } end

local Power = flow.losses.Loss:extend("Power")
function Power:call(y_true, y_pred) return ((y_true - y_pred):abs() ^ self.power):mean(-1) end
function Power:get_config() return { power = self.power } end

local x = flow.random.normal({ 10, 2 }, { seed = 1 })
local y = x[{ {}, { 1, 1 } }]:gt(0):to("float32")

local function new_model()
  flow.set_random_seed(3)
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1, { activation = "sigmoid" }) }
  model:compile { loss = Power { power = 3 }, metrics = {
    Off { name = "off" }, Off { name = "twice", factor = 2 }, "auc", metrics.Precision(), "true_negatives", "RootMeanSquaredError" } }
  return model
end

-- Keys: Keras 3.13.
describe("a model with its own call() and two outputs", function()
  before_each(flow.clear_session)

  local Two = flow.Model:extend("Two")
  function Two:init()
    self.a = layers.Dense(1, { kernel_initializer = "ones" })
    self.b = layers.Dense(1, { kernel_initializer = "ones" })
  end
  function Two:call(inputs) return { self.a(inputs), self.b(inputs) } end
  local ones, zeros = flow.ones { 4, 2 }, flow.zeros { 4, 1 }
  local function results(options)
    local model = Two()
    options.optimizer = "sgd"
    model:compile(options)
    model:fit(ones, { zeros, zeros }, { verbose = 0, epochs = 0 })
    return model:evaluate(ones, { zeros, zeros }, { verbose = 0 })
  end

  it("takes a list of losses, and one for each", function()
    assert.same({ loss = 6, mse_loss = 4, mae_loss = 2 }, results { loss = { "mse", "mae" } })
    assert.same({ loss = 5, mse_loss = 4, mae_loss = 2 }, results { loss = { "mse", "mae" }, loss_weights = { 1, 0.5 } })
    assert.same({ loss = 8, mse_loss = 4, mse_1_loss = 4 }, results { loss = { "mse", "mse" } })
    assert.equal(8, results({ loss = "mse" }).loss)
  end)

  -- As Keras' squeeze_or_expand_to_same_rank: else {4} and {4, 1} would broadcast to {4, 4}.
  it("gives a function targets of the rank of the predictions", function()
    local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1, { kernel_initializer = "ones" }) }
    model:compile { optimizer = "sgd", loss = function(y_true, y_pred) return (y_true - y_pred):square():mean() end }
    local rows = flow.tensor { { 1 }, { 2 }, { 3 }, { 4 } }
    assert.same({ loss = 0 }, model:evaluate(rows, rows:squeeze(-1), { verbose = 0 }))
    assert.same({ loss = 0 }, model:evaluate(rows, rows, { verbose = 0 }))
  end)

  it("takes metrics with them", function()
    assert.same({ loss = 6, mse_loss = 4, mae_loss = 2, mae = 2, mse = 4 },
      results { loss = { "mse", "mae" }, metrics = { { "mae" }, { "mse" } } })
    local message = message_of(function() results { loss = "mse", metrics = { "mae" } } end)
    assert.truthy(message:find("call() gives 2 outputs; for metrics of several outputs compile takes a list of their", 1, true), message)
  end)

  it("trains both", function()
    local model = Two()
    model:compile { optimizer = flow.optimizers.SGD(0.05), loss = "mse" }
    model:fit(ones, { zeros, zeros }, { verbose = 0, epochs = 3 })
    for _, layer in ipairs { model.a, model.b } do assert.truthy(layer.kernel:max():item() < 0.9) end
  end)
end)

describe("F1Score", function()
  before_each(flow.clear_session)

  it("makes its state in fit, is in files, and says what it cannot be", function()
    local inputs, targets = flow.random.normal({ 20, 4 }, { seed = 1 }), flow.one_hot(flow.random.randint({ 20 }, 0, 3, { seed = 2 }), 3)
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3, { activation = "softmax" }) }
    model:compile { loss = "categorical_crossentropy",
                    metrics = { metrics.F1Score "macro", metrics.FBetaScore { average = "micro", beta = 2 } } }
    local history = model:fit(inputs, targets, { epochs = 2, batch_size = 8, verbose = 0 }).history
    local expected = metrics.F1Score "macro" (targets, model:predict(inputs, { verbose = 0 }))
    local path = support.file("f1.keras", "")
    model:save(path)
    for _, which in ipairs { model, flow.load_model(path) } do
      local results = which:evaluate(inputs, targets, { verbose = 0, batch_size = 8 })
      assert.near(expected, results.f1_score, 1e-6)
      assert.truthy(results.fbeta_score > 0)
    end
    assert.equal(2, #history.f1_score)
    assert.truthy(message_of(function() metrics.F1Score "mean" end):find("average is micro, macro, weighted or nil", 1, true))
    assert.truthy(message_of(function() metrics.F1Score()(flow.ones { 3 }, flow.ones { 3, 2 }) end)
      :find("expected {samples, classes}", 1, true))
    assert.truthy(message_of(function() metrics.FBetaScore { beta = 0 } end):find("beta is a number above 0", 1, true))
  end)
end)

describe("metrics of classes, scores and operating points", function()
  before_each(flow.clear_session)
  local pictures, labels = flow.random.normal({ 12, 4, 4, 1 }, { seed = 1 }), flow.random.randint({ 12, 4, 4 }, 0, 3, { seed = 2 })

  local function model_with(list)
    flow.set_random_seed(4)
    local model = flow.Sequential { layers.Input { 4, 4, 1 }, layers.Conv2D(3, 3, { padding = "same", activation = "softmax" }) }
    model:compile { loss = "sparse_categorical_crossentropy", metrics = list }
    return model
  end

  it("train, are saved with what makes them, and are what all rows give at once", function()
    local model = model_with { metrics.MeanIoU(3, { sparse_y_pred = false }),
                               metrics.IoU(3, { 0, 2 }, { sparse_y_pred = false, dtype = "float32" }) }
    local history = model:fit(pictures, labels, { epochs = 2, batch_size = 5, verbose = 0 }).history
    local path = support.file("iou.keras", "")
    model:save(path)
    local predicted = model:predict(pictures, { verbose = 0 })
    for _, which in ipairs { model, flow.load_model(path) } do
      local results = which:evaluate(pictures, labels, { verbose = 0, batch_size = 5 })
      assert.near(metrics.MeanIoU(3, { sparse_y_pred = false })(labels, predicted), results.mean_io_u, 1e-6)
      assert.near(metrics.IoU(3, { 0, 2 })(labels, flow.argmax(predicted, -1) - 1), results.io_u, 1e-6)
      assert.is_true(results.mean_io_u > 0 and results.mean_io_u < 1)
    end
    assert.equal(2, #history.mean_io_u)
  end)

  it("give one result on one replica and on two", function()
    local function logs(scope)
      local model
      scope(function()
        model = model_with { metrics.MeanIoU(3, { sparse_y_pred = false, name = "m" }) }
      end)
      return model:evaluate(pictures, labels, { verbose = 0, batch_size = 6 })
    end
    flow.config.set_logical_devices("cpu", 2)
    assert.near(logs(function(f) f() end).m, logs(flow.distribute.MirroredStrategy().scope).m, 1e-6)
  end)

  it("of two classes and of numbers are in files, too", function()
    local inputs = flow.random.normal({ 20, 3 }, { seed = 5 })
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(1, { activation = "sigmoid" }) }
    model:compile { loss = "mse", metrics = { "binary_io_u", "r2_score", metrics.PrecisionAtRecall(0.5, { num_thresholds = 20 }),
      metrics.SensitivityAtSpecificity { specificity = 0.25 }, metrics.PearsonCorrelation { axis = 1 } } }
    local targets = inputs[{ {}, { 1, 1 } }]:gt(0):to("float32")
    local path, expected = support.file("points.keras", ""), model:evaluate(inputs, targets, { verbose = 0 })
    model:save(path)
    assert.same(expected, flow.load_model(path):evaluate(inputs, targets, { verbose = 0 }))
    for _, name in ipairs { "binary_io_u", "r2_score", "precision_at_recall", "sensitivity_at_specificity", "pearson_correlation" } do
      assert.equal("number", type(expected[name]), name)
    end
    local each = metrics.R2Score { class_aggregation = false }
    assert.same({ "null", 1 }, { tostring(each.config.config.class_aggregation), each(inputs, inputs)[1] })
    assert.is_false(metrics.R2Score(each.config.config).class_aggregation)
  end)

  it("say what they were given wrongly", function()
    local function says(text, f) assert.truthy(message_of(f):find(text, 1, true), message_of(f)) end
    says("num_classes is missing", function() metrics.get "mean_io_u" end)
    says("entry 2 of target_class_ids is the number 3, expected a class from 0 to 2", function() metrics.IoU(3, { 0, 3 }) end)
    says("target_class_ids is empty", function() metrics.IoU(3, {}) end)
    says('dtype is a dtype of integers or floats such as "int32" or "float32", got "text"',
      function() metrics.MeanIoU(3, { dtype = "text" }) end)
    says("expected a class for each of the same values", function() metrics.MeanIoU(2)({ 0, 1 }, { 0, 1, 1 }) end)
    says("class_aggregation is uniform_average, variance_weighted_average or false", function() metrics.R2Score "mean" end)
    says("expected {samples, outputs} of both", function() metrics.R2Score()({ 1 }, { 2 }) end)
    says("recall is a number from 0 to 1, got the number 2", function() metrics.PrecisionAtRecall(2) end)
    says("num_thresholds is a whole number from 1", function() metrics.RecallAtPrecision(0.5, 0) end)
    says("axis 3 is not one of y_pred {1, 2}", function() metrics.PearsonCorrelation { axis = 3 } ({ { 1, 2 } }, { { 2, 1 } }) end)
  end)

  it("wrap a function of both", function()
    local off = metrics.MeanMetricWrapper(function(y_true, y_pred) return (y_true - y_pred):abs() end, "off")
    assert.equal(1.5, off({ 1, 2 }, { 2, 4 }))
    assert.equal("off", off.name)
  end)
end)

describe("losses of sequences and of the samples of a batch", function()
  before_each(flow.clear_session)

  local function saved_and_loaded(model)
    local path = support.file("batch_losses.keras", "")
    model:save(path)
    return flow.load_model(path)
  end

  it("learn to spell, from files and by name, too", function()
    local inputs = flow.random.normal({ 24, 6, 4 }, { seed = 1 })
    local words = flow.tril(flow.random.randint({ 24, 3 }, 1, 4, { seed = 2 }), 1)
    for _, loss in ipairs { "ctc", flow.losses.CTC { reduction = "sum" } } do
      flow.set_random_seed(3)
      local model = flow.Sequential { layers.Input { 6, 4 }, layers.Dense(4) }
      model:compile { optimizer = flow.optimizers.Adam(0.05), loss = loss }
      local history = model:fit(inputs, words, { epochs = 12, batch_size = 7, verbose = 0 }).history.loss
      assert.is_true(history[12] < 0.9 * history[1])
      assert.same(model:evaluate(inputs, words, { verbose = 0 }), saved_and_loaded(model):evaluate(inputs, words, { verbose = 0 }))
    end
  end)

  it("bring embeddings of one label together; samples whose loss is 0 do not count in the mean", function()
    local inputs, labels = flow.random.normal({ 30, 5 }, { seed = 1 }), flow.random.randint({ 30 }, 0, 4, { seed = 2 })
    local model = flow.Sequential { layers.Input { 5 }, layers.Dense(8), layers.UnitNormalization() }
    model:compile { optimizer = flow.optimizers.Adam(0.02), loss = flow.losses.Circle { gamma = 16, remove_diagonal = true } }
    local history = model:fit(inputs, labels, { epochs = 10, batch_size = 10, verbose = 0 }).history.loss
    assert.is_true(history[10] < 0.9 * history[1])
    assert.same(model:evaluate(inputs, labels, { verbose = 0 }), saved_and_loaded(model):evaluate(inputs, labels, { verbose = 0 }))
    local alone = flow.tensor { { 1, 0 }, { 0.8, 0.6 }, { 0, 1 } }      -- the last one has no other of its label
    local values = flow.losses.circle({ 0, 0, 1 }, alone, { gamma = 4 })
    assert.equal(0, values[3]:item())
    assert.near(values:sum():item() / 2, flow.losses.Circle(4)({ 0, 0, 1 }, alone):item(), 1e-5)
    local same = flow.losses.circle({ 0, 0, 1 }, alone, { gamma = 4, ref_labels = { 0, 0, 1 }, ref_embeddings = alone })
    assert.same(values:totable(), same:totable())
  end)

  it("take options as functions, as the others do", function()
    assert.equal(2, flow.losses.huber({ { 0, 1 } }, { { 3, 1 } }, 2):item())
    assert.equal(2, flow.losses.huber({ { 0, 1 } }, { { 3, 1 } }, { delta = 2 }):item())
    assert.equal(1, flow.metrics.top_k_categorical_accuracy({ { 0, 1, 0 } }, { { 3, 2, 1 } }, { k = 2 }):item())
    assert.equal(0, flow.metrics.binary_accuracy({ { 1 } }, { { 0.6 } }, 0.7):item())
    local function says(text, f) assert.truthy(message_of(f):find(text, 1, true), message_of(f)) end
    says("expected labels {batch, length} and logits {batch, steps, classes}", function() flow.losses.ctc({ 1 }, { 2 }) end)
    says("expected labels {batch} or {batch, 1} and embeddings", function() flow.losses.circle({ { 1, 2 } }, { { 1, 2 } }) end)
    says('unknown option "gama"; did you mean "gamma"?', function() flow.losses.circle({ 1 }, { { 1 } }, { gama = 1 }) end)
    says("Circle: margin is a number, got the string", function() flow.losses.Circle { margin = "wide" } end)
    says('there is no loss "cct"; did you mean "ctc"?', function() flow.losses.get "cct" end)
  end)
end)

describe("losses and metrics written in Lua", function()
  before_each(flow.clear_session)

  it("train, and have the state that init() made", function()
    local metric = Off { factor = 3 }
    metric:update_state(flow.tensor { { 1 }, { 0 } }, flow.tensor { { 0 }, { 0.5 } })
    assert.equal(2.25, metric:result():item())
    metric:reset_state()
    assert.equal(6, metric(flow.tensor { { 1 } }, flow.tensor { { -1 } }):item())
    assert.same({ "off/sum", "off/rows" }, { metric.variables[1].path, metric.variables[2].path })
    assert.near(4.5, Power { power = 3 } ({ { 0 }, { 0 } }, { { 1 }, { 2 } }):item(), 1e-6)
    local logs = new_model():fit(x, y, { batch_size = 4, verbose = 0 }).history
    assert.near(2 * logs.off[1], logs.twice[1], 1e-6)
  end)

  it("are saved by name and loaded as custom_objects", function()
    local model, path = new_model(), support.path(".keras")
    model:fit(x, y, { verbose = 0 })
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { Off = Off, Power = Power } })
    os.remove(path)
    local expected, found = model:evaluate(x, y, { verbose = 0 }), again:evaluate(x, y, { verbose = 0 })
    assert.same(expected, found)
    assert.truthy(found.twice and found.auc and found.precision and found.true_negatives and found.RootMeanSquaredError)
  end)

  it("say what a class lacks and which results are not numbers", function()
    local Bare, List = metrics.Metric:extend("Bare"), metrics.Metric:extend("List")
    function List.update_state() end
    function List.result() return { 1, 2 } end
    local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
    model:compile { loss = "mse", metrics = { Bare() } }
    assert.equal('Bare "bare" has no update_state(): a class that extends Metric defines it',
      message_of(function() model:evaluate(x, y, { verbose = 0 }) end))
    model:compile { loss = "mse", metrics = { List() } }
    assert.equal('List "list": result() gives a list of 2, expected one number', message_of(function()
      model:evaluate(x, y, { verbose = 0 })
    end))
    local Field = metrics.Metric:extend "Field"      -- self.total.value, as in Python
    function Field:init() self.total = self:add_variable { shape = {}, initializer = "zeros" } end
    function Field.update_state() end
    function Field:result() return self.total.value end
    model:compile { loss = "mse", metrics = { Field() } }
    assert.matches("result%(%) gives a function, expected one number: of a variable, it or self.name:value%(%)", message_of(function()
      model:evaluate(x, y, { verbose = 0 })
    end))
    assert.truthy(message_of(function() metrics.Recall():update_state({ 0, 2 }, { { 0.1, 0.9 }, { 0.2, 0.8 } }) end)
      :find("expected a 0 or 1 for each value", 1, true))
    assert.equal("AUC: num_thresholds is a whole number from 2 to 1000000, got the number 1.1529215046068e+18",
      message_of(function() metrics.AUC(2 ^ 60) end))
    assert.equal(10000, #metrics.AUC(10000).thresholds)
    assert.equal("AUC: curve is one of PR, PRGAIN, ROC, got the string \"lift\"", message_of(function() metrics.AUC { curve = "lift" } end))
    assert.equal("ROC", metrics.AUC { curve = "roc" }:get_config().curve)      -- as in Keras
  end)
end)

describe("metrics of replicas", function()
  it("are those of one", function()
    local function logs(scope)
      flow.set_random_seed(3)
      local model
      scope(function()
        model = flow.Sequential { layers.Input { 2 }, layers.Dense(1, { activation = "sigmoid" }) }
        model:compile { loss = "mse", metrics = { "auc", "precision", "recall", "RootMeanSquaredError", Off() } }
      end)
      return model:fit(x, y, { batch_size = 4, shuffle = false, verbose = 0 }).history
    end
    flow.config.set_logical_devices("cpu", 2)
    local together = logs(flow.distribute.MirroredStrategy().scope)
    flow.clear_session()      -- names count from the beginning
    for name, values in pairs(logs(function(f) f() end)) do assert.near(values[1], together[name][1], 1e-6, name) end
  end)
end)
