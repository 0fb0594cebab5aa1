-- own_choices_spec.lua: initializers, regularizers and constraints written in Lua, of layers that are records of the library.
local support = require "spec.support.init"
local flow = require "flow"

local layers, message_of = flow.layers, support.message_of
local folder
before_each(function() folder = support.folder() end)
after_each(function() flow.io.rmtree(folder) end)

-- The warnings while f runs.
local function logged(f)
  local lines = {}
  flow.log.sink = function(level, text) if level == "warning" then lines[#lines + 1] = text end end
  local ok, problem = pcall(f)
  flow.log.sink = nil
  assert(ok, problem)
  return lines
end

local Sum = flow.regularizers.Regularizer:extend "Sum"
function Sum:call(x) return flow.sum(x) * self.factor end
function Sum:get_config() return { factor = self.factor } end
local Twos = flow.initializers.Initializer:extend "Twos"
function Twos:call(shape, options) return flow.full(shape, 2, { dtype = options.dtype }) end
local Below = flow.constraints.Constraint:extend "Below"
function Below:call(w) return w:clip(-self.most, self.most) end
function Below:get_config() return { most = self.most } end
local CLASSES = { Sum = Sum, Twos = Twos, Below = Below }

-- Layers with weights, the shape of their input, and the options that they take.
local CASES = {
  Dense = { { units = 2 }, { 3 }, { "kernel", "bias" } },
  Conv2D = { { filters = 2, kernel_size = 2 }, { 4, 4, 1 }, { "kernel", "bias" } },
  SeparableConv2D = { { filters = 2, kernel_size = 2 }, { 4, 4, 1 }, { "depthwise", "pointwise", "bias" } },
  DepthwiseConv2D = { { kernel_size = 2 }, { 4, 4, 2 }, { "depthwise", "bias" } },
  LSTM = { { units = 2 }, { 3, 2 }, { "kernel", "recurrent", "bias" } },
  GRU = { { units = 2 }, { 3, 2 }, { "kernel", "recurrent", "bias" } },
  Embedding = { { input_dim = 4, output_dim = 2 }, { 3 }, { "embeddings" } },
  BatchNormalization = { {}, { 3 }, { "gamma", "beta" } },
  LayerNormalization = { {}, { 3 }, { "gamma", "beta" } },
  PReLU = { {}, { 3 }, { "alpha" } },
}

local function weights_of(layer, prefix)
  local found = {}
  for _, weight in ipairs(layer.weights) do
    local last = weight.name
    if last == prefix or last == prefix .. "_kernel" or prefix == "depthwise" and last == "kernel" then found[#found + 1] = weight end
  end
  return found
end

describe("layers of the library", function()
  for class_name, case in pairs(CASES) do
    it("take what is written in Lua for the weights of " .. class_name, function()
      local input = flow.Input(case[2], { dtype = class_name == "Embedding" and "int32" or "float32" })
      for _, prefix in ipairs(case[3]) do
        local options = {}
        for name, value in pairs(case[1]) do options[name] = value end
        options[prefix .. "_initializer"] = Twos()
        options[prefix .. "_regularizer"] = Sum { factor = 0.5 }
        options[prefix .. "_constraint"] = Below { most = 1.5 }
        local layer = layers[class_name](options)
        local model = flow.Model { inputs = input, outputs = layer(input) }
        local weights, size = weights_of(layer, prefix), 0
        assert.is_true(#weights > 0)
        for _, weight in ipairs(weights) do
          assert.equal(2, weight:value():min():item())
          assert.equal(2, weight:value():max():item())
          size = size + weight.size
        end
        assert.equal(1, #model.losses / #weights)
        local total = 0
        for _, loss in ipairs(model.losses) do total = total + loss:item() end
        assert.near(size, total, 1e-4)      -- 0.5 times 2 for each
        model:compile { optimizer = flow.optimizers.SGD(1e-6), loss = "mse" }
        local x = flow.ones { 4, unpack(case[2]) }
        model:train_on_batch(x, flow.zeros_like(model(x)))
        for _, weight in ipairs(weights) do assert.near(1.5, weight:value():max():item(), 1e-6) end
        model:save(folder .. "/m.keras")
        assert.matches("flowlua does not know", message_of(function() flow.load_model(folder .. "/m.keras") end))
        local again = flow.load_model(folder .. "/m.keras", { custom_objects = CLASSES })
        assert.same(model(x):totable(), again(x):totable())
        assert.equal(#model.losses, #again.losses)
        again:train_on_batch(x, flow.zeros_like(model(x)))
        assert.equal(0, #flow.models.clone_model(model, { custom_objects = CLASSES }).trainable_weights - #model.trainable_weights)
      end
    end)
  end

  it("take functions, which files have by the name that was registered", function()
    local function ones(shape) return flow.ones(shape) end
    local function make(options)
      options.units = 2
      return flow.Sequential { layers.Input { 3 }, layers.Dense(options) }
    end
    local model = make { kernel_initializer = ones, activity_regularizer = function(y) return flow.sum(y) end }
    assert.equal(3, model(flow.ones { 1, 3 })[1][1]:item())
    model:compile { loss = "mse" }
    assert.near(6, model:evaluate(flow.ones { 4, 3 }, flow.full({ 4, 2 }, 3), { verbose = 0 }).loss, 1e-5)      -- rows of 2 times 3
    local lines = logged(function() model:save(folder .. "/a.keras") end)
    assert.matches("kernel_initializer is a Lua function without a name", table.concat(lines, "\n"), 1, true)
    assert.equal("GlorotUniform", flow.load_model(folder .. "/a.keras").layers[1]:get_config().kernel_initializer.class_name)
    flow.utils.register_keras_serializable("spec", "ones")(ones)
    local named = make { kernel_initializer = ones }
    named:save(folder .. "/b.keras")
    local again = flow.load_model(folder .. "/b.keras")
    assert.equal("spec>ones", again.layers[1]:get_config().kernel_initializer.config)
    assert.equal(3, flow.models.clone_model(again)(flow.ones { 1, 3 })[1][1]:item())
  end)

  it("give them to the copies that wrappers make", function()
    local function twos(shape) return flow.full(shape, 2) end
    for _, initializer in ipairs { twos, Twos() } do
      local layer = layers.Bidirectional(layers.SimpleRNN(2, { kernel_initializer = initializer }))
      layer(flow.ones { 1, 3, 2 })
      local kernels = 0
      for _, weight in ipairs(layer.weights) do
        if weight.name == "kernel" then
          kernels = kernels + 1
          assert.equal(2, weight:value():min():item())
        end
      end
      assert.equal(2, kernels)
    end
  end)

  it("take functions and layers as activations", function()
    local x = flow.tensor { { 1, -2 } }
    local function run(activation)
      local model = flow.Sequential { layers.Input { 2 }, layers.Dense(2, { activation = activation, kernel_initializer = "identity" }) }
      model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
      model:fit(x, flow.zeros { 1, 2 }, { verbose = 0 })      -- gradients go through it
      assert.not_same({ { 1, 0 }, { 0, 1 } }, model.layers[1].kernel:value():totable())
      model:set_weights { flow.eye(2), flow.zeros { 2 } }
      model:save(folder .. "/a.keras")
      return model, flow.load_model(folder .. "/a.keras")
    end
    local function square(y) return y * y end
    flow.utils.register_keras_serializable("spec", "square")(square)
    local cases = { { flow.relu, { { 1, 0 } } }, { flow.keras.activations.relu, { { 1, 0 } } },
      { flow.keras.activations.get "relu", { { 1, 0 } } },
      { layers.LeakyReLU(0.5), { { 1, -1 } } }, { square, { { 1, 4 } } }, { flow.square, { { 1, 4 } } } }
    for i, case in ipairs(cases) do
      local model, again = run(case[1])
      assert.same(case[2], model(x):totable())
      if i ~= 6 then assert.same(case[2], again(x):totable()) end      -- flow.square is an activation without a name in files
      if i <= 3 then assert.equal("relu", model.layers[1].activation) end
    end
    assert.same({ 1, 3, 4 }, { unpack(layers.LSTM(4, { activation = flow.relu, return_sequences = true })(flow.ones { 1, 3, 2 }).shape) })
    assert.matches("LSTM: activation is a function; it is computed in each step",
      message_of(function() layers.LSTM(4, { activation = square }) end), 1, true)
  end)

  it("take Keras' activations that the library's layers do not have, and files have them by name", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(4, { activation = "sparsemax" }), layers.Activation "glu",
                                    layers.Dense(2, { activation = flow.keras.activations.gelu }) }
    local x = flow.random.normal({ 3, 4 }, { seed = 1 })
    local expected = flow.sparsemax(x:matmul(model.layers[1].kernel:value()))
    assert.near(0, flow.abs(model.layers[1](x) - expected):max():item(), 1e-6)
    local lines = logged(function() model:save(folder .. "/m.keras") end)
    assert.same({}, lines)
    local again = flow.load_model(folder .. "/m.keras")
    assert.same(model:predict(x, { verbose = 0 }):totable(), again:predict(x, { verbose = 0 }):totable())
    assert.equal("sparsemax", again.layers[1]:get_config().activation)
    assert.equal("gelu", again.layers[3]:get_config().activation)
    assert.matches("LSTM: activation is a function; it is computed in each step",
      message_of(function() layers.LSTM(2, { activation = "sparsemax" }) end), 1, true)
  end)

  it("of the name gelu are exact, unlike the operation", function()
    local activations, x = flow.keras.activations, flow.tensor { 1 }
    assert.near(0.8413447, activations.get "gelu"(x):item(), 1e-6)
    assert.equal(activations.gelu, activations.deserialize "gelu")
    assert.equal("gelu", activations.serialize(activations.gelu))
  end)

  it("say what is wrong with them", function()
    local function failing(options)
      options.units = 2
      return message_of(function() layers.Dense(options)(flow.ones { 1, 3 }) end)
    end
    assert.matches("kernel_initializer: the initializer returned the number 3, expected a tensor of the shape {3, 2}",
      failing { kernel_initializer = function() return 3 end }, 1, true)
    assert.matches("option kernel is a function", failing { kernel = print }, 1, true)
    assert.matches("Nothing has no call%(%)", failing { kernel_initializer = flow.initializers.Initializer:extend "Nothing" () })
  end)
end)
