-- keras_files_spec.lua: model files that Keras wrote (keras_files.py) load, predict what Keras predicts, and train on as Keras would;
-- what is written here is read back.
local support = require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"
local tensor_file = require "flow.saving.tensor_file"
require "spec.support.precision"
local layers = flow.layers
local message_of = support.message_of

local folder = support.root .. "spec/golden/keras/"
local function expected(name) return flow.load_npz(folder .. "expected.npz", name) end

local function has(name)
  return (pcall(expected, name))
end

local function arrays(name, kind)
  local list = {}
  while has(name .. "_" .. kind .. #list + 1) do list[#list + 1] = expected(name .. "_" .. kind .. #list + 1) end
  return list
end

local function close(a, b, bound, what)
  assert.same(b.shape, a.shape)
  local difference = (a - b):abs():max():item()
  assert.truthy(difference <= bound, ("%s: largest difference %g, allowed %g"):format(what, difference, bound))
end

local function predicts(model, name)
  local xs, ys = arrays(name, "x"), arrays(name, "y")
  assert.truthy(#xs > 0 and #ys > 0)
  local found = model:predict(#xs == 1 and xs[1] or xs, { verbose = 0 })
  for i, y in ipairs(ys) do close(#ys == 1 and found or found[i], y, 1e-5, name) end
end

-- In the order of the file.
local function weights_of(model)
  local list = {}
  for i, v in ipairs(model.variables) do list[i] = v:value():totable() end
  return list
end

local temporary = support.file("model.keras", "")

-- As Keras 3.13 writes these layers.
local PARTS = {
  ["lstm/cell"] = "lstm_cell", ["conv_lstm1d/cell"] = "conv_lstm_cell", ["bidirectional/backward_layer/cell"] = "gru_cell",
  ["multi_head_attention/query_dense"] = "query", ["multi_head_attention/output_dense"] = "attention_output",
  ["grouped_query_attention/_key_dense"] = "key", ["grouped_query_attention/_output_dense"] = "attention_output",
}

-- Layers whose variables are those of other layers inside.
local function model_of_parts()
  local x, images = flow.Input { 4, 3 }, flow.Input { 2, 6, 1 }
  local y = layers.LSTM(4, { return_sequences = true })(x)
  y = layers.MultiHeadAttention { num_heads = 2, key_dim = 3 }(y, y)
  y = layers.GroupQueryAttention { head_dim = 2, num_query_heads = 2, num_key_value_heads = 1 }(y, y)
  y = layers.Bidirectional(layers.GRU(3))(y)
  local z = layers.Flatten()(layers.ConvLSTM1D(2, 3)(images))
  return flow.Model { inputs = { x, images }, outputs = layers.Dense(2)(layers.Concatenate() { y, z }) }
end

describe("files of Keras", function()
  for _, name in ipairs { "flowers_small", "mnist_small_compiled", "func", "dense_adam_trained_jax", "images", "nested", "adapted",
                          "towers", "operations" } do
    it(name .. ".keras predicts what Keras predicts", function()
      predicts(flow.load_model(folder .. name .. ".keras"), name)
    end)
  end

  it("operations.keras predicts in C what Keras predicts, and comes back", function()
    local found = model_files.predict_in_c(folder .. "operations.keras", arrays("operations", "x"))
    for i, y in ipairs(arrays("operations", "y")) do close(found[i], y, 1e-5, "output " .. i) end
    model_files.assert_returns(flow.load_model(folder .. "operations.keras"), arrays("operations", "x"))
  end)

  it("drop in training, though Keras writes training = false for the call, which its loops overrule", function()
    local model = flow.load_model(folder .. "func.keras")
    local dropout = model:get_layer "dropout"
    local features = flow.Model { inputs = model.inputs, outputs = dropout.output }
    local x = arrays("func", "x")
    local function zeros(training) return features(x, { training = training }):eq(0):to("float32"):mean():item() end
    assert.is_true(zeros(true) > zeros(false) + 0.05)
  end)

  it(".weights.h5 goes into a model that is there", function()
    for _, name in ipairs { "images", "nested", "adapted" } do
      local model = flow.load_model(folder .. name .. ".keras")
      for _, v in ipairs(model.variables) do v:assign(flow.zeros(v.shape, { dtype = v.dtype })) end
      model:load_weights(folder .. name .. ".weights.h5")
      predicts(model, name)
    end
  end)

  for _, name in ipairs { "adam", "amsgrad", "momentum", "rmsprop", "adamw", "decay", "regularized", "ftrl", "lamb",
                         "adafactor", "muon", "schedule_free" } do
    it("training goes on with " .. name, function()
      local trained = "trained_" .. name
      local model = flow.load_model(folder .. trained .. ".keras")
      local x, y, losses = expected(trained .. "_x"), expected(trained .. "_y"), expected(trained .. "_loss")
      assert.equal(5, model.optimizer.iterations)
      for step = 1, 5 do
        local loss = model:train_on_batch(x[step], y[step]).loss
        local wanted = losses[step]:item()
        assert.truthy(math.abs(loss - wanted) <= 1e-4 * wanted, ("step %d: loss %.7g, Keras has %.7g"):format(step, loss, wanted))
      end
    end)
  end
end)

describe("files of flowlua", function()
  it("hold the model as it is: class, names, weights, how it was compiled, state of the optimizer", function()
    local model = flow.load_model(folder .. "trained_adam.keras")
    model:save(temporary)
    local again = flow.load_model(temporary)
    assert.equal(model:to_json(), again:to_json())
    assert.same(weights_of(model), weights_of(again))
    for i, v in ipairs(model.optimizer.variables) do
      assert.same(v:value():totable(), again.optimizer.variables[i]:value():totable())
    end
  end)

  it("hold functional models with nested ones, shared layers and arithmetic", function()
    local model = flow.load_model(folder .. "nested.keras")
    model:save(temporary)
    local again = flow.load_model(temporary)
    predicts(again, "nested")
    again:save_weights(temporary .. ".weights.h5")
    for _, v in ipairs(model.variables) do v:assign(flow.zeros(v.shape, { dtype = v.dtype })) end
    model:load_weights(temporary .. ".weights.h5")
    predicts(model, "nested")
  end)

  local Scale = layers.Layer:extend("Scale")
  function Scale:build(shape)
    self.gain = self:add_weight { name = "gain", shape = { shape[#shape] }, initializer = "ones" }
    self.inner = layers.Dense(shape[#shape])
    self.inner:build(shape)
  end
  function Scale:call(x) return self.inner(x) * self.gain * self.factor end

  it("call the layers inside of others as Keras does", function()
    local model = model_of_parts()
    model_files.assert_returns(model, { flow.ones { 2, 4, 3 }, flow.ones { 2, 2, 6, 1 } })
    model:save(temporary)
    local file = tensor_file.open(temporary, "model.weights.h5")
    for group, name in pairs(PARTS) do assert.equal(name, file:note("layers/" .. group .. "/vars", "name"), group) end
    file:close()
  end)

  it("hold layers written in Lua, which the reader is given", function()
    local model = flow.Sequential { layers.Input { 4 }, Scale { factor = 3 }, layers.Dense(2) }
    model.layers[1].gain:assign { 1, 2, 3, 4 }
    local x = flow.random.normal({ 3, 4 }, { seed = 1 })
    local before = model:predict(x, { verbose = 0 })
    model:save(temporary)
    local problem = message_of(function() flow.load_model(temporary) end)
    assert.truthy(problem:find("layers that flowlua does not know: Scale (" .. model.layers[1].name .. ")", 1, true), problem)
    local again = flow.load_model(temporary, { custom_objects = { Scale = Scale } })
    close(again:predict(x, { verbose = 0 }), before, 0, "prediction")
  end)

  it("that have another ending, or none, are written beside it or in a folder, with a warning", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(2) }
    local warnings, sink = {}, flow.log.sink
    flow.log.sink = function(_, text) warnings[#warnings + 1] = text end
    for i, ending in ipairs { "", "/", ".pt", ".h5", ".weights.h5" } do
      local path = temporary:gsub("%.keras$", "") .. i
      model:save(path .. ending)
      local written = path .. (ending:find "%w" and ending .. ".keras" or "/model.keras")
      assert.equal(2, #flow.load_model(written).weights)
      os.remove(written)
    end
    flow.log.sink = sink
    assert.is_true(#warnings <= 1)      -- once in a Lua state
    if warnings[1] then assert.truthy(warnings[1]:find("saved as", 1, true), warnings[1]) end
  end)

  it("of models that a file cannot hold are errors that say what to do", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(2) }
    local problem = message_of(function() flow.Sequential({ layers.Dense(2) }):save(temporary) end)
    assert.truthy(problem:find("has no variables yet", 1, true), problem)
    model:compile { optimizer = "sgd", loss = function(y, p) return (y - p):square():mean(-1) end }
    problem = message_of(function() model:save(temporary) end)
    assert.truthy(problem:find("a function of Lua that has no name, by which a file holds it", 1, true), problem)
  end)

  it("are refused when they do not fit, and the model stays unchanged", function()
    local model = flow.Sequential { layers.Input { 6 }, layers.Dense(8), layers.BatchNormalization(), layers.Dense(4) }
    local before = weights_of(model)
    local problem = message_of(function() model:load_weights(folder .. "trained_adam.keras") end)
    assert.truthy(problem:find("has shape {8, 4}, the file has {8, 3}", 1, true), problem)
    problem = message_of(function() model:load_weights(folder .. "images.weights.h5") end)
    assert.truthy(problem:find("Dense \"dense", 1, true), problem)
    assert.same(before, weights_of(model))
    model:load_weights(folder .. "trained_adam.keras", { skip_mismatch = true })      -- its last layer has three units
    local after, file = weights_of(model), weights_of(flow.load_model(folder .. "trained_adam.keras"))
    for i = 1, 6 do assert.same(file[i], after[i]) end
    for i = 7, 8 do assert.same(before[i], after[i]) end
    problem = message_of(function() flow.load_model(support.file("x.keras", "no archive at all")) end)
    assert.truthy(problem:find("x.keras", 1, true), problem)
  end)
end)

describe("descriptions of models", function()
  it("come back from JSON with fresh weights", function()
    local model = flow.load_model(folder .. "func.keras")
    local again = flow.models.model_from_json(model:to_json())
    assert.equal(model:to_json(), again:to_json())
    assert.equal(model:count_params(), again:count_params())
  end)

  it("of layers are tables", function()
    local config = layers.Conv2D(4, 3, { name = "c", padding = "same" }):get_config()
    assert.same({ 3, 3 }, config.kernel_size)
    assert.equal("same", config.padding)
    assert.equal("c", config.name)
    assert.equal("GlorotUniform", config.kernel_initializer.class_name)
  end)

  it("that are hostile are refused", function()
    local json = require "flow.json"
    local function refused(text, part)
      local problem = message_of(function() flow.models.model_from_json(text) end)
      assert.truthy(problem:find(part, 1, true), problem)
    end
    refused("{}", "class_name")
    refused('{"class_name":"Sequential"}', "config is nil")
    local function of(layer) return '{"class_name":"Sequential","config":{"name":"s","layers":[' .. layer .. "]}}" end
    refused(of '{"class_name":"os.execute","config":{}}', "does not know: os.execute")
    refused('{"class_name":"Dense","config":{"name":"d","units":3}}', "it holds no model but Dense")
    refused(of '{"class_name":"Dense","config":{"name":"d","units":1e18}}', "units")
    local entry = { class_name = "Sequential", config = { name = "s", layers = json.list() } }
    for i = 1, 100 do entry = { class_name = "Sequential", config = { name = "s" .. i, layers = json.list { entry } } } end
    refused(json.encode(entry), "nested more than 64 deep")
    local tensor = { class_name = "__keras_tensor__", config = { keras_history = { "a", 0, 0 } } }
    local dense = { class_name = "Dense", name = "a", config = { name = "a", units = 2 },
                    inbound_nodes = { { args = json.list { tensor }, kwargs = {} } } }
    refused(json.encode { class_name = "Functional", config = { name = "f", layers = { dense }, input_layers = { "a", 0, 0 },
      output_layers = { "a", 0, 0 } } }, "form a circle")
  end)
end)
