-- signature_spec.lua: what public functions take: every function and method that can be reached from flow refuses one argument too many and
-- an option that it does not know, a dot where a colon belongs, and a colon where a dot belongs.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

describe("a method", function()
  local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1) }
  local dataset = flow.data.Dataset.range(10)

  it("that is called with a dot says that a colon belongs there", function()
    local x = flow.zeros { 3, 2 }
    local with_a_dot = {
      [function() model.fit(x, x) end] = "fit is a method, it was called with a dot: write model:fit(...), with a colon",
      [function() model.summary() end] = "summary is a method, it was called with a dot: write model:summary(...), with a colon",
      [function() model.compile { loss = "mse" } end]
        = "compile is a method, it was called with a dot: write model:compile(...), with a colon",
      [function() model.layers[1].get_weights() end]
        = "get_weights is a method, it was called with a dot: write layer:get_weights(...), with a colon",
      [function() dataset.batch(8) end] = "batch is a method, it was called with a dot: write dataset:batch(...), with a colon",
      [function() flow.optimizers.Adam().apply_gradients({}, {}) end]
        = "apply_gradients is a method, it was called with a dot: write optimizer:apply_gradients(...), with a colon",
    }
    for f, expected in pairs(with_a_dot) do assert.equal(expected, message_of(f)) end
  end)

  it("of a class that a user extends is checked, too, and takes any number of arguments", function()
    local Mine = flow.Model:extend("Mine")
    function Mine:encode(a, b) return self.name, a, b end
    function Mine.helper(a) return a end
    local mine = Mine { name = "m" }
    assert.equal("encode is a method, it was called with a dot: write model:encode(...), with a colon",
      message_of(function() mine.encode(1) end))
    assert.same({ "m", 1, 2 }, { mine:encode(1, 2, 3) })
    assert.equal(5, Mine.helper(5))
    assert.equal(5, mine.helper(5))
  end)

  it("refuses one argument too many, and shows what it takes", function()
    assert.equal("dataset:take takes (count); the number 9 is one argument too many", message_of(function() dataset:take(8, 9) end))
    assert.equal('dataset:unbatch: unknown option "buffer"', message_of(function() dataset:unbatch { buffer = 1 } end))
    assert.equal("layer:get_weights takes no arguments; true is one argument too many",
      message_of(function() model:get_weights(true) end))
  end)
end)

describe("a class name", function()
  it("does not say how a layer behaves when it is called alone: its record does", function()
    local RandomThing = layers.Layer:extend("RandomThing")
    local seen
    function RandomThing:call(x, options)
      seen = options.training
      return x
    end
    RandomThing()(flow.zeros { 1, 2 })
    assert.is_false(seen)
    local images = flow.random.uniform({ 4, 8, 8, 3 }, { seed = 1 })
    assert.is_false((layers.RandomFlip { seed = 1 }(images) - images):abs():max():item() == 0)
  end)
end)

