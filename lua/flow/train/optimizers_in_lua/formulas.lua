-- formulas.lua: the updates of the optimizers that the library has as records (core/train/optimizers), in Lua: for classes of scripts that
-- extend them, flow.optimizers.Adam:extend("Mine"), whose update_step may call flow.optimizers.Adam.update_step(self, gradient, v, rate).
-- The formulas are those of keras/src/optimizers. Each entry has the options, the names of what is kept for each variable, as the fields of
-- Keras without their underscore, what these begin with, and update(self, gradient, variable, rate, kept).
--
-- kept(self) gives the names for these options, since momentum or amsgrad need more of them; `initial` names the option that they begin
-- with, 0 without it, and initial_of the one name that does if not all do. defaults: of options that every optimizer takes. In update,
-- gradient, rate and iterations are tensors of a trace; kept.name is the variable that belongs to this one.

local ops = require "flow.tensor.ops"
local choices = require "flow.layers.choices"
local correction = require("flow.train.custom_optimizer").correction

local MOMENTS = { { "beta_1", 0.9 }, { "beta_2", 0.999 }, { "epsilon", 1e-7 } }
local ADAM = { MOMENTS[1], MOMENTS[2], MOMENTS[3], { "amsgrad", false, "boolean" } }

-- The number of this update from 1, as float32.
local function step_of(self) return (self.iterations + 1):to("float32") end

-- before + (value - before) * share, assigned; returns the new value. Keras computes moving averages in this form, and so with this
-- rounding.
local function average(kept, value, share)
  kept:assign_add((value - kept) * share)
  return kept:value()
end

-- Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014, in the form at the end of its section 2: epsilon is added to the root
-- of the uncorrected velocity.
local function adam(self, gradient, variable, rate, kept)
  local step = step_of(self)
  local alpha = rate * correction(self.beta_2, step):sqrt() / correction(self.beta_1, step)
  local momentum = average(kept.momentums, gradient, 1 - self.beta_1)
  local velocity = average(kept.velocities, gradient:square(), 1 - self.beta_2)
  if self.amsgrad then
    kept.velocity_hats:assign(kept.velocity_hats:value():maximum(velocity))
    velocity = kept.velocity_hats:value()
  end
  variable:assign_sub(momentum * alpha / (velocity:sqrt() + self.epsilon))
end

local function adam_kept(self) return self.amsgrad and { "momentums", "velocities", "velocity_hats" } or { "momentums", "velocities" } end

local formulas = {}

formulas.Adam = { options = ADAM, kept = adam_kept, update = adam }
formulas.AdamW = { options = ADAM, kept = adam_kept, update = adam, defaults = { weight_decay = 0.004 } }

formulas.SGD = {
  options = { { "momentum", 0 }, { "nesterov", false, "boolean" } }, defaults = { learning_rate = 0.01 },
  kept = function(self) return self.momentum ~= 0 and { "momentums" } or {} end,
  update = function(self, gradient, variable, rate, kept)
    local change = gradient * rate
    if self.momentum == 0 then return variable:assign_sub(change) end
    kept.momentums:assign(kept.momentums * self.momentum - change)
    variable:assign_add(self.nesterov and kept.momentums * self.momentum - change or kept.momentums:value())
  end,
}

