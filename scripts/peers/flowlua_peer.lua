-- flowlua_peer.lua NET MODE SECONDS THREADS: flowlua's side of compare.py, which describes the conversation.
local flow = require "flow"
local nets = dofile((arg[0]:match "^(.*/)" or "") .. "flowlua_nets.lua")
local net, mode, seconds, threads = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
flow.config.set_threads(threads)

flow.set_random_seed(1)
if mode == "train-bfloat16" then flow.mixed_precision.set_global_policy "mixed_bfloat16" end

-- Multiply-adds of the forward pass per image, of the first layer with a kernel and of all others: each element of a kernel is
-- used once for every pixel or step of the layer's output, and of a recurrent layer's input. After words there is no such first layer:
-- what comes out of their table has a gradient. Products of queries, keys and values are not counted.
local function multiply_adds(model)
  local first, rest = model.inputs[1].dtype == "int32" and 0 or nil, 0
  for _, layer in ipairs(model.layers) do
    local recurrent = layer.class_name == "LSTM" or layer.class_name == "GRU"
    for _, variable in ipairs(layer.weights) do
      if variable.name:match("kernel$") then
        local shape, count = (recurrent and layer.input or layer.output).shape, variable.size
        for axis = 2, #shape - 1 do count = count * shape[axis] end
        if first then rest = rest + count else first = count end
      end
    end
  end
  return first, rest
end

-- Seconds on the wall: os.clock counts the time of all threads together.
local ffi = require "ffi"
ffi.cdef "typedef struct { long seconds, nanoseconds; } bench_time; int clock_gettime(int clock, bench_time *time);"
local time = ffi.new "bench_time"
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)
end

local model, shape, classes, batch = nets[net]()
if net == "resnet50" then batch = 8 end
local rows = batch * (({ mnist = 200, mlp = 200, resnet50 = 2, vgg11 = 2, densenet = 4 })[net] or 20)
local dtype = model.inputs[1].dtype
local pixels = { flowers = 255, unet = 255, autoencoder = 255 }          -- nets that rescale them
local highest = dtype == "int32" and 20000 or pixels[net] or 1
local x = flow.random.uniform({ rows, unpack(shape) }, { maxval = highest, seed = 1, dtype = dtype })
local y = classes and flow.random.uniform({ rows }, { maxval = classes, dtype = "int32", seed = 2 }) or x

local modes = {}

function modes.train(epochs) model:fit(x, y, { batch_size = batch, epochs = epochs, shuffle = false, verbose = 0 }) end
modes["train-bfloat16"] = modes.train

function modes.predict(passes)
  for _ = 1, passes do model:predict(x, { batch_size = 32, verbose = 0 }) end
end

-- One row at a time; what each took.
local times, ones = {}, nil
function modes.predict1(passes)
  if not ones then
    ones = {}
    for i = 1, math.min(rows, 64) do ones[i] = x[{ { i, i } }]:contiguous() end
  end
  times = {}
  for i = 1, passes * rows do
    local start = now()
    model:predict_on_batch(ones[i % #ones + 1]):close()
    times[i] = now() - start
  end
end

local function late()
  if mode ~= "predict1" then return "" end
  table.sort(times)
  return (" %.1f"):format(1e6 * times[math.ceil(0.99 * #times)])
end

if mode == "export" then
  model:export(arg[5])
  os.exit(0)
end

local function run(passes)
  local start = now()
  modes[mode](passes)
  return now() - start
end

run(1)                                             -- traces, plans and allocates
local passes = math.max(1, math.floor(seconds / run(1) + 0.5))
io.stdout:write(("ready %d %d\n"):format(multiply_adds(model)))
io.stdout:flush()
for _ in io.lines() do
  io.stdout:write(string.format("window %d %.6f%s\n", passes * rows, run(passes), late()))
  io.stdout:flush()
end
