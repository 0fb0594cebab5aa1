-- second_derivatives_spec.lua: gradients of gradients through the layers of a critic, as penalties of its slope need them: eagerly, and in
-- a trace, where convolutions take over the activation and the pool after them.
local flow = require "flow"

local layers = flow.layers

-- The mean squared slope of the critic, and its gradients.
local function penalty(critic, x)
  local outer = flow.GradientTape()
  local loss = outer:record(function()
    local inner = flow.GradientTape()
    local y = inner:record(function()
      inner:watch(x)
      return critic(x, { training = true }):square():sum()
    end)
    return (inner:gradient(y, x) ^ 2):mean()
  end)
  return loss, outer:gradient(loss, critic.trainable_variables)
end

local function compare(critic, x)
  local loss, gradients = penalty(critic, x)
  local traced_loss, traced = flow.fn(function(images) return penalty(critic, images) end)(x)
  assert.near(loss:item(), traced_loss:item(), 1e-4 * loss:item())
  for i, v in ipairs(critic.trainable_variables) do
    local size = (gradients[i] ^ 2):sum():sqrt():item()
    assert.near(0, (gradients[i] - traced[i]):abs():max():item(), 1e-4 * size + 1e-6)
    local before, step = v:value(), 1e-3
    local function moved(sign)
      v:assign(before + sign * step * gradients[i] / (size + 1e-9))
      local value = (penalty(critic, x)):item()
      v:assign(before)
      return value
    end
    assert.near(size, (moved(1) - moved(-1)) / (2 * step), 0.02 * size + 1e-3 * loss:item(), v.path)
  end
end

describe("second derivatives", function()
  before_each(function() flow.set_random_seed(3) end)

  it("go through max pooling, alone and after a convolution, with padding, too", function()
    local x = flow.random.normal({ 2, 8, 7, 2 }, { seed = 1 })
    for _, activation in ipairs { "relu", "tanh" } do
      compare(flow.Sequential { layers.Input { 8, 7, 2 }, layers.Conv2D(4, 3, { activation = activation }), layers.MaxPooling2D(2),
        layers.Conv2D(3, 2, { activation = "softplus" }), layers.Flatten(), layers.Dense(1) }, x)
    end
    compare(flow.Sequential { layers.Input { 8, 7, 2 }, layers.MaxPooling2D(3, { strides = 2, padding = "same" }), layers.Flatten(),
      layers.Dense(3, { activation = "tanh" }), layers.Dense(1) }, x)
    compare(flow.Sequential { layers.Input { 7, 2 }, layers.Conv1D(4, 2), layers.MaxPooling1D(2), layers.Flatten(),
      layers.Dense(3, { activation = "tanh" }), layers.Dense(1) }, x[{ {}, 1 }])
  end)

  it("go through normalization by the batch", function()
    compare(flow.Sequential { layers.Input { 3 }, layers.Dense(4, { activation = "tanh" }), layers.BatchNormalization(),
      layers.Dense(2, { activation = "softplus" }), layers.Dense(1) }, flow.random.normal({ 6, 3 }, { seed = 2 }))
    compare(flow.Sequential { layers.Input { 6, 5, 2 }, layers.Conv2D(3, 2), layers.BatchNormalization { scale = false },
      layers.Activation "tanh", layers.Flatten(), layers.Dense(1) }, flow.random.normal({ 3, 6, 5, 2 }, { seed = 3 }))
  end)

  it("go through LSTM, GRU and SimpleRNN over all steps, with a mask, backwards, in both directions and with states given", function()
    local x = flow.random.normal({ 2, 5, 3 }, { seed = 4 })
    local options = { { return_sequences = true }, { go_backwards = true }, {} }
    for _, name in ipairs { "LSTM", "GRU", "SimpleRNN" } do
      for i, option in ipairs(options) do
        if name == "GRU" then option.reset_after = i == 2 end
        compare(flow.Sequential { layers.Input { 5, 3 }, layers[name](4, option), layers.Flatten(), layers.Dense(1) }, x)
        option.reset_after = nil
      end
      compare(flow.Sequential { layers.Input { 5, 3 }, layers.Bidirectional(layers[name](3)), layers.Dense(1) }, x)
    end
    local masked = x * flow.tensor { { { 1 }, { 1 }, { 1 }, { 0 }, { 0 } }, { { 1 }, { 1 }, { 1 }, { 1 }, { 1 } } }
    for _, name in ipairs { "LSTM", "GRU", "SimpleRNN" } do
      local model = flow.Sequential { layers.Input { 5, 3 }, layers.Masking(), layers[name](4), layers.Dense(1) }
      compare(model, masked)
    end
    local Given = flow.Model:extend "Given"
    function Given:init() self.lstm, self.dense = layers.LSTM(3), layers.Dense(3) end
    function Given:call(y)
      local state = self.dense(y[{ {}, 1 }])
      return self.lstm(y, { initial_state = { state, state } })
    end
    local given = Given()
    given(x)
    compare(given, x)
  end)

  it("go through one op written out in a trace for a batch of any size, and a fit with a penalty learns", function()
    local critic = flow.Sequential { layers.Input { 6, 2 }, layers.LSTM(4), layers.Dense(1) }
    local optimizer = flow.optimizers.Adam(0.02)
    local step = flow.fn(function(x)
      local loss, gradients = penalty(critic, x)
      optimizer:apply_gradients(gradients, critic.trainable_variables)
      return loss
    end, { input_signature = { flow.TensorSpec({ -1, 6, 2 }, "float32") } })
    local x = flow.random.normal({ 7, 6, 2 }, { seed = 5 })
    local first = step(x):item()
    for _ = 1, 10 do step(x[{ { 1, 4 } }]) step(x[{ { 7, 7 } }]) end
    assert.truthy(step(x):item() < first)
  end)
end)
