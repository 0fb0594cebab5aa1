-- cli/scaling_worker.lua: what flowlua scaling starts as workers: times steps of a model and sums of several sizes, and prints them as a
-- line of JSON on the chief. Arguments: --model FILE --batch ROWS --seconds S.

local native = require "flow.ffi"
local flow = require "flow"
local json = require "flow.json"

local options = flow.args { model = "", batch = 32, seconds = 2 }
local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local SIZES = { 1024, 16384, 131072, 1048576, 4194304 }      -- of float32
local MOST, LEAST = 200, 3

-- The median time of f() over about this many seconds. All workers call it as many times: the first one's time decides.
local function time_of(f, seconds)
  f()
  local begin = native.C.flow_clock()
  f()
  local one = strategy:reduce("SUM", flow.tensor { native.C.flow_clock() - begin }):totable()[1] / strategy.num_replicas_in_sync
  local times = {}
  for i = 1, math.max(LEAST, math.min(MOST, math.floor(seconds / one))) do
    local start = native.C.flow_clock()
    f()
    times[i] = native.C.flow_clock() - start
  end
  table.sort(times)
  return times[math.ceil(#times / 2)]
end

-- { { bytes, seconds }, ... } of sums of all workers, by SIZES.
local function time_sums(seconds)
  local list = {}
  local function add(x) return flow.distribute.get_replica_context():all_reduce("SUM", x) end
  for i, count in ipairs(SIZES) do
    local x = flow.ones { count }
    list[i] = { 4 * count, time_of(function() strategy:run(add, { x }) end, seconds / #SIZES) }
  end
  return list
end

-- Seconds of a training step with the model of --model, on zeros: a step does the same work whatever the numbers are. The whole batch has
-- options.batch rows for each worker.
local function time_step(seconds)
  local model
  strategy.scope(function()
    model = flow.load_model(options.model)
    model:compile { optimizer = "sgd", loss = "mse" }
  end)
  local function zeros(symbolic)
    local shape = { options.batch * strategy.cluster_resolver.num_workers }
    for axis = 2, #symbolic.shape do
      if symbolic.shape[axis] < 1 then
        flow.errors.raise("scaling: the model takes inputs of any size along axis %d: build it for one size", axis)
      end
      shape[axis] = symbolic.shape[axis]
    end
    return flow.zeros(shape, { dtype = symbolic.dtype })
  end
  local x, y = {}, {}
  for i, input in ipairs(model.inputs) do x[i] = zeros(input) end
  for i, output in ipairs(model.outputs) do y[i] = zeros(output) end
  x, y = #x == 1 and x[1] or x, #y == 1 and y[1] or y
  return time_of(function() model:train_on_batch(x, y) end, seconds)
end

local several = strategy.num_replicas_in_sync > 1
local result = { step = time_step(options.seconds), sums = several and time_sums(options.seconds) or nil }
if strategy.cluster_resolver.is_chief then print("scaling: " .. json.encode(result)) end