formulas.RMSprop = {
  options = { { "rho", 0.9 }, { "momentum", 0 }, { "epsilon", 1e-7 }, { "centered", false, "boolean" } },
  kept = function(self)
    local list = { "velocities" }
    if self.momentum > 0 then list[#list + 1] = "momentums" end
    if self.centered then list[#list + 1] = "average_gradients" end
    return list
  end,
  update = function(self, gradient, variable, rate, kept)
    local square = average(kept.velocities, gradient:square(), 1 - self.rho)
    if self.centered then square = square - average(kept.average_gradients, gradient, 1 - self.rho):square() end
    local change = gradient * rate / (square + self.epsilon):sqrt()
    if self.momentum > 0 then
      kept.momentums:assign(kept.momentums * self.momentum + change)
      change = kept.momentums:value()
    end
    variable:assign_sub(change)
  end,
}

formulas.Adagrad = {
  options = { { "initial_accumulator_value", 0.1 }, { "epsilon", 1e-7 } },
  kept = function() return { "accumulators" } end, initial = "initial_accumulator_value",
  update = function(self, gradient, variable, rate, kept)
    kept.accumulators:assign_add(gradient:square())
    variable:assign_sub(gradient * rate / (kept.accumulators + self.epsilon):sqrt())
  end,
}

formulas.Adadelta = {
  options = { { "rho", 0.95 }, { "epsilon", 1e-7 } }, kept = function() return { "accumulated_grads", "accumulated_delta_vars" } end,
  update = function(self, gradient, variable, rate, kept)
    local grads = average(kept.accumulated_grads, gradient:square(), 1 - self.rho)
    local change = (kept.accumulated_delta_vars + self.epsilon):sqrt() * gradient / (grads + self.epsilon):sqrt()
    average(kept.accumulated_delta_vars, change:square(), 1 - self.rho)
    variable:assign_sub(change * rate)
  end,
}

formulas.Adamax = {
  options = MOMENTS, kept = function() return { "m", "u" } end,
  update = function(self, gradient, variable, rate, kept)
    local momentum = average(kept.m, gradient, 1 - self.beta_1)
    kept.u:assign((kept.u * self.beta_2):maximum(gradient:abs()))
    variable:assign_sub(momentum * rate / (correction(self.beta_1, step_of(self)) * (kept.u + self.epsilon)))
  end,
}

formulas.Lion = {
  options = { { "beta_1", 0.9 }, { "beta_2", 0.99 } }, kept = function() return { "momentums" } end,
  update = function(self, gradient, variable, rate, kept)
    variable:assign_sub((kept.momentums * self.beta_1 + gradient * (1 - self.beta_1)):sign() * rate)
    average(kept.momentums, gradient, 1 - self.beta_2)
  end,
}

-- The product of u over the steps is one number for all variables; the first of a step extends it.
formulas.Nadam = {
  options = MOMENTS, kept = function() return { "momentums", "velocities" } end,
  build = function(self)
    self._u_product = self:add_variable({}, "ones", { name = "u_product" })
    self._u_step = self:add_variable({}, "zeros", { name = "u_step" })
  end,
  update = function(self, gradient, variable, rate, kept)
    local step = step_of(self)
    local function share(t) return 1 - 0.5 * ops.exp(t * math.log(0.96)) end
    local now, later = share(step) * self.beta_1, share(step + 1) * self.beta_1
    self._u_product:assign(ops.where(self._u_step:value():lt(step), self._u_product * now, self._u_product:value()))
    self._u_step:assign(step)
    local product = self._u_product:value()
    local momentum = average(kept.momentums, gradient, 1 - self.beta_1)
    local velocity = average(kept.velocities, gradient:square(), 1 - self.beta_2)
    local ahead = momentum * (later / (1 - product * later)) + gradient * ((1 - now) / (1 - product))
    variable:assign_sub(ahead * rate / ((velocity / correction(self.beta_2, step)):sqrt() + self.epsilon))
  end,
}

formulas.Ftrl = {
  options = { { "learning_rate_power", -0.5 }, { "initial_accumulator_value", 0.1 }, { "l1_regularization_strength", 0 },
    { "l2_regularization_strength", 0 }, { "l2_shrinkage_regularization_strength", 0 }, { "beta", 0 } },
  kept = function() return { "accumulators", "linears" } end, initial = "initial_accumulator_value", initial_of = "accumulators",
  update = function(self, gradient, variable, rate, kept)
    local power, shrinkage, l1 = -self.learning_rate_power, self.l2_shrinkage_regularization_strength, self.l1_regularization_strength
    local before = kept.accumulators:value()
    kept.accumulators:assign_add(gradient:square())
    local root = kept.accumulators:value() ^ power
    local linear = kept.linears + gradient + variable * (2 * shrinkage) - (root - before ^ power) / rate * variable
    kept.linears:assign(linear)
    local penalty = 2 * (self.l2_regularization_strength + self.beta / (2 * rate))
    variable:assign((linear:clip(-l1, l1) - linear) / (root / rate + penalty))
  end,
}

-- The class with the update of a record in Lua. make: Custom._of_keras. Its variables are fields with Keras' names: self._momentums[i].
return function(class_name, make)
  local formula = formulas[class_name]
  local class = make(class_name, formula.options, nil, formula.defaults)

  -- Makes a list of variables for each kept name, self._momentums and others, one for each variable of the model.
  function class:build(variables)
    if formula.build then formula.build(self) end
    for _, name in ipairs(formula.kept(self)) do
      local list = {}
      local is_filled = formula.initial and (formula.initial_of or name) == name
      local initializer = is_filled and choices.initializers.Constant(self[formula.initial]) or "zeros"
      for i, v in ipairs(variables) do
        list[i] = self:add_variable_from_reference(v, (name:gsub("ies$", "y"):gsub("s$", "")), initializer)
      end
      rawset(self, "_" .. name, list)
    end
  end

  function class:update_step(gradient, variable, learning_rate)
    local index, kept = self:_get_variable_index(variable), {}
    for _, name in ipairs(formula.kept(self)) do kept[name] = self["_" .. name][index] end
    formula.update(self, gradient, variable, learning_rate, kept)
  end
  return class
end
