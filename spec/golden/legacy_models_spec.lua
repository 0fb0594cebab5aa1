-- legacy_models_spec.lua: whole models in .h5 files that Keras 2 wrote (legacy_models.py): predictions, and the losses of five steps.
local flow = require "flow"
local json = require "flow.json"
local support = require "spec.support.init"
local message_of = support.message_of

local FOLDER = support.root .. "spec/golden/legacy_models/"

-- The tensors KEY1, KEY2 ... of a file.
local function list_of(values, key)
  local list = {}
  while true do
    local ok, t = pcall(function() return values[key .. #list + 1] end)
    if not ok or t == nil then return #list == 1 and list[1] or list end
    list[#list + 1] = t
  end
end

local function listed(value) return flow.is_tensor(value) and { value } or value end

local function near(expected, found, limit)
  for i, t in ipairs(listed(expected)) do
    local other = listed(found)[i]
    assert.same(t.shape, other.shape)
    assert.is_true(flow.abs(t - other):max():item() <= limit)
  end
end

describe("load_model of a file of Keras 2", function()
  for _, name in ipairs { "pictures", "graph", "words" } do
    it("gives a model that predicts and trains on as there: " .. name, function()
      local values = flow.load_npz(FOLDER .. name .. ".npz")
      local model = flow.load_model(FOLDER .. name .. ".h5")
      local x, targets = list_of(values, "x"), list_of(values, "t")
      assert.equal(name, model.name)
      near(list_of(values, "y"), model:predict(x, { verbose = 0 }), 1e-5)
      for step = 1, 5 do
        assert.near(values.loss[step]:item(), model:train_on_batch(x, targets).loss, 2e-4)
      end
    end)
  end

  it("is not compiled where that is not wanted", function()
    local model = flow.load_model(FOLDER .. "words.h5", { compile = false })
    assert.truthy(message_of(function() model:evaluate(flow.zeros({ 1, 5 }, { dtype = "int32" }), { { 1 } }) end):find("compile", 1, true))
  end)

  it("says so where the file has weights only", function()
    assert.truthy(message_of(function() flow.load_model(support.root .. "spec/golden/legacy.h5") end)
      :find("has the weights of a model, but no model_config: make the model and call model:load_weights(path)", 1, true))
  end)
end)

describe("model_from_json of a text of Keras 2", function()
  local function text_of(config, class_name)
    return json.encode { class_name = class_name or "Sequential", config = config, keras_version = "2.4.0", backend = "tensorflow" }
  end
  local function dense(name, more)
    local entry = { class_name = "Dense", config = { name = name, units = 2, activation = "relu", dtype = "float32", use_bias = true,
      kernel_initializer = { class_name = "GlorotUniform", config = { seed = json.null } } } }
    for key, value in pairs(more or {}) do entry.config[key] = value end
    return entry
  end

  it("takes the shape from the first layer, and a list of layers alone", function()
    local list = { dense("a", { batch_input_shape = { json.null, 3 } }), dense "b" }
    for _, config in ipairs { { name = "old", layers = list }, list } do
      local model = flow.models.model_from_json(text_of(config))
      assert.same({ -1, 3 }, { unpack(model.input_shape) })
      assert.equal(3 * 2 + 2 + 2 * 2 + 2, model:count_params())
    end
  end)

  it("refuses causal attention, which Keras 3's layer would not be", function()
    local entry = { class_name = "Attention", config = { name = "look", causal = true } }
    assert.truthy(message_of(function() flow.models.model_from_json(text_of { name = "old", layers = { entry } }) end)
      :find('the layer "look" is causal', 1, true))
  end)

  it("names a call of what is not in the model", function()
    local input = { class_name = "InputLayer", name = "in", config = { name = "in", batch_input_shape = { json.null, 3 } },
                    inbound_nodes = json.list() }
    local layer = dense "a"
    layer.name, layer.inbound_nodes = "a", { { { "gone", 0, 0, {} } } }
    local config = { name = "m", layers = { input, layer }, input_layers = { { "in", 0, 0 } }, output_layers = { { "a", 0, 0 } } }
    assert.truthy(message_of(function() flow.models.model_from_json(text_of(config, "Model")) end)
      :find("model_from_json: a call of a Dense refers to gone, which is not in the model", 1, true))
    layer.inbound_nodes = { { { "in", 0, 0, {} } } }
    assert.equal(8, flow.models.model_from_json(text_of(config, "Model")):count_params())
  end)
end)
