-- mirrored_spec.lua: strategies of several replicas on logical CPU devices: values of replicas, and data sets that are split over them.
local support = require "spec.support.init"
local flow = require "flow"
local distribute = flow.distribute
local message_of = support.message_of

local said = {}
flow.log.sink = function(level, text) said[#said + 1] = level .. " " .. text end

local function has(message, text)
  assert.truthy(message:find(text, 1, true), message)
end

local function lists(value)
  local result = {}
  for i, entry in ipairs(value.values) do result[i] = entry:totable() end
  return result
end

describe("logical devices", function()
  it("divide the CPU, until a strategy relies on them", function()
    assert.same({ "cpu:0" }, flow.config.list_logical_devices("cpu"))
    has(message_of(function() flow.config.set_logical_devices("gpu", 2) end), "a GPU cannot be divided")
    has(message_of(function() flow.config.set_logical_devices("cpu", 0) end), "a whole number of devices from 1 to 64, got the number 0")
    flow.config.set_logical_devices("cpu", 2)
    flow.config.set_logical_devices("CPU", 4)
    assert.same({ "cpu:0", "cpu:1", "cpu:2", "cpu:3" }, flow.config.list_logical_devices("cpu"))
    assert.same({ "cpu:0" }, flow.config.list_devices("cpu"))
    assert.same(flow.config.list_devices("GPU"), flow.config.list_logical_devices("GPU"))
    assert.equal("cpu", flow.ones({ 1 }, { device = "cpu:3" }).device)
    has(message_of(function() flow.ones({ 1 }, { device = "cpu:4" }) end), '"cpu:0" to "cpu:3"')

    said = {}
    assert.equal(4, distribute.MirroredStrategy().num_replicas_in_sync)
    assert.same({ "info Using MirroredStrategy with devices (cpu:0, cpu:1, cpu:2, cpu:3)" }, said)
    assert.equal(2, distribute.MirroredStrategy { "cpu:1", "/CPU:3" }.num_replicas_in_sync)
    flow.config.set_logical_devices("cpu", 4)
    has(message_of(function() flow.config.set_logical_devices("cpu", 3) end), "MirroredStrategy was made with the devices as they are, 4")
  end)
end)

describe("values of three replicas", function()
  local strategy
  setup(function() strategy = distribute.MirroredStrategy { "cpu:0", "cpu:1", "cpu:2" } end)
  local function numbers(f)
    return strategy:experimental_distribute_values_from_function(function(context) return f(context.replica_id_in_sync_group) end)
  end

  it("come from run and go into it, also in tables", function()
    local x = numbers(function(i) return flow.tensor { i, 10 * i } end)
    assert.same({ { 0, 0 }, { 1, 10 }, { 2, 20 } }, lists(x))
    has(tostring(x), "PerReplica {\n  0: Tensor float32 {2} cpu")
    local sum, table_of, constant, none = strategy:run(function(values, factor)
      local id = distribute.get_replica_context().replica_id_in_sync_group
      return values.x * factor + id, { list = { values.x } }, "text", nil
    end, { { x = x }, 2 })
    assert.same({ { 0, 0 }, { 3, 21 }, { 6, 42 } }, lists(sum))
    assert.same({ { 0, 0 }, { 1, 10 }, { 2, 20 } }, lists(table_of.list[1]))
    assert.equal("text", constant)
    assert.is_nil(none)
    assert.equal(x.values[2], strategy:experimental_local_results(x)[2])
  end)

  it("are reduced", function()
    local x = numbers(function(i) return flow.tensor { i, 10 * i } end)
    assert.same({ 3, 30 }, strategy:reduce("sum", x):totable())
    assert.same({ 1, 10 }, strategy:reduce("MEAN", x):totable())
    assert.equal(33, strategy:reduce("sum", x, 1):item())
    assert.equal(5.5, strategy:reduce("mean", x, -1):item())
    assert.equal(6, strategy:reduce("sum", numbers(function(i) return i + 1 end)):item())
  end)

  it("count every element once in a mean over an axis, however uneven they are", function()
    local uneven = numbers(function(i) return i == 2 and flow.zeros { 0 } or flow.full({ 3 - i }, i + 1) end)
    assert.equal(7, strategy:reduce("sum", uneven, 1):item())
    assert.near(7 / 5, strategy:reduce("mean", uneven, 1):item(), 1e-6)
    assert.same({ 1, 1, 1, 2, 2 }, strategy:gather(uneven, 1):totable())
    has(message_of(function() strategy:reduce("sum", uneven) end), "replica 0 has float32 {3}, replica 1 has float32 {2}")
    local whole = numbers(function(i) return flow.tensor({ i, i + 1 }, { dtype = "int32" }) end)
    assert.equal(1.5, strategy:reduce("mean", whole, 1):item())
  end)

  it("are gathered in their order", function()
    local x = numbers(function(i) return flow.tensor { { i, i } } end)
    assert.same({ { 0, 0 }, { 1, 1 }, { 2, 2 } }, strategy:gather(x, 1):totable())
    assert.same({ { 0, 0, 1, 1, 2, 2 } }, strategy:gather(x, 2):totable())
    has(message_of(function() strategy:gather(numbers(function(i) return flow.tensor(i) end)) end), "single numbers have no axis")
    has(message_of(function() strategy:reduce("sum", x, 3) end), "there is no axis 3 in a value of 2 dimensions")
  end)

  it("are not what is the same everywhere", function()
    local variable = flow.Variable { 1, 2 }
    assert.same({ 1, 2 }, strategy:reduce("mean", variable):totable())
    assert.same({ 3, 6 }, strategy:reduce("sum", variable):totable())
    assert.same({ 5 }, strategy:reduce("mean", flow.tensor { 5 }):totable())
    assert.equal(0, strategy:reduce("sum", 0):item())
    has(message_of(function() strategy:reduce("sum", flow.tensor { 5 }) end), '"sum" of a value that is not PerReplica')
  end)

  it("run in a traced function, which stays Lua", function()
    local x = numbers(function(i) return flow.tensor { i, i } end)
    local runs, traces = 0, 0
    local function step(y, factor) traces = traces + 1 return (y * factor):sum() end
    local f = flow.fn(function(y)
      runs = runs + 1
      return strategy:reduce("sum", strategy:run(step, { y, 2 }))
    end)
    local first, again = f(x):item(), f(x):item()
    assert.same({ 12, 12 }, { first, again })
    assert.equal(1, traces)
    assert.equal(3, runs)       -- the first time until it was found out
  end)

  it("cannot be part of what is one plan", function()
    local function run(y) return strategy:run(function(z) return z end, { y }) end
    has(message_of(function() flow.GradientTape():record(run, flow.ones { 2 }) end), "strategy:run of 3 replicas cannot be part of")
    has(message_of(function() flow.data.Dataset.range(3):map(run) end), "strategy:run of 3 replicas cannot be part of")
  end)
end)

describe("losses of a custom loop", function()
  it("are divided by the samples of all replicas", function()
    local strategy = distribute.MirroredStrategy { "cpu:0", "cpu:1" }
    local losses = strategy:experimental_distribute_values_from_function(function(c)
      return flow.tensor { 1, 2 + 4 * c.replica_id_in_sync_group }
    end)
    local function total(f) return strategy:reduce("sum", (strategy:run(f, { losses }))):item() end
    assert.equal((1 + 2 + 1 + 6) / 4, total(function(loss) return flow.nn.compute_average_loss(loss) end))
    assert.equal(1, total(function(loss) return flow.nn.compute_average_loss(loss, { global_batch_size = 10 }) end))
    assert.equal((2 + 1 + 2 + 3) / 4, total(function(loss)
      return flow.nn.compute_average_loss(loss, { sample_weight = flow.tensor { 2, 0.5 } })
    end))
    assert.equal(8, total(function() return flow.nn.scale_regularization_loss(flow.tensor { 3, 5 }) end))
    assert.equal(2, flow.nn.compute_average_loss(flow.tensor { 1, 3 }):item())
    has(message_of(function() strategy.scope(function() flow.nn.compute_average_loss(flow.ones { 2 }) end) end), "belongs in the function")
    has(message_of(function() flow.nn.compute_average_loss(3) end), "it takes a loss for each sample, got a single number")
    has(message_of(function() return flow.nn.softmaxes end), 'flow.nn has no "softmaxes"')
  end)
end)

describe("a data set split over replicas", function()
  local Dataset = flow.data.Dataset
  local strategy
  setup(function() strategy = distribute.MirroredStrategy { "cpu:0", "cpu:1", "cpu:2" } end)
  local function passes(dist)
    local found = {}
    for x in dist:iter() do found[#found + 1] = lists(x) end
    return found
  end

  it("gives each batch in equal parts, the last ones shorter or empty", function()
    local dist = strategy:experimental_distribute_dataset(Dataset.range(10):batch(4))
    local expected = { { { 0, 1 }, { 2, 3 }, {} }, { { 4, 5 }, { 6, 7 }, {} }, { { 8 }, { 9 }, {} } }
    assert.same(expected, passes(dist))
    assert.same(expected, passes(dist))
    assert.equal(3, dist:cardinality())
    assert.same({ { shape = { -1 }, dtype = "int64" } }, dist.element_spec)
    assert.equal("shared", dist:_feed_mode())
    local rows = {}
    local texts = Dataset.from_tensor_slices { flow.arange(5), { "a", "b", "c", "d", "e" } }:batch(5)
    for x, name in strategy:experimental_distribute_dataset(texts):iter() do
      for i = 1, 3 do rows[i] = { x.values[i]:totable(), name.values[i] } end
    end
    assert.same({ { { 0, 1 }, { "a", "b" } }, { { 2, 3 }, { "c", "d" } }, { { 4 }, { "e" } } }, rows)
  end)

  it("runs with what it gives", function()
    local dist, total = strategy:experimental_distribute_dataset(Dataset.range(12):batch(6)), 0
    for x in dist:iter() do total = total + strategy:reduce("sum", (strategy:run(function(v) return v:sum() end, { x }))):item() end
    assert.equal(66, total)
  end)

  it("is made for a replica by a function", function()
    local context
    local dist = strategy:distribute_datasets_from_function(function(c)
      context = c
      return Dataset.range(7):batch(c:get_per_replica_batch_size(6))
    end)
    assert.same({ { { 0, 1 }, { 2, 3 }, { 4, 5 } }, { { 6 }, {}, {} } }, passes(dist))
    assert.same({ 1, 0, 3 }, { context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync })
    assert.equal("own", dist:_feed_mode())
    has(message_of(function() context:get_per_replica_batch_size(7) end),
      "The global batch size 7 is not divisible by num_replicas_in_sync, 3")
  end)

  it("is made by a creator when fit, evaluate and predict begin", function()
    local x, y = flow.random.normal({ 24, 4 }, { seed = 1 }), flow.random.normal({ 24, 2 }, { seed = 2 })
    local function make(context) return Dataset.from_tensor_slices({ x, y }):batch(context:get_per_replica_batch_size(6)) end
    local function trained(within, data)
      local model
      within(function()
        model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(2, { kernel_initializer = "ones" }) }
        model:compile { loss = "mse", optimizer = "sgd" }
      end)
      local history = model:fit(data, { epochs = 2, verbose = 0, validation_data = data }).history
      return { history.loss, history.val_loss, model:evaluate(data, { verbose = 0 }).loss, model:predict(data, { verbose = 0 }):totable() }
    end
    local creator = flow.utils.DatasetCreator(make)
    assert.same(trained(strategy.scope, strategy:distribute_datasets_from_function(make)), trained(strategy.scope, creator))
    local function alone(f) f() end
    assert.same(trained(alone, Dataset.from_tensor_slices({ x, y }):batch(6)), trained(alone, creator))
    has(message_of(function() trained(alone, flow.utils.DatasetCreator(function() return 3 end)) end),
      "fit: the function of flow.utils.DatasetCreator gives a Dataset, it gave the number 3")
    has(message_of(function() flow.utils.DatasetCreator(make, 3) end), "input_options are not supported: leave them out")
  end)

  it("must have rows", function()
    has(message_of(function() strategy:experimental_distribute_dataset(Dataset.range(4)) end),
      "call batch() with the global batch size first")
    has(message_of(function() strategy:experimental_distribute_dataset { 1 } end), "expected a Dataset, got a table")
    local iterator = strategy:experimental_distribute_dataset(Dataset.range(4):batch(2)):iter()
    has(message_of(function() strategy:run(function() return iterator() end) end), "give it as an argument of run")
  end)
end)

describe("the parts of two workers", function()
  local datasets = require "flow.distribute.dataset"
  local Dataset = flow.data.Dataset
  local function arranged(dataset, index, replicas)
    replicas = replicas or 1
    return datasets.arrange("spec", dataset, { workers = 2, worker_index = index, replicas = replicas, count = 2 * replicas,
                                               first = index * replicas })
  end
  local function sizes(dataset)
    local found = {}
    for x in dataset:iter() do found[#found + 1] = flow.is_tensor(x) and x.shape[1] or #x end
    return found
  end
  local function record_files()
    local paths = {}
    for i = 1, 2 do
      paths[i] = support.file("part.tfrecord", "")
      local writer = flow.data.TFRecordWriter(paths[i])
      for k = 1, 6 do writer:write(("%d-%d"):format(i, k)) end
      writer:close()
    end
    return paths
  end

  it("are of whole batches, where all compute them", function()
    said = {}
    local ds = Dataset.range(9):batch(4)
    assert.same({ "shared", ds, 4 }, { arranged(ds, 1) })      -- 4: what all know of the size of a batch
    assert.same({}, said)                                  -- the chief says it
    assert.same({ "shared", ds, 4 }, { arranged(ds, 0) })
    assert.same({ "info auto_shard_policy AUTO is DATA here, all workers compute everything and take their part of each batch: the "
      .. "pipeline begins with range, which reads no list of files" }, said)
    local by_data = ds:with_options { auto_shard_policy = "DATA" }
    assert.same({ "shared", by_data, 4 }, { arranged(by_data, 0) })
  end)

  it("are their own batches, of the size of a part, of the files of each", function()
    local ds = flow.data.TFRecordDataset(record_files()):batch(5)
    for index = 0, 1 do
      local mode, own = arranged(ds, index)
      assert.equal("own", mode)
      assert.same(index == 0 and { 3, 2, 1 } or { 2, 3, 1 }, sizes(own))
    end
    local _, own = arranged(ds:with_options { auto_shard_policy = "FILE" }, 1)
    assert.same({ "2-1", "2-2" }, (own:iter()()))
  end)

  it("are of whole batches where there are fewer files than workers, unless FILE was asked for", function()
    said = {}
    local ds = flow.data.TFRecordDataset { record_files()[1] }:batch(4)
    for index = 0, 1 do
      local mode, own = arranged(ds, index)
      assert.equal("shared", mode)
      assert.same({ 4, 2 }, sizes(own))
    end
    assert.same({ "info auto_shard_policy AUTO is DATA here, all workers compute everything and take their part of each batch: "
      .. "TFRecordDataset has 1 file, not enough for 2 workers" }, said)
    has(message_of(function() arranged(ds:with_options { auto_shard_policy = "FILE" }, 1) end),
      "auto_shard_policy FILE cannot be, use DATA or OFF: TFRecordDataset has 1 file, not enough for 2 workers")
  end)

  it("are all data where nothing is sharded", function()
    local off = Dataset.range(8):batch(4):with_options { auto_shard_policy = "OFF" }
    local mode, own = arranged(off, 1, 2)
    assert.equal("own", mode)
    assert.same({ 2, 2, 2, 2 }, sizes(own))
    has(message_of(function() arranged(Dataset.range(8):batch(4):with_options { auto_shard_policy = "FILE" }, 0) end),
      "which reads no list of files")
  end)

  it("add up to the global batch in every step", function()
    local ds = Dataset.range(70):batch(7):with_options { auto_shard_policy = "OFF" }
    for replicas = 1, 3 do
      local total = {}
      for index = 0, 1 do
        local _, own = arranged(ds, index, replicas)
        for step, rows in ipairs(sizes(own)) do total[step] = (total[step] or 0) + rows end
      end
      assert.same({ 7, 7, 7, 7 }, { unpack(total, 1, 4) })
    end
  end)
end)

describe("BatchNormalization on three replicas", function()
  local x = flow.random.normal({ 40, 6 }, { seed = 3 }) * 4 + 1
  local y = flow.random.uniform({ 40 }, { maxval = 3, dtype = "int32", seed = 4 })

  -- Losses of two epochs, with a last batch that leaves a replica little and one nothing, and the moving averages.
  local function train(devices, synchronized, renorm)
    flow.set_random_seed(1)
    local model
    distribute.MirroredStrategy(devices).scope(function()
      model = flow.Sequential { flow.layers.Input { 6 }, flow.layers.BatchNormalization { synchronized = synchronized, renorm = renorm },
                                flow.layers.Dense(3) }
      model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    end)
    local losses = model:fit(x, y, { batch_size = 12, epochs = 2, shuffle = false, verbose = 0 }).history.loss
    local norm = model.layers[1]
    return { losses[1], losses[2], norm.weights[3]:sum():item(), norm.weights[4]:sum():item() }
  end

  local function furthest(a, b)
    local most = 0
    for i in ipairs(a) do
      assert.equal(0, a[i] - a[i])               -- finite
      most = math.max(most, math.abs(a[i] - b[i]))
    end
    return most
  end

  it("normalizes over the whole batch when it is synchronized, else each replica over its part", function()
    local one = train({ "cpu:0" }, false)
    assert.truthy(furthest(one, train({ "cpu:0" }, true)) == 0)
    assert.truthy(furthest(one, train({ "cpu:0", "cpu:1", "cpu:2" }, true)) < 1e-5)
    assert.truthy(furthest(one, train({ "cpu:0", "cpu:1", "cpu:2" }, false)) > 1e-3)
  end)

  it("does so with renorm, too", function()
    local one = train({ "cpu:0" }, false, true)
    assert.truthy(furthest(one, train({ "cpu:0", "cpu:1", "cpu:2" }, true, true)) < 1e-5)
    assert.truthy(furthest(one, train({ "cpu:0", "cpu:1", "cpu:2" }, false, true)) > 1e-3)
  end)
end)

describe("a model of one number a row", function()
  local function train(devices)
    local model
    distribute.MirroredStrategy(devices):scope(function()
      local input = flow.Input { 2 }
      local output = flow.layers.Lambda(function(x) return x:squeeze(-1) end)(flow.layers.Dense(1, { kernel_initializer = "ones" })(input))
      model = flow.Model(input, output)
      model:compile { optimizer = "sgd", loss = "mse", metrics = { "mae", flow.metrics.MeanSquaredError() } }
    end)
    local history = model:fit(flow.arange(14):reshape { 7, 2 } / 14, flow.ones { 7 }, { batch_size = 4, epochs = 2, shuffle = false,
                                                                                         verbose = 0 }).history
    return { history.loss[2], history.mae[2], history.mean_squared_error[2] }
  end

  it("is measured as a whole, though the vectors of its replicas are shorter, or empty", function()
    local one = train { "cpu:0" }
    for _, devices in ipairs { { "cpu:0", "cpu:1" }, { "cpu:0", "cpu:1", "cpu:2", "cpu:3" } } do
      for i, value in ipairs(train(devices)) do assert.near(one[i], value, 1e-6) end
    end
  end)
end)
