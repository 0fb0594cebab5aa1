-- program.lua: a whole program on several workers, of which some are killed on the way, each once: outside of fit, too. Prints a digest of
-- what it leaves, and what it has evaluated in the middle.
--
--   flowlua launch --workers 2 --max-restarts 9 spec/dist/program.lua -- --kill worker:0@scope,worker:1@evaluate --folder DIR
--
-- NAME@PLACE: the places are the arguments of die_at below.
local flow = require "flow"
local ffi = require "ffi"

local options = flow.args { kill = "", folder = "." }
ffi.cdef "int raise(int signal);"

local config = os.getenv("TF_CONFIG")
local me = config:match('"type":"(%a+)"') .. ":" .. config:match('"index":(%d+)')
flow.set_random_seed(7)

-- Dies by a signal that no code sees, unless it did in an earlier life.
local function die_at(place)
  for name, where in options.kill:gmatch("([^,@]+)@([^,]+)") do
    local mark = ("%s/%s@%s"):format(options.folder, name, where)
    local before = io.open(mark)
    if name == me and where == place and not before then
      io.open(mark, "w"):close()
      ffi.C.raise(9)
    end
    if before then before:close() end
  end
end

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
  for _, list in ipairs { own.weights, own.optimizer.variables } do
    for _, v in ipairs(list) do
      local value = v:value():cast("float64"):reshape { -1 }
      for i = 1, value.shape[1] do left[#left + 1] = ("%a"):format(value[i]:item()) end
    end
  end
end
local sum = 0
for _, text in ipairs(left) do
  for i = 1, #text do sum = (sum * 31 + text:byte(i)) % 2 ^ 40 end
end
print(("digest %.0f of %d values"):format(sum, #left))
