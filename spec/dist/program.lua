-- program.lua: a whole program on several workers, of which some are killed on the way, each once: outside of fit, too. Prints a digest of
-- what it leaves, and what it has evaluated in the middle.
--
--   flowlua launch --workers 2 --max-restarts 9 spec/dist/program.lua -- --kill worker:0@scope,worker:1@evaluate --folder DIR
--
-- NAME@PLACE: the places are the arguments of die_at below.
package.path = arg[0]:match("^(.*)spec/dist/") .. "?.lua;" .. package.path
local tasks = require "spec.support.tasks"
local flow = require "flow"

local options = flow.args { kill = "", folder = "." }
flow.set_random_seed(7)

-- Dies by a signal that no code sees, unless it did in an earlier life.
local function die_at(place) tasks.signal_at(options.folder, options.kill, 9, place) end

local function hooks(list)
  local own = {}
  for hook, place in pairs(list) do
    local calls = 0
    own[hook] = function()
      calls = calls + 1
      if calls == (hook:find "batch" and 2 or 1) then die_at(place) end
    end
  end
  return { flow.callbacks.LambdaCallback(own) }
end

die_at "strategy"
local strategy = flow.distribute.MultiWorkerMirroredStrategy()
die_at "made"
local function new_model(place)
  return strategy.scope(function()
    local model = flow.Sequential { flow.Input { 8 }, flow.layers.Dense(16, { activation = "relu" }), flow.layers.Dropout(0.2) }
    die_at(place)
    model:add(flow.layers.Dense(3))
    model:compile { optimizer = flow.optimizers.Adam(0.01), metrics = { "accuracy" },
                    loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    return model
  end)
end
local model = new_model "scope"

local ROWS = 211
local x, y = flow.random.normal({ ROWS, 8 }, { seed = 3 }), (flow.arange(ROWS) % 3):cast("int32")
local data = flow.data.Dataset.from_tensor_slices({ x, y }):shuffle(100):batch(32)

model:fit(data, { epochs = 2, verbose = 0, callbacks = hooks { on_train_begin = "fit", on_train_batch_end = "batch" } })
die_at "between"
local second = new_model "second scope"
local middle = model:evaluate(data, { verbose = 0, callbacks = hooks { on_test_begin = "evaluate", on_test_batch_end = "test batch" } })
print(("middle %a %a"):format(middle.loss, middle.accuracy))
local predicted = model:predict(x, { verbose = 0, callbacks = hooks { on_predict_batch_end = "predict" } })
print(("predicted %a"):format(predicted:cast("float64"):sum():item()))
die_at "save"
model:save(options.folder .. "/middle.keras")
second:fit(x, y, { epochs = 1, verbose = 0, callbacks = hooks { on_train_begin = "second fit" } })
model:fit(data, { epochs = 2, verbose = 0, callbacks = hooks { on_train_batch_end = "third fit" } })
local last = model:evaluate(data, { verbose = 0, callbacks = hooks { on_test_batch_end = "last" } })
die_at "end"
model:save(options.folder .. "/last.keras")

local left = { ("%a %a"):format(last.loss, last.accuracy) }
for _, own in ipairs { model, second } do
  tasks.add_values(left, own.weights)
  tasks.add_values(left, own.optimizer.variables)
end
print("digest " .. tasks.digest(left))
