-- given_shapes_spec.lua: the shapes that a script gives to build() and to Input: each dimension is looked at, and named if it is none.
local support = require "spec.support.init"
local flow = require "flow"
local layers, message_of = flow.layers, support.message_of

local Own = layers.Layer:extend "Own"
function Own:build(shape) self.gain = self:add_weight { shape = { shape[#shape] } } end
function Own:call(x) return x * self.gain end

local MAKERS = {
  function() return layers.Dense(2) end, function() return layers.Bidirectional(layers.LSTM(2)) end,
  function() return layers.RNN(layers.LSTMCell(2)) end, function() return layers.TimeDistributed(layers.Dense(2)) end,
  function() return layers.SpectralNormalization(layers.Dense(2)) end, Own,
}

describe("build", function()
  it("takes whole numbers, and -1 for a size that is not known", function()
    for _, make in ipairs(MAKERS) do
      local layer = make()
      for _, wrong in ipairs { 2.5, 0 / 0, 1e300, -7, "a", {}, flow.ones { 2 }, flow.GradientTape() } do
        local message = message_of(function() layer:build { -1, 4, wrong } end)
        local expected = "build(): dimension 3 of a shape is a whole number from 0, or -1 for a size that is not known, got "
        assert.truthy(message:find(expected, 1, true), message)
      end
      assert.truthy(message_of(function() layer:build { -1, nil, 3 } end):find("build(): the shape: entry 2 of the list is nil", 1, true))
      layer:build(flow.ones({ 2, 4, 3 }).shape)
      assert.is_true(layer.built)
    end
  end)

  it("makes the variables once, whoever calls it", function()
    for _, make in ipairs(MAKERS) do
      local layer = make()
      layer:build { -1, 4, 3 }
      local count = #layer.weights
      layer(flow.ones { 2, 4, 3 })
      assert.equal(count, #layer.weights, layer.name)
      assert.is_true(layer.built)
    end
  end)

  it("takes a list of shapes", function()
    assert.truthy(message_of(function() layers.Dense(2):build { { -1, 3 }, 3 } end)
      :find("build(): entry 2 of a list of shapes is the number 3, expected a shape such as {-1, 4}", 1, true))
    local dense = layers.Dense(2)
    dense:build { { -1, 3 } }
    assert.same({ 3, 2 }, { unpack(dense.kernel.shape) })
  end)

  it("takes the shape of what is traced, whose rows are not known", function()
    local dense = layers.Dense(2)
    local f = flow.fn(function(x)
      dense:build(x.shape)
      return x
    end)
    f(flow.ones { 5, 3 })
    assert.same({ 3, 2 }, { unpack(dense.kernel.shape) })
  end)
end)

describe("Input", function()
  it("has dimensions that are whole numbers", function()
    for _, wrong in ipairs { 1e300, 2 ^ 53, 0, 1.5 } do
      assert.truthy(message_of(function() flow.Input { wrong } end):find("Input: dimension 1 is the number ", 1, true), wrong)
    end
  end)
end)
