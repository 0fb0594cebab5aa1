-- devices_spec.lua: tensors, ops, traced functions and models on GPUs: on two emulated ones (spec/cuda/emulation/emulation.h).
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"
local flow = require "flow"
local devices = require "flow.devices"
local message_of = support.message_of

if emulated.missing() then
  pending("devices: " .. emulated.missing())
  return
end

local GPU = { device = "gpu:0" }

local function on(device, f) return flow.device(device, f) end

local function near(expected, actual, tolerance)
  assert.same(expected.shape, actual.shape)
  local e, a = expected:flatten():totable(), actual:flatten():totable()
  for i = 1, #e do assert.near(e[i], a[i], (tolerance or 1e-5) * math.max(1, math.abs(e[i]))) end
end

describe("the names of devices", function()
  it("are what Keras and PyTorch write", function()
    assert.same({ "cpu:0", "gpu:0", "gpu:1" }, flow.config.list_devices())
    assert.same({ "gpu:0", "gpu:1" }, flow.config.list_physical_devices("GPU"))
    for _, name in ipairs { "gpu:1", "GPU:1", "/gpu:1", "/device:GPU:1", "cuda:1", "/job:worker/task:0/device:GPU:1" } do
      assert.equal("gpu:1", flow.zeros({ 2 }, { device = name }).device)
    end
    assert.equal("gpu:0", flow.zeros({ 2 }, { device = "gpu" }).device)
    assert.equal('device "gpu:2" does not exist: this process has "cpu:0" and "gpu:0" to "gpu:1"',
      message_of(function() flow.zeros({ 2 }, { device = "gpu:2" }) end))
    assert.equal('unknown device "tpu:0": use "cpu" or "gpu:0"', message_of(function() flow.device("tpu:0", print) end))
  end)

  it("give a function its device, also when it fails", function()
    assert.equal("gpu:1", on("gpu:1", function() return flow.ones { 2 }.device end))
    assert.equal("cpu", on("gpu:1", function() return on("cpu", function() return flow.ones { 2 }.device end) end))
    assert.is_false(pcall(on, "gpu:1", function() error("no") end))
    assert.equal("cpu", flow.ones { 2 }.device)
  end)
end)

