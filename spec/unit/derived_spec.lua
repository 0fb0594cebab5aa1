-- Predictions keep what follows from weights alone (packed, transformed, folded) from call to call: whatever writes a weight is seen.
local support = require "spec.support.init"
local flow = require "flow"

local L = flow.layers

local function model()
  flow.set_random_seed(5)
  local m = flow.Sequential {
    L.Input { 12, 12, 16 }, L.Conv2D(32, 3, { padding = "same", use_bias = false }), L.BatchNormalization(), L.ReLU(),
    L.Conv2D(24, 1), L.DepthwiseConv2D(3, { padding = "same" }), L.Conv2D(17, 3, { strides = 2 }), L.Flatten(), L.Dense(7),
  }
  m:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
  return m
end

local x = flow.random.uniform({ 2, 12, 12, 16 }, { seed = 3 })
local y = flow.random.uniform({ 2, 7 }, { seed = 4 })

local function difference(a, b) return (a - b):abs():max():item() end

-- Each changes some weight of m.
local ways = {
  { "assign", function(m) m.layers[1].weights[1]:assign(m.layers[1].weights[1]:value() * 2) end },
  { "assign_add", function(m) m.layers[4].weights[1]:assign_add(m.layers[4].weights[1]:value()) end },
  { "statistics", function(m) m.layers[2].weights[4]:assign(m.layers[2].weights[4]:value() * 3) end },
  { "an element", function(m) m.layers[1].weights[1]:reshape({ -1 })[70] = 5 end },
  { "set_weights", function(m)
    local list = m:get_weights()
    for i, t in ipairs(list) do list[i] = t * 1.5 end
    m:set_weights(list)
  end },
  { "a training step", function(m) m:train_on_batch(x, y) end },
  { "fit", function(m) m:fit(x, y, { epochs = 1, verbose = 0 }) end },
  { "an optimizer", function(m)
    local gradients = {}
    for i, v in ipairs(m.trainable_variables) do gradients[i] = flow.ones_like(v) end
    m.optimizer:apply_gradients(gradients, m.trainable_variables)
  end },
  { "a traced function", function(m)
    local v = m.layers[6].weights[1]
    flow.fn(function(t) v:assign(v * t) return t end)(flow.tensor(2))
  end },
  { "a file", function(m)
    local path = support.path(".weights.h5")
    local other = model()
    for _, v in ipairs(other.weights) do v:assign(v:value() * 1.25) end
    other:save_weights(path)
    m:load_weights(path)
    os.remove(path)
  end },
}

describe("predictions", function()
  for _, way in ipairs(ways) do
    it("see what was written by " .. way[1], function()
      local m = model()
      for _ = 1, 3 do m:predict_on_batch(x) end
      local before = m:predict_on_batch(x)
      assert.is_true(difference(before, m:predict_on_batch(x)) == 0)
      way[2](m)
      local after = m:predict_on_batch(x)
      assert.is_true(difference(after, before) > 1e-3)
      assert.is_true(difference(after, m(x)) < 1e-4 * (1 + after:abs():max():item()))
    end)
  end

  it("see what is written through a pointer, at any time", function()
    local m = model()
    local weights = m.layers[1].weights[1]:reshape { -1 }      -- the variable's own memory
    local pointer = weights:data()
    for _ = 1, 3 do
      local before = m:predict_on_batch(x)
      pointer[17] = pointer[17] + 3
      assert.is_true(difference(m:predict_on_batch(x), before) > 1e-3)
    end
  end)

  it("have the bits of other rows and of other models that share the weights", function()
    local m = model()
    local two = m:predict_on_batch(x)
    for _ = 1, 3 do m:predict_on_batch(flow.concat({ x, x, x }, 1)) end
    assert.is_true(difference(m:predict_on_batch(x), two) == 0)
    local features = flow.Model(m.inputs, m.layers[5].output)
    local seen = features:predict_on_batch(x)
    m.layers[1].weights[1]:assign(m.layers[1].weights[1]:value() * 2)
    assert.is_true(difference(features:predict_on_batch(x), seen) > 1e-3)
    assert.is_true(difference(features:predict_on_batch(x), features(x)) < 1e-3)
  end)

  -- A loop whose condition does not hold at first does no round: what its rounds keep is then neither made nor up to date.
  it("see what was written before a run whose loop had nothing to do", function()
    local w, h = flow.random.normal({ 32, 32 }, { seed = 4, stddev = 0.2 }), flow.zeros { 5, 32 }
    local function round(v) return flow.raw_op("simple_rnn", { v, w, h }) end
    local f = flow.fn(function(value, limit)
      return flow.while_loop(function(count) return count:lt(limit) end, function(count, v) return count + 1, round(v) end,
        { flow.zeros {}, value }, { maximum_iterations = 3 })[2]
    end)
    local value = flow.random.normal({ 5, 6, 32 }, { seed = 5 })
    for turn, rounds in ipairs { 2, 0, 2, 0, 0, 1, 3, 0, 2 } do
      if rounds == 0 then w[{ { 1, 32 } }] = w * 0.5 end
      local expected = value
      for _ = 1, rounds do expected = round(expected) end
      assert.is_true(difference(f(value, flow.tensor(rounds)), expected) < 1e-5, "turn " .. turn)
    end
  end)
end)
