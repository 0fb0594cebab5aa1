-- isinstance_spec.lua: the class of an object, as scripts that freeze or copy layers of some classes ask for it.
local flow = require "flow"
local support = require "spec.support.init"

local layers, isinstance = flow.layers, flow.utils.isinstance
local message_of = support.message_of

local Own = layers.Dense:extend "OwnOfIsinstance"
local Net = flow.Model:extend "NetOfIsinstance"
function Net:call(x) return x end

describe("isinstance", function()
  it("is true of the class, of those that it extends, and of one of a list", function()
    local dense, own = layers.Dense(3), Own(3)
    assert.is_true(isinstance(dense, layers.Dense) and isinstance(dense, layers.Layer) and isinstance(own, layers.Dense))
    assert.is_true(isinstance(own, { layers.Conv2D, Own }))
    assert.is_false(isinstance(dense, Own) or isinstance(dense, { layers.Conv2D, layers.LSTM }))
    local input = flow.Input { 4 }
    local graph, list, net = flow.Model(input, dense(input)), flow.Sequential { layers.Dense(2) }, Net()
    for _, model in ipairs { graph, list, net } do assert.is_true(isinstance(model, flow.Model) and isinstance(model, layers.Layer)) end
    assert.is_true(isinstance(list, flow.Sequential) and isinstance(net, Net) and not isinstance(graph, flow.Sequential))
    assert.is_true(isinstance(flow.optimizers.Adam(), flow.optimizers.Optimizer))
    for _, other in ipairs { 3, "Dense", flow.ones { 2 }, input, {} } do assert.is_false(isinstance(other, layers.Dense)) end
  end)

  it("takes classes", function()
    assert.matches('takes a class, such as flow.layers.Dense, or a list of them, got the string "Dense"',
      message_of(function() isinstance(layers.Dense(3), "Dense") end), 1, true)
    assert.matches("or a list of them, got an empty list", message_of(function() isinstance(layers.Dense(3), {}) end), 1, true)
    assert.matches("or a list of them, got at entry 2 the number 3",
      message_of(function() isinstance(layers.Dense(3), { layers.Dense, 3 }) end), 1, true)
  end)
end)

describe("__class__", function()
  it("is what made the object", function()
    local input = flow.Input { 4 }
    local Graph = flow.Model:extend "GraphOfIsinstance"
    assert.equal(layers.Dense, layers.Dense(3).__class__)
    assert.equal(Own, Own(3).__class__)
    assert.equal(Net, Net().__class__)
    assert.equal(Graph, Graph(input, layers.Dense(2)(input)).__class__)
    assert.equal(flow.Sequential, flow.Sequential {}.__class__)
    assert.equal(flow.optimizers.Adam, flow.optimizers.Adam().__class__)
    assert.equal(5, layers.Dense(3).__class__(5).units)
  end)
end)
