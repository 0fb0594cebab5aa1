-- recovery.lua: trains small networks on several workers, of which some are killed or preempted (SIGTERM) on the way, each once, and prints
-- a digest of all that the training leaves: weights, the optimizer's slots, and what History has.
--
--   flowlua launch --workers 2 --max-restarts 9 spec/dist/recovery.lua -- --data shuffled --kill worker:0@5,worker:1@9 --folder DIR
--   flowlua spec/dist/recovery.lua --preempt alone:0@5 --callbacks --folder DIR
--   FLOW_MIN_WORKERS=1 flowlua spec/dist/recovery.lua --shards 4 --kill worker:2@5 --await 4 --folder DIR
--
-- NAME@N: after its Nth batch; NAME@begin: when it makes its strategy; NAME@test: in its second validation; NAME@trained: when fit has made
-- its last epoch, before the callbacks know; NAME@end: after fit.
-- --await: tasks.after_batch.
package.path = arg[0]:match("^(.*)spec/dist/") .. "?.lua;" .. package.path
local tasks = require "spec.support.tasks"
local flow = require "flow"
local native = require "flow.ffi"
local ffi = require "ffi"

local options = flow.args { data = "shuffled", kill = "", preempt = "", folder = ".", epochs = 4, fits = 1, models = 1, callbacks = false,
                            stop_launcher = 0,       -- the batch after which it gets SIGTERM
                             shards = 0, await = 0,
                             wide = 32 }              -- units: 384 make a matrix whose gradient reaches the optimizer as factors
ffi.cdef "int getppid(void); int kill(int process, int signal); int usleep(unsigned int microseconds);"

flow.set_random_seed(7)
if options.shards > 0 then flow.config.enable_op_determinism { shards = options.shards } end

local function die_at(place)
  tasks.signal_at(options.folder, options.kill, 9, place)
  tasks.signal_at(options.folder, options.preempt, 15, place)
end

die_at "begin"
local strategy = flow.distribute.MultiWorkerMirroredStrategy()
local models = {}
strategy.scope(function()
  for i = 1, options.models do
    models[i] = flow.Sequential { flow.Input { 8 }, flow.layers.Dense(options.wide, { activation = "relu" }), flow.layers.Dropout(0.2),
                                  flow.layers.BatchNormalization(), flow.layers.Dense(options.wide / 4), flow.layers.Dense(3) }
    models[i]:compile { optimizer = flow.optimizers.Adam(0.01), metrics = { "accuracy" },
                        loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  end
end)

local ROWS = 211                                                  -- six batches of 32, and one of 19
local x, y = flow.random.normal({ ROWS, 8 }, { seed = 3 }), (flow.arange(ROWS) % 3):cast("int32")
local slices = flow.data.Dataset.from_tensor_slices({ x, y })
local data = {
  tensors = { x, y, validation_data = { x, y } },
  shuffled = { slices:shuffle(100):batch(32) },
  own = { slices:shuffle(100, { seed = 5 }):batch(32):with_options { auto_shard_policy = "OFF" } },
  endless = { slices:shuffle(100):repeat_():batch(32), steps_per_epoch = 6 },
}
data = data[options.data]
if options.data == "shuffled" then data.validation_data = data[1] end      -- passes of both count together

local Killer = flow.callbacks.Callback:extend "Killer"
local batches, tests = 0, 0
function Killer:on_train_batch_end()
  batches = batches + 1
  tasks.after_batch(options.folder, batches, strategy, options.await)
  die_at(batches)
  if batches == options.stop_launcher and tasks.name == "worker:0" then
    ffi.C.kill(ffi.C.getppid(), 15)
    while not native.preempted() do ffi.C.usleep(1000) end      -- the launcher passes it on when it gets to run
  end
end
function Killer:on_train_end() die_at "trained" end
function Killer:on_test_begin()
  tests = tests + 1
  if tests == 2 then die_at "test" end
end

local callbacks = { Killer() }
if options.callbacks then
  local own = options.folder .. "/" .. tasks.name
  for _, more in ipairs { flow.callbacks.BackupAndRestore(options.folder .. "/backup", { save_freq = 4 }),
                          flow.callbacks.CSVLogger(options.folder .. "/log.csv"),
                          flow.callbacks.ReduceLROnPlateau { monitor = "loss", patience = 1, min_delta = 1 },
                          flow.callbacks.ModelCheckpoint(own .. ".keras"),
                          flow.callbacks.EarlyStopping { monitor = "loss", patience = 9 } } do
    callbacks[#callbacks + 1] = more
  end
end
models[1]:evaluate(x, y, { verbose = 0 })                         -- which a worker that was started again does by itself
local history
for i = 1, options.fits do
  history = models[(i - 1) % #models + 1]:fit(data[1], data[2], { epochs = options.epochs, verbose = 0, callbacks = callbacks,
    batch_size = data[2] and 32 or nil, steps_per_epoch = data.steps_per_epoch, validation_data = data.validation_data })
end
die_at "end"

local left = {}
for _, model in ipairs(models) do
  tasks.add_values(left, model.weights)
  tasks.add_values(left, model.optimizer.variables)
end
for _, key in ipairs { "loss", "accuracy", "val_loss", "val_accuracy" } do
  for _, number in ipairs(history.history[key] or {}) do left[#left + 1] = ("%s %a"):format(key, number) end
end
print(("digest %s, %d epochs, %s"):format(tasks.digest(left), #history.epoch, tasks.name))
