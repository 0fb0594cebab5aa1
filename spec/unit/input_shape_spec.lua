-- input_shape_spec.lua: the option input_shape of Keras 2, which Keras 3 still takes: a Sequential that begins with such a layer is built.
require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

describe("input_shape", function()
  it("is taken by all layers, those that are written in Lua, too", function()
    local made = {
      Lambda = layers.Lambda(function(x) return x * 2 end, { input_shape = { 4 } }),
      TimeDistributed = layers.TimeDistributed(layers.Dense(2), { input_shape = { 3, 4 } }),
      Bidirectional = layers.Bidirectional(layers.LSTM(3), { input_shape = { 3, 4 } }),
      RandomCrop = layers.RandomCrop(3, 3, { input_shape = { 4, 4, 3 }, seed = 1 }),
      RandomHue = layers.RandomHue { factor = 0.2, input_shape = { 4, 4, 3 } },
      Dense = layers.Dense(2, { input_shape = { 4 } }),
    }
    for name, layer in pairs(made) do
      local model = flow.Sequential { layer }
      assert.is_true(model.built, name)
      assert.equal(layer.class_name, name)
    end
    assert.equal("(None, 6)", tostring(flow.Sequential({ made.Bidirectional }).output_shape))
    local options = { input_shape = { 4 }, name = "twice" }
    assert.equal("twice", layers.Lambda(function(x) return x * 2 end, options).name)
    assert.same({ 4 }, options.input_shape)      -- the caller's table stays unchanged
  end)
end)
