-- cluster.lua: one of several workers that train until something stops them. scripts/faults-cluster kills them at random moments and reads
-- what they say: "pid N job J" when the first step has ended, J being the job's number among those of Open MPI, and "failed at T: MESSAGE"
-- when fit failed, T in seconds since 1970.
--
--   flowlua launch --workers 3 spec/faults/cluster.lua -- [--engine RING | MPI]
local flow = require "flow"
local ffi = require "ffi"
local layers, distribute = flow.layers, flow.distribute

local options = flow.args { engine = "AUTO" }
ffi.cdef [[
  typedef struct { long seconds, nanoseconds; } fault_time;
  int clock_gettime(int clock, fault_time *time);
  int getpid(void);
]]

local function say(...)
  io.stdout:write(string.format(...), "\n")
  io.stdout:flush()
end

local strategy = distribute.MultiWorkerMirroredStrategy { communication_options = { implementation = options.engine } }
local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { 28, 28, 1 }, layers.Conv2D(16, 3, { activation = "relu" }), layers.Flatten(), layers.Dense(64, { activation = "relu" }),
    layers.Dense(10),
  }
  model:compile { optimizer = "sgd", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
end)
local x, y = flow.random.normal({ 960, 28, 28, 1 }, { seed = 1 }), flow.random.randint({ 960 }, 0, 10, { seed = 2 })

local said = false
local first = flow.callbacks.LambdaCallback { on_train_batch_end = function()
  if not said then say("pid %d job %08x", ffi.C.getpid(), tonumber(os.getenv("PMIX_NAMESPACE")) or 0) end
  said = true
end }
local ok, message = pcall(function() model:fit(x, y, { batch_size = 96, epochs = 1e6, verbose = 0, callbacks = { first } }) end)
local time = ffi.new "fault_time"
ffi.C.clock_gettime(0, time)
if not ok then
  say("failed at %.3f: %s", tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds), (tostring(message):gsub("\n.*", "")))
  error(message, 0)
end