describe("a tensor on a GPU", function()
  it("comes and goes as it is", function()
    local a = flow.tensor({ { 1, 2, 3 }, { 4, 5, 6 } }, GPU)
    assert.equal("gpu:0", a.device)
    assert.same({ { 1, 2, 3 }, { 4, 5, 6 } }, a:totable())
    assert.equal("Tensor float32 {2, 3} gpu:0\n[[1. 2. 3.]\n [4. 5. 6.]]", tostring(a))
    assert.is_true(a:to("gpu:0") == a)
    assert.equal("cpu", a:to("cpu").device)
    assert.equal("gpu:1", a:to("gpu:1").device)
    assert.same(a:totable(), a:to("gpu:1"):totable())
    assert.equal(6, a[{ 2, 3 }]:item())
    assert.same({ 4, 5, 6 }, a[2]:totable())
    assert.same({ 3, 6 }, a[{ {}, 3 }]:totable())
    assert.equal(5, a:data()[4])
    local values = a:to("float16")
    assert.equal("gpu:0", values.device)
    assert.same(a:totable(), values:totable())
    assert.equal("gpu:0", flow.tensor(a, { dtype = "int64" }).device)
    assert.equal("gpu:1", flow.tensor(a, { device = "gpu:1" }).device)
  end)

  it("is written in place, between gaps as well", function()
    local a = flow.zeros({ 3, 4 }, GPU)
    a[{ {}, 2 }] = 7
    a[3] = flow.tensor { 1, 2, 3, 4 }
    a[{ 1, { 3, 4 } }] = flow.tensor({ 8, 9 }, { device = "gpu:1" })
    assert.same({ { 0, 7, 8, 9 }, { 0, 7, 0, 0 }, { 1, 2, 3, 4 } }, a:totable())
  end)

  it("is made there", function()
    local shape = { 3, 4 }
    local made = {
      zeros = function(o) return flow.zeros(shape, o) end,
      ones = function(o) return flow.ones(shape, o) end,
      full = function(o) return flow.full(shape, -2.5, o) end,
      truth = function(o) return flow.full(shape, true, o) end,
      int64 = function(o) return flow.full(shape, 3, { dtype = "int64", device = o.device }) end,
      bfloat16 = function(o) return flow.full(shape, 0.1, { dtype = "bfloat16", device = o.device }) end,
      eye = function(o) return flow.eye(3, 5, o) end,
      high_eye = function(o) return flow.eye(5, 3, o) end,
      normal = function(o) return flow.random.normal(shape, { seed = 3, device = o.device }) end,
      uniform = function(o) return flow.random.uniform(shape, { seed = 3, device = o.device }) end,
      whole = function(o) return flow.random.randint(shape, 0, 9, { seed = 3, device = o.device }) end,
      part = function(o)
        local t = flow.zeros(shape, o)
        t[{ {}, { 2, 3 } }] = 7
        return t
      end,
    }
    for name, make in pairs(made) do
      local before = devices.traffic(0)
      local t = make(GPU)
      assert.same(before, devices.traffic(0), name)
      assert.equal("gpu:0", t.device)
      local expected = make { device = "cpu" }
      assert.equal(expected.dtype, t.dtype)
      near(expected:to("float64"), t:to("float64"), 1e-6)
    end
    assert.equal(-math.huge, 1 / flow.full({ 1 }, -0.0, GPU):item())
  end)

  it("is saved and loaded", function()
    local path = support.file("a.npy", "")
    flow.save_npy(path, flow.tensor({ { 1, 2 }, { 3, 4 } }, GPU)[{ {}, 2 }])
    assert.same({ 2, 4 }, flow.load_npy(path):totable())
  end)

  it("makes a data set that is read on the host", function()
    local ds = flow.data.Dataset.from_tensor_slices(flow.tensor({ 1, 2, 3 }, GPU)):batch(2)
    local seen = {}
    on("gpu:0", function()
      for x in ds:map(function(x) return x * 2 end):iter() do seen[#seen + 1] = x:totable() end
    end)
    assert.same({ { 2, 4 }, { 6 } }, seen)
  end)

  it("counts among the bytes that live", function()
    local native = require "flow.ffi"
    assert.equal(0, flow.zeros({ 1 }, GPU):item())      -- and nothing is under way
    native.collect()
    local before = native.C.flow_live_bytes()
    local a = flow.zeros({ 1000, 1000 }, GPU)
    assert.equal(0, a[{ 1, 1 }]:item())
    assert.is_true(native.C.flow_live_bytes() - before > 3.9e6)
    a:close()
    native.collect()
    assert.is_true(native.C.flow_live_bytes() - before < 1e6)
  end)

  it("says what memory it needs where there is not enough", function()
    local message = message_of(function() flow.zeros({ 20000, 20000 }, GPU) end)
    assert.matches("^gpu:0 is out of memory: 1600000000 bytes asked for, %d+ of %d+ free", message)
  end)
end)

describe("an op on a GPU", function()
  it("runs where its inputs are", function()
    local a = flow.tensor({ { 1, 2 }, { 3, 4 } }, GPU)
    assert.equal("gpu:0", (a + 1).device)
    assert.same({ { 3, 6 }, { 9, 12 } }, (a * 3):totable())
    assert.same({ { 11, 22 }, { 13, 24 } }, (flow.tensor { 10, 20 } + a):totable())      -- what is on the host comes along
    assert.same({ { 2, 3 } }, (a[{ {}, 1 }] + flow.tensor({ { 1, 0 } }, GPU)):totable())
    assert.same({ 1, 3, 2, 4 }, a:transpose():reshape(4):totable())
    assert.equal("add: one input is on gpu:0, another on gpu:1: bring them to one device with :to()",
      message_of(function() print(a + a:to("gpu:1")) end))
  end)

  it("is differentiated there", function()
    local x = flow.tensor({ 1, 2, 3 }, GPU)
    local tape = flow.GradientTape()
    tape:watch { x }
    local y = tape:record(function() return x * x * x:to("gpu:1"):to("gpu:0") end)
    local gradient = tape:gradient(y, { x })[1]
    assert.equal("gpu:0", gradient.device)
    assert.same({ 3, 12, 27 }, gradient:totable())
  end)

  it("convolves parts of tensors, which begin anywhere", function()
    local function run()
      local convolve = flow.layers.Conv2D(1, 3, { kernel_initializer = flow.initializers.RandomNormal { seed = 2 } })
      local part = flow.random.normal({ 5, 5, 5, 1 }, { seed = 1 })[{ { 2, 5 } }]
      local y, tape = convolve(part), flow.GradientTape()
      tape:watch { part }
      local square = tape:record(function() return convolve(part) * y end)
      local gradients = tape:gradient(square, { part, convolve.trainable_variables[1] })
      return square, gradients[1], gradients[2]
    end
    local expected, found = { run() }, { on("gpu:0", run) }
    for i = 1, 3 do near(expected[i], found[i]) end
  end)

  it("draws the host's random numbers", function()
    local function draw() return flow.random.normal({ 3, 5 }, { seed = 3 }) end
    near(draw(), on("gpu:0", draw))
    assert.equal("gpu:1", flow.random.uniform({ 3 }, { device = "gpu:1" }).device)
  end)
end)

describe("a variable on a GPU", function()
  it("is made, read and assigned there", function()
    local v = on("gpu:0", function() return flow.Variable(flow.tensor { 1, 2, 3 }) end)
    assert.equal("gpu:0", v.device)
    assert.same({ 2, 3, 4 }, (v + 1):totable())
    v:assign { 5, 6, 7 }
    v:assign_add(flow.tensor { 1, 1, 1 })
    assert.same({ 6, 7, 8 }, v:totable())
    assert.equal("gpu:0", v.device)
  end)
end)

describe("a traced function on a GPU", function()
  it("is recorded once for each number of rows, and reads what changed", function()
    local v, c = flow.Variable(flow.tensor { 1, 2, 3 }), flow.tensor { 10, 20, 30 }
    local f = flow.fn(function(x) return (x * 2 + v) * c, x[1] end)
    local function run(rows, value)
      local results = { f(flow.full({ rows, 3 }, value)) }
      assert.equal("gpu:0", results[1].device)
      return results[1]:totable()[rows]
    end
    on("gpu:0", function()
      for i = 1, 6 do
        assert.same({ 10 * (2 * i + 1), 20 * (2 * i + 2), 30 * (2 * i + 3) }, run(i % 2 + 3, i))
      end
      assert.equal("gpu:0", v.device)
      v:assign { 0, 0, 1 }
      assert.same({ 20, 40, 90 }, run(4, 1))
    end)
    assert.same({ { 20, 40, 90 } }, (f(flow.ones { 1, 3 })):totable())      -- on the CPU again, and its variable, too
    assert.equal("cpu", v.device)
  end)
end)

describe("a model on a GPU", function()
  local layers = flow.layers
  local x, y

  local function net()
    flow.clear_session()
    flow.set_random_seed(1)
    local model = flow.Sequential {
      layers.Input { 8, 8, 3 }, layers.Conv2D(5, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.BatchNormalization(),
      layers.Flatten(), layers.Dropout(0.3), layers.Dense(4, { activation = "softmax" }),
    }
    model:compile { optimizer = "adam", loss = "sparse_categorical_crossentropy", metrics = { "accuracy" } }
    return model
  end

  setup(function()
    x, y = flow.random.normal({ 50, 8, 8, 3 }, { seed = 1 }), flow.random.randint({ 50 }, 0, 4, { seed = 2 })
  end)

  local HOW = { epochs = 3, verbose = 0, batch_size = 16 }

  it("learns what it learns on the CPU, from tensors and from data sets", function()
    local expected = net():fit(x, y, HOW).history
    local model
    local found = on("gpu:0", function()
      model = net()
      return model:fit(x, y, HOW).history
    end)
    for epoch = 1, 3 do
      assert.near(expected.loss[epoch], found.loss[epoch], 1e-5)
      assert.equal(expected.accuracy[epoch], found.accuracy[epoch])
    end
    for _, v in ipairs(model.variables) do assert.equal("gpu:0", v.device) end
    assert.near(model:evaluate(x, y, { verbose = 0 }).loss,
      model:evaluate(flow.data.Dataset.from_tensor_slices({ x, y }):batch(16), { verbose = 0 }).loss, 1e-6)
    assert.equal("cpu", model:predict(x, { verbose = 0 }).device)
  end)

  it("goes on there after it began on the CPU, with its optimizer", function()
    local expected = net()
    expected:fit(x, y, { epochs = 2, verbose = 0, shuffle = false })
    local model = net()
    model:fit(x, y, { epochs = 1, verbose = 0, shuffle = false })
    on("gpu:1", function() model:fit(x, y, { epochs = 1, verbose = 0, shuffle = false }) end)
    for i, v in ipairs(model.variables) do
      assert.equal("gpu:1", v.device)
      near(expected.variables[i]:value(), v:value(), 1e-4)
    end
  end)

  it("is saved and loaded", function()
    local model = on("gpu:0", net)
    local path = support.file("m.keras", "")
    model:save(path)
    near(model:predict(x, { verbose = 0 }), flow.load_model(path):predict(x, { verbose = 0 }))
    local again = on("gpu:1", function() return flow.load_model(path) end)
    assert.equal("gpu:1", again.variables[1].device)
    near(model:predict(x, { verbose = 0 }), again:predict(x, { verbose = 0 }))
  end)

  it("stays as it was when a step is refused", function()
    local model = on("gpu:0", net)
    model:fit(x, y, HOW)
    local before = {}
    for i, v in ipairs(model.variables) do before[i] = v:value() end
    assert.matches("label 9 in row %d+ is outside 0..3, step 12", message_of(function() model:train_on_batch(x, y * 0 + 9) end))
    for i, v in ipairs(model.variables) do assert.same(before[i]:flatten():totable(), v:value():flatten():totable()) end
    model:fit(x, y, HOW)
  end)

  it("is not written by a refused step nor by those after it, though nobody waits for them", function()
    on("gpu:0", function()
      local model, optimizer = net(), flow.optimizers.Adam { learning_rate = 0.1 }
      local loss_of, seen = flow.losses.SparseCategoricalCrossentropy(), flow.Variable(flow.zeros { 2 })
      local step = flow.fn(function(images, labels)
        local tape = flow.GradientTape()
        local loss = tape:record(function() return loss_of(labels, model(images)) end)
        optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
        seen:assign_add(flow.ones { 2 })
        return loss
      end)
      local function values()
        local list = { seen:value():totable() }
        for i, v in ipairs(model.variables) do list[i + 1] = v:value():flatten():totable() end
        return list
      end
      for _ = 1, 4 do step(x, y) end      -- the last ones repeat a recording
      local before = values()
      assert.same({ 4, 4 }, before[1])
      local wrong = y:totable()
      wrong[3] = 9
      step(x, flow.tensor(wrong, { dtype = y.dtype }))
      for _ = 1, 3 do step(x, y) end
      assert.matches("label 9 in row 3 is outside 0..3, step 5", message_of(values))
      assert.same(before, values())
      step(x, y)
      local after = values()
      assert.same({ 5, 5 }, after[1])
      assert.are_not.same(before[2], after[2])
    end)
  end)

  it("multiplies by weights that begin anywhere", function()
    local function losses()
      flow.set_random_seed(3)
      local model = flow.Sequential { layers.Input { 5 }, layers.Dense(7, { activation = "tanh" }), layers.Dense(9), layers.Dense(3) }
      model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
      local list = {}
      for i = 1, 3 do list[i] = model:train_on_batch(flow.random.uniform({ 6, 5 }, { seed = i }), flow.zeros { 6, 3 }).loss end
      return list
    end
    local expected, found = losses(), on("gpu:0", losses)
    for i = 1, 3 do assert.near(expected[i], found[i], 1e-5) end
  end)

  it("makes no context on a GPU that it does not use", function()
    local script = support.file("second.lua", [[
      local layers = flow.layers
      local model = flow.Sequential { layers.Input { 8, 8, 3 }, layers.Conv2D(4, 3, { activation = "relu" }), layers.MaxPooling2D(),
        layers.BatchNormalization(), layers.Flatten(), layers.Dropout(0.5), layers.Dense(3, { activation = "softmax" }) }
      model:compile { optimizer = "adam", loss = "sparse_categorical_crossentropy", metrics = { "accuracy" } }
      local x = flow.random.uniform({ 10, 8, 8, 3 }, { seed = 1 })
      local y = flow.random.uniform({ 10 }, { maxval = 3, dtype = "int32", seed = 2 })
      local history = model:fit(x, y, { batch_size = 4, epochs = 2, verbose = 0, validation_data = { x, y } })
      print(model.weights[1]:value().device, #history.history.val_loss, model:predict(x, { verbose = 0 }).shape[2])
    ]])
    local output, code = support.run(("FLOW_PLUGINS=%s FLOW_EMULATED_ONLY=1 FLOW_DEVICE=gpu:1 %s %s 2>&1")
      :format(emulated.folder, support.program, script))
    assert.equal("gpu:1\t2\t3\n", output)
    assert.equal(0, code)
  end)

  it("learns in its own loop", function()
    local function run()
      local model, optimizer = net(), flow.optimizers.SGD { learning_rate = 0.1 }
      local loss_of = flow.losses.SparseCategoricalCrossentropy()
      local step = flow.fn(function(images, labels)
        local tape = flow.GradientTape()
        local loss = tape:record(function() return loss_of(labels, model(images)) end)
        optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss
      end)
      local losses = {}
      for i = 1, 4 do losses[i] = step(x, y):item() end
      return losses
    end
    local expected, found = run(), on("gpu:0", run)
    for i = 1, 4 do assert.near(expected[i], found[i], 1e-5) end
  end)
end)
