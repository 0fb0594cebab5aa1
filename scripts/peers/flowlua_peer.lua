-- flowlua_peer.lua NET MODE SECONDS THREADS: flowlua's side of compare.py, which describes the conversation.
local flow = require "flow"
local nets = require "flow.cli.bench_nets"
local net, mode, seconds, threads = arg[1], arg[2], tonumber(arg[3]), tonumber(arg[4])
flow.config.set_threads(threads)
flow.set_random_seed(1)

-- Multiply-adds of the forward pass per image, of the first layer with a kernel and of all others: each element of a kernel is
-- used once for every pixel of the layer's output.
local function multiply_adds(model)
  local first, rest
  for _, layer in ipairs(model.layers) do
    for _, variable in ipairs(layer.weights) do
      if variable.name:match("/kernel$") then
        local shape, count = layer.output.shape, variable.size
        for axis = 2, #shape - 1 do count = count * shape[axis] end
        if first then rest = rest + count else first, rest = count, 0 end
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
local rows = batch * (net == "mnist" and 200 or 20)
local highest = net == "flowers" and 255 or 1      -- pixels, which that net rescales
local x = flow.random.uniform({ rows, unpack(shape) }, { maxval = highest, seed = 1 })
local y = flow.random.uniform({ rows }, { maxval = classes, dtype = "int32", seed = 2 })

local modes = {}

function modes.train(epochs) model:fit(x, y, { batch_size = batch, epochs = epochs, shuffle = false, verbose = 0 }) end

function modes.predict(passes)
  for _ = 1, passes do model:predict(x, { batch_size = 32, verbose = 0 }) end
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
  io.stdout:write(string.format("window %d %.6f\n", passes * rows, run(passes)))
  io.stdout:flush()
end
