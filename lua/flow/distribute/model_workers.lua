-- model_workers.lua: what the workers of a cluster settle among themselves around the steps of fit, evaluate and predict. Within a step
-- they do it in C: how many rows there are, and whether one wants to stop (core/run/replicas/divide.c). For a model that runs in one
-- process everything here says what this process says.

local native = require "flow.ffi"

local C = native.C
local workers = {}

-- The connection to the other workers of the model's strategy; nil: there are none.
function workers.of(model)
  local p = model._placement
  return p and p.workers > 1 and p.strategy._worker or nil
end

-- Whether one of the workers says so; of two questions at once.
function workers.any(model, first, second)
  local worker = workers.of(model)
  if not worker then return first, second end
  local some_first, some_second = false, false
  for _, said in ipairs(worker:gather_numbers((first and 1 or 0) + (second and 2 or 0))) do
    some_first, some_second = some_first or said % 2 == 1, some_second or said >= 2
  end
  return some_first, some_second
end

-- The rows that all workers computed of one batch, in the order of the data: every worker did a part of it.
function workers.gather_rows(model, part)
  local worker = workers.of(model)
  if not worker then return part end
  return require("flow.tensor.ops").concat(worker:gather_tensors(part), 1)
end

-- Asks the others, at the next step, not to go on; returns whether to stop at once, since there are none.
function workers.wish_stop(model, step)
  if not workers.of(model) then return true end
  if step.instance then C.flow_instance_wish_stop(step.instance, 1) end
  return false
end

return workers
