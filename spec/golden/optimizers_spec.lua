--- Optimizers against Keras: two variables after the first and after the last of a few random gradients.
local flow = require "flow"
local golden = require "spec.support.golden"

describe("optimizers as in Keras:", function()
  for _, case in ipairs(golden.manifest.optimizers) do
    it(case.name, function()
      local optimizer = flow.optimizers[case.optimizer](case.options)
      local variables = {}
      for i, entry in ipairs(case.variables) do variables[i] = flow.Variable(golden.make(entry)) end
      for step, gradients in ipairs(case.steps) do
        optimizer:apply_gradients(golden.make_all(gradients), variables)
        for i, variable in ipairs(variables) do
          if step == 1 then golden.check("optimizers", case.results[i], variable:value(), 1e-6) end
          if step == #case.steps then golden.check("optimizers", case.results[#variables + i], variable:value(), 1e-6) end
        end
      end
      assert.are.equal(#case.steps, optimizer.iterations)
    end)
  end
end)
