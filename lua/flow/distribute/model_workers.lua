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

-- Whether one of the workers says so; of up to three questions at once.
function workers.any(model, ...)
  local worker, questions, number = workers.of(model), { ... }, 0
  if not worker then return ... end
  for i = 1, 3 do number = number + (questions[i] and 2 ^ (i - 1) or 0) end
  local some = { false, false, false }
  for _, said in ipairs(worker:gather_numbers(number)) do
    for i = 1, 3 do some[i] = some[i] or math.floor(said / 2 ^ (i - 1)) % 2 == 1 end
  end
  return some[1], some[2], some[3]
end

-- All workers know that one of them is to end soon (native.preempted): it leaves, which the others treat as the loss of a worker. what:
-- what it was that ended early. Raises on all; in a process that is alone, too.
function workers.part(model, what, ...)
  local worker = workers.of(model)
  if worker and not native.preempted() then worker:await_end() end
  if worker then model._placement.strategy:_leave(false) end
  native.raise_interrupted(what .. ": this process was asked to end", ...)
end

-- After a loop over a step's batches that ended for the worker that wished it: raises unless they all ran.
function workers.check_stop(model, step, what)
  if not (workers.of(model) and step and step.instance) or C.flow_instance_stop_agreed(step.instance) == 0 then return end
  if workers.any(model, native.preempted()) then workers.part(model, what) end
  native.raise_interrupted("%s: a worker was interrupted", what)
end

-- The rows that all workers computed of one batch, in the order of the data: every worker did a part of it.
function workers.gather_rows(model, part)
  local worker = workers.of(model)
  if not worker then return part end
  return require("flow.tensor.ops").concat(worker:gather_tensors(part, "gathers predictions"), 1)
end

-- Asks the others, at the next step, not to go on; returns whether to stop at once, since there are none.
function workers.request_stop(model, step)
  if not workers.of(model) then return true end
  if step.instance then C.flow_instance_request_stop(step.instance, 1) end
  return false
end

return workers
