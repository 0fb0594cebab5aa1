-- unknown_sizes_spec.lua: models whose inputs have sizes that are not known: flow.Input { -1, -1, 3 }. Shapes are inferred, weights are
-- made from what is known, and each size runs as in the same model with that size.
local flow = require "flow"
local model_files = require "spec.support.model_files"
local random_files = require "spec.support.random_files"
local support = require "spec.support.init"
local unknown = require "spec.support.unknown_sizes"
local layers, message_of = flow.layers, support.message_of
local image, image_model, pictures, with_sizes = unknown.image, unknown.image_model, unknown.pictures, unknown.with_sizes

local FIRST, LAST, CASES = (require "spec.support.case_numbers")(random_files.classes)
local QUIET = { verbose = 0 }

local function has(message, part)
  assert.truthy(message:find(part, 1, true), message)
end

describe("shapes of symbolic tensors with unknown sizes", function()
  it("are inferred: what depends on them is not known either", function()
    local image_input, words = flow.Input { -1, -1, 3 }, flow.Input({ -1 }, { dtype = "int32" })
    assert.equal("Symbolic (None, None, None, 3), dtype=float32, name=" .. image_input.name, tostring(image_input))
    assert.same({ -1, -1, -1, 8 }, layers.Conv2D(8, 3, { strides = 2 })(image_input).shape)
    assert.same({ -1, -1, -1, 3 }, layers.ZeroPadding2D(2)(layers.MaxPooling2D()(image_input)).shape)
    assert.same({ -1, 3 }, layers.GlobalAveragePooling2D()(image_input).shape)
    assert.same({ -1, 7, 9, 3 }, layers.Resizing(7, 9)(image_input).shape)
    assert.same({ -1, -1, 4 }, layers.Embedding(10, 4)(words).shape)
    assert.same({ -1, 4 }, layers.GlobalAveragePooling1D()(layers.Embedding(10, 4)(words)).shape)
    assert.same({ -1, -1 }, layers.Flatten()(image_input).shape)
    assert.same({ -1, -1, 3 }, layers.Reshape { -1, 3 }(image_input).shape)
    assert.same({ -1, -1, 11 }, layers.Reshape { -1, 11 }(flow.Input { -1 }).shape)
    assert.same({ -1, 3, -1, -1 }, layers.Permute { 3, 2, 1 }(image_input).shape)
    assert.same({ -1, 5, -1, 3 }, flow.concat({ flow.Input { 2, -1, 3 }, flow.Input { 3, -1, 3 } }, 2).shape)
    assert.same({ -1, -1, -1, 3 }, (image_input * 2 + 1).shape)
    assert.same({ -1, -1, 4, 3 }, flow.Input({ shape = { -1, 4, 3 } }).shape)
    assert.same({ -1, -1, 3 }, layers.InputLayer { -1, 3 }.output.shape)
  end)

  it("take the size of another input where a layer needs both to be the same", function()
    local function inputs() return { flow.Input { -1, 3 }, flow.Input { 5, 3 } } end
    assert.same({ -1, 5, 3 }, layers.Add()(inputs()).shape)
    assert.same({ -1, 5, 6 }, layers.Concatenate()(inputs()).shape)
    assert.same({ -1, -1, 3 }, layers.Concatenate { axis = 2 }(inputs()).shape)
    local both = inputs()
    local model = flow.Model { inputs = both, outputs = layers.Dense(2)(layers.Flatten()(layers.Add()(both))) }
    model_files.assert_returns(model, { flow.ones { 2, 5, 3 }, flow.ones { 2, 5, 3 } })
    has(message_of(function() model:predict({ flow.ones { 2, 4, 3 }, flow.ones { 2, 5, 3 } }, QUIET) end), "cannot be added")
  end)

  it("take the size that another operand of an op has where the op needs it", function()
    local w = flow.ones { 5, 4 }
    assert.same({ -1, 3, 4 }, flow.matmul(flow.Input { 3, -1 }, w).shape)
    assert.same({ -1, 4 }, flow.matmul(flow.Input { -1 }, flow.Variable(w)).shape)
    assert.same({ -1, -1, 4 }, flow.matmul(flow.Input { -1, -1 }, w).shape)
    assert.same({ -1, 3, 4 }, flow.matmul(flow.Input { 3, -1 }, flow.Input { 5, 4 }).shape)
    assert.same({ -1, 3, 5 }, (flow.Input { 3, -1 } + flow.ones { 5 }).shape)
    local input = flow.Input { 3, -1 }
    local model = flow.Model { inputs = input, outputs = flow.matmul(input, w) }
    model_files.assert_returns(model, { flow.ones { 2, 3, 5 } })
    has(message_of(function() model:predict(flow.ones { 2, 3, 6 }, QUIET) end), "3, 6} has 6 columns, b {5, 4} has 5 rows")
    has(message_of(function() flow.matmul(flow.Input { 3, -1, 2 }, w) end), "a {None, 3, 1680, 2} has 2 columns, b {5, 4} has 5 rows")
  end)

  it("are those of models, too, and stand in summary() as None", function()
    local model = image_model { -1, -1, 3 }
    assert.same({ -1, -1, -1, 3 }, model.input_shape)
    assert.same({ -1, 2 }, model.output_shape)
    local text = model:summary_text { line_length = 140 }
    has(text, "(None, None, None, 3)")
    has(text, "(None, None, None, 4)")
    assert.equal(image_model({ 8, 8, 3 }):count_params(), model:count_params())
  end)

  it("let layers written in Lua see that a size is not known when they are built", function()
    local Scale, seen = layers.Layer:extend("Scale"), {}
    function Scale:build(shape)
      seen = { unpack(shape) }
      self.gain = self:add_weight { name = "gain", shape = { shape[#shape] }, initializer = "ones" }
      self.inner = layers.Dense(shape[#shape])
    end
    function Scale:call(x) return self.inner(x) * self.gain end
    local input = flow.Input { -1, 3 }
    local output = Scale()(input)
    assert.same({ -1, -1, 3 }, seen)
    assert.same({ -1, -1, 3 }, output.shape)
    local model = flow.Model { inputs = input, outputs = output }
    for _, n in ipairs { 2, 5 } do assert.same({ 2, n, 3 }, model:predict(flow.ones { 2, n, 3 }, QUIET).shape) end
  end)

  it("draw as many random numbers as those with known sizes", function()
    local values = {}
    for i, shape in ipairs { { -1, 3 }, { 5, 3 } } do
      flow.set_random_seed(3)
      local Noisy = layers.Layer:extend("Noisy" .. i)
      function Noisy:build(s) self.inner = layers.Dense(s[#s]) end
      function Noisy:call(x) return self.inner(x) + flow.random.normal { 3 } end
      values[i] = layers.Dense(2)(Noisy()(flow.Input(shape))).layer.kernel:value()
    end
    model_files.assert_same_bits({ values[2] }, { values[1] }, "a kernel that is made afterwards")
  end)
end)

describe("sizes that must be known", function()
  local function refused(part, layer, shape)
    has(message_of(function() layer(flow.Input(shape)) end), part)
    assert.is_false(layer.built)
    assert.equal(0, #layer.weights)
  end

  it("are asked for by the layers that make weights of them", function()
    refused("the last dimension of the input {None, 4, None} must be a known number of features", layers.Dense(3), { 4, -1 })
    refused("the last dimension of the input {None, 4, 4, None} must be a known number of channels", layers.Conv2D(3, 2), { 4, 4, -1 })
    refused("must have a known size", layers.LayerNormalization(), { 4, -1 })
    refused("must have a known size", layers.BatchNormalization(), { 4, -1 })
    refused("must have a known size", layers.PReLU(), { -1, 4 })
    has(message_of(function() layers.Dense(3)(layers.Flatten()(flow.Input { -1, 4 })) end),
      "the last dimension of the input {None, None} must be a known number of features")
  end)

  it("are whole numbers or -1", function()
    has(message_of(function() flow.Input { 0, 3 } end), "dimension 1 is the number 0")
    has(message_of(function() flow.Input { 3, -2 } end), "dimension 2 is the number -2")
  end)

  it("are checked where they are known: by rank and by the other sizes", function()
    local model = image_model { -1, -1, 3 }
    has(message_of(function() model:predict(flow.ones { 2, 8, 8, 4 }, QUIET) end),
      "has shape (2, 8, 8, 4), expected (None, None, None, 3)")
    has(message_of(function() model:predict(flow.ones { 2, 8, 3 }, QUIET) end), "expected (None, None, None, 3)")
  end)

  it("are checked in the size that comes: a layer says what it misses", function()
    local input = flow.Input { -1, 1 }
    local first = layers.Reshape { -1, 4 }(input)[{ {}, { 1, 2 } }]
    local model = flow.Model { inputs = input, outputs = layers.Dense(2)(layers.Flatten()(first)) }
    assert.same({ 3, 2 }, model:predict(flow.ones { 3, 8, 1 }, QUIET).shape)
    has(message_of(function() model:predict(flow.ones { 3, 9, 1 }, QUIET) end), "a sample {9, 1} has 9 elements")
  end)
end)

describe("models with unknown sizes", function()
  it("predict bit for bit what the same model with each size does: read, written, in C", function()
    local open = 0
    for seed = FIRST, LAST do
      local ok, problem = pcall(function()
        local model, next_inputs, class, in_c = random_files.model(seed, { unknown = true })
        if table.concat(model.inputs[1].shape, " "):find(" -1", 1, true) then open = open + 1 end
        for _ = 1, 2 do
          local inputs = next_inputs()
          model_files.assert_returns(model, inputs, { in_c = in_c })
          local expected = model_files.predicted(with_sizes(model, inputs), inputs)
          model_files.assert_same_bits(expected, model_files.predicted(model, inputs), class)
        end
      end)
      if not ok then error(("seed %d: %s"):format(seed, tostring(problem)), 0) end
      if seed % 50 == 0 then collectgarbage() end
    end
    assert.truthy(CASES < 20 or open > CASES / 2, open .. " models have unknown sizes")
  end)
end)

describe("predictions of several sizes", function()
  it("that are not rows of one tensor are an error that says so", function()
    local input = flow.Input { -1, -1, 3 }
    local model = flow.Model { inputs = input, outputs = layers.Conv2D(2, 3)(input) }
    has(message_of(function() model:predict(pictures(), QUIET) end),
      "predict: an output of one batch has shape {3, 6, 6, 2}, of a later one {3, 7, 11, 2}")
    assert.same({ 3, 6, 6, 2 }, model:predict_on_batch(image(3, 8, 8)).shape)
    assert.same({ 3, 7, 11, 2 }, model:predict_on_batch(image(3, 9, 13)).shape)
  end)
end)

describe("what else knows the shapes of a model", function()
  it("export: an ONNX model is for one size, which is asked for", function()
    local model, path = image_model { -1, -1, 3 }, support.file("model.onnx", "")
    has(message_of(function() model:export(path) end), "has the shape (None, None, None, 3), and an ONNX model is written for one size")
    model:export(path, { inputs = { { shape = { -1, 20, 30, 3 } } } })
    assert.truthy(io.open(path, "rb"):read("*a"):find("flowlua", 1, true))
  end)

  it("plot_model shows None, clone_model and model_from_json keep what is not known", function()
    local model, path = image_model { -1, -1, 3 }, support.file("model.svg", "")
    flow.utils.plot_model(model, { to_file = path, show_shapes = true })
    has(io.open(path):read("*a"), "(None, None, None, 4)")
    for _, again in ipairs { flow.models.clone_model(model), flow.models.model_from_json(model:to_json()) } do
      assert.same({ -1, -1, -1, 3 }, again.input_shape)
      again:set_weights(model:get_weights())
      for size = 8, 9 do
        local x = image(2, size, size)
        model_files.assert_same_bits({ model:predict(x, QUIET) }, { again:predict(x, QUIET) }, "predictions")
      end
    end
  end)

  it("flow.fn and a loop of one's own trace each size", function()
    local model = image_model { -1, -1, 3 }
    local run = flow.fn(function(x) return model(x) end)
    for _, size in ipairs { 8, 9, 8 } do
      model_files.assert_same_bits({ model:predict(image(2, size, 7), QUIET) }, { run(image(2, size, 7)) }, "flow.fn")
    end
  end)

  it("Dot takes axes of which one size, or both, are not known", function()
    local u, v = flow.random.uniform({ 2, 5, 3 }, { seed = 1 }), flow.random.uniform({ 2, 5, 4 }, { seed = 2 })
    for _, sizes in ipairs { { -1, 5 }, { 5, -1 }, { -1, -1 } } do
      local a, b = flow.Input { sizes[1], 3 }, flow.Input { sizes[2], 4 }
      local model = flow.Model { inputs = { a, b }, outputs = layers.Dot({ 2, 2 })({ a, b }) }
      assert.same({ 3, 4 }, { model.outputs[1].shape[2], model.outputs[1].shape[3] })
      assert.is_true((model:predict({ u, v }, QUIET) - flow.einsum("bki,bkj->bij", u, v)):abs():max():item() < 1e-6)
      if sizes[1] < 0 then has(message_of(function() model:predict({ flow.ones { 2, 6, 3 }, v }, QUIET) end), "differ in size") end
    end
  end)
end)
