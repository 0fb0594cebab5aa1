-- train.lua: a small training run with everything that a resumed run must remember: dropout, BatchNormalization, noise of a layer in Lua,
-- a shuffled Dataset or shuffled tensors, validation, callbacks that count. scripts/faults kills it and starts it again until it ends.
--
--   flowlua spec/faults/train.lua --folder DIR [--data tensors | cached] [--every 5] [--die-at N] [--pause MS] [--background]
--
-- At the end prints losses and a digest of all weights and slots; equal runs print equal texts, to the last bit.
-- --die-at N: kill -9 to itself after the hooks of its Nth batch, counted in this process.

local flow = require "flow"
local ffi = require "ffi"

local args = flow.args { folder = "", data = "dataset", every = 5, die_at = 0, pause = 0, background = false, epochs = 3, limit = 0 }
ffi.cdef "int getpid(void); int kill(int process, int signal); int usleep(unsigned microseconds);"

local layers = flow.layers

local Noise = layers.Layer:extend("Noise")
function Noise:call(x, options) -- luacheck: no self
  if not options.training then return x end
  return x + flow.random.normal({ 8, 8, 4 }, { stddev = 0.05 })
end

flow.set_random_seed(11)
local x, y = flow.random.normal({ 330, 8, 8, 1 }, { seed = 1 }), flow.random.randint({ 330 }, 0, 3, { seed = 2 })
local xv, yv = flow.random.normal({ 40, 8, 8, 1 }, { seed = 3 }), flow.random.randint({ 40 }, 0, 3, { seed = 4 })

local model = flow.Sequential {
  layers.Conv2D(4, 3, { padding = "same", activation = "relu" }), layers.BatchNormalization(), Noise(), layers.MaxPooling2D(),
  layers.Flatten(), layers.Dropout(0.3), layers.Dense(3, { activation = "softmax" }),
}
model:compile { optimizer = flow.optimizers.Adam(0.01), loss = "sparse_categorical_crossentropy", metrics = { "accuracy" } }

-- Counts what it sees and makes something of it: wrong counts show in the losses.
local Counter = flow.callbacks.Callback:extend("Counter")
function Counter:init() self.batches, self.sum, self.here = 0, 0, 0 end
function Counter:on_train_batch_end(_, logs)
  self.batches, self.sum, self.here = self.batches + 1, self.sum + logs.loss / (self.batches + 1), self.here + 1
  if args.pause > 0 then ffi.C.usleep(args.pause * 1000) end
end
function Counter:on_epoch_begin() self.model.optimizer.learning_rate = self.model.optimizer.learning_rate * 0.9 end
function Counter:get_state() return { batches = self.batches, sum = self.sum } end
function Counter:set_state(state) self.batches, self.sum = state.batches, state.sum end

local counter = Counter()
local deadly = flow.callbacks.LambdaCallback { on_train_batch_end = function()
  if counter.here == args.die_at then ffi.C.kill(ffi.C.getpid(), 9) end
end }
local list = { counter }
if args.folder ~= "" then
  list[2] = flow.callbacks.BackupAndRestore(args.folder .. "/backup", { save_freq = args.every > 0 and args.every or "epoch",
                                                                        double_checkpoint = true, async = args.background })
end
list[#list + 1] = deadly
if args.folder ~= "" and require("flow.object").has(model, "save_weights") then
  list[#list + 1] = flow.callbacks.ModelCheckpoint(args.folder .. "/best.weights.h5", { save_best_only = true, save_weights_only = true,
                                                                                        monitor = "val_loss" })
end

local options = { epochs = args.epochs, callbacks = list, verbose = 0, validation_data = { xv, yv } }
if args.limit > 0 then options.steps_per_epoch = args.limit end
local history
if args.data == "tensors" then
  options.batch_size = 10
  history = model:fit(x, y, options)
else
  local data = flow.data.Dataset.from_tensor_slices { x, y }
  if args.data == "cached" then data = data:shuffle(50):cache() end
  data = data:shuffle(100):map(function(image, label)
    return image + flow.random.uniform({ 8, 8, 1 }, { maxval = 0.1 }), label
  end, { num_parallel_calls = 2 })
  if args.limit > 0 then data = data:repeat_() end
  data = data:batch(10):prefetch(2)
  options.validation_data = flow.data.Dataset.from_tensor_slices { xv, yv }:shuffle(40):batch(7)
  history = model:fit(data, options)
end

local function bits(value) return ("%.17g"):format(value) end

local function digest(variables)
  local sum, mix = 0, 0
  for _, variable in ipairs(variables) do
    local values = variable:value():to("float64"):reshape { -1 }:totable()
    for _, value in ipairs(type(values) == "table" and values or { values }) do
      sum = sum + value
      mix = (mix * 1.000000059604644775390625 + value * 7.25) % 1048573
    end
  end
  return bits(sum) .. " " .. bits(mix)
end

for i, loss in ipairs(history.history.loss) do
  print("epoch", history.epoch[i], bits(loss), bits(history.history.accuracy[i]), bits(history.history.val_loss[i]))
end
print("weights", digest(model.weights))
print("optimizer", digest(model.optimizer.variables))
print("counter", counter.batches, bits(counter.sum), model._train_steps)
print("random", flow.random.normal({ 1 }):item())
