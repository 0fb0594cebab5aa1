-- attention_spec.lua: layers called on several tensors: by position and by name, eagerly, in models and in files; layers of attention.
-- What they compute is compared with Keras in spec/golden/layers_spec.lua.
local support = require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"
local layers, message_of = flow.layers, support.message_of

local function normal(shape, seed) return flow.random.normal(shape, { seed = seed }) end
local function difference(a, b) return (a - b):abs():max():item() end

local query, value = normal({ 3, 5, 6 }, 1), normal({ 3, 4, 7 }, 2)

describe("a call on several tensors", function()
  it("takes them by position or by name", function()
    local layer = layers.MultiHeadAttention { num_heads = 2, key_dim = 3 }
    local expected = layer(query, value, value)
    assert.same({ 3, 5, 6 }, expected.shape)
    assert.equal(0, difference(expected, layer(query, value)))
    assert.equal(0, difference(expected, layer(query, { value = value, key = value, use_causal_mask = false })))
    assert.equal(0, difference(expected, layer { query = query, value = value }))
    assert.equal(0, difference(expected, layer(query, value, nil, { training = false })))
    local both = layer(query, value, { return_attention_scores = true })
    assert.same({ 2, { 3, 2, 5, 4 } }, { #both, both[2].shape })
    assert.is_true(difference(both[2]:sum(-1), flow.ones { 3, 2, 5 }) < 1e-5)
  end)

  it("says what is wrong with it", function()
    local layer, list = layers.MultiHeadAttention({ num_heads = 2, key_dim = 3, name = "m" }), layers.Attention { name = "a" }
    local function refused(text, f)
      local problem = message_of(f)
      assert.truthy(problem:find(text, 1, true), problem)
    end
    refused("the input value is missing", function() layer(query) end)
    refused("unknown option \"causal\"", function() layer(query, value, { causal = true }) end)
    refused("query takes one tensor, got a list", function() layer { query, value } end)
    refused("value is given twice", function() layer(query, value, { value = value }) end)
    refused("takes 7 tensors at most, got 8", function()
      layer(query, value, value, value, value, value, value, value)
    end)
    refused("inputs takes a list of tensors, got one tensor", function() list(query, query) end)
    refused("inputs takes a list with fewer than 4 tensors", function() list { query, query, query, query } end)
    refused("use_causal_mask", function() layer(query, value, { use_causal_mask = 3 }) end)
    refused("value and key have 4 and 5 steps", function() layer(query, value, query) end)
    local flat = flow.ones { 2, 3 }
    refused("expected at least 3 {batch, steps, features}", function() layers.MultiHeadAttention(1, 1)(flat, flat) end)
    refused("num_query_heads must be a multiple", function() layers.GroupQueryAttention(4, 3, 2) end)
    refused("flash_attention", function() layers.MultiHeadAttention { num_heads = 1, key_dim = 1, flash_attention = true } end)
    local of_rows = layers.MultiHeadAttention { num_heads = 1, key_dim = 1, attention_axes = { 1 } }
    refused("attention_axes", function() of_rows(query, query) end)
  end)

  it("runs alike in a trace, and has gradients for every weight", function()
    local layer = layers.MultiHeadAttention { num_heads = 2, key_dim = 3 }
    local function loss_of(q, v) return layer(q, v, { use_causal_mask = true }):square():sum() end
    local expected = loss_of(query, value)
    local step = flow.fn(function(q, v)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return loss_of(q, v) end)
      return loss, unpack(tape:gradient(loss, layer.trainable_variables))
    end)
    local results = { step(query, value) }
    assert.is_true(math.abs(results[1]:item() / expected:item() - 1) < 1e-5)
    assert.equal(9, #results)
    for i = 2, 9 do assert.same(layer.weights[i - 1].shape, results[i].shape) end
  end)

  it("is one of layers written in Lua, too", function()
    local Cross = layers.Layer:extend "Cross"
    function Cross:build(of_query, of_value)
      self.kernel = self:add_weight { name = "kernel", shape = { of_value[3], of_query[3] } }
    end
    function Cross:call(x, y, options)
      local product = y:matmul(self.kernel):sum(2, true)
      if options.bias then product = product + options.bias end
      return options.negative and -(x + product) or x + product
    end
    local layer = Cross()
    local bias = normal({ 3, 1, 6 }, 5)
    local expected = layer(query, value, { bias = bias, negative = true })
    assert.is_true(difference(expected, -(query + value:matmul(layer.kernel):sum(2, true) + bias)) < 1e-5)
    local q, v, b = flow.Input { 5, 6 }, flow.Input { -1, 7 }, flow.Input { 1, 6 }
    local model = flow.Model { inputs = { q, v, b }, outputs = layer(q, v, { bias = b, negative = true }) }
    assert.is_true(difference(expected, model:predict({ query, value, bias }, { verbose = 0 })) < 1e-5)
    local path = support.file("cross.keras", "")
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { Cross = Cross } })
    local found = again:predict({ query, value, bias }, { verbose = 0 })
    assert.equal(0, difference(model:predict({ query, value, bias }, { verbose = 0 }), found))
  end)
end)

