-- flowlua_train.lua NET SECONDS THREADS: flowlua's side of compare.py, which describes the conversation.
local flow = require "flow"
local layers = flow.layers
local net, seconds, threads = arg[1], tonumber(arg[2]), tonumber(arg[3])
flow.config.set_threads(threads)
flow.set_random_seed(1)

local nets = {}

function nets.flowers()
  local model = flow.Sequential {
    layers.Input { 180, 180, 3 }, layers.Rescaling(1 / 255),
    layers.Conv2D(16, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(32, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Conv2D(64, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
    layers.Flatten(), layers.Dense(128, { activation = "relu" }), layers.Dense(5, { activation = "softmax" }),
  }
  model:compile { optimizer = flow.optimizers.Adam(), loss = flow.losses.SparseCategoricalCrossentropy(), metrics = { "accuracy" } }
  local batch, batches = 32, 20
  local x = flow.random.uniform({ batch * batches, 180, 180, 3 }, { minval = 0, maxval = 255, seed = 1 })
  return model, x, flow.random.uniform({ batch * batches }, { minval = 0, maxval = 5, dtype = "int32", seed = 2 }), batch
end

function nets.mnist()
  local model = flow.Sequential {
    layers.Input { 28, 28 }, layers.Reshape { 28, 28, 1 }, layers.Conv2D(32, 3, { activation = "relu" }), layers.Flatten(),
    layers.Dense(128, { activation = "relu" }), layers.Dense(10),
  }
  model:compile {
    optimizer = flow.optimizers.SGD(0.001), metrics = { "accuracy" },
    loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true },
  }
  local batch, batches = 64, 200
  local x = flow.random.uniform({ batch * batches, 28, 28 }, { seed = 1 })
  return model, x, flow.random.uniform({ batch * batches }, { minval = 0, maxval = 10, dtype = "int32", seed = 2 }), batch
end

-- Seconds on the wall: os.clock counts the time of all threads together.
local ffi = require "ffi"
ffi.cdef "typedef struct { long seconds, nanoseconds; } bench_time; int clock_gettime(int clock, bench_time *time);"
local time = ffi.new "bench_time"
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)
end

local model, x, y, batch = nets[net]()
local function train(epochs)
  local start = now()
  model:fit(x, y, { batch_size = batch, epochs = epochs, shuffle = false, verbose = 0 })
  return now() - start
end

train(1)                                         -- traces, plans and allocates
local epochs = math.max(1, math.floor(seconds / train(1) + 0.5))
io.stdout:write("ready\n")
io.stdout:flush()
for _ in io.lines() do
  local took = train(epochs)
  io.stdout:write(string.format("window %d %.6f\n", epochs * x.shape[1], took))
  io.stdout:flush()
end
