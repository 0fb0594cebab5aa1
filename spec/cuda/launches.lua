--- launches.lua: the table of scripts/cuda-launches: what one training step of fit launches on a GPU, and moves. The data is on the device.
---   launches.lua NET BATCH POLICY [SIZE]      SIZE: of the images, where the net leaves that open
local root = arg[0]:match("^(.*)spec/cuda/launches%.lua$")
package.path = root .. "?.lua;" .. root .. "lua/?.lua;" .. root .. "lua/?/init.lua;" .. package.path
local launches = require "spec.support.launches"
local flow = require "flow"

local name, batch, policy, size = arg[1], tonumber(arg[2]), arg[3], tonumber(arg[4])
flow.mixed_precision.set_global_policy(policy)
local model, shape, classes
flow.device("gpu:0", function() model, shape, classes = require("flow.cli.bench_nets")[name](size) end)
local x = flow.random.uniform({ batch, unpack(shape) }, { seed = 1 })
local y = flow.random.uniform({ batch }, { maxval = classes, dtype = "int32", seed = 2 })
model:fit(x, y, { batch_size = batch, epochs = 3, verbose = 0 })      -- the third one repeats what the second one recorded

local list = launches.read(os.getenv("FLOW_EMULATED_LAUNCHES"))
print(("%4s  %5s %-28s %-28s %14s %14s %14s"):format("node", "turns", "op", "kernel", "bytes read", "written", "own memory"))
for _, launch in ipairs(list) do
  print(("%4d%s %5d %-28s %-28s %14.0f %14.0f %14.0f"):format(launch.node, launch.bundled and "*" or " ", launch.turns, launch.op,
    launch.kernel, launch.read, launch.written, launch.own))
end
print(("%d launches and copies, %d of which start early, at most %d turns in one, %.0f bytes, of which in the ops' own memory %.0f"):format(
  launches.nodes(list), launches.early(list), launches.turns(list), launches.bytes(list), launches.own(list)))
