-- loop.lua: a loop of the user's on several workers, of which some are killed on the way, each once; prints a digest of what it leaves.
--
--   flowlua launch --workers 2 --max-restarts 9 spec/dist/loop.lua -- --data own --kill worker:0@5,worker:1@9+ --folder DIR
--
-- NAME@N: before the update of step N, NAME@N+: after it; NAME@N/: between two updates, of --updates 2. With --preempt by SIGTERM. --await:
-- tasks.after_batch. --collect: a worker that collects garbage after each step, and no other does.
package.path = arg[0]:match("^(.*)spec/dist/") .. "?.lua;" .. package.path
local tasks = require "spec.support.tasks"
local flow = require "flow"

local options = flow.args { data = "shuffled", kill = "", preempt = "", folder = ".", steps = 20, updates = 1, shards = 0, await = 0,
                            collect = -1 }
flow.set_random_seed(7)
if options.shards > 0 then flow.config.enable_op_determinism { shards = options.shards } end

local function die_at(place)
  tasks.signal_at(options.folder, options.kill, 9, place)
  tasks.signal_at(options.folder, options.preempt, 15, place)
end

local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local model, first, second
strategy.scope(function()
  model = flow.Sequential { flow.Input { 8 }, flow.layers.Dense(16, { activation = "relu" }), flow.layers.Dropout(0.3),
                            flow.layers.BatchNormalization(), flow.layers.Dense(3) }
  first, second = flow.optimizers.Adam(0.01), flow.optimizers.SGD(0.02, { momentum = 0.9 })
end)
local loss_of = flow.losses.SparseCategoricalCrossentropy { from_logits = true, reduction = "none" }

local ROWS = 211                                                  -- six batches of 32, and one of 19
local x, y = flow.random.normal({ ROWS, 8 }, { seed = 3 }), (flow.arange(ROWS) % 3):cast("int32")
local slices = flow.data.Dataset.from_tensor_slices { x, y }
local data = ({
  shuffled = function() return strategy:experimental_distribute_dataset(slices:shuffle(100):batch(32)) end,
  endless = function() return strategy:experimental_distribute_dataset(slices:shuffle(100):repeat_():batch(32)) end,
  own = function()
    return strategy:distribute_datasets_from_function(function(input)
      return slices:shard(input.num_input_pipelines, input.input_pipeline_id):shuffle(40, { seed = 5 }):batch(16)
    end)
  end,
  none = function() return nil end,
})[options.data]()

local function step_of(optimizer)
  return flow.fn(function(a, b)
    local tape = flow.GradientTape()
    local loss = tape:record(function()
      return flow.nn.compute_average_loss(loss_of(b, model(a, { training = true })), { global_batch_size = 32 })
    end)
    optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss
  end)
end
local train, more = step_of(first), step_of(second)

local verify = flow.distribute.verify { every = 3 }

local made = strategy:run_with_recovery(function(step, a, b)
  if not a then a, b = flow.random.normal({ 16, 8 }), flow.random.randint({ 16 }, 0, 3) end
  die_at(tostring(step))
  local loss = strategy:run(train, { a, b })
  if options.updates == 2 then
    die_at(step .. "/")
    loss = strategy:run(more, { a, b })
  end
  die_at(step .. "+")
  assert(strategy:reduce("sum", loss):item() < 100)
  verify(step, model, first, second)
  tasks.after_batch(options.folder, step, strategy, options.await)
  if strategy.cluster_resolver.task_id == options.collect then collectgarbage() end
end, { steps = options.steps, checkpoint = flow.train.Checkpoint { model = model, first = first, second = second }, dataset = data })
die_at "end"

local left = {}
for _, list in ipairs { model.weights, first.variables, second.variables } do tasks.add_values(left, list) end
print(("digest %s, %d steps"):format(tasks.digest(left), made))
