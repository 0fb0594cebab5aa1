-- verify.lua: what verify_spec.lua starts: workers train, one of them has another number in a variable from some step on.
local flow = require "flow"
local layers = flow.layers
local options = flow.args { worker = 0, at = 0, variable = 1, slot = 0, every = 4, custom = false }

local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local index = strategy.cluster_resolver.task_id
flow.set_random_seed(1)
local verify = flow.distribute.verify { every = options.every }
local model
strategy.scope(function()
  model = flow.Sequential { layers.Input { 8 }, layers.Dense(4, { name = "first" }), layers.BatchNormalization { name = "norm" },
                            layers.Dense(2, { name = "last" }) }
  model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
end)

local function spoil(step)
  if step ~= options.at or index ~= options.worker then return end
  local v = options.slot > 0 and model.optimizer.variables[options.slot] or model.weights[options.variable]
  local numbers = v:data()      -- as a memory that fails would do it: the library does not know
  numbers[0] = numbers[0] + 1e-6
end

local steps = 0
local function fit()
  local y = flow.tensor({ 0, 1 }, { dtype = "int32" }):tile { 32 }
  model:fit(flow.random.normal({ 64, 8 }, { seed = 3 }), y, { batch_size = 8, epochs = 2, verbose = 0, callbacks = {
    flow.callbacks.LambdaCallback { on_train_batch_end = function()
      steps = steps + 1
      spoil(steps)
    end }, verify } })
end

local function train(x)
  local tape = flow.GradientTape()
  local loss = tape:record(function() return (model(x, { training = true }) ^ 2):mean() end)
  local variables = model.trainable_variables
  model.optimizer:apply_gradients(tape:gradient(loss, variables), variables)
end

local function loop()
  for step = 1, 16 do
    strategy:run(train, { flow.random.normal({ 4, 8 }, { seed = 2 * step + index }) })
    spoil(step)
    verify(model, { model.optimizer })
  end
end

local ok, problem = pcall(options.custom and loop or fit)
print(("checks %d %s"):format(verify.checks, ok and "equal" or problem:match("distribute.verify: .*") or problem))
