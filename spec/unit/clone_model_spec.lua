-- clone_model_spec.lua: copies of models whose layers a function makes, whose calls a function does, on inputs that are given, as
-- keras.models.clone_model has them.
local flow = require "flow"
local support = require "spec.support.init"

local layers, models = flow.layers, flow.models

local function functional()
  local x = flow.Input { 5, 4 }
  local shared = layers.Dense(3, { name = "shared" })
  local y = layers.LSTM(3, { name = "lstm" })(shared(x) * 2 + shared(x))
  return flow.Model { inputs = x, outputs = layers.Dense(2, { name = "head" })(y) }
end

local x = flow.random.normal({ 2, 5, 4 }, { seed = 1 })
local function predicted(model) return model:predict(x, { verbose = 0 }):totable() end
local function same(layer) return layer end
local function names(model)
  local list = {}
  for _, layer in ipairs(model.layers) do
    if not layer.name:find "^operation" then list[#list + 1] = layer.name end
  end
  return table.concat(list, " ")
end

describe("clone_model", function()
  it("copies functions of Lua with their layers, in models inside of others, too", function()
    local input = flow.Input { 4 }
    local inner = flow.Model { inputs = input, outputs = layers.Dense(2)(layers.Lambda(function(t) return t * 2 end)(input)) }
    local ones = flow.ones { 1, 4 }
    for _, model in ipairs { inner, flow.Sequential { layers.Input { 4 }, inner, layers.Lambda(function(t) return t + 1 end) } } do
      local clone = models.clone_model(model)
      assert.is_not.equal(model.weights[1], clone.weights[1])
      clone:set_weights(model:get_weights())
      assert.same(model(ones):totable(), clone(ones):totable())
    end
  end)

  it("keeps whether inputs and outputs are one tensor, a list or a table, as files and texts do", function()
    local input = flow.Input({ 4 }, { name = "x" })
    local y = layers.Dense(2)(input)
    local path = support.folder() .. "/m.keras"
    local function form(value)
      local plain = type(value) == "table" and not getmetatable(value)
      return not plain and value.name or value.x and "x = " .. value.x.name or "{ " .. value[1].name .. " }"
    end
    for _, model in ipairs { flow.Model(input, y), flow.Model({ input }, { y }), flow.Model({ x = input }, { x = y }) } do
      model:save(path)
      for _, copy in ipairs { models.clone_model(model), models.model_from_json(model:to_json()), flow.load_model(path),
          models.clone_model(model, { clone_function = function(layer) return layer.__class__.from_config(layer:get_config()) end }) } do
        assert.same({ form(model.input), form(model.output) }, { form(copy.input), form(copy.output) })
      end
    end
    assert.equal("other", models.clone_model(flow.Model(input, y), { input_tensors = flow.Input({ 4 }, { name = "other" }) }).input.name)
  end)

  it("finds the classes of a script itself", function()
    local Mine, Doubled = flow.Model:extend "MineCloned", flow.layers.Layer:extend "DoubledCloned"
    function Doubled:call(inputs) return inputs * 2 end
    local input = flow.Input { 2 }
    local model = Mine { inputs = input, outputs = Doubled()(flow.layers.Dense(1)(input)) }
    local clone = flow.models.clone_model(model)
    assert.equal("MineCloned", clone.class_name)
    clone:set_weights(model:get_weights())
    assert.equal(0, (clone(flow.ones { 3, 2 }) - model(flow.ones { 3, 2 })):abs():max():item())
  end)

  it("asks clone_function for each layer but the inputs and the operations, once", function()
    local seen, model = {}, functional()
    local clone = models.clone_model(model, { clone_function = function(layer)
      seen[#seen + 1] = layer.name
      if layer.name == "lstm" then return layers.Bidirectional(layers.LSTM(3), { name = "both" }) end
      return layers[layer.class_name].from_config(layer:get_config())
    end })
    assert.equal("shared lstm head", table.concat(seen, " "))
    assert.equal("shared both head", names(clone):match "shared.*")
    assert.same({ -1, 2 }, clone.outputs[1].shape)
    assert.is_not.equal(model:get_layer "shared", clone:get_layer "shared")
    assert.equal(15 + 168 + 14, clone:count_params())
    clone:compile { loss = "mse", optimizer = "sgd" }
    clone:fit(x, flow.zeros { 2, 2 }, { verbose = 0 })
  end)

  it("may have the same layers, and calls that a function does", function()
    local model, calls = functional(), 0
    local clone = models.clone_model(model, { clone_function = same, call_function = function(layer, ...)
      calls = calls + 1
      local y = layer(...)
      return layer.class_name == "Dense" and layers.Rescaling(2)(y) or y
    end })
    assert.equal(4, calls)      -- shared is called twice
    assert.equal(model:get_layer "head", clone:get_layer "head")
    local halved = models.clone_model(clone, nil, same, function(layer, input, ...)
      return layer.class_name == "Rescaling" and input or layer(input, ...)
    end)
    assert.same(predicted(model), predicted(halved))
  end)

  it("stands on input_tensors", function()
    local input = flow.Input({ 5, 4 }, { name = "mine" })
    for _, model in ipairs { functional(), flow.Sequential { layers.Input { 5, 4 }, layers.Dense(2), layers.Flatten() } } do
      local clone = models.clone_model(model, input, same)
      assert.equal(input, clone.inputs[1])
      assert.same(predicted(model), predicted(clone))
    end
    assert.equal("mine", models.clone_model(functional(), { input }).inputs[1].layer.name)
  end)

  it("reaches into inner models where it is recursive, else hands them over whole", function()
    local model = flow.Sequential { layers.Input { 5, 4 }, functional(), layers.Dense(1, { name = "last" }) }
    local seen
    local function noted(layer)
      seen[#seen + 1] = layer.name
      return layer
    end
    seen = {}
    local clone = models.clone_model(model, { recursive = true, clone_function = noted })
    assert.equal("shared lstm head last", table.concat(seen, " "))
    assert.is_not.equal(model.layers[1], clone.layers[1])
    assert.same(predicted(model), predicted(clone))
    seen = {}
    clone = models.clone_model(model, { clone_function = noted })
    assert.equal(model.layers[1].name .. " last", table.concat(seen, " "))
    assert.equal(model.layers[1], clone.layers[1])
  end)

  it("is saved and read back", function()
    local path = support.file("clone.keras", "")
    local clone = models.clone_model(functional(), { clone_function = same, call_function = function(layer, ...)
      return layers.Rescaling(0.5)(layer(...))
    end })
    clone:save(path)
    assert.same(predicted(clone), predicted(flow.load_model(path)))
  end)

  it("is compiled as the model was, with its own optimizer and metrics", function()
    local Off, Counted = flow.losses.Loss:extend "OffCloned", flow.metrics.MeanAbsoluteError:extend "CountedCloned"
    function Off:call(y_true, y_pred) return (y_true - y_pred):abs():mean(-1) end
    local y = flow.random.normal({ 2, 2 }, { seed = 2 })
    local settings = {
      { loss = "mse", loss_weights = 0.5, metrics = { "mae" } },
      { loss = Off(), metrics = { Counted(), function(y_true, y_pred) return (y_true - y_pred):mean(-1) end }, weighted_metrics = { "mse" },
        optimizer = flow.optimizers.Adam(flow.optimizers.schedules.ExponentialDecay(0.1, 1, 0.5)), run_eagerly = true },
      { loss = flow.losses.Huber { delta = 0.3 }, optimizer = flow.optimizers.SGD:extend "SlowCloned"(0.01), steps_per_execution = 2 },
    }
    for _, given in ipairs(settings) do
      local model = functional()
      assert.is_false(models.clone_model(model).compiled)
      model:compile(given)
      model:train_on_batch(x, y)
      local before = model:get_metrics_result()
      local clone = models.clone_model(model, { clone_function = given.run_eagerly and same or nil })
      assert.is_true(clone.compiled)
      assert.equal(given.run_eagerly or false, clone.run_eagerly)
      assert.equal(0, tonumber(clone.optimizer.iterations))
      assert.same(model.optimizer:get_config(), clone.optimizer:get_config())
      clone:set_weights(model:get_weights())
      assert.same(model:evaluate(x, y, { verbose = 0 }), clone:evaluate(x, y, { verbose = 0 }))
      clone:train_on_batch(x, y)
      model:reset_metrics()
      assert.equal(1, tonumber(model.optimizer.iterations))
      assert.truthy(before.loss)
    end
  end)

  it("is left uncompiled, with a warning, where a metric cannot be made again", function()
    local model, said = functional(), {}
    model:compile { loss = "mse", metrics = { flow.metrics.MeanMetricWrapper(function(y_true, y_pred) return y_true - y_pred end) } }
    flow.log.sink = function(_, text) said[#said + 1] = text end
    local clone = models.clone_model(model)
    flow.log.sink = nil
    assert.is_false(clone.compiled)
    assert.truthy(table.concat(said):find("clone_model: the clone is not compiled: the metric", 1, true), table.concat(said))
  end)

  it("says what does not fit", function()
    local message = support.message_of(function() models.clone_model(functional(), { flow.Input { 5, 4 }, flow.Input { 5, 4 } }) end)
    assert.truthy(message:find("clone_model: the model has 1 inputs, input_tensors holds 2", 1, true), message)
    message = support.message_of(function() models.clone_model(functional(), x) end)
    local expected = "clone_model: input_tensors holds what flow.Input gives, entry 1 is a tensor float32 {2, 5, 4}"
    assert.truthy(message:find(expected, 1, true), message)
  end)
end)
