-- from_end_spec.lua: lists that scripts get, from their end, as scripts of Python write it: x.shape[-1], model.layers[-1].
require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

describe("the last entry", function()
  it("of a shape is shape[-1]: of tensors, symbolic ones, variables, strings, and in build and call", function()
    assert.equal(4, flow.zeros({ 2, 3, 4 }).shape[-1])
    assert.equal(3, flow.shape(flow.zeros { 2, 3, 4 })[-2])
    assert.equal(4, flow.Input({ 3, 4 }).shape[-1])
    assert.equal(2, flow.Variable({ 1, 2 }).shape[-1])
    assert.equal(2, flow.tensor({ "a", "b" }).shape[-1])
    assert.is_nil(flow.zeros({ 2 }).shape[2])
    local seen = {}
    local One = layers.Layer:extend "One"
    function One:build(shape) seen.build, seen.text = shape[-1], tostring(shape) end
    function One:call(x)
      seen.call = x.shape[-1]
      return flow.reshape(x, { -1, x.shape[-1] })
    end
    assert.equal(3, One()(flow.zeros { 2, 3 }).shape[2])
    assert.same({ build = 3, call = 3, text = "(None, 3)" }, seen)
    local Two = layers.Layer:extend "Two"
    function Two:build(a, b) seen.both = a[-1] + b[-1] end
    function Two:call(a, b) return a:sum(2, true) + b end
    Two()(flow.zeros { 2, 3 }, flow.zeros { 2, 1 })
    assert.equal(4, seen.both)
  end)

  it("of a model's layers and weights, of a history", function()
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2), layers.Dense(4) }
    assert.equal(model.layers[2], model.layers[-1])
    assert.equal(4, model.weights[-1].shape[1])
    assert.equal(4, model.trainable_variables[-2].shape[2])
    assert.is_nil(model.layers[-3])
    assert.truthy(tostring(model.layers):find('Dense "', 1, true))
    model:compile { loss = "mse" }
    local history = model:fit(flow.zeros { 4, 3 }, flow.ones { 4, 4 }, { epochs = 2, verbose = 0 }).history
    assert.equal(history.loss[2], history.loss[-1])
  end)

  it("is the end of a part, which is of the list's kind: shape[{ 2, -1 }]", function()
    local shape = flow.zeros({ 2, 3, 4 }).shape
    assert.equal("{3, 4}", tostring(shape[{ 2, -1 }]))
    assert.same({ "{3, 4}", "{3, 4}", "{2, 3}", "{4}", "{}", "{}" }, { tostring(shape[{ 2 }]), tostring(shape[{ { 2, -1 } }]),
      tostring(shape[{ 1, -2 }]), tostring(shape[{ -1, -1 }]), tostring(shape[{ 4 }]), tostring(shape[{ 3, 2 }]) })
    assert.equal("(None, 3)", tostring(flow.Input({ 3, 4 }).shape[{ 1, 2 }]))
    assert.equal(4, flow.Input({ shape = flow.Input({ 3, 4 }).shape[{ 2, -1 }] }).shape[3])
    local added = flow.fn(function(x) return flow.zeros(x.shape[{ 1, -2 }]) + flow.ones(flow.shape(x)[{ 1, 2 }]) end)(flow.ones { 3, 2, 5 })
    assert.same({ 3, 2 }, added.shape)
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2), layers.Dense(4), layers.Dense(5) }
    assert.same({ model.layers[2], model.layers[3] }, { unpack(model.layers[{ 2, -1 }]) })
    local Own = flow.Model:extend "OwnMetrics"
    function Own:metrics() return { self.first, self.second } end
    local own = Own()
    own.first, own.second = flow.metrics.Mean { name = "first" }, flow.metrics.Mean { name = "second" }
    assert.equal("second", own.metrics[-1].name)
    assert.equal("first", own.metrics[{ 1, -2 }][1].name)
    for _, key in ipairs { { "a" }, { 0, 1 }, { 1, 2, 1 }, { 1.5 } } do
      local ok, message = pcall(function() return shape[key] end)
      assert.is_false(ok)
      assert.truthy(message:find("a part of a list is list[{ from, to }]", 1, true))
    end
  end)

  it("is not [0]: that is an error", function()
    local ok, message = pcall(function() return flow.zeros({ 2, 3 }).shape[0] end)
    assert.is_false(ok)
    assert.truthy(message:find("position 0 of a list with 2 entries: positions count from 1; [1] is the first, [-1] the last", 1, true))
  end)
end)

describe("a PyDataset", function()
  it("is indexed as in Python: sequence[0] is its first batch", function()
    local Squares = flow.utils.PyDataset:extend "Squares"
    function Squares:__len__() return 2 end
    function Squares:__getitem__(index) return flow.full({ 2, 1 }, index), flow.full({ 2, 1 }, index * index) end
    local x, y = unpack(Squares()[1])
    assert.equal(1, x[1]:item() * y[2]:item())
    local ok, message = pcall(function() return layers.Dense(2)[1] end)
    assert.is_false(ok)
    assert.truthy(message:find("is indexed by names, got the number 1", 1, true))
  end)
end)
