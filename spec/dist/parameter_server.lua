-- parameter_server.lua: a script of parameter_server_spec.lua: trains the digits of lua/examples/digits, with parameter servers or, with
-- --alone, by itself, and prints the history, the sum of all weights, and what the spec asks for.
local flow = require "flow"
local options = flow.args { alone = false, optimizer = "sgd", epochs = 3, dataset = false, creator = false, norm = false,
  constraint = false, parts = 0,
                            staleness = -1, steps = 0, kill = "", pause = "", folder = "", tasks = 1 }
flow.set_random_seed(3)

local partitioner = options.parts > 0 and flow.distribute.FixedShardsPartitioner(options.parts) or nil
local strategy = options.alone and flow.distribute.get_strategy() or flow.distribute.ParameterServerStrategy {
  variable_partitioner = partitioner, max_staleness = options.staleness >= 0 and options.staleness or nil }
local x, y = flow.datasets.mnist { path = "lua/examples/digits" }
local layers = flow.layers
local model
strategy.scope(function()
  model = flow.Sequential { layers.Input { 28, 28 }, layers.Flatten(), layers.Rescaling(1 / 255),
                            layers.Dense(32, { activation = "relu" }) }
  if options.norm then model:add(layers.BatchNormalization()) end
  model:add(layers.Dropout(0.1))
  model:add(layers.Dense(10, options.constraint and { kernel_constraint = "unit_norm", bias_constraint = "non_neg" } or nil))
  model:compile { optimizer = options.optimizer, loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true },
                  metrics = { "accuracy" } }
end)

local data, labels, size = x, y, 32
if options.dataset then
  data, labels, size = flow.data.Dataset.from_tensor_slices { x, y }:shuffle(1500, { seed = 5 }):batch(32), nil, nil
  if options.steps > 0 then data = data:repeat_() end
end
if options.creator then
  local made = data
  data = flow.utils.DatasetCreator(function(context) return made:take(context.num_input_pipelines * 1000) end)
end
-- With --kill worker:1 --pause FILE that task is killed in the middle of its fifth batch, once.
if options.kill ~= "" then
  local config = os.getenv "TF_CONFIG"
  local victim = options.kill == ("%s:%s"):format(config:match('"type":"(%a+)"'), config:match('"index":(%d+)'))
  local plain, count = flow.data.Dataset.from_tensor_slices { x, y }:batch(32), 0
  data = flow.data.Dataset.from_generator(function()
    local read = plain:iter()
    return function()
      count = count + 1
      if victim and count == 5 and not io.open(options.pause) then
        io.open(options.pause, "w"):close()
        os.execute "kill -9 $PPID"
      end
      return read()
    end
  end, { output_signature = plain.element_spec })
  labels, size = nil, nil
end
local history = model:fit(data, labels, { batch_size = size, epochs = options.epochs, validation_data = { x, y }, verbose = 0,
                                          steps_per_epoch = options.steps > 0 and options.steps or nil })
print("loss " .. table.concat(history.history.loss, " "))
print(("accuracy %.4f"):format(history.history.val_accuracy[options.epochs]))
local sum = 0
if options.constraint then
  print(("norms %.5f"):format(model.layers[#model.layers].kernel:value():square():sum(1):sqrt():sub(1):abs():max():item()))
end
for _, w in ipairs(model:get_weights()) do sum = sum + w:abs():sum():item() end
print(("sum %.9g"):format(sum))
print(("iterations %d"):format(model.optimizer.iterations))
if options.folder ~= "" then dofile "spec/dist/chief_waits.lua" (options.folder, options.tasks) end
