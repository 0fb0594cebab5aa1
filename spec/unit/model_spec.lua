-- model_spec.lua: Sequential models: adding and taking layers, deferred build, calls; models written in Lua.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

describe("Sequential", function()
  before_each(function() flow.clear_session() end)

  it("knows all shapes when it starts with an Input", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3), layers.Dense(2) }
    assert.is_true(model.built)
    assert.equal("sequential", model.name)
    assert.same({ -1, 4 }, model.input_shape)
    assert.same({ -1, 2 }, model.output_shape)
    assert.equal(2, #model.layers)
    assert.equal(23, model:count_params())
    assert.same({ "dense", "dense_1" }, { model.layers[1].name, model.layers[2].name })
    assert.equal("named", flow.Sequential({ layers.Dense(1) }, { name = "named" }).name)
    assert.equal("inside", flow.Sequential { layers.Dense(1), name = "inside" } .name)
  end)

  it("takes the shape from a first layer's input_shape or a first model's input", function()
    local model = flow.Sequential { layers.Dense(3, { input_shape = { 4 } }) }
    assert.is_true(model.built)
    assert.same({ -1, 3 }, flow.Sequential { model } .output_shape)
  end)

  it("is built at the first call otherwise", function()
    local model = flow.Sequential()
    model:add(layers.Dense(3))
    model:add(layers.Dense(2))
    assert.is_false(model.built)
    assert.equal(0, #model.weights)
    assert.truthy(message_of(function() return model.output_shape end):find("no output shape before its input shape is known", 1, true))
    assert.same({ 5, 2 }, model(flow.ones { 5, 4 }).shape)
    assert.same({ -1, 4 }, model.input_shape)
    assert.equal(4, #model.weights)
    local other = flow.Sequential { layers.Dense(3) }
    other:build { -1, 7 }
    assert.same({ 7, 3 }, other.layers[1].kernel.shape)
  end)

  it("stays unbuilt when a build fails", function()
    local model = flow.Sequential { layers.Conv2D(2, 3), layers.Flatten() }
    message_of(function() model(flow.ones { 1, 4 }) end)
    assert.is_false(model.built)
    assert.same({ 1, 8 }, model(flow.ones { 1, 4, 4, 1 }).shape)
  end)

  it("refuses what is not a layer, a second name, and an Input in the middle", function()
    local model = flow.Sequential { layers.Input { 2 }, layers.Dense(2, { name = "a" }) }
    assert.truthy(message_of(function() model:add(layers.Dense(2, { name = "a" })) end):find('two layers are called "a"', 1, true))
    assert.truthy(message_of(function() model:add(3) end):find("add() takes a layer, got the number 3", 1, true))
    assert.truthy(message_of(function() model:add(layers.Input { 2 }) end):find("an Input can only be the first layer", 1, true))
    assert.truthy(message_of(function() flow.Sequential { layers.Dense(1), nam = "x" } end):find('unknown option "nam"', 1, true))
    assert.truthy(message_of(function() flow.Sequential()(flow.ones { 1 }) end):find("it has no layers yet", 1, true))
    assert.equal(1, #model.layers)
  end)

  it("does not keep a layer that does not fit", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3) }
    message_of(function() model:add(layers.Conv2D(1, 1)) end)
    assert.equal(1, #model.layers)
    assert.same({ 1, 3 }, model(flow.ones { 1, 4 }).shape)
    local empty = flow.Sequential()
    message_of(function() empty:add(layers.Conv2D(1, 1, { input_shape = { 4 } })) end)
    empty:add(layers.Input { 3 })      -- of which the layer that was refused leaves nothing
    empty:add(layers.Dense(2))
    assert.same({ -1, 3 }, empty.input_shape)
  end)

  it("gives its last layer back", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3), layers.Dense(2) }
    assert.equal("dense_1", model:pop().name)
    assert.same({ -1, 3 }, model.output_shape)
    assert.same({ 1, 3 }, model(flow.ones { 1, 4 }).shape)
    model:add(layers.Dense(5))
    assert.same({ 1, 5 }, model:predict(flow.ones { 1, 4 }, { verbose = 0 }).shape)
    model:pop()
    assert.same({ 1, 3 }, model:predict(flow.ones { 1, 4 }, { verbose = 0 }).shape)
    model:pop()
    assert.truthy(message_of(function() model:pop() end):find("there is no layer to remove", 1, true))
    model:add(layers.Dense(6))
    assert.same({ 1, 6 }, model(flow.ones { 1, 4 }).shape)
  end)

  it("hands on all that a layer gives: a last LSTM's states, too, and a list to a layer that takes one", function()
    local x = flow.random.normal({ 2, 4, 3 }, { seed = 1 })
    local model = flow.Sequential { layers.Input { 4, 3 }, layers.LSTM(2, { return_state = true }) }
    local outputs = model:predict(x, { verbose = 0 })
    assert.same({ { 2, 2 }, { 2, 2 }, { 2, 2 } }, { outputs[1].shape, outputs[2].shape, outputs[3].shape })
    local path = support.folder() .. "/states.keras"
    model:save(path)
    assert.same(outputs[3]:totable(), flow.load_model(path):predict(x, { verbose = 0 })[3]:totable())
    assert.truthy(message_of(function() model:add(layers.Dense(1)) end):find("takes 1 input, found 3", 1, true))
    model:add(layers.Concatenate())
    assert.same({ 2, 6 }, model(x).shape)
    model:pop()
    assert.same(outputs[3]:totable(), model(x)[3]:totable())
    local unbuilt = flow.Sequential { layers.LSTM(2, { return_state = true }), layers.Concatenate() }
    assert.same({ 2, 6 }, unbuilt(x).shape)
  end)

  it("finds layers by name and by position", function()
    local model = flow.Sequential { layers.Input { 2 }, layers.Dense(2, { name = "head" }) }
    assert.equal(model.layers[1], model:get_layer("head"))
    assert.equal(model.layers[1], model:get_layer(1))
    assert.equal(model.layers[1], model:get_layer { index = 1 })
    assert.truthy(message_of(function() model:get_layer("heads") end):find('did you mean "head"?', 1, true))
    assert.truthy(message_of(function() model:get_layer(3) end):find("there is no layer 3, it has 1", 1, true))
  end)

  it("casts inputs and completes a trailing dimension of 1", function()
    local model = flow.Sequential { layers.Input { 2, 2, 1 }, layers.Rescaling(1 / 255), layers.Flatten() }
    local x = flow.full({ 3, 2, 2 }, 255, { dtype = "uint8" })
    assert.same({ 1, 1, 1, 1 }, model(x):totable()[1])
    assert.same({ 3, 4 }, model:predict(x, { verbose = 0 }).shape)
    assert.equal('Sequential "sequential": input "input_layer" has shape (3, 4), expected (None, 2, 2, 1)',
      message_of(function() model(flow.ones { 3, 4 }) end))
  end)

  it("holds models as layers, with their weights in order", function()
    local inner = flow.Sequential({ layers.Dense(3, { name = "inner" }) }, { name = "i" })
    local model = flow.Sequential({ layers.Input { 2 }, inner, layers.Dense(1, { name = "outer" }) }, { name = "m" })
    local names = {}
    for i, weight in ipairs(model.weights) do names[i] = weight.path end
    assert.same({ "m/i/inner/kernel", "m/i/inner/bias", "m/outer/kernel", "m/outer/bias" }, names)
    inner.trainable = false
    assert.equal(2, #model.trainable_variables)
    assert.equal(4, #model:get_weights())
    model.trainable = false
    assert.equal(0, #model.trainable_variables)
    model.trainable = true
    assert.equal(4, #model.trainable_variables)
  end)

  it("freezes the layers that a model is made of, which may be set to train again", function()
    local function inner() return { layers.Input { 2 }, layers.Dense(3, { name = "first" }), layers.Dense(3, { name = "last" }) } end
    local function graph()
      local input = flow.Input { 2 }
      return { inputs = input, outputs = layers.Dense(3, { name = "last" })(layers.Dense(3, { name = "first" })(input)), trainable = false }
    end
    for _, part in ipairs { flow.Sequential(inner(), { trainable = false }), flow.Model(graph()) } do
      local input = flow.Input { 2 }
      local model = flow.Model { inputs = input, outputs = layers.Dense(1, { name = "head" })(part(input)) }
      assert.equal(2, #model.trainable_variables)
      assert.is_false(part:get_layer("first").trainable)
      part:get_layer("last").trainable = true
      assert.equal(4, #model.trainable_variables)
      assert.equal(0, #part.trainable_variables)
      local again = flow.models.model_from_json(model:to_json())
      assert.equal(4, #again.trainable_variables)
    end
  end)

  it("keeps its graph if the list that a layer returned is changed", function()
    local input = flow.Input { 3, 2 }
    local found = layers.LSTM(2, { return_state = true })(input)
    local first = found[1]
    found[1], found[2] = layers.Activation("tanh")(first), nil
    local model = flow.Model { inputs = input, outputs = { first, found[1] } }
    local y = model:predict(flow.random.normal({ 4, 3, 2 }, { seed = 2 }), { verbose = 0 })
    assert.near(0, (flow.tanh(y[1]) - y[2]):abs():max():item(), 1e-6)
  end)
end)

describe("a model written in Lua", function()
  it("trains, predicts and lists its layers", function()
    flow.clear_session()
    flow.set_random_seed(3)
    local Net = flow.Model:extend("Net")
    function Net:init(units)
      self.hidden = layers.Dense(units, { activation = "relu" })
      self.head = layers.Dense(1)
    end
    function Net:call(x) return self.head(self.hidden(x)) end
    local net = Net(8)
    assert.equal("net", net.name)
    net:compile { optimizer = flow.optimizers.Adam(0.05), loss = "mse" }
    local x = flow.random.normal { 32, 3 }
    local y = x:sum(2, true)
    local losses = net:fit(x, y, { epochs = 20, verbose = 0 }).history.loss
    assert.is_true(losses[20] < 0.2 * losses[1])
    assert.equal(2, #net.layers)
    assert.equal(4, #net.weights)
    assert.same({ 32, 1 }, net:predict(x, { verbose = 0 }).shape)
    assert.near(net:evaluate(x, y, { verbose = 0 }).loss, (net(x) - y):square():mean():item(), 1e-5)
  end)
end)
