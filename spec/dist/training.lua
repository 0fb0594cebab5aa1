-- training.lua: 20 steps of a small net on batches that no number of replicas divides: four batches an epoch, of 37 samples and at last
-- of 11 (or --last). What training_spec.lua compares is in its output: the chief's lines "step" with the running loss, "epoch" with
-- the number of samples that were counted and the sum of their ids, and "validation"; and from every worker a line "weights" with a digest
-- of all bits, and how many pieces of memory it shares with others; with --scaled also "scale", see below.
--
-- With --shards the replicas are as many, whoever has them, and there is a layer whose statistics are those of a replica's rows.
--
--   flowlua spec/dist/training.lua [--devices 4] [--shards 8] [--gpus 2 [--reduce NcclAllReduce]] [--engine RING | MPI]
--     [--data tensors] [--scaled] [--factors true | false] [--pack BYTES]
--     [--machines aab]      a letter for each worker: those with the same one share it
local flow = require "flow"
local training = require "flow.train.compile"
local layers, distribute = flow.layers, flow.distribute

local options = flow.args { devices = 1, gpus = 0, reduce = "NcclAllReduce", engine = "", data = "dataset", epochs = 5, last = 11,
                            scaled = false, shards = 0, factors = "", machines = "", pack = 0 }
flow.set_random_seed(5)
if options.shards > 0 then flow.config.enable_op_determinism { shards = options.shards } end

if options.machines ~= "" then
  local ffi, index = require "ffi", distribute.ClusterResolver().task_id + 1
  ffi.cdef "int setenv(const char *name, const char *value, int overwrite);"
  ffi.C.setenv("FLOW_SHARED_MEMORY", options.machines:sub(index, index), 1)
end

local strategy, worker
flow.config.set_precision("exact")      -- GPUs multiply in TF32 otherwise
if options.engine ~= "" then
  strategy = distribute.MultiWorkerMirroredStrategy { communication_options = {
    implementation = options.engine, bytes_per_pack = options.pack, factors = ({ ["true"] = true, ["false"] = false })[options.factors] } }
  worker = strategy.cluster_resolver.task_id
elseif options.gpus > 0 then
  local names = {}
  for i = 1, options.gpus do names[i] = ("gpu:%d"):format(i - 1) end
  strategy = distribute.MirroredStrategy { devices = names, cross_device_ops = distribute[options.reduce]() }
elseif options.devices > 1 then
  flow.config.set_logical_devices("cpu", options.devices)
  strategy = distribute.MirroredStrategy()
else
  strategy = distribute.get_strategy()
end

local SAMPLES, BATCH, CLASSES = 3 * 37 + options.last, 37, 3
local x = flow.random.normal({ SAMPLES, 10, 10, 1 }, { seed = 1 })
local labels = flow.random.randint({ SAMPLES, 1 }, 0, CLASSES, { seed = 2 }):to("float32")
-- Whole numbers below 2^17: sums of a batch of them are exact.
local ids = flow.random.randint({ SAMPLES, 1 }, 0, 2 ^ 17, { seed = 3 }):to("float32")
local y = flow.concat({ labels, ids }, 2)

local crossentropy = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
local function label_of(of) return of[{ {}, 1 }]:to("int32") end

-- With --scaled there is one sample an epoch whose loss is finite and whose gradients are not: nobody may make its step.
local poisonous = ids:max():item()
local function poison(of, output)
  local sick = (of[{ {}, 2 }]:eq(poisonous)):to("float32")
  return ((1 - sick + sick * (output:sum(-1) * 0)):sqrt() - (1 - sick)):mean()
end
local function loss_of(of, output)
  local loss = crossentropy(label_of(of), output)
  return options.scaled and loss + poison(of, output) or loss
end

local optimizer = flow.optimizers.Adam(0.01)
if options.scaled then optimizer = flow.optimizers.LossScaleOptimizer(optimizer, { dynamic_growth_steps = 2 }) end

local model
strategy.scope(function()
  model = flow.Sequential {
    layers.Input { 10, 10, 1 }, layers.Conv2D(6, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.3),
    options.shards > 0 and layers.BatchNormalization() or layers.Activation("linear"),
    layers.Dense(384, { activation = "relu" }), layers.Dense(CLASSES),           -- large enough to be updated from its rows
  }
  model:compile { optimizer = optimizer, loss = loss_of, metrics = { function(of) return of[{ {}, 2 }] end } }
end)

local chief = (worker or 0) == 0
local function say(...)
  io.stdout:write(string.format(...), "\n")
  io.stdout:flush()
end

-- Metrics are read where a step has ended: they must be the same everywhere, whoever prints them.
local counted = training.trackers(model)[2].metric
local watch = flow.callbacks.LambdaCallback {
  on_train_batch_end = function(_, logs) if chief then say("step %.9f", logs.loss) end end,
  on_epoch_end = function(epoch)
    local count, sum = counted.count:value():item(), counted.total:value():item()
    if chief then say("epoch %d counted %d sum %d", epoch, count, sum) end
  end,
}
local how = { epochs = options.epochs, verbose = 0, callbacks = { watch }, batch_size = BATCH }
if options.data == "tensors" then
  model:fit(x, y, how)
else
  how.batch_size = nil
  model:fit(flow.data.Dataset.from_tensor_slices { x, y }:shuffle(SAMPLES, { seed = 4 }):batch(BATCH), how)
end
local result = model:evaluate(flow.data.Dataset.from_tensor_slices { x, y }:batch(29), { verbose = 0 })
if chief then say("validation %.9f", result.loss) end

-- FNV-1a (Fowler, Noll, Vo) over all weights, a mantissa of 24 bits and an exponent in three parts; the prime is 2^24 + 403.
local bit = require "bit"
local digest = bit.tobit(0x811c9dc5)
for _, variable in ipairs(model.weights) do
  for _, value in ipairs(variable:value():reshape { -1 }:totable()) do
    local mantissa, exponent = math.frexp(value)
    for _, part in ipairs { math.floor(mantissa * 2 ^ 12) % 2 ^ 16, mantissa * 2 ^ 24 % 2 ^ 12, exponent % 2 ^ 16 } do
      local mixed = bit.bxor(digest, part)
      digest = bit.tobit(bit.tobit(mixed * 403) + bit.lshift(mixed, 24))
    end
  end
end
local shared = 0
for line in io.lines("/proc/self/maps") do shared = shared + (line:find("memfd:flow_shared", 1, true) and 1 or 0) end
if options.scaled then say("scale %g %d %d", optimizer.dynamic_scale:item(), optimizer.step_counter:item(), optimizer.iterations) end
say("weights %s of worker %d, %d shared", bit.tohex(digest), worker or 0, shared)
local sum = ids:sum():item()
if chief then say("samples %d sum %d", SAMPLES, sum) end
