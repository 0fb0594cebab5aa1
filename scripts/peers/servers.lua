-- servers.lua KIND STEPS: flowlua's side of servers.py, which says what a job prints. KIND: one (no cluster) or workers: the CNN of
-- TensorFlow's tutorials with 512 images a step, in the workers of a ParameterServerStrategy; or move: STEPS times 64 MB of variables from
-- a parameter server to a worker. Each worker computes with one thread.
local flow = require "flow"
local nets = require "flow.cli.bench_nets"
local kind, steps = arg[1], tonumber(arg[2])
local BATCH, MEGABYTES = 512, 64
flow.set_random_seed(1)
flow.config.set_threads(1)

-- Seconds on the wall: os.clock counts the time of all threads together.
local ffi = require "ffi"
ffi.cdef "typedef struct { long seconds, nanoseconds; } bench_time; int clock_gettime(int clock, bench_time *time);"
local time = ffi.new "bench_time"
local function now()
  ffi.C.clock_gettime(1, time)
  return tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds)
end

local strategy = kind == "one" and flow.distribute.get_strategy() or flow.distribute.ParameterServerStrategy()
local chief = kind == "one" or strategy.cluster_resolver.is_chief
local function say(...)
  if not chief then return end
  io.stdout:write(string.format(...), "\n")
  io.stdout:flush()
end

if kind == "move" then
  strategy.scope(function() flow.Variable(flow.random.uniform({ MEGABYTES * 2 ^ 18 }, { seed = 1 })) end)
  local servers = strategy._placement.servers
  servers:pull()
  for _ = 1, steps do
    local start = now()
    servers:pull()
    say("rate %d %.6f", MEGABYTES * 2 ^ 20, now() - start)
  end
  return
end

local model, shape, classes
strategy.scope(function() model, shape, classes = nets.mnist() end)
local x = flow.random.uniform({ 20 * BATCH, unpack(shape) }, { seed = 1 })
local y = flow.random.uniform({ 20 * BATCH }, { maxval = classes, dtype = "int32", seed = 2 })
model:fit(x, y, { batch_size = BATCH, shuffle = false, verbose = 0 })
local start = now()
model:fit(x, y, { batch_size = BATCH, epochs = steps / 20, shuffle = false, verbose = 0 })
say("rate %d %.6f", steps * BATCH, now() - start)
