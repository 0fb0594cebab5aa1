--- Recurrent layers: what they are among each other. spec/golden/layer_cases/recurrent.py compares them with Keras.
local flow = require "flow"
local support = require "spec.support.init"
local layers = flow.layers

local function largest(a, b) return (a - b):abs():max():item() end
local function values(shape, seed) return flow.random.normal(shape, { seed = seed or 1 }) end

describe("recurrent layers", function()
  for _, class in ipairs { "SimpleRNN", "LSTM", "GRU" } do
    it(class .. " goes on from the states that it returned", function()
      local layer = layers[class](5, { return_state = true })
      local x = values { 3, 6, 4 }
      local whole = layer(x)
      local states
      for t = 1, 6, 3 do
        local results = layer(x[{ {}, { t, t + 2 } }], states and { initial_state = states } or nil)
        states = { unpack(results, 2) }
      end
      for i, state in ipairs(states) do assert.is_true(largest(state, whole[i + 1]) < 1e-6) end
    end)

    it(class .. " gives for masked sequences what it gives for shorter ones", function()
      local layer = layers[class](5, { return_state = true })
      local x = values { 2, 6, 4 }
      local masked = layer(x, { mask = flow.tensor { { 1, 1, 1, 1, 0, 0 }, { 1, 1, 1, 1, 0, 0 } } })
      local short = layer(x[{ {}, { 1, 4 } }])
      for i, result in ipairs(short) do assert.is_true(largest(result, masked[i]) == 0) end
    end)

    it(class .. " does step by step what it does at once", function()
      local at_once = layers[class](20, { return_sequences = true })
      -- Recurrent dropout that drops next to nothing takes the steps one by one.
      local by_steps = layers[class](20, { return_sequences = true, recurrent_dropout = 1e-12 })
      local x = values { 5, 7, 4 }
      local expected = at_once(x)
      by_steps(x)
      by_steps:set_weights(at_once:get_weights())
      assert.is_true(largest(expected, by_steps(x, { training = true })) < 1e-5)
    end)

    it(class .. " drops the same inputs at every step, and others in the next call", function()
      local layer = layers[class](3, { return_sequences = true, dropout = 0.5, use_bias = false })
      layer(values { 1, 1, 64 })
      local weights = layer:get_weights()
      weights[2] = weights[2] * 0      -- no memory: equal inputs give equal steps
      layer:set_weights(weights)
      local x = flow.ones { 2, 4, 64 } * 0.1
      local y = class == "SimpleRNN" and layer(x, { training = true })
      if y then
        for t = 2, 4 do assert.equal(0, largest(y[{ {}, { t, t } }], y[{ {}, { 1, 1 } }])) end
        assert.is_true(largest(y, layer(x, { training = true })) > 0)
      end
      assert.is_true(largest(layer(x, { training = true }), layer(x)) > 0)
    end)

    it(class .. " gives each row what it gives it alone", function()
      local layer = layers[class](33, { return_sequences = true })
      local x = values { 21, 4, 3 }
      local all = layer(x)
      for _, row in ipairs { 1, 9, 21 } do
        -- The inputs' product may round by the number of rows; the steps do not.
        assert.is_true(largest(all[{ { row, row } }], layer(x[{ { row, row } }])) < 1e-6)
      end
    end)

    it(class .. " learns to add in mixed precision, and from files", function()
      local model = flow.Sequential { layers.Input { -1, 1 }, layers[class](16), layers.Dense(1) }
      model:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse" }
      local x = flow.random.uniform({ 256, 5, 1 }, { seed = 3 })
      local history = model:fit(x, x:sum(2), { epochs = 12, verbose = 0, shuffle = false })
      local loss = history.history.loss
      assert.is_true(loss[#loss] < 0.1 * loss[1])
      for _, policy in ipairs { "mixed_bfloat16", "mixed_float16" } do
        local mixed = layers[class](16, { dtype = policy, return_sequences = true })
        local plain = layers[class](16, { return_sequences = true })
        local y = mixed(x)
        plain(x)
        plain:set_weights(mixed:get_weights())
        assert.is_true(largest(y:to("float32"), plain(x)) < 0.03)
      end
    end)
  end

  it("LSTM starts with a forget gate that remembers, unless it is told not to", function()
    local layer = layers.LSTM(2)
    layer:build { -1, 5, 3 }
    assert.same({ 0, 0, 1, 1, 0, 0, 0, 0 }, layer.weights[3]:value():totable())
    layer = layers.LSTM(2, { unit_forget_bias = false })
    layer:build { -1, 5, 3 }
    assert.same({ 0, 0, 0, 0, 0, 0, 0, 0 }, layer.weights[3]:value():totable())
  end)

  it("say what does not fit", function()
    local function message(f, ...) return select(2, pcall(f, ...)) end
    local x = values { 2, 3, 4 }
    assert.is_truthy(message(layers.LSTM(2), values { 2, 4 }):find("expected 3 {batch, steps, features}", 1, true))
    assert.is_truthy(message(layers.LSTM(2), x, { initial_state = { values { 2, 3 }, values { 2, 2 } } }):find("{2, 3}", 1, true))
    assert.is_truthy(message(layers.LSTM(2), x, { mask = flow.ones { 2, 5 } }):find("the mask", 1, true))
    assert.is_truthy(message(layers.GRU, 0):find("units must be greater than 0", 1, true))
    assert.is_truthy(message(layers.LSTM(2), values { 2, 0, 4 }):find("one step or more", 1, true))
    assert.is_truthy(message(layers.LSTM(2), x, { initial_state = values { 2, 2 } }):find("initial_state takes a list", 1, true))
    local state = values { 2, 2 }
    for _, layer in ipairs { layers.GRU(2), layers.SimpleRNN(2) } do      -- which have one
      assert.same(layer(x, { initial_state = { state } }):totable(), layer(x, { initial_state = state }):totable())
    end
    local cell, step = layers.GRUCell(2), x[{ {}, 1 }]
    assert.same(cell(step, { states = { state } })[1]:totable(), cell(step, { states = state })[1]:totable())
  end)
end)

describe("the initializer", function()
  local function made(shape, initializer)
    local v = layers.Dense(shape[2], { kernel_initializer = initializer })
    v:build { -1, shape[1] }
    return v.kernel:value()
  end
  it("Orthogonal makes orthonormal rows or columns, whichever are fewer, with signs as a QR factor with a positive diagonal", function()
    local function distance_from_eye(q, gain) return largest(q, flow.eye(q.shape[1]) * gain) end
    local tall, wide = made({ 40, 12 }, "orthogonal"), made({ 12, 40 }, flow.initializers.Orthogonal(3, 7))
    assert.is_true(distance_from_eye(tall:transpose():matmul(tall), 1) < 1e-5)
    assert.is_true(distance_from_eye(wide:matmul(wide:transpose()), 9) < 1e-4)
    local same = made({ 12, 40 }, flow.initializers.Orthogonal { gain = 3, seed = 7 })
    assert.equal(0, largest(same, wide))
    -- The first column is that of the normal numbers, scaled by a positive number: over many seeds its sum has both signs.
    local positive = 0
    for seed = 1, 40 do
      positive = positive + (made({ 5, 3 }, flow.initializers.Orthogonal { seed = seed }):sum():item() > 0 and 1 or 0)
    end
    assert.is_true(positive > 8 and positive < 32)
  end)
  it("Identity makes ones on the diagonal", function()
    assert.same({ { 2, 0, 0 }, { 0, 2, 0 } }, made({ 2, 3 }, flow.initializers.Identity(2)):totable())
    local ok, problem = pcall(function() layers.Dense(3, { bias_initializer = "identity" }):build { -1, 2 } end)
    assert.is_false(ok)
    assert.is_truthy(problem:find("2 dimensions", 1, true))
  end)

  it("an unrolled one of more steps than a plan should have says so, and at once", function()
    local layer = layers.GRU(1, { unroll = true, activation = "selu" })      -- steps that are not one op
    local run = flow.fn(function(x) return layer(x) end)
    assert.same({ 1, 1 }, run(flow.ones { 1, 3, 1 }).shape)
    local message = support.message_of(function() run(flow.ones { 1, 20000, 1 }) end)
    assert.truthy(message:find("unroll = true writes every step into the plan: 20000 steps, at most 16384 can be", 1, true), message)
    message = support.message_of(function()
      layers.GRU(4, { unroll = true, activity_regularizer = flow.regularizers.OrthogonalRegularizer() })(flow.Input { -1, 3 })
    end)
    assert.truthy(message:find("OrthogonalRegularizer is for weights that are matrices", 1, true), message)
  end)
end)
