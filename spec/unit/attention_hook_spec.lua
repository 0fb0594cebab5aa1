-- attention_hook_spec.lua: classes that extend MultiHeadAttention or a convolution with a part of its computation of their own, and calls
-- on symbolic tensors with tensors that have values beside them, such as an attention_mask.
local support = require "spec.support.init"
local flow = require "flow"

local layers, ops = flow.layers, flow.keras.ops
local function largest(a, b) return (a - b):abs():max():item() end

local Tempered = layers.MultiHeadAttention:extend "Tempered"
function Tempered:init(options)
  layers.MultiHeadAttention.init(self, options)
  self.tau = flow.Variable(math.sqrt(self._key_dim), { name = "tau" })
end
function Tempered:_compute_attention(query, key, value, attention_mask, training)
  query = query * (1 / self.tau)
  local scores = self:_masked_softmax(ops.einsum(self._dot_product_equation, key, query), attention_mask)
  local dropped = self._dropout_layer(scores, { training = training })
  return ops.einsum(self._combine_equation, dropped, value), scores
end

local x = flow.linspace(-1, 1, 40):reshape { 2, 4, 5 }
local others = (1 - flow.eye(4)):expand_dims(1)      -- the diagonal is hidden

describe("_compute_attention of a class that extends MultiHeadAttention", function()
  it("is what Keras 3.15 makes of the same class", function()
    local layer, number = Tempered { num_heads = 2, key_dim = 3 }, 0
    layer(x, x)
    for _, w in ipairs(layer.weights) do
      if w.rank > 0 then
        number = number + 1
        w:assign(ops.sin(flow.arange(w.size):to "float32" * number):reshape(w.shape) * 0.5)
      end
    end
    layer.tau:assign(1.5)
    -- keras: the same weights, attention_mask = 1 - eye(4), return_attention_scores=True, and use_causal_mask=True
    local y, scores = unpack(layer(x, x, { attention_mask = others, return_attention_scores = true }))
    assert.near(0, largest(y[1][1], flow.tensor { 0.04822275, 0.48863035, -0.20129472, -0.53320259, 0.21180876 }), 1e-5)
    assert.near(0, largest(scores[2][2][1], flow.tensor { 0, 0.37137544, 0.33193728, 0.29668728 }), 1e-5)
    local causal = layer(x, x, { use_causal_mask = true })[2][1]
    assert.near(0, largest(causal, flow.tensor { 0.06715987, 0.52013195, -0.17273362, -0.52163965, 0.20068237 }), 1e-5)
  end)

  it("gets the masks that are given by position, too", function()
    local layer = Tempered { num_heads = 2, key_dim = 3 }
    local mask = flow.tensor({ { 1, 1, 0, 1 }, { 1, 0, 1, 1 } }, { dtype = "bool" })
    local expected = layer(x, x, { value_mask = mask })
    assert.equal(0, largest(expected, layer(x, x, x, flow.ones({ 2, 4 }, { dtype = "bool" }), mask)))
    assert.is_true(largest(expected, layer(x, x)) > 1e-3)
  end)

  it("trains in models, with its own variable", function()
    local input = flow.Input { 4, 5 }
    local model = flow.Model(input, Tempered { num_heads = 2, key_dim = 3, dropout = 0.1 }(input, input, { attention_mask = others }))
    model:compile { loss = "mse", optimizer = "sgd" }
    local tau = model.layers[2].tau:item()
    model:fit(x, x, { verbose = 0 })
    assert.equal(9, #model.trainable_weights)
    assert.is_true(model.layers[2].tau:item() ~= tau)
  end)
end)

describe("convolution_op of a class that extends a convolution", function()
  it("is computed in place of the library's, with its bias and activation", function()
    for rank, name in ipairs { "Conv1D", "Conv2D", "Conv3D" } do
      local Own = layers[name]:extend("Own" .. name)
      function Own:convolution_op(inputs, kernel) return layers[name].convolution_op(self, inputs, kernel * 2) end
      local padding, shape = rank == 1 and "causal" or "same", { 2 }
      local options = { strides = 2, padding = padding, activation = "tanh", bias_initializer = "ones" }
      for i = 1, rank do shape[i + 1] = 5 end
      shape[rank + 2] = 3
      local inputs, own, plain = flow.random.normal(shape, { seed = 1 }), Own(4, 3, options), layers[name](4, 3, options)
      local y = own(inputs)
      plain:build(shape)
      plain.kernel:assign(own.kernel * 2)
      assert.near(0, largest(plain(inputs), y), 1e-5)
      local model = flow.Sequential { layers.Input { unpack(shape, 2) }, Own(2, 3, options) }
      model:compile { loss = "mse", optimizer = "sgd" }
      model:fit(inputs, model:predict(inputs, { verbose = 0 }), { verbose = 0 })
    end
  end)
end)

describe("a call on symbolic tensors", function()
  it("takes tensors with values, which files hold", function()
    local input, layer = flow.Input { 4, 5 }, layers.MultiHeadAttention(2, 3)
    local model = flow.Model(input, layer(input, input, { attention_mask = others }))
    local expected = layer(x, x, { attention_mask = others })
    assert.near(0, largest(expected, model(x)), 1e-6)
    local path = support.folder() .. "/masked.keras"
    model:save(path)
    assert.near(0, largest(expected, flow.load_model(path):predict(x, { verbose = 0 })), 1e-6)
    assert.same({ -1, 4, 5 }, { unpack(flow.models.clone_model(model).output_shape) })
  end)
end)
