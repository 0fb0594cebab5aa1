-- schedule_free_adamw.lua: Keras 3's ScheduleFreeAdamW (keras/src/optimizers/schedule_free_adamw.py; Defazio et al., "The Road Less
-- Scheduled", 2024): gradients move the momentum, and the variable is between it and the mean of all momenta so far.

local ops = require "flow.tensor.ops"
local correction = require("flow.train.custom_optimizer").correction

return function(Custom)
  local ScheduleFreeAdamW = Custom._of_keras("ScheduleFreeAdamW", { { "beta_1", 0.9 }, { "beta_2", 0.999 }, { "epsilon", 1e-8 },
    { "warmup_steps", 0, "integer" } }, {}, { learning_rate = 0.0025 })

  function ScheduleFreeAdamW:build(variables)
    self._momentums, self._velocities = {}, {}
    for i, v in ipairs(variables) do
      self._momentums[i], self._velocities[i] = self:_add_copy(v, "momentum"), self:add_variable_from_reference(v, "velocity")
    end
  end

  -- The variable y is z (1 - beta_1) + x beta_1, of the momentum z and the mean x: x is found from y and the old z, extended by the new z,
  -- and y computed again, so that x needs no variable of its own.
  function ScheduleFreeAdamW:update_step(gradient, variable, rate)
    local index, step = self:_get_variable_index(variable), (self.iterations + 1):to("float32")
    local momentum, velocity, old = self._momentums[index], self._velocities[index], self._momentums[index]:value()
    if self.warmup_steps > 0 then rate = rate * ops.minimum(step / self.warmup_steps, 1) end
    velocity:assign_add((gradient:square() - velocity) * (1 - self.beta_2))
    local root = (velocity / correction(self.beta_2, step)):sqrt() + self.epsilon
    momentum:assign_sub(gradient * rate / root)
    local mean = (variable - old * (1 - self.beta_1)) / self.beta_1
    mean = mean * (1 - 1 / step) + momentum / step
    variable:assign(momentum * (1 - self.beta_1) + mean * self.beta_1)
  end

  return ScheduleFreeAdamW
end
