--- Random models: whatever layers are put together, the eager step, the traced step, the traced step for a part of the
-- batch and the same net as ops in float64 agree. The seed makes the model; a failure names it.
local flow = require "flow"
local backend = require "spec.support.backend"
local reference = require "spec.support.reference"
local random_net = require "spec.support.nets.random"

local MODELS = 30

describe("a random model", function()
  for seed = 1, MODELS do
    it(("%d computes the same in every way"):format(seed), function()
      local net, shape, classes, rows = random_net(seed)
      flow.set_random_seed(seed)
      local model, calls = reference.model(net, shape)
      local run, variables = reference.function_of(net, calls)
      local own = reference.trainable(calls)
      local function training(x) return model(x, { training = true }) end
      local f = flow.fn(function(x, labels) return reference.step(training, own, x, labels) end)
      local whole = backend.uniform({ rows, unpack(shape) }, seed, -1, 1):to("float32")
      local all_labels = backend.uniform({ rows }, seed + 500, 0, classes):floor():to("int32")
      for _, count in ipairs { rows, math.ceil(rows / 2) } do
        local x, labels = whole[{ { 1, count } }], all_labels[{ { 1, count } }]
        local expected_loss, expected = reference.step(run, variables, x:to("float64"), labels)
        local what = ("model %d, %d of %d rows"):format(seed, count, rows)
        local loss, gradients = reference.step(training, own, x, labels)
        reference.compare(expected_loss, expected, loss, gradients, 1e-5, what .. ", eager")
        loss, gradients = f(x, labels)
        reference.compare(expected_loss, expected, loss, gradients, 1e-5, what .. ", traced")
      end
      assert.equal(1, f.traces)
      local predicted = model:predict_on_batch(whole)
      backend.near(model(whole, { training = false }), predicted, 1e-5, "prediction")
    end)
  end
end)
