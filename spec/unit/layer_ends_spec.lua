-- layer_edges_spec.lua: layers at the ends of what they take: the highest ranks, no elements, long lists, infinite numbers, other dtypes.
-- Expected values are Keras 3.15's.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

describe("attention over many axes", function()
  local x = flow.ones { 1, 2, 2, 2, 2, 3 }

  it("takes six of them, whose weights would have ten", function()
    local layer = layers.MultiHeadAttention(2, 3)
    assert.same({ 1, 2, 2, 2, 2, 3 }, layer(x, x).shape)
    local six = layers.MultiHeadAttention(2, 3, { name = "six" })
    assert.equal('MultiHeadAttention "six": a result or a mask would have 10 dimensions, at most 8 are possible',
      support.message_of(function() six(x, x, { return_attention_scores = true }) end))
  end)

  it("refuses an output_shape that is too long for the input", function()
    local y, layer = flow.ones { 1, 2, 2, 3 }, layers.MultiHeadAttention(2, 3, { output_shape = { 1, 2, 3, 1, 2, 3 }, name = "long" })
    assert.equal('MultiHeadAttention "long": a result or a mask would have 9 dimensions, at most 8 are possible',
      support.message_of(function() layer(y, y) end))
  end)

  it("needs one", function()
    local y = flow.ones { 1, 2, 3 }
    assert.equal('MultiHeadAttention "none": attention_axes is empty, expected one axis or more', support.message_of(function()
      layers.MultiHeadAttention(2, 3, { attention_axes = {}, name = "none" })(y, y)
    end))
  end)
end)

describe("layers", function()
  it("refuse axes that no number of an int names", function()
    for _, axis in ipairs { 5e9, -5e9, 2 ^ 31, 2 ^ 52 } do
      assert.matches("outside an input of 2 dimensions", support.message_of(function() layers.Softmax(axis)(flow.ones { 2, 3 }) end))
      local normalization = layers.LayerNormalization { axis = axis }
      assert.matches("cannot be normalized", support.message_of(function() normalization(flow.ones { 2, 3 }) end))
    end
  end)
end)
