-- lamb.lua: Keras 3's Lamb (keras/src/optimizers/lamb.py; You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76
-- minutes", 2019): Adam's step, scaled to the norm of the variable.

local ops = require "flow.tensor.ops"
local correction = require("flow.train.custom_optimizer").correction

local function norm(x) return x:square():sum():sqrt() end

return function(Custom)
  local Lamb = Custom._of_keras("Lamb", { { "beta_1", 0.9 }, { "beta_2", 0.999 }, { "epsilon", 1e-7 } })

  function Lamb:build(variables)
    self._momentums, self._velocities = {}, {}
    for i, v in ipairs(variables) do
      self._momentums[i] = self:add_variable_from_reference(v, "momentum")
      self._velocities[i] = self:add_variable_from_reference(v, "velocity")
    end
  end

  -- Weight decay is not in the update whose norm is taken: the library has applied it to the variable before.
  function Lamb:update_step(gradient, variable, learning_rate)
    local index, step = self:_get_variable_index(variable), (self.iterations + 1):to("float32")
    local momentum, velocity = self._momentums[index], self._velocities[index]
    momentum:assign_add((gradient - momentum) * (1 - self.beta_1))
    velocity:assign_add((gradient:square() - velocity) * (1 - self.beta_2))
    local root = (velocity / correction(self.beta_2, step)):sqrt() + self.epsilon
    local update = momentum / correction(self.beta_1, step) / root
    local weight, size = norm(variable), norm(update)
    local ratio = ops.where(ops.logical_and(weight:gt(0), size:gt(0)), weight / size, 1)
    variable:assign_sub(update * (ratio * learning_rate))
  end

  return Lamb
end
