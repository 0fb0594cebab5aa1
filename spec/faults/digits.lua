-- digits.lua: workers that train the CNN of the MNIST tutorial, on noise, until they are ended; for scripts/faults-cluster --goodput, which
-- kills them. Each appends the second at which a step ended to FOLDER/worker:N.steps; FOLDER/worker:N.pid is its process.
--
--   flowlua launch --workers 2 --threads 1 --max-restarts 1000 spec/faults/digits.lua -- --folder DIR
local flow = require "flow"
local ffi = require "ffi"
local layers = flow.layers

local options = flow.args { folder = "" }
ffi.cdef [[
  typedef struct { long seconds, nanoseconds; } digits_time;
  int clock_gettime(int clock, digits_time *time);
  int getpid(void);
]]

local path = ("%s/worker:%d."):format(options.folder, flow.distribute.ClusterResolver().task_id)
local file = assert(io.open(path .. "pid", "w"))
file:write(ffi.C.getpid())
file:close()

local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { 28, 28, 1 }, layers.Conv2D(32, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.Flatten(),
    layers.Dense(64, { activation = "relu" }), layers.Dense(10),
  }
  model:compile { optimizer = flow.optimizers.SGD(0.001), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
end)
local x, y = flow.random.normal({ 20000, 28, 28, 1 }, { seed = 1 }), flow.random.randint({ 20000 }, 0, 10, { seed = 2 })

local steps = assert(io.open(path .. "steps", "a"))
steps:setvbuf "line"
local time = ffi.new "digits_time"
local watch = flow.callbacks.LambdaCallback { on_train_batch_end = function()
  ffi.C.clock_gettime(0, time)
  steps:write(("%.4f\n"):format(tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)))
end }
model:fit(x, y, { batch_size = 128, epochs = 1e6, verbose = 0, callbacks = { watch } })
