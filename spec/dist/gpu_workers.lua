-- gpu_workers.lua: two workers with a GPU each, whose GPUs add up among themselves; devices_spec.lua compares what each prints.
--
--   flowlua launch --workers 2 spec/dist/gpu_workers.lua -- --what refuse | kill | share | again
--
-- refuse: the second one's data is refused, then both train on. kill: the second one ends while the first one's GPU waits for it. share:
-- what is said where the two have the same GPU. again: the second one gives up while the first one's GPU waits for it, then both
-- start from the beginning.
local ffi = require "ffi"
local flow = require "flow"
local distribute, layers = flow.distribute, flow.layers
local options = flow.args { what = "refuse" }
ffi.cdef "int kill(int process, int signal); int getpid(void);"

local strategy = distribute.MultiWorkerMirroredStrategy()
local worker = strategy.cluster_resolver.task_id

local function say(...)
  io.stdout:write(string.format(...), "\n")
  io.stdout:flush()
end

if options.what == "kill" then
  local function total() return distribute.get_replica_context():all_reduce("sum", flow.ones { 3 }) end
  for round = 1, 3 do say("round %d: %g", round, strategy:run(total)[1]:item()) end
  local ok, problem = pcall(function()
    local result = strategy:run(total)
    if worker == 1 then ffi.C.kill(ffi.C.getpid(), 9) end
    return result[1]:item()
  end)
  say("ended %s: %s", tostring(ok), tostring(problem))
  ok, problem = pcall(function() return strategy:run(total)[1]:item() end)
  say("again %s: %s", tostring(ok), tostring(problem))
  os.exit(0)
end

local function make_model()
  local model
  strategy.scope(function()
    model = flow.Sequential { layers.Input { 3 }, layers.Dense(2, { kernel_initializer = "ones" }) }
    model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  end)
  return model
end

local model = make_model()
local x, y = flow.random.normal({ 8, 3 }, { seed = 1 }), flow.tensor({ 0, 1, 0, 1, 1, 0, 1, 0 }, { dtype = "int32" })
local bad = flow.tensor({ 0, 1, 0, 1, 1, 0, 7, 0 }, { dtype = "int32" })      -- row 6 is the second worker's
local how = { batch_size = 8, epochs = 3, verbose = 0, shuffle = false }
local function weights() return table.concat(model.weights[1]:value():flatten():totable(), " ") end

model:fit(x, y, how)
local before = weights()
if options.what == "again" then
  say("first %s", before)
  if worker == 1 then
    strategy._worker:close(false, "gave up on purpose")
  else
    local ok, problem = pcall(model.fit, model, x, y, how)
    say("lost %s: %s", tostring(not ok), tostring(problem))
    pcall(strategy.close, strategy)      -- which says once more why
  end
  strategy = distribute.MultiWorkerMirroredStrategy()
  model = make_model()
  model:fit(x, y, how)
  say("second %s", weights())
  local ok, problem = pcall(model.fit, model, x, bad, how)      -- what GPUs agree on by themselves
  say("refused %s: %s", tostring(not ok), tostring(problem))
  return      -- not os.exit, which leaves tensors to the system: the leak check of a sanitized build names them
end
if options.what == "refuse" then
  for _ = 1, 2 do
    local ok, problem = pcall(model.fit, model, x, bad, how)
    say("refused %s: %s", tostring(not ok), tostring(problem))
    say("same %s", tostring(weights() == before))
  end
end
model:fit(x, y, how)
say("trained %s", weights())
