-- training_spec.lua: compile and the calls that run one batch; what a refused step leaves behind; retraces.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers
local message_of = support.message_of

local function classifier(options)
  local model = flow.Sequential { layers.Input { 4 }, layers.Dense(8, { activation = "relu" }), layers.BatchNormalization(),
                                  layers.Dropout(0.2), layers.Dense(3, { activation = "softmax" }) }
  model:compile(options or { optimizer = "adam", loss = "sparse_categorical_crossentropy", metrics = { "accuracy" } })
  return model
end

local function labels(list) return flow.tensor(list, { dtype = "int32" }) end

local x, y = flow.random.normal({ 6, 4 }, { seed = 1 }), labels { 0, 1, 2, 0, 1, 2 }

local function state(model)
  local values = {}
  for _, list in ipairs { model.variables, model.optimizer.variables, model._compiled.loss_tracker.variables } do
    for _, variable in ipairs(list) do values[#values + 1] = variable:totable() end
  end
  return values
end

describe("compile", function()
  it("takes one number as loss_weights of one output, as Keras", function()
    local model = classifier { loss = "sparse_categorical_crossentropy", loss_weights = 0.25 }
    local weighted = model:evaluate(x, y, { verbose = 0 }).loss
    model:compile { loss = "sparse_categorical_crossentropy" }
    assert.near(model:evaluate(x, y, { verbose = 0 }).loss / 4, weighted, 1e-6)
    local input = flow.Input { 4 }
    local two = flow.Model { inputs = input, outputs = { layers.Dense(1)(input), layers.Dense(1)(input) } }
    assert.truthy(message_of(function() two:compile { loss = "mse", loss_weights = 0.5 } end):find(
      "loss_weights is a list of 2 numbers, one for each output, got the number 0.5", 1, true))
  end)

  it("is not needed to ask for metrics: there are none before", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3, { activation = "softmax" }) }
    model:reset_metrics()
    assert.same({ 0, 0 }, { #model.metrics, #model.metrics_names })
    assert.is_nil(next(model:get_metrics_result()))
    for _, name in ipairs { "fit", "evaluate", "train_on_batch", "test_on_batch" } do
      assert.truthy(message_of(function() model[name](model, x, y) end):find("You must call `compile()`", 1, true))
    end
  end)

  it("takes positions as Keras and names", function()
    local model = classifier()
    model:compile("sgd", "sparse_categorical_crossentropy", nil, { "accuracy" })
    assert.equal('SGD "sgd"', tostring(model.optimizer))
    assert.same({ "loss", "accuracy" }, model.metrics_names)
    model:compile("sgd", "mse", { metrics = { "mae" } })
    assert.same({ "loss", "mae" }, model.metrics_names)
    model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy(), metrics = "acc" }
    assert.same({ "loss", "acc" }, model.metrics_names)
  end)

  it("names what it was given wrongly, and leaves the model as it was compiled", function()
    local model = classifier()
    local optimizer = model.optimizer
    local function text(options) return message_of(function() model:compile(options) end) end
    assert.equal('model:compile: unknown option "optimzer"; did you mean "optimizer"?', text { optimzer = "adam" })
    assert.equal('RMSprop "rm_sprop"', tostring(classifier { loss = "mse" } .optimizer))      -- as Keras
    assert.truthy(text { optimizer = "adma2" } :find('there is no optimizer "adma2"', 1, true))
    assert.truthy(text { optimizer = "adam", loss = "msee" } :find('there is no loss "msee"', 1, true))
    assert.truthy(text { optimizer = "adam", loss = "mse", metrics = { "acuracy" } } :find('did you mean "accuracy"?', 1, true))
    assert.truthy(text { optimizer = "adam", loss = "mse", loss_weights = "3" } :find("is a number, or a list with one", 1, true))
    assert.truthy(text { optimizer = "adam", loss = "mse", run_eagerly = 3 } :find("run_eagerly", 1, true))
    assert.truthy(text { loss = "mse", steps_per_execution = 0 } :find('steps_per_execution is a whole number from 1 or "auto"', 1, true))
    assert.truthy(message_of(function() model:compile("sgd", "mse", nil, nil, 5) end):find("the number 5 is one argument too many"))
    assert.equal(optimizer, model.optimizer)
    model:train_on_batch(x, y)
  end)

  it("takes the steps of an execution, and files keep them", function()
    local model, path = classifier(), support.file("m.keras", "")
    model:compile { optimizer = "adam", loss = "mse", steps_per_execution = 4 }
    model:save(path)
    assert.equal(4, flow.load_model(path)._compiled.steps_per_execution)
    assert.truthy(require("flow.json").encode(require("flow.saving.compiled").entry(model)):find('"steps_per_execution":%s*4'))
  end)

  it("is needed before training, as is a loss", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3) }
    assert.truthy(message_of(function() model:train_on_batch(x, y) end):find("You must call `compile()` before using the model.", 1, true))
    assert.truthy(message_of(function() return model.optimizer end):find("You must call `compile()`", 1, true))
    model:compile { optimizer = "sgd" }
    assert.equal("No loss to compute. Provide a `loss` argument in `compile()`.", message_of(function() model:train_on_batch(x, y) end))
    assert.same({ 6, 3 }, model:predict(x, { verbose = 0 }).shape)
  end)
