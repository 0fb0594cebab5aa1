-- The scripts that the documentation of the API shows, as a user would type them: they must run as they are.

local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local folder = debug.getinfo(1, "S").source:match("^@(.*)spec/unit/contract_spec%.lua$")

describe("The API as documented:", function()
  before_each(function() flow.set_random_seed(1) end)

  it("tensors and the prompt", function()
    local a = flow.tensor({ {1, 2}, {3, 4} })
    local b = flow.random.normal({2, 2}, { seed = 7 })
    local line = table.concat({ tostring(a:matmul(b) + 1), a.shape[1], a.dtype, a.device, #a }, " ")
    assert.truthy(line:find("2 float32 cpu 2$"))
    assert.are.same({ 1, 2 }, a[1]:totable())
    assert.are.equal(2, a[{1, 2}]:item())
    assert.are.same({ {1}, {3} }, a[{ {}, {1, 1} }]:totable())
    assert.are.equal(10, a:sum():item())
    assert.are.same({ 4, 6 }, a:sum(1):totable())
    assert.are.same({ {1.5}, {3.5} }, a:mean(-1, true):totable())
    assert.are.same({ 2, 2 }, a:argmax(2):totable())
    assert.has_error(function() a:item() end)
    assert.are.equal("float16", a:to("float16").dtype)
    assert.are.same({ 1, 2, 3, 4 }, a:reshape {4}:totable())
    local memory = require("ffi").new("float[4]", 1, 2, 3, 4)
    local view = flow.frombuffer(memory, {2, 2}, "float32")
    memory[3] = 7
    assert.are.equal(7, view[{2, 2}]:item())
    assert.are.equal(1, a:data()[0])
    local path = support.path()
    flow.save_npy(path, a)
    assert.are.same(a:totable(), flow.load_npy(path):totable())
    os.remove(path)
    a[1] = 0
    assert.are.same({ {0, 0}, {3, 4} }, a:totable())
    assert.are.same({ {true, true}, {false, true} }, a:eq(flow.tensor { {0, 0}, {1, 4} }):totable())
    assert.is_false(a == flow.tensor { {0, 0}, {3, 4} })
    assert.has_error(function() return a.no_such_field end)
  end)

  it("the whole job on tensors", function()
    local strategy = flow.distribute.MirroredStrategy()
    assert.are.equal(1, strategy.num_replicas_in_sync)
    local x = flow.random.uniform({8, 20, 20, 3}, { seed = 1 }) * 255
    local y = flow.tensor({ 0, 1, 2, 3, 4, 0, 1, 2 }, { dtype = "int32" })
    local model
    strategy.scope(function()
      model = flow.Sequential {
        layers.Input { 20, 20, 3 },
        layers.Rescaling(1/255),
        layers.Conv2D(16, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(128, { activation = "relu" }),
        layers.Dense(5, { activation = "softmax" }),
      }
      model:compile { optimizer = flow.optimizers.Adam(), loss = flow.losses.SparseCategoricalCrossentropy(), metrics = { "accuracy" } }
    end)
    local history = model:fit(x, y, { validation_data = { x, y }, epochs = 10, verbose = 0 })
    assert.are.equal(10, #history.history.loss)
    assert.are.equal(10, #history.history.val_accuracy)
    assert.is_true(history.history.loss[10] < history.history.loss[1])
  end)

  it("functional models, layers written in Lua and a custom step", function()
    local input = flow.Input { 28, 28, 1 }
    local h = layers.Conv2D(32, 3, { activation = "relu" })(input)
    local out = layers.Dense(10)(layers.GlobalAveragePooling2D()(layers.Add()({ h, layers.Conv2D(32, 1)(h) })))
    local functional = flow.Model { inputs = input, outputs = out }
    assert.are.same({ -1, 10 }, functional.output_shape)

    local Scale = layers.Layer:extend("Scale")
    function Scale:build(input_shape)
      self.gain = self:add_weight { name = "gain", shape = { input_shape[#input_shape] }, initializer = "ones" }
    end
    function Scale:call(x) return x * self.gain end

    local model = flow.Sequential { layers.Flatten(), layers.Dense(16, { activation = "relu" }), Scale(), layers.Dense(10) }
    local loss_fn = flow.losses.SparseCategoricalCrossentropy { from_logits = true }
    local optimizer = flow.optimizers.Adam(0.01)
    local traces = 0
    local train_step = flow.fn(function(x, y)
      traces = traces + 1
      local tape = flow.GradientTape()
      local loss = tape:record(function() return loss_fn(y, model(x, { training = true })) end)
      optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
      return loss
    end)
    local x_train, y_train = flow.datasets.mnist { path = folder .. "lua/examples/digits" }
    local first, last
    for _ = 1, 3 do
      for begin = 1, 1500, 64 do
        local finish = math.min(begin + 63, 1500)
        local loss = train_step(x_train[{ {begin, finish} }]:to("float32") / 255, y_train[{ {begin, finish} }])
        first = first or loss:item()
        last = loss:item()
      end
    end
    assert.are.equal(1, traces)           -- the last batch of 28 rows runs the same plan
    assert.is_true(last < first / 2)

    local strategy = flow.distribute.MirroredStrategy()
    local per_replica = strategy:run(train_step, { x_train[{ {1, 64} }]:to("float32") / 255, y_train[{ {1, 64} }] })
    assert.is_true(strategy:reduce("sum", per_replica):item() < first)
  end)

  it("a residual block with BatchNormalization and a layer written in Lua train in one plan", function()
    local calls = 0
    local Scale = layers.Layer:extend("Scale")
    function Scale:build(input_shape) self.gain = self:add_weight { name = "gain", shape = { input_shape[4] }, initializer = "ones" } end
    function Scale:call(x)
      calls = calls + 1
      return x * self.gain
    end
    local input = flow.Input { 8, 8, 3 }
    local h = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, { padding = "same" })(input)))
    h = layers.Add()({ Scale()(h), layers.Conv2D(8, 1)(input) })
    local model = flow.Model { inputs = input, outputs = layers.Dense(4)(layers.GlobalAveragePooling2D()(h)) }
    model:compile { optimizer = flow.optimizers.Adam(0.01), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    local y = flow.random.randint({ 50 }, 0, 4, { seed = 2 })
    local x = flow.random.normal({ 50, 8, 8, 3 }, { seed = 1 }) + y:to("float32"):reshape { 50, 1, 1, 1 }
    local before = model.trainable_variables
    local values = {}
    for i, v in ipairs(before) do values[i] = v:value():totable() end
    model:fit(x, y, { batch_size = 16, verbose = 0 })                     -- batches of 16, 16, 16 and 2 rows
    local traced = calls
    local history = model:fit(x, y, { epochs = 20, batch_size = 16, verbose = 0 })
    assert.are.equal(traced, calls)                                       -- Lua ran while tracing, never again
    assert.is_true(history.history.loss[20] < history.history.loss[1])
    for i, v in ipairs(before) do assert.are_not.same(values[i], v:value():totable()) end
  end)

  it("errors name the layer, what was found and what was expected", function()
    local ok, message = pcall(function() layers.Conv2D(16, 3)(flow.ones { 128 }) end)
    assert.is_false(ok)
    assert.truthy(message:find('Conv2D "conv2d[_%d]*": input has 1 dimension {128}, expected 4 {batch, height, width, channels}'))
    assert.truthy(message:find("contract_spec.lua:", 1, true))
  end)
end)
