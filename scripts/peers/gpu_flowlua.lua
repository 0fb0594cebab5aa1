-- gpu_flowlua.lua NET speed SECONDS ROUNDS: images per second of training NET (flowers, mnist, resnet50) on gpu:0, a line "images RATE" for
-- each round. gpu_flowlua.lua NET digest: the losses of a short training to the last bit, for comparing two runs.
-- Data lies on the device; FLOW_DEVICE=gpu:0 is set by scripts/gpu-check.
local flow = require "flow"
local nets = require "flow.bench.nets"
local layers = flow.layers
local net, mode, seconds, rounds = arg[1], arg[2], tonumber(arg[3] or 0), tonumber(arg[4] or 0)

-- He et al. 2015, table 1, 50 layers; strides in the 3 x 3 convolutions.
local function resnet50()
  local function conv_norm(x, filters, size, strides)
    return layers.BatchNormalization()(layers.Conv2D(filters, size, { strides = strides, padding = "same", use_bias = false })(x))
  end
  local input = flow.Input { 224, 224, 3 }
  local x = layers.ReLU()(conv_norm(input, 64, 7, 2))
  x = layers.MaxPooling2D(3, { strides = 2, padding = "same" })(x)
  for stage, blocks in ipairs { 3, 4, 6, 3 } do
    local filters = 32 * 2 ^ stage
    for block = 1, blocks do
      local strides = stage > 1 and block == 1 and 2 or 1
      local y = layers.ReLU()(conv_norm(x, filters, 1, 1))
      y = conv_norm(layers.ReLU()(conv_norm(y, filters, 3, strides)), 4 * filters, 1, 1)
      if block == 1 then x = conv_norm(x, 4 * filters, 1, strides) end
      x = layers.ReLU()(layers.Add()({ x, y }))
    end
  end
  local model = flow.Model { inputs = input, outputs = layers.Dense(1000)(layers.GlobalAveragePooling2D()(x)) }
  model:compile { optimizer = flow.optimizers.SGD(0.1, { momentum = 0.9 }), metrics = { "accuracy" },
                  loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  return model, { 224, 224, 3 }, 1000, 256
end

flow.set_random_seed(1)
local model, shape, classes, batch = (net == "resnet50" and resnet50 or nets[net])()
local batches = net == "mnist" and 400 or net == "flowers" and 40 or 2
if mode == "digest" then batches = 5 end
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
  for _, loss in ipairs(train(3).history.loss) do print(("%a"):format(loss)) end
  return
end
train(1)                                            -- traces, plans, records
local start = now()
train(1)
local epochs = math.max(1, math.floor(seconds / (now() - start) + 0.5))
for _ = 1, rounds do
  start = now()
  train(epochs)
  print(("images %.0f"):format(epochs * rows / (now() - start)))
end