end)

describe("one batch", function()
  it("trains, and returns the losses of that batch", function()
    local model = classifier()
    local first = model:train_on_batch(x, y)
    assert.truthy(first.loss > 0 and first.accuracy >= 0)
    local last
    for _ = 1, 50 do last = model:train_on_batch(x, y) end
    assert.is_true(last.loss < first.loss)
    assert.equal(51, model.optimizer.iterations)
  end)

  it("tests and predicts without changing anything", function()
    local model = classifier()
    model:train_on_batch(x, y)
    local before = model:get_weights()
    local tested = model:test_on_batch(x, y)
    assert.same(tested, model:test_on_batch(x, y))
    local p = model:predict_on_batch(x)
    assert.same(model(x):totable(), p:totable())
    for i, value in ipairs(model:get_weights()) do assert.same(before[i]:totable(), value:totable()) end
    local hits = p:classes():to("int64"):eq(y:to("int64")):to("float32"):mean():item()
    assert.near(hits, tested.accuracy, 1e-6)
  end)

  it("weighs samples and classes in the loss, not in plain metrics", function()
    local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1, { kernel_initializer = "zeros" }) }
    model:compile { optimizer = "sgd", loss = "mse", metrics = { "mae" }, weighted_metrics = { "mse" } }
    local targets = flow.tensor { { 1 }, { 2 } }
    local result = model:test_on_batch(flow.ones { 2, 1 }, targets, { sample_weight = { 1, 3 } })
    assert.same({ loss = 6.5, mae = 1.5, mse = 3.25 }, result)
    assert.same(result, model:test_on_batch(flow.ones { 2, 1 }, targets, flow.tensor { { 1 }, { 3 } }))
    model:compile { optimizer = "sgd", loss = "mse" }
    assert.equal(6.5, model:test_on_batch(flow.ones { 2, 1 }, labels { 1, 2 }, { class_weight = { [2] = 3 } }).loss)
    assert.truthy(message_of(function() model:test_on_batch(x, y, { class_weight = { [0] = 1 }, sample_weight = { 1 } }) end)
      :find("class_weight and sample_weight cannot be given together", 1, true))
  end)

  it("refuses a batch without changing a variable, a slot or a metric", function()
    local model = classifier()
    model:train_on_batch(x, y)
    local function live_bytes()
      collectgarbage() collectgarbage()
      return native.C.flow_live_bytes()
    end
    local live
    for _, wrong in ipairs { 3, -1, 1000000 } do
      model._compiled.loss_tracker:reset_state()
      local before = state(model)
      local message = message_of(function() model:train_on_batch(x, labels { 0, 1, 2, 0, wrong, 2 }) end)
      assert.truthy(message:find(('^Sequential "[%%w_]+", sparse_categorical_crossentropy: label %d of row 5 is outside 0%%.%%.2 '
        .. '%%(sample 5 of the data'):format(wrong):gsub("%-", "%%-")), message)
      assert.same(before, state(model))
      assert.equal(1, model.optimizer.iterations)
      live = live or live_bytes()
    end
    assert.equal(live, live_bytes())
    model:train_on_batch(x, y)
    assert.equal(2, model.optimizer.iterations)
  end)

  it("names wrong shapes, dtypes and row counts at the caller's line, and works on", function()
    local model = classifier()
    local function text(...)
      local arguments = { ... }
      return message_of(function() model:train_on_batch(unpack(arguments)) end)
    end
    assert.truthy(text(flow.ones { 6, 5 }, y):find("has 5 features, but the layer was built for 4", 1, true))
    assert.truthy(text(x, flow.ones { 6, 3 }):find("expected integer labels of one dimension less", 1, true))
    assert.truthy(text(x, labels { 1, 2 }):find("Data cardinality is ambiguous", 1, true))
    assert.truthy(text(x, labels { 1, 2 }):find("x sizes: 6; y sizes: 2", 1, true))
    assert.truthy(text(x):find("the loss needs targets, y is nil", 1, true))
    assert.truthy(text(nil, y):find("there is no data: x is nil", 1, true))
    assert.truthy(text(flow.zeros { 0, 4 }, flow.zeros({ 0 }, { dtype = "int32" })):find("the data has no samples", 1, true))
    assert.truthy(text("x", y):find("x: expected a tensor or a number", 1, true))
    assert.truthy(text(x, y, { sample_weigth = { 1 } }):find('did you mean "sample_weight"?', 1, true))
    assert.equal(0, native.C.flow_trace_depth(native.context))
    assert.equal(0, native.C.flow_tape_depth(native.context))
    model:train_on_batch(x, y)
    assert.equal(1, model.optimizer.iterations)
  end)

  it("trains nothing without trainable variables, and says so", function()
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1, { kernel_initializer = "ones", trainable = false }) }
    model:compile { loss = "mse" }
    local inputs, targets, lines = flow.ones { 4, 2 }, flow.zeros { 4, 1 }, {}
    flow.log.sink = function(_, text) lines[#lines + 1] = text end
    local result = model:train_on_batch(inputs, targets)
    flow.log.sink = nil
    assert.truthy(table.concat(lines, "\n"):find("no layer has trainable variables", 1, true))
    assert.equal(4, result.loss)
    assert.equal(4, model:fit(inputs, targets, { verbose = 0, epochs = 2 }).history.loss[2])
    assert.same({ { 1 }, { 1 } }, model:get_weights()[1]:totable())
  end)
