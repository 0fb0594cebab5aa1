-- gpu_flowlua.lua NET DTYPE SIZE speed SECONDS ROUNDS: images per second of training NET (flowers, mnist, resnet50) on gpu:0 in float32,
-- where matrices are multiplied in TF32, or bfloat16: the seconds that the first epoch takes, which plans, then a line "images RATE" for
-- each round. gpu_flowlua.lua NET DTYPE SIZE digest: the losses of a short training to the last bit, for comparing two runs. SIZE: full, or
-- small for emulated GPUs: a few batches of a few images.
-- Data is on the device; FLOW_DEVICE=gpu:0 is set by scripts/gpu-check.
local flow = require "flow"
local nets = require "flow.cli.bench_nets"
local steps = require "flow.train.steps"
local net, dtype, small, mode, seconds, rounds = arg[1], arg[2], arg[3] == "small", arg[4], tonumber(arg[5] or 0), tonumber(arg[6] or 0)

flow.set_random_seed(1)
if dtype == "bfloat16" then flow.mixed_precision.set_global_policy("mixed_bfloat16") end
local model, shape, classes, batch = nets[net](small and 32 or nil)
local batches = net == "mnist" and 400 or net == "flowers" and 90 or 2
if small then batch, batches = 1, 1 end
if mode == "digest" and not small then batches = 5 end
local rows = batch * batches
local x = flow.random.uniform({ rows, unpack(shape) }, { maxval = net == "flowers" and 255 or 1, seed = 1 })
local y = flow.random.uniform({ rows }, { maxval = classes, dtype = "int32", seed = 2 })

assert(x.device == "gpu:0", "FLOW_DEVICE=gpu:0 is not set, or has no effect")

local ffi = require "ffi"
ffi.cdef "typedef struct { long seconds, nanoseconds; } gpu_time; int clock_gettime(int clock, gpu_time *time);"
local time = ffi.new "gpu_time"
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)
end

local function train(epochs)
  return model:fit(x, y, { batch_size = batch, epochs = epochs, shuffle = false, verbose = 0 })
end

if mode == "digest" then
  for _, loss in ipairs(train(small and 1 or 3).history.loss) do print(("%a"):format(loss)) end
  return
end
local start = now()
train(1)                                            -- traces, plans, records
print(("first epoch %.2f s, then a step is %s launches"):format(now() - start,
  steps.describe(model._steps[#model._steps]):match("\nrecorded: (%d+) launches") or "?"))
start = now()
train(1)
local epochs = math.max(1, math.floor(seconds / (now() - start) + 0.5))
for _ = 1, rounds do
  start = now()
  train(epochs)
  print(("images %.0f"):format(epochs * rows / (now() - start)))
end
