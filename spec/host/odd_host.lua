-- odd_host.lua: what spec/host/odd_host.c runs: a program, under conditions of the state. Returns the bits of what came out.
local program, folder, has = ...
local ffi, bit = require "ffi", require "bit"

if has["no compiler"] then jit.off() end
if has["compiled at once"] then require("jit.opt").start("hotloop=1", "hotexit=1") end
if has["strict globals"] then
  local function refuse(_, name) error("no such global: " .. tostring(name), 2) end
  setmetatable(_G, { __index = refuse, __newindex = refuse })
end

local flow = require "flow"
local layers, Dataset = flow.layers, flow.data.Dataset
local box = ffi.new "union { float number; int32_t bits; }"

local function digest(value)
  local hash = 0
  for _, number in ipairs((flow.is_variable(value) and value:value() or value):to("float32"):reshape({ -1 }):totable()) do
    box.number = number
    hash = bit.tobit(bit.bxor(bit.rol(hash, 5), box.bits) * 9 + 1)
  end
  return bit.tohex(hash)
end

local function digests(list)
  local texts = {}
  for i, value in ipairs(list) do texts[i] = digest(value) end
  return table.concat(texts, ",")
end

local function losses(history)
  local texts = {}
  for i, loss in ipairs(history.history.loss) do texts[i] = ("%a"):format(loss) end
  return table.concat(texts, ",")
end

local function new_model()
  local model = flow.Sequential {
    layers.Input { 10, 10, 1 }, layers.Conv2D(6, 3, { activation = "relu" }), layers.BatchNormalization(), layers.Flatten(),
    layers.Dropout(0.3), layers.Dense(4) }
  model:compile { optimizer = flow.optimizers.Adam(0.01), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  return model
end

local function samples(count)
  return flow.random.normal({ count, 10, 10, 1 }, { seed = 1 }), flow.random.randint({ count }, 0, 4, { seed = 2 })
end

local programs = {}

function programs.warm()
  flow.set_random_seed(1)
  local x, y = samples(20)
  new_model():fit(x, y, { batch_size = 8, verbose = 0 })
end

function programs.train()
  flow.set_random_seed(2)
  local x, y = samples(70)
  local model = new_model()
  local backup = flow.callbacks.BackupAndRestore(folder .. "/backup")
  local history = model:fit(x, y, { epochs = 2, batch_size = 16, verbose = 0, callbacks = { backup } })
  return losses(history) .. " " .. digests(model.weights) .. " " .. digest(model:predict(x, { verbose = 0 }))
end

function programs.save()
  flow.set_random_seed(3)
  local x, y = samples(40)
  local model = new_model()
  model:fit(x, y, { verbose = 0 })
  model:save(folder .. "/model.keras")
  local again = flow.load_model(folder .. "/model.keras")
  local history = again:fit(x, y, { verbose = 0, callbacks = { flow.callbacks.ModelCheckpoint(folder .. "/last.keras") } })
  return digests(model.weights) .. " " .. losses(history) .. " " .. digests(flow.load_model(folder .. "/last.keras").weights)
end

function programs.data()
  flow.set_random_seed(4)
  local texts, x, y = {}, samples(50)
  local data = Dataset.from_tensor_slices { x, y }:shuffle(50, { seed = 3 })
    :map(function(a, b) return a:exp() * 2, b + 1 end, { num_parallel_calls = 4 }):batch(8):cache(folder .. "/cache"):prefetch(2)
  for _ = 1, 2 do
    for a, b in data:iter() do texts[#texts + 1] = digest(a) .. digest(b) end
  end
  return table.concat(texts, " ")
end

function programs.replicas()
  pcall(flow.config.set_logical_devices, "cpu", 2)      -- another state of this process has done so
  flow.set_random_seed(5)
  local strategy, model = flow.distribute.MirroredStrategy(), nil
  strategy.scope(function() model = new_model() end)
  local x, y = samples(48)
  local history = model:fit(Dataset.from_tensor_slices { x, y }:shuffle(48, { seed = 2 }):batch(16), { epochs = 2, verbose = 0 })
  return strategy.num_replicas_in_sync .. " " .. losses(history) .. " " .. digests(model.weights)
end

-- luacheck: ignore 121 122
-- ---- conditions of the state -------------------------------------------------------------------------------------------------------

if has["errors in callbacks"] then
  local x, y = samples(20)
  local function fail() error("meant", 0) end
  for _, f in ipairs {
    function() new_model():fit(x, y, { verbose = 0, callbacks = { flow.callbacks.LambdaCallback { on_train_batch_end = fail } } }) end,
    function() flow.fn(fail)(x) end, function() flow.GradientTape():record(fail) end, function() flow.device("cpu:0", fail) end,
    function() flow.distribute.get_strategy().scope(fail) end,
  } do
    local _, message = pcall(f)
    assert(tostring(message):find "meant", message)
  end
end
if has["left iterators"] then
  for _ = 1, 4 do Dataset.range(100000):map(function(i) return i * 2 end, { num_parallel_calls = 2 }):batch(2):prefetch(2):iter()() end
end
if has["collector stopped"] then collectgarbage "stop" end
if has["collector hurries"] then collectgarbage("setpause", 50) end
if has["a hook"] then debug.sethook(function() end, "crl", 1000) end
if has["constant random"] then math.random, math.randomseed = function() return 0.5 end, function() end end
if has["clock goes back"] then
  local now = 1e9
  os.time, os.clock = function() return 0 end, function() now = now - 1 return now end
end
if has["no print"] then print, io.write = function() error "print was called" end, function() error "io.write was called" end end
if has["fewer libraries"] then os, io, package = nil, nil, nil end

local function work()
  if not has["inside a callback"] then return programs[program]() end
  local result
  local x, y = samples(20)
  new_model():fit(x, y, { verbose = 0, callbacks = { flow.callbacks.LambdaCallback { on_epoch_end = function()
    result = programs[program]()
  end } } })
  return result
end

if not has["a coroutine"] then return work() end
local other = coroutine.wrap(function()
  flow.GradientTape():record(function() coroutine.yield(flow.ones { 2 } * 2) end)
end)
other()      -- its tape is open, and records nothing of what follows
local result = coroutine.wrap(work)()
other()
return result
