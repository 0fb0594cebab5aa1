-- muon.lua: Keras 3's Muon (keras/src/optimizers/muon.py; K. Jordan et al., "Muon: An optimizer for hidden layers in neural networks",
-- 2024): the momentum of matrices, made nearly orthogonal; other variables are updated by AdamW.
--
-- _momentums[i] belongs to variable i; _velocities[i] is false for a variable that is updated as a matrix. weight_decay is for matrices,
-- adam_weight_decay for other variables.

local errors = require "flow.errors"
local json = require "flow.json"
local correction = require("flow.train.custom_optimizer").correction

return function(Custom)
  local Muon = Custom._of_keras("Muon", { { "adam_beta_1", 0.9 }, { "adam_beta_2", 0.999 }, { "adam_weight_decay", 0.004, "number?" },
    { "epsilon", 1e-7 } }, {
    { "exclude_layers", {}, "list" }, { "exclude_embeddings", true, "boolean" }, { "muon_a", 3.4445 }, { "muon_b", -4.775 },
    { "muon_c", 2.0315 }, { "adam_lr_ratio", 1 }, { "momentum", 0.95 }, { "ns_steps", 5, "integer" }, { "nesterov", true, "boolean" },
    { "rms_rate", 0.2, "number?" },
  }, { weight_decay = 0.004 })

  -- Keras takes the entries of exclude_layers as regular expressions; here they are parts of names. The library is told of one of both
  -- decays, and says which variables have any.
  function Muon._prepare(fields, options)
    for i, part in ipairs(fields.exclude_layers) do
      if type(part) ~= "string" or part:find("[%^%$%.%[%]%*%+%?%(%){}|\\]") then
        errors.raise("Muon: entry %d of exclude_layers is %s, expected a part of variables' names, without signs of regular expressions", i,
          errors.describe(part))
      end
    end
    fields.weight_decay = options.weight_decay or false
    options.weight_decay = options.weight_decay or fields.adam_weight_decay or nil
  end

  local own_config = Muon._own_config
  function Muon:_own_config()
    local config = own_config(self)
    config.weight_decay = self.weight_decay or json.null
    return config
  end

  -- Whether a variable is updated by AdamW: it is not a matrix, or embeddings or exclude_layers leave it out.
  local function uses_adam(self, variable)
    if variable.rank ~= 2 or self.exclude_embeddings and variable.path:lower():find("embedding", 1, true) then return true end
    for _, part in ipairs(self.exclude_layers) do
      if variable.path:find(part, 1, true) then return true end
    end
    return false
  end

  function Muon:_decay_of(variable, decay)
    if decay == 0 then return 0 end
    return (uses_adam(self, variable) and self.adam_weight_decay or not uses_adam(self, variable) and self.weight_decay) or 0
  end

  function Muon:build(variables)
    self._momentums, self._velocities = {}, {}
    for i, v in ipairs(variables) do
      self._momentums[i] = self:add_variable_from_reference(v, "momentum")
      self._velocities[i] = uses_adam(self, v) and self:add_variable_from_reference(v, "velocity") or false
    end
  end

  -- A matrix with nearly the singular vectors of x, and singular values near 1, by the Newton-Schulz iteration.
  local function orthogonal(self, x)
    local is_tall = x.shape[1] > x.shape[2]
    if is_tall then x = x:transpose() end
    x = x / (x:square():sum():sqrt() + 1e-7)
    for _ = 1, self.ns_steps do
      local square = x:matmul(x:transpose())
      x = x * self.muon_a + (square * self.muon_b + (square * self.muon_c):matmul(square)):matmul(x)
    end
    return is_tall and x:transpose() or x
  end

  -- An update of AdamW, without its decay, which the library applies.
  local function adam_step(self, gradient, variable, rate, momentum, velocity)
    local step = (self.iterations + 1):to("float32")
    local alpha = rate * correction(self.adam_beta_2, step):sqrt() / correction(self.adam_beta_1, step)
    momentum:assign_add((gradient - momentum) * (1 - self.adam_beta_1))
    velocity:assign_add((gradient:square() - velocity) * (1 - self.adam_beta_2))
    variable:assign_sub(momentum * alpha / (velocity:sqrt() + self.epsilon))
  end

  function Muon:update_step(gradient, variable, learning_rate)
    local index = self:_get_variable_index(variable)
    local momentum, velocity = self._momentums[index], self._velocities[index]
    if velocity then return adam_step(self, gradient, variable, learning_rate * self.adam_lr_ratio, momentum, velocity) end
    momentum:assign_add(gradient + momentum * (self.momentum - 1))
    local direction = self.nesterov and gradient + momentum * self.momentum or momentum * 1
    local update = orthogonal(self, direction) * learning_rate
    if self.rms_rate then update = update * (math.sqrt(math.max(variable.shape[1], variable.shape[2])) * self.rms_rate) end
    variable:assign_sub(update)
  end

  return Muon
end
