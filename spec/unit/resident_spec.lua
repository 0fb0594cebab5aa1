-- resident_spec.lua: data that stays on the device where a model learns: what goes there and back, counted, and that nothing else changes.
-- On emulated GPUs (spec/cuda/emulation/emulation.h).
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"
local flow = require "flow"
local devices = require "flow.devices"
local message_of = support.message_of

if emulated.missing() then
  pending("data on devices: " .. emulated.missing())
  return
end

local layers, Dataset = flow.layers, flow.data.Dataset
local ROWS, SIZE, STEPS, EPOCHS = 50, 8, 7, 3      -- the last batch has 2 rows
local x, y, weights, xv, yv

setup(function()
  x = flow.random.randint({ ROWS, 5, 4 }, 0, 255, { seed = 1 }):to("uint8")
  y = flow.random.normal({ ROWS, 2 }, { seed = 2 })
  weights = flow.random.uniform({ ROWS }, { seed = 3 })
  xv, yv = x[{ { 1, 20 } }]:contiguous(), y[{ { 1, 20 } }]:contiguous()
end)

local function net(options)
  flow.clear_session()
  flow.set_random_seed(1)
  local model = flow.Sequential {
    layers.Input { 5, 4, dtype = "uint8" }, layers.Rescaling(1 / 255), layers.Flatten(), layers.Dense(6, { activation = "relu" }),
    layers.Dropout(0.3), layers.Dense(2),
  }
  options = options or {}
  model:compile { optimizer = "adam", loss = "mse", metrics = { "mae" }, steps_per_execution = options.per_execution }
  return model
end

-- What gpu:0 was asked for while f ran.
local function traffic_of(f)
  local before = devices.traffic(0)
  f()
  local after = devices.traffic(0)
  for name, count in pairs(before) do after[name] = after[name] - count end
  return after
end

-- At each epoch's beginning, what the one before it brought; the last of them is the whole epoch EPOCHS - 1.
local EpochTraffic = flow.callbacks.Callback:extend("EpochTraffic")
function EpochTraffic:init() self.epochs = {} end
function EpochTraffic:on_epoch_begin() self.before = devices.traffic(0) end
function EpochTraffic:on_epoch_end()
  local now = devices.traffic(0)
  for name, count in pairs(self.before) do now[name] = now[name] - count end
  table.insert(self.epochs, now)
end

