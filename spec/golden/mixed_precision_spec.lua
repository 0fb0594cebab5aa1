--- Mixed precision against Keras: the loss of every step for the same weights and the same batch. How far 16 bits may lead away is seen in
--- Keras' own numbers: its losses under a policy and in float32 differ by up to 1.4e-3 (bfloat16) and 1.0e-3 (float16).
local flow = require "flow"
local golden = require "spec.support.golden"
local nets = require "spec.support.nets.golden"

local TOLERANCE = { float32 = 1e-4, mixed_bfloat16 = 4e-3, mixed_float16 = 1.5e-3 }
local cases = require "spec.golden.mixed_precision"

describe("training in 16 bits as in Keras:", function()
  for _, case in ipairs(cases) do
    it(case.net .. ", " .. case.policy, function()
      finally(function() flow.mixed_precision.set_global_policy("float32") end)
      flow.mixed_precision.set_global_policy(case.policy)
      local model = nets[case.net](case.size)
      model:set_weights(golden.make_all(case.weights))
      model:compile {
        optimizer = flow.optimizers.SGD(0.05), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = case.from_logits },
      }
      local x, y = golden.make(case.x), golden.make(case.y)
      for step, expected in ipairs(case.losses) do
        assert.near(expected, model:train_on_batch(x, y).loss, TOLERANCE[case.policy], "step " .. step)
      end
    end)
  end
end)
