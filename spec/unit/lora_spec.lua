-- lora_spec.lua: layers that learn a change of low rank of frozen weights, as Keras' do: values, training, files.
local support = require "spec.support.init"
local flow = require "flow"

local layers, message_of = flow.layers, support.message_of
local function largest(a, b) return (a - b):abs():max():item() end
local WEIGHT = flow.tensor { { 0.1, 0.2 }, { 0.3, 0.4 } }

describe("LoRA", function()
  it("computes what Keras 3.15 computes", function()
    -- with these weights; of Dense after enable_lora(1, lora_alpha=4), since Keras' Dense and Embedding do not read the lora_alpha of their
    -- constructors, which here counts as it says
    local dense = layers.Dense(2, { lora_rank = 1, lora_alpha = 4, activation = "tanh" })
    dense:build { -1, 2 }
    dense.kernel:assign(WEIGHT)
    dense.lora_kernel_a:assign { { 0.1 }, { 0.2 } }
    dense.lora_kernel_b:assign { { 0.3, 0.4 } }
    assert.near(0, largest(dense(flow.tensor { { 1, 2 } }), flow.tensor { { 0.8617232, 0.9468060 } }), 1e-6)
    local embedding = layers.Embedding(3, 2, { lora_rank = 1 })
    embedding:build { -1, 2 }
    embedding.embeddings:assign { { 0.1, 0.2 }, { 0.3, 0.4 }, { 0.5, 0.6 } }
    embedding.lora_embeddings_a:assign { { 1 }, { 2 }, { 3 } }
    embedding.lora_embeddings_b:assign { { 0.5, 0.25 } }
    assert.near(0, largest(embedding(flow.tensor { { 2, 0 } }), flow.tensor { { { 2, 1.35 }, { 0.6, 0.45 } } }), 1e-6)
    local einsum = layers.EinsumDense("ab,bc->ac", 2, { bias_axes = "c", lora_rank = 1, lora_alpha = 2 })
    einsum:build { -1, 2 }
    einsum.kernel:assign(WEIGHT)
    einsum.lora_kernel_a:assign { { 0.1 }, { 0.2 } }
    einsum.lora_kernel_b:assign { { 0.3, 0.4 } }
    assert.near(0, largest(einsum(flow.tensor { { 1, 2 } }), flow.tensor { { 1, 1.4 } }), 1e-6)
  end)

  -- By Keras 3.15 after enable_lora(1, lora_alpha=2).
  it("of a ReversibleEmbedding goes back with the change, or by its own table, as in Keras", function()
    local ids = flow.tensor({ { 2, 0 } }, { dtype = "int32" })
    for tied, back in pairs { [true] = { { 1.9805244, 1.9999322, 2 }, { 1.3821391, 1.8838839, 1.9805244 } },
                              [false] = { { 1.9999729, 2, 2 }, { 1.9206387, 1.9866608, 1.9977889 } } } do
      local input = flow.Input({ 2 }, { dtype = "int32" })
      local layer = layers.ReversibleEmbedding(3, 2, { tie_weights = tied, logit_soft_cap = 2, mask_zero = true })
      local vectors = layer(input)
      local model = flow.Model { inputs = input, outputs = { vectors, layer(vectors, { reverse = true }) } }
      layer.embeddings:assign { { 0.1, 0.2 }, { 0.3, 0.4 }, { 0.5, 0.6 } }
      if not tied then layer.reverse_embeddings:assign { { 1, 2, 3 }, { 4, 5, 6 } } end
      local function check(some, what)
        local out = some:predict(ids, { verbose = 0 })
        assert.near(0, largest(out[1], flow.tensor { { { 3.5, 2.1 }, { 1.1, 0.7 } } }), 1e-6, what)
        assert.near(0, largest(out[2], flow.tensor { back }), 1e-6, what)
      end
      layer:enable_lora(1, 2)
      layer.lora_embeddings_a:assign { { 1 }, { 2 }, { 3 } }
      layer.lora_embeddings_b:assign { { 0.5, 0.25 } }
      assert.same({ { true, false } }, layer(ids)._keras_mask:totable())
      assert.equal(tied and 2 or 3, #model.trainable_weights)
      check(model, "here")
      local path = support.folder() .. "/lora.keras"
      model:save(path)
      check(flow.load_model(path), "from a file")
      model:compile { optimizer = "sgd", loss = { "mse", "mse" } }
      local before = layer.embeddings:value()
      model:fit(ids, { flow.ones { 1, 2, 2 }, flow.zeros { 1, 2, 3 } }, { verbose = 0 })
      assert.equal(0, largest(before, layer.embeddings))
      assert.is_true(largest(layer.lora_embeddings_b, flow.tensor { { 0.5, 0.25 } }) > 1e-3)
    end
    assert.equal(2, layers.ReversibleEmbedding(3, 2, { lora_rank = 2 }).lora_rank)
  end)

  -- Keras 3.15 gives these numbers for weights and inputs by the same formula.
  it("computes what Keras' convolutions compute", function()
    local function f(shape)
      local n, list = 1, {}
      for _, d in ipairs(shape) do n = n * d end
      for i = 0, n - 1 do list[i + 1] = i * 7 % 11 / 10 - 0.5 end
      return flow.tensor(list):reshape(shape)
    end
    for _, case in ipairs {
      { layers.Conv1D(4, 3, { padding = "causal", lora_rank = 2, lora_alpha = 3, activation = "relu" }), { 2, 5, 2 },
        { 0, 0.1465, 0, 0.875, 0, 0 }, 8.798 },
      { layers.Conv2D(4, 2, { strides = 2, groups = 2, lora_rank = 2 }), { 1, 4, 4, 4 },
        { -0.354, 0.275, 0.218, 0.37, -0.393, 0.352 }, 0.957 },
      { layers.Conv3D(2, 2, { lora_rank = 1 }), { 1, 3, 3, 3, 2 }, { 0.07, 0.308, -0.95, 0.458, -0.24, -0.232 }, -3.144 },
    } do
      local layer, shape, first, sum = unpack(case)
      layer:build(shape)
      for _, v in ipairs { layer.kernel, layer.lora_kernel_a, layer.lora_kernel_b, layer.bias } do v:assign(f(v.shape)) end
      local y = layer(f(shape))
      assert.near(0, largest(y:reshape { -1 }[{ { 1, 6 } }], flow.tensor(first)), 1e-5)
      assert.near(sum, y:sum():item(), 1e-4)
      assert.equal(3, #layer.trainable_weights)
    end
  end)

  it("changes nothing when it begins, trains the factors alone, and is in the weights of files", function()
    local model = flow.Sequential { layers.Input({ 5 }, { dtype = "int32" }), layers.Embedding(10, 4), layers.Flatten(),
                                    layers.Dense(2, { activation = "tanh" }) }
    local ids, targets = flow.random.randint({ 16, 5 }, 0, 10, { seed = 1 }), flow.random.normal({ 16, 2 }, { seed = 2 })
    local before = model:predict(ids, { verbose = 0 })
    for _, layer in ipairs { model.layers[1], model.layers[3] } do layer:enable_lora(2) end
    assert.equal(0, largest(before, model:predict(ids, { verbose = 0 })))
    assert.equal(5, #model.trainable_weights)
    assert.equal(2, #model.non_trainable_weights)
    local embeddings, kernel = model.layers[1].embeddings:value(), model.layers[3].kernel:value()
    model:compile { optimizer = flow.optimizers.Adam(0.05), loss = "mse" }
    local losses = model:fit(ids, targets, { epochs = 20, verbose = 0 }).history.loss
    assert.is_true(losses[20] < losses[1] * 0.8)
    assert.equal(0, largest(embeddings, model.layers[1].embeddings))
    assert.equal(0, largest(kernel, model.layers[3].kernel))
    local path = support.folder() .. "/lora.keras"
    model:save(path)
    local loaded = flow.load_model(path)
    assert.equal(2, loaded.layers[1].lora_rank)
    assert.equal(5, #loaded.trainable_weights)
    assert.near(0, largest(model:predict(ids, { verbose = 0 }), loaded:predict(ids, { verbose = 0 })), 1e-6)
    assert.is_true(largest(kernel, loaded.layers[3].kernel) > 1e-3)
    loaded:fit(ids, targets, { verbose = 0 })
  end)

  it("says what is in its way", function()
    assert.matches("call layer:build", message_of(function() layers.Dense(2):enable_lora(2) end), 1, true)
    local twice = layers.Dense(2, { lora_rank = 1 })
    twice:build { -1, 3 }
    assert.matches("enabled already", message_of(function() twice:enable_lora(2) end))
    assert.matches("lora_rank is a whole number from 1", message_of(function() layers.Dense(2, { lora_rank = 0.5 }) end))
    local bound = layers.Dense(2, { kernel_constraint = "non_neg" })
    bound:build { -1, 3 }
    assert.matches("does not go with a constraint", message_of(function() bound:enable_lora(2) end))
    local bytes = { ["0"] = flow.ones({ 3, 2 }, "int8"), ["1"] = flow.zeros { 2 }, ["2"] = flow.ones { 2 } }
    assert.matches("found bytes for kernel.*quantize%(%) the layer before", message_of(function() twice:load_own_variables(bytes) end))
  end)
end)
