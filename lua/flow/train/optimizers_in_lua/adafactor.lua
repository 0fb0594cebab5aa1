-- adafactor.lua: Keras 3's Adafactor (keras/src/optimizers/adafactor.py; Shazeer and Stern, "Adafactor: Adaptive Learning Rates with
-- Sublinear Memory Cost", 2018): of matrices the mean squares of rows and columns stand for those of the elements.

local ops = require "flow.tensor.ops"

local function root_mean_square(x) return x:square():mean():sqrt() end

return function(Custom)
  local Adafactor = Custom._of_keras("Adafactor", { { "beta_2_decay", -0.8 }, { "epsilon_1", 1e-30 }, { "epsilon_2", 1e-3 },
    { "clip_threshold", 1 }, { "relative_step", true, "boolean" } })

  -- _rows[i] and _columns[i] have the variable's shape without its last and without its last but one axis.
  -- Keras has rows and columns for every variable; for variables with fewer than two axes they are unused.
  function Adafactor:build(variables)
    self._rows, self._columns, self._velocities, self._unused = {}, {}, {}, {}
    for i, v in ipairs(variables) do
      local rows, columns = {}, {}
      for axis = 1, v.rank - 1 do rows[axis], columns[axis] = v.shape[axis], v.shape[axis] end
      columns[#columns] = v.rank > 1 and v.shape[v.rank] or nil
      local unused = v.rank < 2
      self._rows[i] = self:add_variable(rows, { name = v.name, dtype = unused and "int32" or v.dtype })
      self._columns[i] = self:add_variable(columns, { name = v.name, dtype = unused and "int32" or v.dtype })
      if unused then self._unused[self._rows[i]], self._unused[self._columns[i]] = true, true end
      self._velocities[i] = self:add_variable_from_reference(v, "velocity")
    end
  end

  -- The limit of relative_step, the square root of 1 / step, also holds without that option.
  function Adafactor:update_step(gradient, variable, learning_rate)
    local index, step = self:_get_variable_index(variable), (self.iterations + 1):to("float32")
    local rows, columns, velocity = self._rows[index], self._columns[index], self._velocities[index]
    local rate = ops.minimum(learning_rate, 1 / step:sqrt())
    local alpha = ops.maximum(root_mean_square(variable), self.epsilon_2) * rate
    local square, beta = gradient:square() + self.epsilon_1, 1 - step ^ self.beta_2_decay
    local function mix(state, value) state:assign(state * beta + value * (1 - beta)) end
    if variable.rank > 1 then
      mix(rows, square:mean(-1))
      mix(columns, square:mean(-2))
      local share = rows / rows:mean(-1, true)
      velocity:assign(share:expand_dims(-1) * columns:expand_dims(-2))
    else
      mix(velocity, square)
    end
    local update = gradient / velocity:sqrt()
    update = update / ops.maximum(root_mean_square(update) / self.clip_threshold, 1)
    variable:assign_sub(update * alpha)
  end

  return Adafactor
end
