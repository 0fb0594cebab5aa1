-- second_derivatives_spec.lua: gradients of gradients through the layers of a critic, as penalties of its slope need them: eagerly, and in
-- a trace, where convolutions take over the activation and the pool behind them.
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

  it("go through max pooling, alone and behind a convolution, with padding, too", function()
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
end)
