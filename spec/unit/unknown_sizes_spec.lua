-- unknown_sizes_spec.lua: models whose inputs have sizes that are not known: flow.Input { -1, -1, 3 }. Shapes are inferred, weights are
-- made from what is known, and each size runs as in the same model with that size.
local flow = require "flow"
local json = require "flow.json"
local model_files = require "spec.support.model_files"
local random_files = require "spec.support.random_files"
local support = require "spec.support.init"
local layers, message_of = flow.layers, support.message_of

local CASES = tonumber(os.getenv("FLOW_CASES")) or 100
local QUIET = { verbose = 0 }

local function has(message, part)
  assert.truthy(message:find(part, 1, true), message)
end

local function list_of(outputs) return flow.is_tensor(outputs) and { outputs } or outputs end
local function predicted(model, inputs) return list_of(model:predict(#inputs == 1 and inputs[1] or inputs, QUIET)) end

--- The model with the sizes of these inputs in place of those that are not known, and the same weights.
local function with_sizes(model, inputs)
  local entry, next_input = json.decode(model:to_json()), {}
  for i, input in ipairs(model.inputs) do next_input[input.name] = inputs[i].shape end
  local function fill(part, inherited)
    for _, layer in ipairs(part.config.layers or {}) do
      layer.build_config = nil
      if layer.class_name == "InputLayer" then
        local shape = inherited or next_input[layer.config.name]
        for axis = 2, #shape do layer.config.batch_shape[axis] = shape[axis] end
      end
      fill(layer, inputs[1].shape)      -- models inside are called on the inputs, which all have the same shape
    end
    part.config.build_input_shape = nil
  end
  fill(entry)
  local fixed = flow.models.model_from_json(json.encode(entry))
  for _, input in ipairs(fixed.inputs) do
    for axis = 2, #input.shape do assert.truthy(input.shape[axis] > 0) end
  end
  fixed:set_weights(model:get_weights())
  return fixed
end

local function image_model(shape)
  local input = flow.Input(shape)
  local x = layers.Conv2D(4, 3, { strides = 2, padding = "same", activation = "relu" })(input)
  x = layers.Add()({ x, layers.BatchNormalization()(layers.Conv2D(4, 3, { padding = "same" })(x)) })
  return flow.Model { inputs = input, outputs = layers.Dense(2)(layers.GlobalAveragePooling2D()(layers.MaxPooling2D()(x) * 2)) }
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
      "has shape (None, 8, 8, 4), expected (None, None, None, 3)")
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
    for seed = 1, CASES do
      local ok, problem = pcall(function()
        local model, next_inputs, class = random_files.model(seed, { unknown = true })
        if table.concat(model.inputs[1].shape, " "):find(" -1", 1, true) then open = open + 1 end
        for _ = 1, 2 do
          local inputs = next_inputs()
          model_files.assert_returns(model, inputs)
          model_files.assert_same_bits(predicted(with_sizes(model, inputs), inputs), predicted(model, inputs), class)
        end
      end)
      if not ok then error(("seed %d: %s"):format(seed, tostring(problem)), 0) end
      if seed % 50 == 0 then collectgarbage() end
    end
    assert.truthy(open > CASES / 2, open .. " models have unknown sizes")
  end)
end)

---- batches of several sizes -----------------------------------------------------------------------------------------------------------

local function image(rows, height, width)
  return flow.random.uniform({ rows, height, width, 3 }, { seed = height * 100 + width })
end

local SIZES = { { 8, 8 }, { 9, 13 }, { 16, 5 }, { 8, 8 }, { 7, 7 }, { 9, 13 } }

--- Batches of three pictures, each of another size.
local function pictures()
  local spec = { { shape = { -1, -1, -1, 3 }, dtype = "float32" }, { shape = { -1, 2 }, dtype = "float32" } }
  return flow.data.Dataset.from_generator(function()
    local n = 0
    return function()
      n = n + 1
      if n <= #SIZES then return image(3, unpack(SIZES[n])), flow.ones { 3, 2 } * n end
    end
  end, { output_signature = spec })
end

