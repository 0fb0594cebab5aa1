-- member.lua: one of several workers that train a small network; at a given moment some of them run a shell command, which kills, freezes
-- or cuts them off. spec/faults/matrix.lua starts it and reads what it leaves in the folder, in files that its task's name ("worker:1")
-- begins: NAME.pid, its process; NAME.at, the second of 1970 when the command was started; NAME.digest, a digest of all that the training
-- leaves; NAME.failed, the second and the sentence with which it failed; NAME.batches, the steps that it made.
--
--   flowlua launch --workers 3 spec/faults/member.lua -- --folder DIR [--victims 0,2 --moment step --fault "kill -9 $PID"]
--
-- Moments: start (it makes its strategy), step (in the first epoch), save (as a backup is written), end (fit has returned).
local flow = require "flow"
local ffi = require "ffi"
local layers = flow.layers

local options = flow.args { folder = "", victims = "", moment = "", fault = "", backup = "", seed = 1, engine = "AUTO",
                            machines = "", shards = 0, pace = 0 }      -- pace: milliseconds that a step takes at least
ffi.cdef [[
  typedef struct { long seconds, nanoseconds; } member_time;
  int clock_gettime(int clock, member_time *time);
  int getpid(void);
  int usleep(unsigned microseconds);
  int setenv(const char *name, const char *value, int overwrite);
]]

local me = tostring(flow.distribute.ClusterResolver().task_id)
local function path(kind) return ("%s/worker:%s.%s"):format(options.folder, me, kind) end
local function leave(kind, ...)
  local file = assert(io.open(path(kind), "w"))
  file:write(...)
  file:close()
end
local function now()
  local time = ffi.new "member_time"
  ffi.C.clock_gettime(0, time)
  return ("%.3f"):format(tonumber(time.seconds) + 1e-9 * tonumber(time.nanoseconds))
end

-- The moment has come. The command runs once, in whichever life of the worker is first; if it waits, apart from the worker, which it may
-- outlive.
local is_victim = ("," .. options.victims .. ","):find("," .. me .. ",", 1, true)
local function reach(moment)
  if moment ~= options.moment or not is_victim then return end
  local before = io.open(path "at")
  if before then return before:close() end
  leave("at", now())
  if options.fault == "exit" then os.exit(0) end
  if options.fault == "secret" then return ffi.C.setenv("FLOW_SECRET", ("another one "):rep(4), 1) end
  os.execute(("export PID=%d TASK=%s; setsid sh -c '%s' >/dev/null 2>&1 </dev/null %s"):format(ffi.C.getpid(), me, options.fault,
    options.fault:find "sleep" and "&" or ""))
end

if options.machines ~= "" then ffi.C.setenv("FLOW_SHARED_MEMORY", options.machines:sub(me + 1, me + 1), 1) end
leave("pid", tostring(ffi.C.getpid()))
reach "start"

local batches = 0
local function train()
  flow.set_random_seed(options.seed)
  if options.shards > 0 then flow.config.enable_op_determinism { shards = options.shards } end
  local strategy = flow.distribute.MultiWorkerMirroredStrategy {
    communication_options = { implementation = options.engine, start_within = 40 },
  }
  local model
  strategy.scope(function()
    model = flow.Sequential {
      layers.Input { 14, 14, 1 }, layers.Conv2D(8, 3, { activation = "relu" }), layers.BatchNormalization(), layers.Flatten(),
      layers.Dense(64, { activation = "relu" }), layers.Dropout(0.2), layers.Dense(10),
    }
    model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  end)
  local x, y = flow.random.normal({ 691, 14, 14, 1 }, { seed = 1 }), flow.random.randint({ 691 }, 0, 10, { seed = 2 })
  local data = flow.data.Dataset.from_tensor_slices({ x, y }):shuffle(200):batch(96)      -- seven batches, and one of 19 rows

  local Watch = flow.callbacks.Callback:extend "Watch"
  function Watch:on_train_batch_end()
    batches = batches + 1
    if batches == 3 then reach "step" end
    if options.pace > 0 then ffi.C.usleep(1000 * options.pace) end
    if batches % 5 == 4 then reach "save" end                     -- the backup is made after the next step
  end
  local callbacks = { Watch() }
  if options.backup ~= "" then callbacks[2] = flow.callbacks.BackupAndRestore(options.backup, { save_freq = 5 }) end
  local history = model:fit(data, { epochs = 4, verbose = 0, callbacks = callbacks })
  reach "end"

  local left = {}
  for _, list in ipairs { model.weights, model.optimizer.variables } do
    for _, variable in ipairs(list) do left[#left + 1] = variable:value():cast("float64"):reshape { -1 }:totable() end
  end
  left[#left + 1] = history.history.loss
  return left
end

-- Of the bits of all numbers, in their order.
local function digest_of(lists)
  local bits, digest = ffi.new "union { double number; uint32_t halves[2]; }", 0
  for _, list in ipairs(lists) do
    for _, number in ipairs(list) do
      bits.number = number
      digest = (digest * 31 + bits.halves[0] + bits.halves[1] * 7) % 2 ^ 47
    end
  end
  return ("%.0f"):format(digest)
end

local ok, left = pcall(train)
leave("batches", tostring(batches))
if not ok and type(left) == "table" and left.code == 0 then error(left, 0) end      -- it stood by
if not ok then
  leave("failed", now(), " ", (tostring(left):gsub("\n.*", "")))
  error(left, 0)
end
leave("digest", digest_of(left))
