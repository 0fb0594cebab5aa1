--- optimizers.lua: a small model that specs of optimizers train, an optimizer in Lua, and what they compare.
local flow = require "flow"
local luassert = require "luassert"

local models = {}

--- The data: 40 rows.
models.x = flow.random.normal({ 40, 6 }, { seed = 1 })
models.y = models.x[{ {}, { 1, 2 } }] * 2 - 1

--- An optimizer that only does w -= rate g.
models.Plain = flow.optimizers.Optimizer:extend("Plain")
function models.Plain:update_step(gradient, variable, learning_rate) variable:assign_sub(gradient * learning_rate) end

--- A model with the same weights each time.
function models.new(optimizer)
  flow.clear_session()
  flow.set_random_seed(3)
  local model = flow.Sequential { flow.layers.Input { 6 }, flow.layers.Dense(5, { activation = "tanh" }), flow.layers.Dense(2) }
  model:compile { optimizer = optimizer, loss = "mse" }
  return model
end

--- 3 epochs of 4 batches in order; options: others of fit.
function models.fit(model, options)
  local all = { batch_size = 10, epochs = 3, verbose = 0, shuffle = false }
  for name, value in pairs(options or {}) do all[name] = value end
  return model:fit(models.x, models.y, all)
end

--- The values of variables, which later updates do not change.
function models.values(variables)
  local list = {}
  for i, v in ipairs(variables) do list[i] = v:value() end
  return list
end

--- Fails unless two lists of tensors have the same elements.
function models.same(expected, found)
  luassert.equal(#expected, #found)
  for i, v in ipairs(expected) do luassert.same(v:totable(), found[i]:totable()) end
end

--- Fails unless they differ by at most the tolerance.
function models.near(expected, found, tolerance)
  luassert.equal(#expected, #found)
  for i, v in ipairs(expected) do
    local off = (v - found[i]):to("float64"):abs():max():item()
    luassert(off <= tolerance, ("variable %d is off by %g"):format(i, off))
  end
end

return models
