-- collector_stress.lua: what collector_spec.lua runs: pieces of programs, once as usual and once with a whole collection whenever Lua looks
-- whether it is time for one, which is at every allocation, or before every call of the library. How many there are follows from the
-- piece. Prints "NAME same" where both give the same numbers. For the library a tensor that was freed while somebody uses it is closed,
-- and it says so.
--
--   luajit spec/support/collector_stress.lua DEVICE interpreted | compiled | hooked [CASE]
--
-- compiled: loops become machine code at once, in which a tensor lives until its pointer is read. hooked: collections before calls.
local device, mode, wanted = arg[1], arg[2], arg[3]
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

jit[mode == "compiled" and "on" or "off"]()
if mode == "compiled" then require("jit.opt").start("hotloop=2", "hotexit=2") end

local REPEATS = mode == "compiled" and 300 or 2
local cases, order = {}, {}
local function case(name, f)
  cases[name] = f
  order[#order + 1] = name
end

---- pieces of programs ------------------------------------------------------------------------------------------------------

local function seeded(shape, seed) return flow.random.normal(shape, { seed = seed }) end

case("ops", function(results)
  local x = seeded({ 4, 6 }, 1)
  for i = 1, REPEATS do
    local y = flow.where(x:gt(0), x * i, -x):matmul(x:transpose() + 1):softmax(-1)
    local z = flow.concat({ y[{ {}, { 1, 2 } }], flow.stack({ y:mean(1), y:var(1) }):transpose():reshape { 4, 2 } }, 2)
    results[#results + 1] = flow.one_hot(z:argmax(-1) - 1, 4) + z:clip(0.1, 0.9):to("float16"):to("float32"):expand_dims(1):squeeze(1)
    results[#results + 1] = flow.tensor({ { 1, 2 }, { 3, 4 } }):dot({ { 0.5 }, { 2 } }) - z:sum(-1, true):max()
    results[#results + 1] = flow.gelu(y:clone()[1]) + flow.zeros_like(y[2]) + flow.full({ 4 }, 2) + flow.arange(4):to("float32")
  end
end)

case("elements", function(results)
  local x = flow.zeros { 3, 4 }
  for i = 1, REPEATS do
    x[{ 1, 2 }] = i
    x[2] = seeded({ 4 }, i) * 2
    x[{ {}, 4 }] = x[{ {}, 1 }] + 1
    results[#results + 1] = x:clone()
    results[#results + 1] = flow.tensor { x[2]:totable(), x[{ 1, {} }]:totable() }
  end
end)

case("variables", function(results)
  local v = flow.Variable(seeded({ 3, 2 }, 1))
  for i = 1, REPEATS do
    v:assign(v * 0.5 + seeded({ 3, 2 }, i))
    v:assign_add(v:value():abs():sqrt())
    v:assign_sub({ { i, 1 }, { 1, 1 }, { 1, 1 } })
    results[#results + 1] = v:value()
  end
end)

case("gradients", function(results)
  local w, b = flow.Variable(seeded({ 3, 2 }, 1)), flow.Variable(flow.zeros { 2 })
  local optimizer = flow.optimizers.Adam { learning_rate = 0.1, clipnorm = 1 }
  for i = 1, REPEATS do
    local tape = flow.GradientTape()
    local x = seeded({ 5, 3 }, i)
    tape:watch(x)
    local loss = tape:record(function() return (x:matmul(w) + b):square():mean() + flow.tanh(x * 2):sum() end)
    local gradients = tape:gradient(loss, { w, b, x })
    optimizer:apply_gradients({ gradients[1], gradients[2] }, { w, b })
    results[#results + 1], results[#results + 2], results[#results + 3] = w:value(), b:value(), gradients[3]
  end
end)

case("a traced function", function(results)
  local w = flow.Variable(seeded({ 3, 2 }, 1))
  local step = flow.fn(function(x, factor)
    w:assign_add(flow.ones_like(w) * 0.25)
    return (x * factor):matmul(w):relu(), { total = x:sum(), list = { x:max(), w:mean() } }
  end)
  for i = 1, REPEATS do
    local y, more = step(seeded({ 2 + i % 3, 3 }, i), i % 2)
    results[#results + 1], results[#results + 2], results[#results + 3] = y, more.total, more.list[2]
  end
end)

local Scale = layers.Layer:extend("Scale")
function Scale:build(shape)
  self.gain = self:add_weight { name = "gain", shape = { shape[#shape] }, initializer = "ones", regularizer = "l2" }
end
function Scale:call(x)
  self:add_loss(x:square():mean() * 0.01)
  return x * self.gain + flow.tensor { 0.5 }
end

local function new_model()
  local input = flow.Input { 6, 6, 2 }
  local x = layers.Conv2D(3, 3, { activation = "relu", kernel_regularizer = "l1" })(input)
  x = layers.Concatenate()({ layers.MaxPooling2D()(x), layers.AveragePooling2D()(x) })
  x = layers.BatchNormalization()(layers.Dropout(0.2)(x))
  return flow.Model { inputs = input, outputs = layers.Dense(3)(Scale()(layers.Flatten()(x))) }
end

local begin_collections, end_collections

-- What another case is for is left alone where collections are many.
local function quietly(f, ...)
  end_collections()
  local result = f(...)
  begin_collections()
  return result
end

local function compiled_model()
  local model = quietly(new_model)
  model:compile { optimizer = flow.optimizers.SGD(0.05, { momentum = 0.9 }),
                  metrics = { "accuracy", flow.metrics.SparseTopKCategoricalAccuracy(2) },
                  loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  return model
end

local function data(rows) return seeded({ rows, 6, 6, 2 }, 7), flow.random.randint({ rows }, 0, 3, { seed = 8 }) end

case("layers", function(results)
  local model, x = new_model(), data(4)
  for _ = 1, REPEATS do
    results[#results + 1] = model(x * 2, { training = true })
    results[#results + 1] = flow.stack(model.losses):sum()
  end
  for _, w in ipairs(model:get_weights()) do results[#results + 1] = w end
end)

case("fit", function(results)
  local model, x, y = compiled_model(), data(9)
  local watch = flow.callbacks.LambdaCallback {
    on_train_batch_end = function(_, logs) results[#results + 1] = flow.tensor { logs.loss } * 1 end,
    on_epoch_end = function(_, logs) results[#results + 1] = model.layers[2].kernel:sum() + logs.val_accuracy end,
  }
  model:fit(x, y, { epochs = 2, batch_size = 5, verbose = 0, callbacks = { watch }, validation_split = 0.3,
                    sample_weight = flow.arange(9):to("float32") })
  results[#results + 1] = model:predict(x, { batch_size = 4, verbose = 0 })
  results[#results + 1] = model:predict_on_batch(x)
  results[#results + 1] = flow.tensor { model:train_on_batch(x, y).loss, model:test_on_batch(x, y).loss }
end)

case("data sets", function(results)
  local model, x, y = compiled_model(), data(14)
  local dataset = flow.data.Dataset.from_tensor_slices({ x, y }):shuffle(14, { seed = 2 })
    :map(function(image, label) return image * 2 + flow.ones { 1 }, label end):batch(4)
  for image, label in dataset:iter() do results[#results + 1], results[#results + 2] = image:mean(), label end
  local made = flow.data.Dataset.from_generator(function()
    local i = 0
    return function()
      i = i + 1
      if i <= 3 then return seeded({ 2 }, i) * 3, flow.tensor(i) end
    end
  end)
  for a, b in made:batch(2):iter() do results[#results + 1], results[#results + 2] = a, b end
  model:fit(dataset:cache():prefetch(2), { epochs = 2, verbose = 0 })
  for _, w in ipairs(model:get_weights()) do results[#results + 1] = w end
end)

case("checkpoints", function(results)
  local folder = support.path()
  local model, x, y = compiled_model(), data(8)
  quietly(model.fit, model, x, y, { epochs = 1, verbose = 0 })
  local step = flow.Variable(0)
  local checkpoint = flow.train.Checkpoint { model = model, optimizer = model.optimizer, step = step }
  local manager = flow.train.CheckpointManager(checkpoint, folder, { max_to_keep = 1 })
  manager:save()
  local before = model:predict(x, { verbose = 0 })
  model:set_weights((function(list)
    for i, w in ipairs(list) do list[i] = w * 0 end
    return list
  end)(model:get_weights()))
  checkpoint:restore(manager.latest_checkpoint)
  results[#results + 1], results[#results + 2] = before, model:predict(x, { verbose = 0 })
  local file = folder .. ".npy"
  flow.save_npy(file, x * 2)
  results[#results + 1] = flow.load_npy(file) - x
  model:save(folder .. ".keras")
  local read = flow.load_model(folder .. ".keras", { custom_objects = { Scale = Scale } })
  results[#results + 1] = read:predict(x, { verbose = 0 })
  os.execute(("rm -rf '%s' '%s' '%s.keras'"):format(folder, file, folder))
end)

---- running them ------------------------------------------------------------------------------------------------------------

local function text_of(results)
  local lines = {}
  local function add(value)
    if type(value) == "table" then for i = 1, #value do add(value[i]) end
    else lines[#lines + 1] = type(value) == "number" and ("%.9g"):format(value) or tostring(value) end
  end
  for i = 1, #results do add(results[i]:totable()) end
  return table.concat(lines, " ")
end

local function run(f)
  flow.clear_session()
  flow.set_random_seed(3)
  local results = {}
  flow.device(device, f, results)
  return results
end

local ffi_call = debug.getmetatable(require("ffi").new("int64_t")).__call
local function collect_before_c()
  if debug.getinfo(2, "f").func == ffi_call then collectgarbage() end
end

local collecting, pause, multiplier = false, nil, nil

-- A cycle begins when the last one has ended (pause 0), and is one step (multiplier 0); the first one is the collection here.
function begin_collections()
  if not collecting then return end
  if mode ~= "hooked" then
    pause, multiplier = collectgarbage("setpause", mode == "compiled" and 101 or 0), collectgarbage("setstepmul", 0)
    collectgarbage()
  else
    debug.sethook(collect_before_c, "c")
  end
end

function end_collections()
  if not collecting then return end
  if mode == "hooked" then return debug.sethook() end
  collectgarbage("setpause", pause)
  collectgarbage("setstepmul", multiplier)
  collectgarbage()
end

local function run_with_collections(f)
  collecting = true
  begin_collections()
  local ok, results = xpcall(run, debug.traceback, f)
  end_collections()
  collecting = false
  return ok, results
end

for _, name in ipairs(order) do
  if not wanted or wanted == name then
    local expected
    for _ = 1, mode == "compiled" and 4 or 1 do expected = text_of(run(cases[name])) end      -- what is compiled is compiled here
    local ok, results = run_with_collections(cases[name])
    if not ok then print(name .. " failed: " .. results)
    else print(name, #expected > 20 and text_of(results) == expected and "same" or "differs") end
  end
end
