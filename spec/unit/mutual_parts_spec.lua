--- mutual_parts_spec.lua: models and layers that reach themselves by their fields, alone or through a table that both know, as the
--- objects of a game do; and what Keras 3 says is a part of a model whose fields hold layers (the counts are Keras').
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local x, y = flow.random.normal({ 6, 3 }, { seed = 1 }), flow.zeros { 6, 1 }

local function stack() return flow.Sequential { layers.Input { 3 }, layers.Dense(4), layers.Dense(1) } end
local function graph()
  local input = flow.Input { 3 }
  return flow.Model { inputs = input, outputs = layers.Dense(1)(input) }
end

--- All that goes through a model's parts.
local function use(model, opens)
  local before = model:predict(x, { verbose = 0 }):totable()
  model:summary { print_fn = function() end }
  model:compile { optimizer = "adam", loss = "mse" }
  model:fit(x, y, { verbose = 0 })
  model.trainable = false
  assert.equal(0, #model.trainable_variables)
  model.trainable = true
  assert.equal(0, #model.losses)
  local folder = support.folder()
  model:save_weights(folder .. "/w.weights.h5")
  model:load_weights(folder .. "/w.weights.h5")
  flow.train.Checkpoint({ model = model }):save(folder .. "/checkpoint")
  model:save(folder .. "/m.keras")
  if opens then
    local opened = flow.load_model(folder .. "/m.keras")
    assert.same(model:predict(x, { verbose = 0 }):totable(), opened:predict(x, { verbose = 0 }):totable())
    assert.equal(#model.layers, #opened.layers)
  end
  flow.models.clone_model(model)
  model:quantize("int8")
  assert.equal(#before, model:predict(x, { verbose = 0 }).shape[1])
  model:close()
end

describe("a model that reaches itself", function()
  for name, make in pairs { Sequential = stack, ["of a graph"] = graph } do
    it("by a field: " .. name, function()
      local model = make()
      model.me = model
      use(model, true)
    end)

    it("by a table: " .. name, function()
      local model, game = make(), {}
      model.game, game.players = game, { { model = model } }
      use(model, true)
    end)

    it("by another model: " .. name, function()
      local one, other = make(), make()
      local game = { one = one, other = other }
      one.game, other.game = game, game
      use(one, true)
    end)
  end

  it("of a class, and a layer that knows its model", function()
    local Own = flow.Model:extend("Own")
    function Own:init() self.dense, self.game = layers.Dense(1), { self } end
    function Own:call(value) return self.dense(value) end
    local model = Own()
    model:predict(x, { verbose = 0 })
    assert.equal(1, #model.layers)
    assert.equal(2, #model.weights)
    model.dense.name = "inner"

    local Knows = layers.Layer:extend("Knows")
    function Knows:init() self.dense = layers.Dense(3) end
    function Knows:call(value) return self.dense(value) end
    local layer = Knows()
    local outer = flow.Sequential { layers.Input { 3 }, layer, layers.Dense(1) }
    layer.model = outer
    outer:compile { optimizer = "adam", loss = "mse" }
    outer:fit(x, y, { verbose = 0 })
    assert.equal(4, #outer.weights)
    layer.trainable = false
    assert.equal(0, #outer.trainable_weights)
  end)
end)

describe("layers in the fields", function()
  it("of a Sequential do not belong to it", function()
    local model = stack()
    model.other, model.list, model.scale = layers.Dense(5), { stack() }, flow.Variable(1)
    assert.equal(2, #model.layers)
    assert.equal(5, #model.weights)
    model.scale = nil
    use(model, true)
  end)

  it("of a model of a graph have weights of it, but are not among its layers", function()
    local model, dense = graph(), layers.Dense(4)
    dense(x)
    model.list, model.named, model.scale = { layers.Dense(3) }, { a = dense }, flow.Variable(2)
    assert.equal(2, #model.layers)
    assert.equal(5, #model.weights)
    assert.equal(21, model:count_params())
  end)
end)