-- Losses and variables of a fit on the CPU and on gpu:0, which must agree; returns the traffic of the last epoch there.
local function check(fit, options)
  local function run(device)
    return flow.device(device, function()
      local model, traffic = net(options), EpochTraffic()
      local history = fit(model, { traffic })
      return history.history, model, traffic.epochs
    end)
  end
  devices.traffic(0)
  local expected, cpu = run("cpu")
  local found, gpu, epochs = run("gpu:0")
  for key, values in pairs(expected) do
    for epoch = 1, #values do assert.near(values[epoch], found[key][epoch], 2e-6 * math.max(1, math.abs(values[epoch]))) end
  end
  for i, v in ipairs(cpu.variables) do
    local e, a = v:value():flatten():totable(), gpu.variables[i]:value():flatten():totable()
    for k = 1, #e do assert.near(e[k], a[k], 1e-5) end
  end
  return epochs[#epochs], epochs[1]
end

local SCALARS = 48       -- bytes that go up for each step
local LAUNCHES = 3       -- of STEPS: 6 whole batches go as 4 and 2, the last one by itself
local METRICS = 4        -- numbers read at the end of an epoch: total and count of loss and mae

describe("arrays that a model on a GPU learns from", function()
  it("go there once: an epoch brings an order, and what differs from step to step", function()
    local last = check(function(model, list)
      return model:fit(x, y, { epochs = EPOCHS, batch_size = SIZE, verbose = 0, callbacks = list })
    end)
    assert.equal(LAUNCHES + 1, last.uploads)
    assert.equal(LAUNCHES, last.replays)
    assert.equal(STEPS * SCALARS + 8 * ROWS, last.uploaded_bytes)
    assert.equal(METRICS, last.downloads)
    assert.equal(1, last.waits)
  end)

  it("are read where they are if they are not shuffled", function()
    local last = check(function(model, list)
      return model:fit(x, y, { epochs = EPOCHS, batch_size = SIZE, verbose = 0, shuffle = false, callbacks = list })
    end)
    assert.equal(LAUNCHES, last.uploads)
    assert.equal(STEPS * SCALARS, last.uploaded_bytes)
    assert.equal(1, last.waits)
  end)

  it("bring weights, validation data and parts of an epoch along", function()
    local last = check(function(model, list)
      return model:fit(x, y, { epochs = EPOCHS, batch_size = SIZE, verbose = 0, sample_weight = weights, validation_data = { xv, yv },
                               callbacks = list })
    end)
    assert.equal(LAUNCHES + 1 + 2, last.uploads)      -- 20 rows in batches of 8; what metrics are reset to in between is there
    assert.equal(2 * METRICS, last.downloads)
    assert.equal(2, last.waits)
    check(function(model, list)
      return model:fit(x, y, { epochs = EPOCHS, batch_size = SIZE, verbose = 0, validation_split = 0.2, steps_per_epoch = 3,
                               callbacks = list })
    end)
  end)

  it("may be others in the next fit, and the first ones again in the fit after that", function()
    local other, same = x[{ { 11, 50 } }]:contiguous(), flow.add(y, 1)
    check(function(model, list)
      model:fit(x, y, { epochs = 2, batch_size = SIZE, verbose = 0 })
      model:fit(other, same[{ { 1, 40 } }]:contiguous(), { epochs = 2, batch_size = SIZE, verbose = 0, shuffle = false })
      model:evaluate(other, y[{ { 1, 40 } }]:contiguous(), { batch_size = SIZE, verbose = 0 })
      model:fit(x, same, { epochs = 2, batch_size = SIZE, verbose = 0 })
      return model:fit(x, y, { epochs = EPOCHS, batch_size = SIZE, verbose = 0, shuffle = false, callbacks = list })
    end)
  end)

  it("go in pieces of sixteen batches at most", function()
    local last = check(function(model, list)
      return model:fit(x, y, { epochs = EPOCHS, batch_size = 1, verbose = 0, callbacks = list })
    end)
    assert.equal(3 + 1, last.replays)      -- of 50 batches: 16 each, and 2
  end)

  it("are fed batch by batch where there is no room", function()
    local free = devices.free_memory
    devices.free_memory = function() return 1000 end      -- as on a GPU that is nearly full
    local ok, last = pcall(check, function(model, list)
      return model:fit(x, y, { epochs = EPOCHS, batch_size = SIZE, verbose = 0, callbacks = list })
    end)
    devices.free_memory = free
    assert(ok, last)
    assert.equal(3 * STEPS, last.uploads)
    assert.equal(STEPS * SCALARS + ROWS * (20 + 8), last.uploaded_bytes)
    assert.equal(1, last.waits)
  end)

  it("name the row that a label is wrong in as ever", function()
    flow.device("gpu:0", function()
      local model = net()
      model:compile { optimizer = "sgd", loss = "sparse_categorical_crossentropy" }
      local labels = flow.zeros({ ROWS }, { dtype = "int64", device = "cpu" })
      labels[11] = 9
      assert.matches("label 9 in row %d+ is outside 0..1", message_of(function() model:fit(x, labels, { verbose = 0 }) end))
      model:fit(x, flow.zeros({ ROWS }, { dtype = "int64" }), { verbose = 0, batch_size = 4 })
      local before = model.variables[1]:value():totable()
      assert.matches("label 9 in row 3 is outside 0..1", message_of(function()
        model:fit(x, labels, { verbose = 0, batch_size = 4, shuffle = false })
      end))
      local third = model.variables[1]:value():totable()
      assert.not_same(before, third)      -- two batches were right
      local xs, ys = x[{ { 9, 50 } }]:contiguous(), labels[{ { 9, 50 } }]:contiguous()
      message_of(function() model:fit(xs, ys, { verbose = 0, batch_size = 4, shuffle = false }) end)
      assert.same(third, model.variables[1]:value():totable())
    end)
  end)
end)

describe("several steps per execution", function()
  it("make a GPU be waited for after each of them only, if somebody looks", function()
    local seen = {}
    local last = check(function(model, list)
      list[2] = flow.callbacks.LambdaCallback { on_train_batch_end = function(batch, logs) table.insert(seen, { batch, logs.loss }) end }
      return model:fit(x, y, { epochs = EPOCHS, batch_size = SIZE, verbose = 0, callbacks = list })
    end, { per_execution = 3 })
    assert.equal(METRICS * (3 + 1), last.downloads)      -- 7 steps are 3 executions
    assert.equal(1, last.waits)
    assert.same({ 2, 5, 8 }, { seen[1][1], seen[2][1], seen[3][1] })
    assert.equal(2 + 2 + 1, last.replays)      -- three batches go as 2 and 1
    assert.equal(2 * EPOCHS * 3, #seen)
  end)
end)

describe("a pipeline of rows that come again", function()
  local function counted(make)
    return check(function(model, list)
      flow.set_random_seed(5)
      return model:fit(make(), { epochs = EPOCHS, verbose = 0, callbacks = list })
    end)
  end

  local ORDER = 16 * SIZE * 8      -- bytes: numbers of the rows of 16 batches

  local function is_resident(last, first)
    assert.equal(LAUNCHES + 2, last.uploads)      -- numbers of the rows of the whole batches, and of the last one
    assert.equal(LAUNCHES, last.replays)
    assert.equal(STEPS * SCALARS + 2 * ORDER, last.uploaded_bytes)
    assert.equal(METRICS, last.downloads)
    assert.equal(1, last.waits)
    local more = first.uploaded_bytes - last.uploaded_bytes - ROWS * (20 + 8)
    assert.is_true(more >= 0 and more < 2 * ORDER)      -- of the rows, and what the first step is built with
  end

  it("sends each row once", function()
    is_resident(counted(function() return Dataset.from_tensor_slices({ x, y }):shuffle(20):batch(SIZE) end))
    is_resident(counted(function() return Dataset.from_tensor_slices({ x, y }):batch(SIZE):prefetch(2) end))
    is_resident(counted(function()
      return Dataset.from_tensor_slices({ x, y }):map(function(a, b) return a, b * 2 end):cache():shuffle(30):batch(SIZE):prefetch(1)
    end))
  end)

  it("is gathered for each batch where x and y have their own rows that come again", function()
    local last = counted(function()
      local few = Dataset.from_tensor_slices(y[{ { 1, 5 } }]:contiguous()):repeat_(10)
      return Dataset.zip(Dataset.from_tensor_slices(x), few):cache():batch(SIZE)
    end)
    assert.equal(STEPS * (1 + 2), last.uploads)      -- scalars, and the numbers of rows of x and of y
    assert.equal(METRICS, last.downloads)
    assert.equal(1, last.waits)
  end)

  it("of many batches sends the numbers of sixteen at a time, and of fewer where somebody looks", function()
    local function run(list, options)
      return check(function(model, seen)
        table.insert(list, 1, seen[1])
        flow.set_random_seed(5)
        return model:fit(Dataset.from_tensor_slices({ x, y }):shuffle(30):batch(1), { epochs = EPOCHS, verbose = 0, callbacks = list })
      end, options)
    end
    local last = run {}
    assert.equal(3 + 1, last.replays)      -- of 50 batches: 16 each, and 2
    assert.equal(2 * 4, last.uploads)
    local ends = {}
    local watcher = flow.callbacks.LambdaCallback { on_train_batch_end = function(batch) table.insert(ends, batch) end }
    last = run({ watcher }, { per_execution = 8 })
    assert.equal(6 + 1, last.replays)
    assert.same({ 7, 15, 23, 31, 39, 47, 55, 7 }, { unpack(ends, 1, 8) })
  end)

  it("is fed from the host where its rows do not come again, or something is done with batches", function()
    local last = counted(function() return Dataset.from_tensor_slices({ x, y }):map(function(a, b) return a, b * 2 end):batch(SIZE) end)
    assert.equal(STEPS * SCALARS + ROWS * (20 + 8), last.uploaded_bytes)
    last = counted(function() return Dataset.from_tensor_slices({ x, y }):batch(SIZE):map(function(a, b) return a, b * 2 end) end)
    assert.equal(STEPS * SCALARS + ROWS * (20 + 8), last.uploaded_bytes)
  end)

  it("may be repeated, cut, and limited to steps", function()
    check(function(model, list)
      flow.set_random_seed(5)
      local dataset = Dataset.from_tensor_slices({ x, y }):skip(3):take(40):shuffle(10):repeat_():batch(SIZE, { drop_remainder = true })
      return model:fit(dataset, { epochs = EPOCHS, steps_per_epoch = 4, verbose = 0, callbacks = list,
                                  validation_data = Dataset.from_tensor_slices({ xv, yv }):cache():batch(6) })
    end)
  end)
end)

describe("predictions of a GPU", function()
  it("come in one piece, or by executions if somebody looks", function()
    local expected = net():predict(x, { batch_size = SIZE, verbose = 0 }):totable()
    flow.device("gpu:0", function()
      local model, found = net(), nil
      model:predict(x, { batch_size = SIZE, verbose = 0 })
      local counts = traffic_of(function() found = model:predict(x, { batch_size = SIZE, verbose = 0 }) end)
      assert.equal(1, counts.downloads)
      assert.equal(0, counts.waits)
      for i, row in ipairs(found:totable()) do
        for k, value in ipairs(row) do assert.near(expected[i][k], value, 1e-5) end
      end
      local dataset = Dataset.from_tensor_slices(x):batch(SIZE)
      counts = traffic_of(function() assert.same(found:totable(), model:predict(dataset, { verbose = 0 }):totable()) end)
      assert.equal(1, counts.downloads)
      local shapes = {}
      local list = { flow.callbacks.LambdaCallback {} }
      list[1].on_predict_batch_end = function(_, batch, logs)
        table.insert(shapes, { batch, logs.outputs.device, logs.outputs.shape[1] })
      end
      model:compile { optimizer = "sgd", loss = "mse", steps_per_execution = 3 }
      counts = traffic_of(function() model:predict(x, { batch_size = SIZE, verbose = 0, callbacks = list }) end)
      assert.same({ { 2, "cpu", 24 }, { 5, "cpu", 24 }, { 8, "cpu", 2 } }, shapes)
      assert.equal(3, counts.downloads)
    end)
  end)
end)
