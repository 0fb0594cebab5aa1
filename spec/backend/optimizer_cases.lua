-- optimizer_cases.lua: the cases of cases.lua that are updates of optimizers, and the schedule's. add: as there.
local flow = require "flow"

return function(add)

--- Three updates of two variables by the optimizer's kernel, in float32; a run in float64 follows the formula instead.
local function optimized(class, options, formula)
  return function(inputs, _, dtype)
    if dtype == "float64" then return formula(inputs, options) end
    local v, u = flow.Variable(inputs[1]), flow.Variable(inputs[2])
    local optimizer = flow.optimizers[class](options)
    for step = 1, 3 do optimizer:apply_gradients({ inputs[3] * step, inputs[4] * step }, { v, u }) end
    return { v:value():copy(), u:value():copy() }
  end
end

--- Keras' SGD.
local function sgd(inputs, options)
  local results, momentum = {}, options.momentum or 0
  for i = 1, 2 do
    local w, velocity = inputs[i], inputs[i] * 0
    for step = 1, 3 do
      local g = inputs[i + 2] * step
      velocity = velocity * momentum - g * options.learning_rate
      w = options.nesterov and w + velocity * momentum - g * options.learning_rate or w + velocity
    end
    results[i] = w
  end
  return results
end

--- Kingma and Ba 2015, as Keras writes it: epsilon outside of the bias correction; AMSGrad after Reddi et al. 2018.
local function adam(inputs, options)
  local results, beta_1, beta_2 = {}, options.beta_1 or 0.9, options.beta_2 or 0.999
  for i = 1, 2 do
    local w, m, v = inputs[i], inputs[i] * 0, inputs[i] * 0
    local most = v
    for step = 1, 3 do
      local g = inputs[i + 2] * step
      m, v = m * beta_1 + g * (1 - beta_1), v * beta_2 + g:square() * (1 - beta_2)
      most = most:maximum(v)
      local rate = options.learning_rate * math.sqrt(1 - beta_2 ^ step) / (1 - beta_1 ^ step)
      w = w - m * rate / ((options.amsgrad and most or v):sqrt() + (options.epsilon or 1e-7))
    end
    results[i] = w
  end
  return results
end

local function slots() return { -1, 9 }, { 5, 33 }, { -1, 9 }, { 5, 33 } end
for name, options in pairs {
  plain = { learning_rate = 0.1 }, momentum = { learning_rate = 0.1, momentum = 0.9 },
  nesterov = { learning_rate = 0.1, momentum = 0.9, nesterov = true },
} do
  add("sgd", { slots() }, { name = name, run = optimized("SGD", options, sgd), only_float32 = true, gradient = false, traced = false })
end
for name, options in pairs { plain = { learning_rate = 0.1 }, amsgrad = { learning_rate = 0.1, amsgrad = true } } do
  add("adam", { slots() }, { name = name, run = optimized("Adam", options, adam), only_float32 = true, gradient = false, traced = false })
end

--- RMSprop after Hinton, as Keras writes it: epsilon inside of the root.
local function rmsprop(inputs, options)
  local results, rho, momentum, epsilon = {}, 0.9, options.momentum or 0, 1e-7
  for i = 1, 2 do
    local w, v, moved, mean = inputs[i], inputs[i] * 0, inputs[i] * 0, inputs[i] * 0
    for step = 1, 3 do
      local g = inputs[i + 2] * step
      v, mean = v * rho + g:square() * (1 - rho), mean * rho + g * (1 - rho)
      local denominator = options.centered and v - mean:square() or v
      moved = moved * momentum + g * options.learning_rate / (denominator + epsilon):sqrt()
      w = w - moved
    end
    results[i] = w
  end
  return results
end

--- Duchi, Hazan and Singer 2011.
local function adagrad(inputs, options)
  local results = {}
  for i = 1, 2 do
    local w, sum = inputs[i], inputs[i] * 0 + 0.1
    for step = 1, 3 do
      local g = inputs[i + 2] * step
      sum = sum + g:square()
      w = w - g * options.learning_rate / (sum + 1e-7):sqrt()
    end
    results[i] = w
  end
  return results
end

--- Zeiler 2012.
local function adadelta(inputs, options)
  local results, rho, epsilon = {}, 0.95, options.epsilon
  for i = 1, 2 do
    local w, squares, steps = inputs[i], inputs[i] * 0, inputs[i] * 0
    for step = 1, 3 do
      local g = inputs[i + 2] * step
      squares = squares * rho + g:square() * (1 - rho)
      local move = (steps + epsilon):sqrt() * g / (squares + epsilon):sqrt()
      steps = steps * rho + move:square() * (1 - rho)
      w = w - move * options.learning_rate
    end
    results[i] = w
  end
  return results
end

--- Kingma and Ba 2015, section 7.1.
local function adamax(inputs, options)
  local results = {}
  for i = 1, 2 do
    local w, m, norm = inputs[i], inputs[i] * 0, inputs[i] * 0
    for step = 1, 3 do
      local g = inputs[i + 2] * step
      m, norm = m * 0.9 + g * (1 - 0.9), (norm * 0.999):maximum(g:abs())
      w = w - m * (options.learning_rate / (1 - 0.9 ^ step)) / (norm + 1e-7)
    end
    results[i] = w
  end
  return results
end

for name, options in pairs {
  plain = { learning_rate = 0.1 }, momentum = { learning_rate = 0.1, momentum = 0.8 }, centered = { learning_rate = 0.1, centered = true },
  both = { learning_rate = 0.1, momentum = 0.8, centered = true },
} do
  add("rmsprop", { slots() }, { name = name, run = optimized("RMSprop", options, rmsprop), only_float32 = true, gradient = false,
    traced = false })
end
for _, entry in ipairs {
  { "adagrad", "Adagrad", adagrad }, { "adadelta", "Adadelta", adadelta, epsilon = 0.01 }, { "adamax", "Adamax", adamax },
} do
  local options = { learning_rate = 0.1, epsilon = entry.epsilon }
  add(entry[1], { slots() }, { run = optimized(entry[2], options, entry[3]), only_float32 = true, gradient = false, traced = false })
end

-- Keras' polynomial decay from 0.1 to 0.01 in 12 steps.
add("schedule", {}, { run = function(_, _, dtype)
  local rate = (0.1 - 0.01) * (1 - 5 / 12) ^ 0.5 + 0.01
  if dtype == "float64" then return { flow.tensor(rate, { dtype = "float64" }) } end
  local options = { initial_learning_rate = 0.1, decay_steps = 12, end_learning_rate = 0.01, power = 0.5 }
  local w = flow.Variable(0)
  local optimizer = flow.optimizers.SGD { learning_rate = flow.optimizers.schedules.PolynomialDecay(options) }
  optimizer.variables[1]:assign(5)
  optimizer:apply_gradients({ flow.tensor(-1) }, { w })
  return { w:value():copy() }
end, only_float32 = true, gradient = false, traced = false })

end