describe("attention in models", function()
  it("is saved and read, in Lua and in C, with its options, a shared layer and steps whose number is not known", function()
    local q, v, mask = flow.Input { -1, 6 }, flow.Input { -1, 7 }, flow.Input({ -1, -1 }, { dtype = "int32" })
    local shared = layers.MultiHeadAttention { num_heads = 2, key_dim = 3, output_shape = { 6 } }
    local first = shared(q, v, { attention_mask = mask })
    local second = shared(first, v, { return_attention_scores = true })
    local grouped = layers.GroupQueryAttention(3, 4, 2)(second[1], first, { use_causal_mask = true })
    local listed = layers.Attention { use_scale = true }({ grouped, q, first }, { use_causal_mask = true })
    local model = flow.Model { inputs = { q, v, mask }, outputs = { listed, second[2] } }
    assert.same({ { -1, -1, 6 }, { -1, 2, -1, -1 } }, model.output_shape)
    local ones = flow.random.randint({ 3, 5, 4 }, 0, 2, { seed = 8 })
    model_files.assert_returns(model, { query, value, ones })
  end)

  it("says the value_dim that it has, as Keras does", function()
    assert.equal(4, layers.MultiHeadAttention { 2, 4 }:get_config().value_dim)
    assert.equal(3, layers.MultiHeadAttention { 2, 4, value_dim = 3 }:get_config().value_dim)
  end)

  it("leaves out what comes later, or is farther than the window", function()
    local layer = layers.MultiHeadAttention { num_heads = 2, key_dim = 3, sliding_window = 2 }
    local changed = query * (flow.tensor { 1, 1, 1, 1, 0 }):reshape { 1, 5, 1 }
    local before, after = layer(query, query, { use_causal_mask = true }), layer(changed, changed, { use_causal_mask = true })
    assert.equal(0, difference(before[{ {}, { 1, 4 } }], after[{ {}, { 1, 4 } }]))
    assert.is_true(difference(before[{ {}, 5 }], after[{ {}, 5 }]) > 1e-3)
    changed = query * (flow.tensor { 0, 1, 1, 1, 1 }):reshape { 1, 5, 1 }
    after = layer(changed, changed, { use_causal_mask = true })
    assert.equal(0, difference(before[{ {}, { 3, 5 } }], after[{ {}, { 3, 5 } }]))
  end)

  it("drops weights in training only, each row in its own way", function()
    local layer = layers.MultiHeadAttention { num_heads = 2, key_dim = 3, dropout = 0.5, seed = 3 }
    local scores = layer(query, query, { return_attention_scores = true, training = true })
    assert.is_true(difference(scores[1], layer(query, query)) > 1e-3)
    assert.equal(0, difference(layer(query, query), layer(query, query)))
  end)

  it("computes in 16 bits where its policy says so", function()
    local layer = layers.MultiHeadAttention { num_heads = 2, key_dim = 3, dtype = "mixed_bfloat16" }
    local exact = layers.MultiHeadAttention { num_heads = 2, key_dim = 3 }
    local y = layer(query, value)
    exact:build { query.shape, value.shape }
    exact:set_weights(layer:get_weights())
    assert.equal("bfloat16", y.dtype)
    assert.is_true(difference(y:to "float32", exact(query, value)) < 0.05)
  end)
end)

describe("a projection of an attention", function()
  -- Equations, names and shapes are Keras 3.15's.
  it("is a layer in a field, with the attention's variables", function()
    local x = flow.random.normal({ 2, 3, 8 }, { seed = 1 })
    for _, attention in ipairs { layers.MultiHeadAttention(2, 4, { value_dim = 5 }), layers.GroupQueryAttention(4, 4, 2) } do
      local ok, message = pcall(function() return attention.query_dense end)
      assert.is_false(ok)
      assert.matches("has no query_dense yet: it is made when the layer is first called", message, 1, true)
      local expected = attention(x, x)
      local projection, output = attention.query_dense, attention.output_dense
      assert.same({ "abc,cde->abde", "abcd,cde->abe", "query", "attention_output" },
        { projection.equation, output.equation, projection.name, output.name })
      assert.equal(projection, attention._query_dense)
      assert.equal(attention.weights[1], projection.kernel)
      local q, k, v = projection(x), attention.key_dense(x), attention.value_dense(x)
      if #attention.value_dense.kernel.shape == 3 and k.shape[3] ~= q.shape[3] then
        k, v = flow.repeat_(k, 2, 3), flow.repeat_(v, 2, 3)      -- two queries for each key
      end
      local scores = flow.einsum("bqhd,bkhd->bhqk", q, k) * 0.5
      local y = output(flow.einsum("bhqk,bkhd->bqhd", scores:softmax(), v))
      assert.near(0, (y - expected):abs():max():item(), 1e-5)
      assert.equal(8, #attention.trainable_weights)
      projection.trainable = false
      assert.equal(6, #attention.trainable_weights)
      assert.equal(2, #projection:get_weights())
    end
  end)
end)