end)

describe("the steps of a model", function()
  it("are traced once, and again only for what changes them", function()
    local model = classifier()
    for _ = 1, 3 do model:train_on_batch(x, y) end
    assert.equal(1, model._traces)
    model:train_on_batch(x[{ { 1, 4 } }], y[{ { 1, 4 } }])      -- fewer rows
    model:train_on_batch(flow.ones { 9, 4 }, flow.zeros({ 9 }, { dtype = "int32" }))      -- more rows
    assert.equal(1, model._traces)
    model:train_on_batch(x, y:to("int64"))
    assert.equal(2, model._traces)
    model:train_on_batch(x, y, { sample_weight = { 1, 1, 1, 1, 1, 1 } })
    assert.equal(3, model._traces)
  end)

  it("follow what is trainable, and remember it", function()
    local model = classifier()
    model:train_on_batch(x, y)
    local dense = model.layers[1]
    dense.trainable = false
    local before = dense.kernel:totable()
    model:train_on_batch(x, y)
    assert.same(before, dense.kernel:totable())
    assert.equal(2, model._traces)
    for i = 1, 4 do
      dense.trainable = i % 2 == 0
      model:train_on_batch(x, y)
    end
    dense.trainable = true
    model:train_on_batch(x, y)
    assert.not_same(before, dense.kernel:totable())
    assert.equal(2, model._traces)
  end)

  it("run BatchNormalization by its moving statistics where it is not trainable", function()
    local model = classifier()
    model:train_on_batch(x, y)
    local norm = model.layers[2]
    norm.trainable = false
    local before = norm.moving_mean:totable()
    model:train_on_batch(x, y)
    assert.same(before, norm.moving_mean:totable())
    norm.trainable = true
    model:train_on_batch(x, y)
    assert.not_same(before, norm.moving_mean:totable())
  end)

  it("are kept for the latest signatures only, and nothing leaks", function()
    local model = classifier()
    local function round()
      for rows = 1, 12 do
        model:train_on_batch(x, y, { sample_weight = { 1, 1, 1, 1, 1, 1 } })
        model:predict_on_batch(flow.ones { rows, 4 })
        model:compile { optimizer = "adam", loss = "sparse_categorical_crossentropy", metrics = { "accuracy" } }
      end
      collectgarbage() collectgarbage()
      return native.C.flow_live_bytes()
    end
    round()
    local live = round()
    assert.is_true(round() <= live)
  end)

  it("may be made again while one of them runs", function()
    local model = classifier()
    model:fit(x, y, { batch_size = 2, verbose = 0, callbacks = { flow.callbacks.LambdaCallback {
      on_train_batch_end = function(batch)
        if batch == 0 then model:train_on_batch(flow.ones { 50, 4 }, flow.zeros({ 50 }, { dtype = "int32" })) end
        if batch == 1 then
          model:compile { optimizer = "sgd", loss = "sparse_categorical_crossentropy" }
          collectgarbage()
        end
      end } } })
    assert.truthy(model:evaluate(x, y, { verbose = 0 }).loss)
  end)
end)
