--- Losses and metrics against Keras: value and gradient of the prediction; what test_on_batch reports.
local flow = require "flow"
local golden = require "spec.support.golden"

describe("losses as in Keras:", function()
  for _, case in ipairs(golden.manifest.losses) do
    it(case.name, function()
      local loss = flow.losses[case.loss](case.options)
      local y_true, prediction = golden.make(case.y_true), flow.Variable(golden.make(case.y_pred))
      local tape = flow.GradientTape()
      local value = tape:record(function() return loss(y_true, prediction:value()) end)
      golden.check("losses", case.results[1], value, 1e-5)
      golden.check("losses", case.results[2], tape:gradient(value, { prediction })[1], 1e-5)
    end)
  end
end)

describe("metrics as in Keras:", function()
  for _, case in ipairs(golden.manifest.metrics) do
    it(case.name, function()
      local shape = {}
      for axis = 2, #case.y_pred.shape do shape[axis - 1] = case.y_pred.shape[axis] end
      local model = flow.Sequential { flow.layers.Input(shape), flow.layers.Activation("linear") }
      model:compile { optimizer = "sgd", loss = flow.losses[case.loss](case.options), metrics = case.metrics }
      local logs = model:test_on_batch(golden.make(case.y_pred), golden.make(case.y_true))
      for name, expected in pairs(case.expected) do
        assert.is_near(expected, logs[name], 1e-5, name)
      end
    end)
  end
end)