describe("lists, literal code and long values", function()
  local x, y = flow.ones { 2, 4 }, flow.ones { 2, 2 }
  local function compiled()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(2) }
    model:compile { loss = "mse" }
    return model
  end

  it("name the entry that is nil", function()
    local nothing, history = nil, flow.callbacks.History()
    local cases = {
      [function() flow.Sequential { layers.Input { 4 }, nothing, layers.Dense(2) } end] = "flow.Sequential: entry 2 of the list",
      [function() layers.Add()({ x, nothing, x }) end] = "the inputs: entry 2 of the list",
      [function() compiled():fit(x, y, { callbacks = { history, nothing, history } }) end] = "callbacks: entry 2 of the list",
      [function() compiled():compile { loss = "mse", metrics = { "mae", nothing, "mse" } } end] = "compile: metrics: entry 2 of the list",
      [function() compiled():fit(x, y, { validation_data = { x, nothing, y } }) end] = "fit: validation_data: entry 2 of the list",
      [function() flow.zeros { 2, nothing, 3 } end] = "flow.zeros: shape: entry 2 of the list",
      [function() layers.Conv2D(2, { 3, nothing, 3 }) end] = "kernel_size: entry 2 of the list",
      [function() flow.data.Dataset.from_tensor_slices { { 1 }, nothing, { 2 } } end] = "entry 2 of the list",
      [function() compiled():compile { loss = { nothing, "mse" } } end] = "compile: loss: entry 1 of the list",
      [function() compiled():compile { loss = "mse", metrics = { nothing, "mse" } } end] = "compile: metrics: entry 1 of the list",
      [function() compiled():compile { loss = "mse", loss_weights = { nothing, 1 } } end] = "compile: loss_weights: entry 1 of the list",
    }
    for f, part in pairs(cases) do
      local text = message_of(f)
      assert.truthy(text:find(part, 1, true) and text:find("is nil: is a name misspelt?", 1, true), text)
    end
  end)

  it("name the result of a function that is nil", function()
    local nothing, numbers = nil, flow.data.Dataset.range(3)
    local Hole = layers.Layer:extend("Hole")
    function Hole:call(t) return t, nothing, t end
    local cases = {
      [function() numbers:map(function(i) return i, nothing, i end) end] = "map: value 2 is nil",
      [function() numbers:map(function(i) return nothing, i end) end] = "map: value 1 is nil",
      [function() numbers:map(function(i) return { i, { i, nothing, i } } end) end] = "map: value 2 is nil",
      [function() for _ in flow.data.Dataset.from_tensor_slices { "a" }:map(function(s) return s, nothing, s end):iter() do end end]
        = "map: value 2 is nil",
      [function() flow.data.Dataset.from_generator(function() return function() return x, nothing, y end end) end] = "value 2 is nil",
      [function() Hole()(x) end] = "result 2 of call() is nil",
      [function() flow.while_loop(function(i) return i:lt(3) end, function(i) return i + 1 end, { flow.tensor(0), x }) end]
        = "flow.while_loop: body returns 1 tensors, there are 2 variables",
      [function() flow.vectorized_map(function() end, x) end] = "flow.vectorized_map: the function returned nil",
      [function()
        local model = flow.Sequential { layers.Input { 4 }, layers.Dense(2) }
        model:compile { loss = function() end }
        model:evaluate(x, y, { verbose = 0 })
      end] = "the loss, a function(y_true, y_pred), returned nil",
      [function()
        local model = flow.Sequential { layers.Input { 4 }, layers.Dense(2) }
        model:compile { loss = "mse", metrics = { function() end } }
        model:evaluate(x, y, { verbose = 0 })
      end] = "its function returned nil",
      [function()
        local layer = layers.Dense(2, { kernel_regularizer = function() end })
        layer(x)
        return layer.losses
      end] = "the regularizer of",
    }
    for f, part in pairs(cases) do
      local text = message_of(f)
      assert.truthy(text:find(part, 1, true), text)
    end
  end)

  it("say what the right form is", function()
    assert.truthy(message_of(function() flow.data.Dataset.from_tensor_slices(x, y) end):find("write from_tensor_slices { x, y }", 1, true))
    assert.truthy(message_of(function() flow.Sequential(layers.Dense(1), layers.Dense(2)) end)
      :find("write flow.Sequential { layer, layer, ... }", 1, true))
    assert.truthy(message_of(function() flow.Sequential { layers.Input { 4 }, layers.Flatten } end):find("write layers.Flatten()", 1, true))
    assert.truthy(message_of(function() compiled():evaluate(x, y, { return_dict = 1 }) end):find("return_dict is true or false", 1, true))
    assert.equal(1, #compiled():fit({ x = x, y = y, verbose = 0 }).epoch)
    for _, make in ipairs { layers.Flatten, layers.Activation, layers.Softmax } do
      assert.truthy(message_of(function() make(x) end):find("()(x)", 1, true))
      assert.truthy(message_of(function() make(flow.Input { 4 }) end):find("()(x)", 1, true))
    end
    assert.truthy(message_of(function() layers.Add { flow.Input { 4 }, flow.Input { 4 } } end):find("write layers.Add()(x)", 1, true))
    for _, class in ipairs { flow.Model, flow.Sequential, layers.Layer, layers.Dense, flow.callbacks.Callback, flow.losses.Loss,
                             flow.metrics.Mean, flow.optimizers.Adam, flow.regularizers.Regularizer } do
      assert.equal('extend is a method of a class, it was called with a dot: write Class:extend("Name"), with a colon',
        message_of(function() class.extend "Mine" end))
    end
  end)

  it("name what is used as an index or a name", function()
    local input = flow.Input { 4 }
    for _, t in ipairs { x, input } do
      assert.truthy(message_of(function() return t[x] end):find("flow.take(x, positions, axis) takes several positions", 1, true))
      assert.truthy(message_of(function() return t[true] end):find("a list of positions and ranges, got true", 1, true))
      assert.truthy(message_of(function() return t[{ axis = 1 }] end):find("a list of positions and ranges, got a table", 1, true))
    end
    local layer = layers.Dense(2)
    assert.equal(tostring(layer) .. " is indexed by names, got a table", message_of(function() return layer[{ 1, 2 }] end))
  end)

  it("name the shapes that do not fit", function()
    for _, class in ipairs { "RootMeanSquaredError", "Accuracy", "MeanSquaredError", "CosineSimilarity", "BinaryAccuracy" } do
      local metric = flow.metrics[class]()
      local text = message_of(function() metric:update_state(flow.ones { 2, 3 }, flow.ones { 2, 5 }) end)
      assert.truthy(text:find("y_true {2, 3} and y_pred {2, 5} do not fit", 1, true), text)
    end
    assert.truthy(message_of(function() flow.stack { flow.ones { 2, 3 }, flow.ones { 2, 4 } } end)
      :find("flow.stack: tensors 1 and 2 have shapes {2, 3} and {2, 4}", 1, true))
    assert.truthy(message_of(function() layers.Concatenate { axis = 2 } { flow.ones { 2, 3, 4 }, flow.ones { 2, 4, 5 } } end)
      :find("they may differ along axis 2 only", 1, true))
  end)

  it("do not make long messages", function()
    assert.is_true(#message_of(function() flow.zeros(("x"):rep(5e6)) end) < 300)
    assert.is_true(#message_of(function() compiled():get_layer(("x"):rep(5e6)) end) < 3000)
  end)
end)

describe("an op", function()
  local x = flow.tensor { { -1.26, 2.55 }, { 3, 8 } }

  local function near(expected, t)
    for i, row in ipairs(expected) do
      for k, value in ipairs(row) do assert.near(value, t[i][k]:item(), 1e-5) end
    end
  end

  it("has the options of its kin in Keras, NumPy and TensorFlow", function()
    near({ { 0, 2.55 }, { 3, 6 } }, flow.relu(x, { max_value = 6 }))
    near({ { -0.126, 2.55 }, { 3, 8 } }, x:relu(0.1))
    near({ { 0.1 * (-1.26 - 2.7), 0.1 * (2.55 - 2.7) }, { 3, 5 } }, x:relu { negative_slope = 0.1, max_value = 5, threshold = 2.7 })
    near({ { -0.63, 2.55 }, { 3, 8 } }, flow.leaky_relu(x, 0.5))
    near({ { -0.252, 2.55 }, { 3, 8 } }, flow.leaky_relu(x))
    near({ { 2 * (math.exp(-1.26) - 1), 2.55 }, { 3, 8 } }, flow.elu(x, { alpha = 2 }))
    near({ { -1.3, 2.6 }, { 3, 8 } }, flow.tensor({ { -1.26, 2.56 }, { 3, 8 } }):round(1))
    near({ { 1.26 ^ 2 + 2.55 ^ 2, -1.26 * 3 + 2.55 * 8 }, { -1.26 * 3 + 2.55 * 8, 73 } }, x:matmul(x, { transpose_b = true }))
    near({ { 1.26 ^ 2 + 9, -1.26 * 2.55 + 24 }, { -1.26 * 2.55 + 24, 2.55 ^ 2 + 64 } }, flow.matmul(x, x, { transpose_a = true }))
    near({ { 1.74, 10.55 } }, x:sum { axis = 1, keepdims = true })
    local function approximate(v) return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ^ 3))) end
    near({ { approximate(-1.26), approximate(2.55) }, { approximate(3), approximate(8) } }, flow.gelu(x, { approximate = true }))
  end)

  it("refuses what it does not know, as a function and as a method", function()
    local messages = {
      [function() x:var(1, false, 1) end] = "flow.var takes (x, axis, keepdims = false); the number 1 is one argument too many",
      [function() x:var(1, { ddof = 1 }) end] = 'flow.var: unknown option "ddof"',
      [function() flow.exp(x, 1) end] = "flow.exp takes (x); the number 1 is one argument too many",
      [function() x:exp { base = 2 } end] = 'flow.exp: unknown option "base"',
      [function() flow.matmul(x, x, { transpos_b = true }) end]
        = 'flow.matmul: unknown option "transpos_b"; did you mean "transpose_b"?',
      [function() flow.matmul(x, x, 5) end]
        = "flow.matmul takes (a, b, { transpose_a, transpose_b }); the number 5 is one argument too many",
      [function() x.sum(1) end] = "sum is a method, it was called with a dot: write tensor:sum(...), with a colon, or flow.sum(x, ...); "
        .. "got the number 1",
      [function() flow.Input({ 3 }):relu(0, 6, 0, 1) end]
        = "flow.relu takes (x, negative_slope = 0, max_value, threshold = 0); the number 1 is one argument too many",
      [function() flow.concat { x, nil, x } end] = "flow.concat: entry 2 of the list is nil: is a name misspelt?",
    }
    for f, expected in pairs(messages) do assert.equal(expected, message_of(f)) end
  end)

  it("does not take values by number in the options for its list, which stays unchanged", function()
    local list = { x, x }
    assert.equal("flow.concat: values is given twice, as an argument and in the table of options",
      message_of(function() flow.concat(list, { flow.zeros { 1, 2 }, axis = 1 }) end))
    assert.is_true(rawequal(x, list[1]))
    assert.same({ 4, 2 }, { unpack(flow.concat({ x, x, axis = 1 }).shape) })
  end)

  it("takes no number for a whole one that is beyond those that a double counts", function()
    assert.equal("flow.utils.to_categorical: num_classes is a whole number from 1, got the number 1e+300",
      message_of(function() flow.utils.to_categorical({ 1, 2 }, 1e300) end))
    assert.equal("flow.utils.normalize: axis is a whole number, got the number -inf",
      message_of(function() flow.utils.normalize({ 1, 2 }, { axis = -math.huge }) end))
    assert.equal("flow.config.set_threads: a whole number from 0 (one per core), got the number 10000000000",
      message_of(function() flow.config.set_threads(1e10) end))
  end)

  it("takes callable objects where it takes functions", function()
    local double = flow.fn(function(value) return value * 2 end)
    assert.equal(2, flow.device("cpu", double, flow.ones {}):item())
    assert.equal(1, #flow.profile(double, flow.ones { 2 }).rows)
  end)

  it("keeps its options in a functional model", function()
    local input = flow.Input { 2 }
    local model = flow.Model { inputs = input, outputs = flow.relu(input, { max_value = 6 }) }
    near({ { 0, 2.55 }, { 3, 6 } }, model(x))
  end)
end)
