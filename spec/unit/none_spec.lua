-- none_spec.lua: false stands for Python's None, which a table of Lua cannot hold: where nothing is the default, and for lists of axes.
local flow = require "flow"
local native = require "flow.ffi"
local calls = require "flow.calls"
local signature = require "flow.signature"

-- For classes of the library's records whose constructors need something.
local NEEDED = { units = 2, filters = 2, kernel_size = 2, rate = 0.5, input_dim = 3, output_dim = 2, num_heads = 2, key_dim = 2, size = 2,
  target_height = 4, target_width = 4, height = 4, width = 4, pool_size = 2, n = 2, dims = { 2, 1 }, target_shape = { 4 }, stddev = 0.1,
  num_tokens = 3, num_bins = 4, activation = "relu", factor = 0.1, head_dim = 2, num_query_heads = 2, num_key_value_heads = 1,
  groups = 1, function_ = "relu", axes = 2, equation = "ab,bc->ac", output_shape = { 2 }, max_value = 2, value_range = { 0, 1 } }

-- The parameters of a class whose default is nothing, and those that must be given.
local function parameters_of(class)
  local record, nothing, needed = calls.record_of(signature.entries[class]), {}, {}
  for _, list in ipairs { record.positional, record.options or {} } do
    for _, parameter in ipairs(list) do
      if parameter.default_text == "nil" and parameter.type_text ~= "true or false" then nothing[#nothing + 1] = parameter.name
      elseif not parameter.default_text then needed[parameter.name] = NEEDED[parameter.name] end
    end
  end
  return nothing, needed
end

describe("false as None", function()
  it("is the default of every parameter of a layer or optimizer that is None by default", function()
    local tried, problems = 0, {}
    local function try(module, name)
      local class = flow[module][name]
      local nothing, needed = parameters_of(class)
      if not pcall(class, needed) then return end
      for _, parameter in ipairs(nothing) do
        local named = { [parameter] = false }
        for key, value in pairs(needed) do named[key] = value end
        tried = tried + 1
        local ok, problem = pcall(class, named)
        if not ok then problems[#problems + 1] = name .. "." .. parameter .. ": " .. tostring(problem) end
      end
    end
    for i = 0, native.C.flow_layer_class_count() - 1 do try("layers", native.string(native.C.flow_layer_class_name(i))) end
    for _, name in ipairs { "SGD", "Adam", "AdamW", "Adamax", "Nadam", "RMSprop", "Adagrad", "Adadelta", "Ftrl", "Lion" } do
      try("optimizers", name)
    end
    assert.equal("", table.concat(problems, "\n"))
    assert.truthy(tried > 300, tried)
  end)

  it("leaves out what fit, evaluate, predict and compile may be given", function()
    local model = flow.Sequential { flow.layers.Input { 2 }, flow.layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse", loss_weights = false, metrics = false, weighted_metrics = false }
    local x, y = flow.ones { 4, 2 }, flow.ones { 4, 1 }
    local history = model:fit(x, y, { batch_size = false, callbacks = false, validation_data = false, class_weight = false,
      sample_weight = false, steps_per_epoch = false, validation_steps = false, validation_batch_size = false, verbose = 0 })
    assert.equal(1, #history.history.loss)
    assert.truthy(model:evaluate(x, y, { batch_size = false, sample_weight = false, steps = false, callbacks = false, verbose = 0 }).loss)
    assert.same({ 4, 1 }, { unpack(model:predict(x, { batch_size = false, steps = false, callbacks = false, verbose = 0 }).shape) })
    for _, options in ipairs { {}, { sample_weight = nil }, { sample_weight = false, class_weight = false } } do
      assert.truthy(model:train_on_batch(x, y, options))
    end
    assert.truthy(flow.callbacks.EarlyStopping { baseline = false })
  end)

  it("leaves out the options of metrics", function()
    local truth, guess = flow.tensor { { 1, 0, 1 }, { 0, 1, 1 } }, flow.tensor { { .9, .2, .6 }, { .1, .7, .3 } }
    local metrics = flow.metrics
    for name, options in pairs { Precision = { thresholds = false, top_k = false, class_id = false }, Recall = { class_id = false },
      AUC = { thresholds = false, num_labels = false, label_weights = false }, F1Score = { average = false, threshold = false } } do
      local with, without = metrics[name](options), metrics[name]()
      with:update_state(truth, guess)
      without:update_state(truth, guess)
      assert.same(without:result(), with:result(), name)
    end
    local top = metrics.Precision { thresholds = false, top_k = 1 }
    top:update_state(truth, guess)
    assert.equal(1, top:result())
    local apart = metrics.AUC { multi_label = true }
    apart:update_state(flow.zeros { 0, 3 }, flow.zeros { 0, 3 })      -- no rows
    assert.equal(0, apart:result())
  end)

  it("is a value where one is taken", function()
    assert.equal("bool", flow.tensor(false).dtype)
    assert.same({ false, false }, flow.full({ 2 }, false):to("bool"):totable())
    assert.same({ true, false }, flow.where({ true, false }, true, false):to("bool"):totable())
    assert.same({ false }, flow.Variable({ false }):value():totable())
  end)

  it("is a list without axes, and an error where a value is needed", function()
    local data = flow.tensor { { 1, 2 }, { 3, 6 } }
    local layer = flow.layers.Normalization { axis = false }
    layer:adapt(data)
    assert.near(3, layer.mean:item(), 1e-6)
    assert.near(0, layer(data):sum():item(), 1e-5)
    for _, make in ipairs { function() flow.layers.Reshape(false) end, function() flow.layers.Dense(false) end,
      function() flow.layers.Softmax { axis = false } end, function() flow.layers.LayerNormalization { axis = false }(data) end,
      function() flow.layers.Dense(1, { kernel_initializer = false }) end } do
      assert.is_false(pcall(make))
    end
  end)
end)
