-- scaling_flowlua.lua KIND STEPS: flowlua's side of scaling.py, which says what a job prints. KIND: one, mirrored (two logical CPU
-- devices), or AUTO, RING or MPI: one worker of a cluster. Every replica computes with one thread. STEPS: hundreds.
local flow = require "flow"
local nets = require "flow.cli.bench_nets"
local kind, steps = arg[1], tonumber(arg[2])
local distribute = flow.distribute
flow.set_random_seed(1)

-- Seconds on the wall: os.clock counts the time of all threads together.
local ffi = require "ffi"
ffi.cdef "typedef struct { long seconds, nanoseconds; } bench_time; int clock_gettime(int clock, bench_time *time);"
local time = ffi.new "bench_time"
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)
end

local strategy
if kind == "one" then
  flow.config.set_threads(1)
  strategy = distribute.get_strategy()
elseif kind == "mirrored" then
  flow.config.set_logical_devices("cpu", 2)
  strategy = distribute.MirroredStrategy()
else
  flow.config.set_threads(1)
  strategy = distribute.MultiWorkerMirroredStrategy { communication_options = distribute.CommunicationOptions { implementation = kind } }
end
local chief = kind == "one" or kind == "mirrored" or strategy.cluster_resolver.is_chief

local model, shape, classes, batch
strategy.scope(function() model, shape, classes, batch = nets.mnist() end)
batch = batch * strategy.num_replicas_in_sync
local x = flow.random.uniform({ 100 * batch, unpack(shape) }, { seed = 1 })
local y = flow.random.uniform({ 100 * batch }, { maxval = classes, dtype = "int32", seed = 2 })

local function say(...)
  if not chief then return end
  io.stdout:write(string.format(...), "\n")
  io.stdout:flush()
end

local said = false
local first = flow.callbacks.LambdaCallback { on_train_batch_end = function()
  if not said then say("first") end
  said = true
end }
model:fit(x, y, { batch_size = batch, shuffle = false, verbose = 0, callbacks = { first } })

local start = now()
model:fit(x, y, { batch_size = batch, epochs = steps / 100, shuffle = false, verbose = 0 })
say("rate %d %.6f", steps * batch, now() - start)
