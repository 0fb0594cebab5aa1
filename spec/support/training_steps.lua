-- training_steps.lua NET BATCH STEPS: trains a net of flow.cli.bench_nets for some steps with one thread, for whoever counts
-- the instructions of flow_instance_run_rows.
local flow = require "flow"
local name, batch, count = arg[1], tonumber(arg[2]), tonumber(arg[3])

flow.config.set_threads(1)
flow.set_random_seed(1)
local model, shape, classes = require("flow.cli.bench_nets")[name]()
local x = flow.random.uniform({ batch * count, unpack(shape) }, { seed = 1 })
local y = flow.random.uniform({ batch * count }, { maxval = classes, dtype = "int32", seed = 2 })
model:fit(x, y, { batch_size = batch, shuffle = false, verbose = 0 })