local function state_of(model)
  local list = {}
  for _, v in ipairs(model.variables) do list[#list + 1] = v:value() end
  for _, v in ipairs(model.optimizer.variables) do list[#list + 1] = v:value() end
  return list
end

local function compiled(model)
  model:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse", metrics = { "mae" } }
  return model
end

describe("training on batches of several sizes", function()
  --- What train_on_batch gives where every size has a model of its own, which gets weights and the optimizer's state from the one before.
  local function by_models_of_one_size(model)
    local before, losses
    losses = {}
    for n, size in ipairs(SIZES) do
      local x = image(3, unpack(size))
      local fixed = compiled(with_sizes(model, { x }))
      if before then
        fixed.optimizer:build(fixed.trainable_variables)
        for i, value in ipairs(state_of(before)) do
          local own = i <= #fixed.variables and fixed.variables[i] or fixed.optimizer.variables[i - #fixed.variables]
          own:assign(value)
        end
      end
      losses[n] = fixed:train_on_batch(x, flow.ones { 3, 2 } * n).loss
      before = fixed
    end
    return before, losses
  end

  it("gives the bits of models of one size each, with weights and the optimizer's state handed on", function()
    local model = compiled(image_model { -1, -1, 3 })
    local expected, losses = by_models_of_one_size(model)
    local start = model:get_weights()
    for n, size in ipairs(SIZES) do
      assert.equal(losses[n], model:train_on_batch(image(3, unpack(size)), flow.ones { 3, 2 } * n).loss)
    end
    model_files.assert_same_bits(state_of(expected), state_of(model), "train_on_batch")
    local fitted = compiled(image_model { -1, -1, 3 })
    fitted:set_weights(start)
    fitted:fit(pictures(), QUIET)
    model_files.assert_same_bits(state_of(expected), state_of(fitted), "fit")
    assert.equal(#SIZES, fitted.optimizer.iterations)
  end)

  it("goes on: evaluate, predict, other sizes, more than a model keeps plans for", function()
    local model = compiled(image_model { -1, -1, 3 })
    local history = model:fit(pictures(), { verbose = 0, epochs = 3, validation_data = pictures() }).history
    assert.equal(3, #history.val_loss)
    local sum = 0
    for n, size in ipairs(SIZES) do sum = sum + model:evaluate(image(3, unpack(size)), flow.ones { 3, 2 } * n, QUIET).loss / #SIZES end
    assert.truthy(math.abs(model:evaluate(pictures(), QUIET).loss - sum) <= 1e-5 * sum)
    local rows = model:predict(pictures(), QUIET)
    for n, size in ipairs(SIZES) do
      model_files.assert_same_bits({ model:predict(image(3, unpack(size)), QUIET) }, { rows[{ { 3 * n - 2, 3 * n } }] }, "batch " .. n)
    end
    for size = 5, 20 do model:train_on_batch(image(2, size, size), flow.ones { 2, 2 }) end
    assert.equal(3 * #SIZES + 16, model.optimizer.iterations)
  end)

  it("agrees over replicas", function()
    flow.config.set_logical_devices("cpu", 4)
    local results = {}
    for _, devices in ipairs { { "cpu:0" }, { "cpu:0", "cpu:1" } } do
      local model
      flow.distribute.MirroredStrategy(devices).scope(function()
        local list = { layers.Input { -1, -1, 3 }, layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) }
        model = compiled(flow.Sequential(list))
      end)
      if results[1] then model:set_weights(results[1].start) end
      local start = model:get_weights()
      local history = model:fit(pictures(), { verbose = 0, epochs = 2 }).history
      results[#results + 1] = { start = start, loss = history.loss[2], evaluated = model:evaluate(pictures(), QUIET).loss,
                                predicted = model:predict(image(3, 11, 6), QUIET) }
    end
    local one, two = unpack(results)
    assert.truthy(math.abs(one.loss - two.loss) <= 1e-4 * one.loss, ("%g and %g"):format(one.loss, two.loss))
    assert.truthy(math.abs(one.evaluated - two.evaluated) <= 1e-3 * one.evaluated)
    assert.truthy((one.predicted - two.predicted):abs():max():item() <= 1e-3)
  end)

  it("takes texts of any length: Embedding, masks left to the user, batches padded to their longest", function()
    local words = flow.Input({ -1 }, { dtype = "int32" })
    local x = layers.GlobalAveragePooling1D()(layers.Embedding(20, 4)(words))
    local model = compiled(flow.Model { inputs = words, outputs = layers.Dense(1, { activation = "sigmoid" })(x) })
    local spec = { { shape = { -1 }, dtype = "int32" }, { shape = { 1 }, dtype = "float32" } }
    local texts = flow.data.Dataset.from_generator(function()
      local n = 0
      return function()
        n = n + 1
        if n <= 24 then return flow.tensor(n % 2 == 0 and 3 or 17):broadcast_to { 1 + n % 5 }:to "int32", flow.tensor { n % 2 } end
      end
    end, { output_signature = spec })
    local batches = texts:padded_batch(4)
    assert.same({ -1, -1 }, batches.element_spec[1].shape)
    local widths = {}
    for batch in batches:iter() do widths[#widths + 1] = batch.shape[2] end
    assert.same({ 5, 4, 5, 5, 5, 5 }, widths)
    local history = model:fit(batches, { verbose = 0, epochs = 30 }).history
    assert.truthy(history.loss[30] < history.loss[1] / 2, ("%g, %g"):format(history.loss[1], history.loss[30]))
    assert.same({ 2, 1 }, model:predict(flow.ones({ 2, 9 }, { dtype = "int32" }), QUIET).shape)
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

---- models that are built by their first batch ----------------------------------------------------------------------------------------

describe("models that are built by their first batch", function()
  local function check(model)
    for _, size in ipairs { 8, 11 } do
      assert.same({ 2, 2 }, model(image(2, size, size)).shape)
      assert.same({ 2, 2 }, model:predict(image(2, size, size + 1), QUIET).shape)
    end
    compiled(model)
    assert.equal(2, #model:fit(pictures(), { verbose = 0, epochs = 2 }).epoch)
  end

  it("take other sizes afterwards, as in Keras: Sequential, also from its file and with an Input", function()
    local function list() return { layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) } end
    local model = flow.Sequential(list())
    check(model)
    assert.same({ -1, 8, 8, 3 }, model.input_shape)
    local file = support.file("sequential.keras", "")
    model:save(file)
    check(flow.load_model(file))
    assert.same({ 3, 2 }, flow.models.shared(file):predict(image(3, 12, 9)).shape)
    check(flow.Sequential { layers.Input { 6, 6, 3 }, unpack(list()) })
    local flat = flow.Sequential { layers.Flatten(), layers.Dense(2) }
    flat(image(2, 4, 4))
    has(message_of(function() flat(image(2, 4, 5)) end), "input {2, 60} has 60 features, but the layer was built for 48")
  end)

  it("take other sizes afterwards: classes written in Lua, also called on symbolic tensors", function()
    local Net = flow.Model:extend("Net")
    function Net:init() self.convolution, self.pool, self.dense = layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) end
    function Net:call(x) return self.dense(self.pool(self.convolution(x))) end
    check(Net())
    local model, input = Net(), flow.Input { -1, -1, 3 }
    assert.same({ -1, 2 }, model(input).shape)
    check(model)
  end)
end)

---- models inside ---------------------------------------------------------------------------------------------------------------------

describe("models inside of others", function()
  local file = support.file("model.keras", "")

  it("have unknown sizes: transfer learning, saved, loaded, trained on, in C", function()
    local input = flow.Input { -1, -1, 3 }
    local x = layers.Conv2D(4, 3, { strides = 2, activation = "relu" })(input)
    local base = flow.Model { inputs = input, outputs = layers.BatchNormalization()(layers.DepthwiseConv2D(3, { padding = "same" })(x)) }
    base:save(file)
    base = flow.load_model(file)
    base.trainable = false
    local frozen = base:get_weights()
    local model = compiled(flow.Sequential { base, layers.GlobalAveragePooling2D(), layers.Dense(2) })
    assert.same({ -1, -1, -1, 3 }, model.input_shape)
    model:fit(pictures(), QUIET)
    model_files.assert_same_bits(frozen, base:get_weights(), "what is frozen")
    model:save(file)
    local again = flow.load_model(file)
    again:fit(pictures(), QUIET)
    model:fit(pictures(), QUIET)
    model_files.assert_same_bits(state_of(model), state_of(again), "training goes on")
    for _, size in ipairs { 12, 17 } do model_files.assert_returns(again, { image(2, size, size) }) end
  end)

  it("may be called with known sizes where their own are not", function()
    local input = flow.Input { -1, -1, 3 }
    local base = flow.Model { inputs = input, outputs = layers.Conv2D(4, 3, { strides = 2 })(input) }
    local known = flow.Input { 9, 9, 3 }
    local features = base(known)
    assert.same({ -1, 4, 4, 4 }, features.shape)
    local model = flow.Model { inputs = known, outputs = layers.Dense(2)(layers.Flatten()(features)) }
    model_files.assert_returns(model, { image(2, 9, 9) })
  end)

  it("join again what they divided: a U-Net of several depths", function()
    for depth = 1, 6 do
      local input, skips = flow.Input { -1, -1, 3 }, {}
      local x = input
      for level = 1, depth do
        skips[level] = layers.Conv2D(2, 3, { padding = "same" })(x)
        x = layers.MaxPooling2D()(skips[level])
      end
      for level = depth, 1, -1 do x = layers.Concatenate()({ skips[level], layers.Conv2DTranspose(2, 2, { strides = 2 })(x) }) end
      local net = flow.Model { inputs = input, outputs = layers.Conv2D(1, 1)(x) }
      assert.same({ -1, -1, -1, 1 }, net.output_shape)
      local outside = flow.Input { -1, -1, 3 }
      local model = flow.Model { inputs = outside, outputs = net(outside) }
      for _, n in ipairs { 1, 2 } do model_files.assert_returns(model, { image(1, n * 2 ^ depth, 2 ^ depth) }) end
    end
  end)
end)

describe("several states and threads", function()
  it("share a model of unknown sizes", function()
    local file = support.file("shared.keras", "")
    local model = image_model { -1, -1, 3 }
    model:save(file)
    local shared = flow.models.shared(file)
    for size = 5, 20 do
      model_files.assert_same_bits({ model:predict(image(2, size, size), QUIET) }, { shared:predict(image(2, size, size)) }, size)
    end
    has(message_of(function() shared:predict(flow.ones { 2, 8, 8, 4 }) end), "expected {None, None, None, 3}")
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
end)

describe("a training that goes on", function()
  it("makes the variables of a model before its first batch tells it a size", function()
    local Net = flow.Model:extend("Net")
    function Net:init() self.convolution, self.pool, self.dense = layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) end
    function Net:call(x) return self.dense(self.pool(self.convolution(x))) end
    local makers = { Net, function()
      return flow.Sequential { layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) }
    end }
    for _, make in ipairs(makers) do
      local folder, results = support.folder(), {}
      --- stops: number of the batch after which this run is given up.
      local function run(stops, callbacks)
        flow.set_random_seed(4)
        local model = compiled(make())
        callbacks[#callbacks + 1] = flow.callbacks.LambdaCallback { on_train_batch_end = function(batch)
          if batch == stops then error("stop", 0) end
        end }
        local ok, problem = pcall(model.fit, model, pictures(), { verbose = 0, epochs = 2, callbacks = callbacks })
        assert.truthy(ok or problem == "stop", problem)
        return state_of(model)
      end
      results[1] = run(nil, {})
      run(3, { flow.callbacks.BackupAndRestore(folder, { save_freq = 2 }) })
      results[2] = run(nil, { flow.callbacks.BackupAndRestore(folder, { save_freq = 2 }) })
      model_files.assert_same_bits(results[1], results[2], "after the training went on")
    end
  end)
end)

describe("steps of a model's own", function()
  it("are traced for each size", function()
    local Net = flow.Model:extend("Own")
    function Net:init() self.convolution, self.pool, self.dense = layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), layers.Dense(2) end
    function Net:call(x) return self.dense(self.pool(self.convolution(x))) end
    function Net:train_step(data)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return (self(data[1], { training = true }) - data[2]):square():mean() end)
      self.optimizer:apply_gradients(tape:gradient(loss, self.trainable_variables), self.trainable_variables)
      return { loss = loss }
    end
    local folder = support.folder()
    local model = Net()
    model:compile { optimizer = "sgd" }
    local history = model:fit(pictures(), { verbose = 0, epochs = 3, callbacks = { flow.callbacks.BackupAndRestore(folder) } }).history
    assert.truthy(history.loss[3] < history.loss[1])
    assert.equal(3 * #SIZES, model.optimizer.iterations)
  end)
end)
