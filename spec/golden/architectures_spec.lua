-- architectures_spec.lua: flow.applications against keras.applications (architectures.py): names, classes and parameters of all layers,
-- shapes of outputs, preprocessing; and weights in the layout of Keras 2.
local support = require "spec.support.init"
local flow = require "flow"
local native = require "flow.ffi"
local entries = require "spec.golden.architectures"

-- The hash of architectures.py.
local function digest(model)
  local value = 5381
  for _, layer in ipairs(model.layers) do
    for byte in ("%s %s %d\n"):format(layer.name, layer.class_name, layer:count_params()):gmatch "." do
      value = (value * 33 + byte:byte()) % 2147483647
    end
  end
  return value
end

-- Fails unless f() raises an error at a line of this spec whose text has this part.
local function raises(f, part)
  local message = support.message_of(f)
  if not message:find(part, 1, true) then error(("expected %q in %q"):format(part, message), 2) end
end

-- f() while variables are made without values: some of these models have 350 million.
local function without_values(f)
  native.C.flow_context_set_blank(native.context, 1)
  finally(function() native.C.flow_context_set_blank(native.context, 0) end)
  return f()
end

describe("flow.applications", function()
  for _, case in ipairs(entries) do
    if case.application then
      local options, given = { weights = false }, {}
      for name, value in pairs(case.options) do
        options[name] = value
        given[#given + 1] = name
      end
      table.sort(given)
      it(("%s (%s) has the layers of Keras'"):format(case.application, table.concat(given, ", ")), function()
        flow.clear_session()
        local model = without_values(function() return flow.applications[case.application](options) end)
        assert.same({ case.name, case.layers, case.parameters, case.output },
          { model.name, #model.layers, model:count_params(), model.output_shape })
        assert.equal(case.digest, digest(model))
        model:close()
      end)
    elseif case.module then
      it(case.module .. ".preprocess_input gives what Keras' gives", function()
        local values = {}
        for i = 1, 12 do values[i] = (i - 1) * 21 end
        local x = flow.tensor(values):reshape { 2, 2, 3 }
        local found = flow.applications[case.module].preprocess_input(x):reshape({ 12 }):totable()
        for i = 1, 12 do assert.is_near(case.preprocessed[i], found[i], 1e-4) end
        local several = flow.applications[case.module].preprocess_input(x:reshape { 1, 2, 2, 3 })
        assert.same({ 1, 2, 2, 3 }, several.shape)
      end)
    end
  end

  it("says where the weights of ImageNet are expected, and what does not go with them", function()
    raises(function() local _ = flow.applications.MobileNetV2() end, "mobilenet_v2_weights_tf_dim_ordering_tf_kernels_1.0_224.h5 does " ..
      "not exist, and nothing is downloaded: get it from https://storage.googleapis.com/")
    raises(function() local _ = flow.applications.ResNet50 { classes = 10 } end,
      "flow.applications.ResNet50: the weights of ImageNet are for 1000 classes, got classes = 10")
    raises(function() local _ = flow.applications.VGG16 { weights = false, include_top = false, input_shape = { 31, 40, 3 } } end,
      "input_shape {31, 40, 3} is too small, its layers take pictures of 32 x 32 and more")
    for _, bad in ipairs { { "a", 64, 3 }, { 64.5, 64, 3 }, { 64, 0, 3 }, { 64, 64, -1 } } do
      raises(function() local _ = flow.applications.VGG16 { weights = false, include_top = false, input_shape = bad } end,
        "of input_shape is")
    end
    raises(function() local _ = flow.applications.VGG16 { weights = false, input_shape = { -1, 64, 3 } } end,
      "the classifier needs pictures of a known size")
    raises(function() local _ = flow.applications.Xception { weigths = false } end, "weigths")
    raises(function() local _ = flow.applications.ResNet51 end, "ResNet51")
    raises(function() local _ = flow.applications.resnet50.decode_predictions(flow.zeros { 2, 10 }) end,
      "predictions are {count, 1000}, got the shape {2, 10}")
  end)

  it("names the best classes of predictions", function()
    local classes = {}
    for i = 0, 999 do classes[i + 1] = ('"%d": ["n%08d", "thing_%d"]'):format(i, i, i) end
    local home = support.folder()
    assert(os.execute("mkdir " .. home .. "/models") == 0)
    support.write(home .. "/models/imagenet_class_index.json", "{" .. table.concat(classes, ", ") .. "}")
    local program = support.file("best.lua", [[
      local rows = flow.zeros { 1, 1000 }:totable()
      rows[1][8], rows[1][4] = 0.75, 0.25
      for _, best in ipairs(flow.applications.mobilenet.decode_predictions(flow.tensor(rows), 2)[1]) do print(best[1], best[2], best[3]) end
    ]])
    local output = support.run(("KERAS_HOME=%s %s %s"):format(home, support.command:gsub("^", "env "), program))
    assert.equal("n00000007\tthing_7\t0.75\nn00000003\tthing_3\t0.25\n", output)
  end)
end)

local function small_model()
  local layers = flow.layers
  local inputs = flow.Input { 6, 6, 2 }
  local x = layers.BatchNormalization { name = "second" }(layers.Conv2D(3, 3, { name = "first" })(inputs))
  local inner = flow.Sequential { layers.Flatten(), layers.Dense(4, { name = "inside" }), layers.BatchNormalization() }
  return flow.Model { inputs = inputs, outputs = layers.Dense(2, { use_bias = false, name = "last" })(inner(x)) }
end

describe("weights in the layout of Keras 2", function()
  local path = support.root .. "spec/golden/legacy.h5"
  local expected
  for _, case in ipairs(entries) do expected = expected or case.legacy end
  local function predict(model)
    local values = {}
    for i = 1, 72 do values[i] = (i - 1) / 72 end
    return model:predict(flow.tensor(values):reshape { 1, 6, 6, 2 }, { verbose = 0 }):reshape({ 2 }):totable()
  end

  it("are read by the order of the layers, and by their names", function()
    local model = small_model()
    model:load_weights(path)
    local found = predict(model)
    for i = 1, 2 do assert.is_near(expected[i], found[i], 1e-5 * math.abs(expected[i])) end
    local other = small_model()
    local named = flow.Model { inputs = other.input, outputs = other:get_layer("second").output }
    assert.has_error(function() named:load_weights(path) end)
    named:load_weights(path, { by_name = true })
    assert.same(model:get_layer("first"):get_weights()[1]:totable(), named:get_layer("first"):get_weights()[1]:totable())
  end)

  it("are refused where they do not fit, and nothing is lost", function()
    local inputs = flow.Input { 4 }
    local model = flow.Model { inputs = inputs, outputs = flow.layers.Dense(3)(inputs) }
    local before = model:get_weights()[1]:totable()
    raises(function() model:load_weights(path) end, "the file has the weights of 4 layers, the model has 1 layers with weights; " ..
      "by_name = true reads those of equal names")
    assert.same(before, model:get_weights()[1]:totable())
    raises(function() model:load_weights("m.keras", { by_name = true }) end, "by_name = true is for .h5 files of Keras 2")
    local wrong = flow.Model { inputs = inputs, outputs = flow.layers.Dense(3, { name = "last", use_bias = false })(inputs) }
    raises(function() wrong:load_weights(path, { by_name = true }) end,
      'variable "last/kernel" has shape {4, 3}, the file has {4, 2}')
  end)
end)
