-- functional_spec.lua: models made from a graph of calls: order of layers, several inputs and outputs, sharing, nesting.
local support = require "spec.support.init"
local model_files = require "spec.support.model_files"
local flow = require "flow"
local native = require "flow.ffi"
local layers = flow.layers
local message_of = support.message_of

local function names(list)
  local found = {}
  for i, item in ipairs(list) do found[i] = item.name end
  return found
end

local function paths(list)
  local found = {}
  for i, item in ipairs(list) do found[i] = item.path end
  return found
end

describe("flow.models.clone_model", function()
  it("makes the same model with its own weights", function()
    local shared, input = flow.layers.Dense(3), flow.Input { 3 }
    local model = flow.Model { inputs = input, outputs = shared(shared(input)) }
    local copy = flow.models.clone_model(model)
    assert.same(model.layers[2].name, copy.layers[2].name)
    assert.equal(model:count_params(), copy:count_params())
    local before = copy:get_weights()[1]:totable()
    assert.are_not.same(model:get_weights()[1]:totable(), before)
    model.layers[2].kernel:assign(flow.zeros { 3, 3 })
    assert.same(before, copy:get_weights()[1]:totable())
  end)
end)

describe("flow.Model", function()
  before_each(function() flow.clear_session() end)

  it("runs branches that meet again", function()
    local x = flow.Input { 4 }
    local h = layers.Dense(3, { kernel_initializer = "ones" })(x)
    local model = flow.Model { inputs = x, outputs = layers.Add()({ h, layers.Dense(3, { kernel_initializer = "ones" })(h) }) }
    assert.equal("functional", model.name)
    assert.same({ { 16, 16, 16 } }, model(flow.ones { 1, 4 }):totable())
    assert.same({ -1, 3 }, model.output_shape)
    assert.same({ "input_layer", "dense", "dense_1", "add" }, names(model.layers))
  end)

  -- The order of Keras 3 (keras.src.ops.function.map_graph): by depth, then by when the walk back from the outputs met them.
  it("orders layers as Keras", function()
    local a, b = flow.Input({ 3 }, { name = "a" }), flow.Input({ 3 }, { name = "b" })
    local left = layers.Dense(4, { name = "left" })(a)
    local right = layers.Dense(4, { name = "right" })(b)
    local deeper = layers.Dense(4, { name = "deeper" })(left)
    local sum = layers.Add { name = "sum" } ({ deeper, right })
    local model = flow.Model { inputs = { a, b }, outputs = sum }
    assert.same({ "a", "left", "b", "deeper", "right", "sum" }, names(model.layers))
    assert.same({ "left/kernel", "left/bias", "deeper/kernel", "deeper/bias", "right/kernel", "right/bias" }, paths(model.weights))
  end)

  it("takes lists of inputs and gives lists of outputs", function()
    local a, b = flow.Input { 2 }, flow.Input { 3 }
    local both = layers.Concatenate()({ a, b })
    local model = flow.Model({ a, b }, { layers.Dense(1, { name = "one" })(both), layers.Dense(2, { name = "two" })(both) }, { name = "m" })
    assert.equal("m", model.name)
    local one, two = unpack(model({ flow.ones { 5, 2 }, flow.ones { 5, 3 } }))
    assert.same({ { 5, 1 }, { 5, 2 } }, { one.shape, two.shape })
    local results = model:predict({ flow.ones { 5, 2 }, flow.ones { 5, 3 } }, { batch_size = 2, verbose = 0 })
    assert.near(two[{ 5, 2 }]:item(), results[2][{ 5, 2 }]:item(), 1e-6)
    assert.same({ { -1, 1 }, { -1, 2 } }, model.output_shape)
    assert.truthy(message_of(function() model(flow.ones { 5, 2 }) end):find("expected 2 inputs, got 1", 1, true))
  end)

  it("calls a shared layer with one set of weights", function()
    local a, b = flow.Input { 3 }, flow.Input { 3 }
    local shared = layers.Dense(2, { use_bias = false })
    local model = flow.Model { inputs = { a, b }, outputs = layers.Concatenate()({ shared(a), shared(b) }) }
    assert.equal(1, #model.weights)
    model:compile { optimizer = flow.optimizers.SGD(1), loss = "mse" }
    model:set_weights { flow.zeros { 3, 2 } }
    model:train_on_batch({ flow.ones { 1, 3 }, flow.full({ 1, 3 }, 2) }, flow.ones { 1, 4 })
    -- d loss / d kernel: -2/4 for a and twice that for b in each column
    assert.near(1.5, shared.kernel[{ 1, 1 }]:item(), 1e-6)
    assert.near(1.5, shared.kernel[{ 3, 2 }]:item(), 1e-6)
  end)

  it("nests models, and keeps them usable apart", function()
    local x = flow.Input { 4 }
    local encoder = flow.Model { inputs = x, outputs = layers.Dense(2)(x), name = "encoder" }
    local input = flow.Input { 4 }
    local model = flow.Model { inputs = input, outputs = layers.Dense(1)(encoder(input)) }
    assert.same({ "input_layer_1", "encoder", "dense_1" }, names(model.layers))
    assert.equal(4, #model.weights)
    local data = flow.ones { 2, 4 }
    local before = encoder(data):totable()
    model:compile { optimizer = flow.optimizers.SGD(0.5), loss = "mse" }
    model:train_on_batch(data, flow.full({ 2, 1 }, 9))
    assert.not_same(before, encoder(data):totable())
  end)

  it("makes a model of the inside of another", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3, { name = "features" }), layers.Dense(1) }
    local part = flow.Model { inputs = model.input, outputs = model:get_layer("features").output }
    local x = flow.ones { 2, 4 }
    assert.same(model.layers[1](x):totable(), part(x):totable())
    assert.equal(model.layers[1].kernel, part.weights[1])
    local picture = flow.Input({ 4 }, { name = "picture" })
    local functional = flow.Model { inputs = picture, outputs = model.layers[1](picture) }
    assert.equal(picture, functional:get_layer("picture").input)
    assert.same(part(x):totable(), flow.Model(functional:get_layer("picture").input, functional.outputs[1])(x):totable())
    local sum = layers.Add()
    sum { picture, picture }
    sum.input[1] = nil      -- the caller's own list
    assert.equal(2, #sum.input)
  end)

  it("takes operators and methods on symbolic tensors", function()
    local x = flow.Input { 2 }
    local model = flow.Model { inputs = x, outputs = (x * 2 + 1):relu() - x }
    assert.same({ { 2, 3 }, { 3, 2 } }, model({ { 1, 2 }, { 2, -2 } }):totable())
  end)

  it("hands training down; what a call in the graph was given is its default, as in Keras", function()
    local x = flow.Input { 50 }
    local model = flow.Model { inputs = x, outputs = layers.Dropout(0.5)(x) }
    local data = flow.ones { 1, 50 }
    assert.equal(50, model(data):sum():item())
    assert.equal(0, model(data, { training = true }):min():item())
    local frozen = flow.Model { inputs = x, outputs = layers.Dropout(0.5)(x, { training = false }) }
    assert.equal(50, frozen(data):sum():item())
    assert.equal(0, frozen(data, { training = true }):min():item())
    local noisy = flow.Model { inputs = x, outputs = layers.Dropout(0.5)(x, { training = true }) }
    assert.equal(0, noisy(data):min():item())
    assert.equal(50, noisy:predict(data, { verbose = 0 }):sum():item())
  end)

  it("may take several rows of a batch as rows, and put them together again", function()
    local x = flow.Input { 3, 4 }
    local inner = flow.Sequential { flow.Input { 4 }, layers.Dense(5, { kernel_initializer = "ones" }), layers.Dropout(0.2) }
    local rows = inner(flow.reshape(x, { -1, 4 }))
    local doubled = layers.Concatenate { axis = 1 }({ rows, rows })
    local model = flow.Model(x, flow.reshape(doubled, { -1, 6, 5 }))
    assert.equal("(None, 6, 5)", tostring(model.output.shape))
    local data = flow.arange(24):to("float32"):reshape { 2, 3, 4 }
    local expected = data:reshape({ 6, 4 }):sum(2):totable()
    local found = model:predict(data, { verbose = 0 })
    assert.equal(expected[1], found[{ 1, 1, 1 }]:item())
    assert.equal(expected[6], found[{ 2, 6, 5 }]:item())
    local head = flow.Model(x, layers.Dense(1)(layers.Flatten()(flow.reshape(rows, { -1, 3, 5 }))))
    head:compile { optimizer = "sgd", loss = "mse" }
    assert.equal(1, #head:fit(flow.ones { 7, 3, 4 }, flow.ones { 7, 1 }, { batch_size = 4, verbose = 0 }).history.loss)
  end)

  it("names what is wrong with a graph", function()
    local a, b = flow.Input({ 2 }, { name = "a" }), flow.Input({ 2 }, { name = "b" })
    local sum = layers.Add()({ a, b })
    assert.truthy(message_of(function() flow.Model { inputs = a, outputs = sum } end)
      :find('depends on Input "b", which is not among the inputs', 1, true))
    assert.truthy(message_of(function() flow.Model { inputs = a, output = sum } end):find('did you mean "outputs"?', 1, true))
    assert.truthy(message_of(function() flow.Model { inputs = a, outputs = 3 } end):find("expected symbolic tensors", 1, true))
    assert.truthy(message_of(function() layers.Add()({ a, flow.ones { 1, 2 } }) end):find("cannot be mixed with values", 1, true))
    assert.truthy(message_of(function() layers.Add()({ a, flow.Input { 5 } }) end):find("{None, 2} and {None, 5}", 1, true))
    assert.truthy(message_of(function()
      local one, two = layers.Dense(2, { name = "same" }), layers.Dense(2, { name = "same" })
      flow.Model { inputs = a, outputs = two(one(a)) }
    end):find('two layers are called "same"', 1, true))
    assert.equal(0, native.C.flow_trace_depth(native.context))
  end)

  it("goes into files with inputs that no output depends on, wherever they are in the list", function()
    for used = 1, 3 do
      local inputs, data = {}, {}
      for i = 1, 3 do inputs[i], data[i] = flow.Input { i + 1 }, flow.random.normal { 4, i + 1 } end
      model_files.assert_returns(flow.Model { inputs = inputs, outputs = layers.Dense(2)(inputs[used]) }, data)
    end
  end)

  -- What Keras gives: the targets of an output without a loss may be there or not.
  it("takes false for outputs without a loss, also in files", function()
    local x = flow.Input { 2 }
    local outputs = { layers.Dense(1, { kernel_initializer = "zeros" })(x), layers.Dense(3)(x) }
    local data, target, other = flow.ones { 4, 2 }, flow.full({ 4, 1 }, 3), flow.ones { 4, 3 }
    for position = 1, 2 do
      local model = flow.Model { inputs = x, outputs = position == 1 and outputs or { outputs[2], outputs[1] } }
      local loss, both = { "mse", false }, { target, other }
      if position == 2 then loss, both = { false, "mse" }, { other, target } end
      model:compile { optimizer = "sgd", loss = loss }
      local path = support.folder() .. "/model.keras"
      model:save(path)
      for _, each in ipairs { model, flow.load_model(path) } do
        assert.same({ loss = 9 }, each:test_on_batch(data, target))
        assert.same({ loss = 9 }, each:test_on_batch(data, both))
        assert.same({ loss = 9 }, each:evaluate(flow.data.Dataset.from_tensor_slices { data, target }:batch(2), { verbose = 0 }))
      end
    end
  end)

  it("reports losses and metrics for each output", function()
    local x = flow.Input { 2 }
    local model = flow.Model { inputs = x, outputs = { layers.Dense(1, { name = "one", kernel_initializer = "zeros" })(x),
                                                       layers.Dense(1, { name = "two", kernel_initializer = "zeros" })(x) } }
    model:compile { optimizer = "sgd", loss = { "mse", "mae" }, loss_weights = { 1, 10 }, metrics = { "mae", { "mse", "mae" } } }
    local data, targets = flow.ones { 4, 2 }, { flow.full({ 4, 1 }, 3), flow.full({ 4, 1 }, 2) }
    assert.same({ loss = 29, one_loss = 9, two_loss = 2, one_mae = 3, two_mse = 4, two_mae = 2 }, model:test_on_batch(data, targets))
    model:compile { optimizer = "sgd", loss = { two = "mse" }, metrics = { one = "mae" } }
    assert.same({ loss = 4, one_mae = 3 }, model:test_on_batch(data, targets))
    local function compile(options) return message_of(function() model:compile(options) end) end
    assert.truthy(compile({ optimizer = "sgd", loss = { "mse" } }):find("loss has 1 entries for 2 outputs", 1, true))
    assert.truthy(compile({ optimizer = "sgd", loss = { tow = "mse" } }):find('names the output "tow"', 1, true))
    assert.truthy(compile({ optimizer = "sgd", loss = "mse", metrics = { "mae" } }):find("metrics has 1 entries for 2 outputs", 1, true))
    model:compile { optimizer = "sgd", loss = "mse" }
    assert.truthy(message_of(function() model:test_on_batch(data, targets[1]) end):find("1 targets for 2 outputs", 1, true))
  end)
end)
