-- gpu_strategies_spec.lua: strategies over GPUs of one process: which they take, variables that are the same on all, functions that run on
-- each, and steps that are for all or none. On emulated GPUs (spec/cuda/emulation/emulation.h); trainings are in
-- spec/dist/devices_spec.lua.
local ffi = require "ffi"
local support = require "spec.support.init"
local emulated = require "spec.support.emulated"
local flow = require "flow"
local distribute, layers = flow.distribute, flow.layers
local message_of = support.message_of

if emulated.missing() then
  pending("strategies over GPUs: " .. emulated.missing())
  return
end

flow.config.set_logical_devices("cpu", 2)

local said = {}
flow.log.sink = function(level, text) said[#said + 1] = level .. " " .. text end

local function has(message, text)
  assert.truthy(message:find(text, 1, true), message)
end

local x = flow.random.normal({ 7, 3 }, { seed = 1 })
local y = flow.tensor({ 0, 1, 0, 1, 1, 0, 1 }, { dtype = "int32" })

local function make_model(strategy)
  local model
  strategy.scope(function()
    model = flow.Sequential { layers.Input { 3 }, layers.Dense(2, { kernel_initializer = "ones" }) }
    model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  end)
  return model
end

describe("a strategy over GPUs", function()
  it("takes all of them, or those that are named, and no CPU beside them", function()
    assert.same({ "gpu:0", "gpu:1" }, distribute.MirroredStrategy().extended.worker_devices)
    assert.same({ "gpu:1" }, distribute.MirroredStrategy { "GPU:1" }.extended.worker_devices)
    has(message_of(function() distribute.MirroredStrategy { "gpu:0", "cpu:0" } end), 'all CPUs or all GPUs, got "gpu:0" and "cpu:0"')
    has(message_of(function() distribute.MirroredStrategy { "gpu:0", "gpu:2" } end), 'device "gpu:2" does not exist')
  end)

  it("says that NCCL is not there where it is asked for", function()
    local host = "MirroredStrategy: the GPUs cannot add up among themselves, sums go through the host: "
      .. "the transport nccl: no NCCL (FLOW_EMULATED_NCCL is 0)"
    ffi.C.setenv("FLOW_EMULATED_NCCL", "0", 1)
    said = {}
    distribute.MirroredStrategy { cross_device_ops = distribute.HierarchicalCopyAllReduce() }
    assert.equal(1, #said)
    distribute.MirroredStrategy { cross_device_ops = distribute.NcclAllReduce() }
    distribute.MirroredStrategy()
    ffi.C.setenv("FLOW_EMULATED_NCCL", "1", 1)
    distribute.MirroredStrategy { cross_device_ops = distribute.NcclAllReduce() }
    assert.same({ "warning " .. host, "info " .. host }, { said[3], said[5] })
    assert.equal(6, #said)
  end)

  it("has its models on the first, wherever they are called", function()
    local model = make_model(distribute.MirroredStrategy { "gpu:1", "gpu:0" })
    assert.equal("gpu:1", model.weights[1]:value().device)
    model:fit(x, y, { batch_size = 4, verbose = 0 })
    assert.equal("gpu:1", model.weights[1]:value().device)
    assert.equal("gpu:1", make_model(distribute.OneDeviceStrategy "gpu:1").weights[1]:value().device)
    assert.equal("cpu", flow.ones({ 1 }).device)
  end)

  it("brings what was written between steps to all of them", function()
    local several, one = make_model(distribute.MirroredStrategy()), make_model(distribute.OneDeviceStrategy "cpu:0")
    for round = 1, 3 do
      for _, model in ipairs { several, one } do
        model:fit(x, y, { batch_size = 7, epochs = 2, verbose = 0, shuffle = false })
        model.weights[1]:assign(flow.full({ 3, 2 }, 0.1 * round))
        model.weights[2]:assign_add(flow.tensor { 0.5, 0 })
      end
      local found, expected = several:predict(x, { verbose = 0 }):flatten():totable(), one:predict(x, { verbose = 0 }):flatten():totable()
      for i = 1, #expected do assert.near(expected[i], found[i], 1e-5) end
    end
  end)

  it("runs functions on each, whose values are reduced", function()
    local strategy = distribute.MirroredStrategy()
    local values = strategy:experimental_distribute_values_from_function(function(context)
      return flow.tensor { 1, 10 } * (context.replica_id_in_sync_group + 1)
    end)
    local total, own = strategy:run(function(value)
      return distribute.get_replica_context():all_reduce("sum", value), value * 2
    end, { values })
    assert.same({ { 3, 30 }, { 3, 30 } }, { total.values[1]:totable(), total.values[2]:totable() })
    assert.same({ 6, 60 }, strategy:reduce("sum", own):totable())
    assert.same({ 1.5, 15 }, strategy:reduce("mean", values):totable())
    assert.same({ 1, 10, 2, 20 }, strategy:gather(values, 1):totable())
  end)

  for _, reduce in ipairs { "NcclAllReduce", "HierarchicalCopyAllReduce" } do
    it("makes a step on all or none: rows 4 to 6 are the second replica's: " .. reduce, function()
      local model = make_model(distribute.MirroredStrategy { cross_device_ops = distribute[reduce]() })
      for round = 1, 3 do
        local before = model.weights[1]:value():totable()
        has(message_of(function()
          model:fit(x, flow.tensor({ 0, 1, 0, 1, 1, 2, 1 }, { dtype = "int32" }), { batch_size = 7, verbose = 0, shuffle = false })
        end), "label 2 in row 2 is outside 0..1" .. (round > 1 and (", step %d"):format(round - 1) or ""))
        assert.same(before, model.weights[1]:value():totable())
        model:fit(x, y, { batch_size = 7, verbose = 0, shuffle = false })
        assert.is_not.same(before, model.weights[1]:value():totable())
      end
    end)
  end

  it("normalizes each replica's rows by themselves, and keeps the mean of their averages, as two replicas of the CPU do", function()
    local features, labels = flow.random.normal({ 23, 3 }, { seed = 4 }), flow.random.randint({ 23 }, 0, 2, { seed = 5 })
    local function trained(strategy)
      flow.clear_session()
      flow.set_random_seed(2)
      local model
      strategy.scope(function()
        model = flow.Sequential { layers.Input { 3 }, layers.Dense(4), layers.BatchNormalization { momentum = 0.8 },
                                  layers.Activation "relu", layers.Dense(2) }
        model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
      end)
      local how = { batch_size = 8, epochs = 3, verbose = 0, shuffle = false }
      return model, model:fit(features, labels, how).history.loss, model:evaluate(features, labels, { verbose = 0 }).loss
    end
    local expected, losses, loss = trained(distribute.MirroredStrategy { "cpu:0", "cpu:1" })
    for _, reduce in ipairs { "NcclAllReduce", "HierarchicalCopyAllReduce" } do
      local model, found, last = trained(distribute.MirroredStrategy { cross_device_ops = distribute[reduce]() })
      for epoch = 1, #losses do assert.near(losses[epoch], found[epoch], 2e-6, reduce) end
      assert.near(loss, last, 2e-6, reduce)
      for i, v in ipairs(expected.variables) do
        local e, a = v:value():flatten():totable(), model.variables[i]:value():flatten():totable()
        for k = 1, #e do assert.near(e[k], a[k], 2e-5, reduce) end
      end
    end
  end)

  it("records a step as one, with the sums in it", function()
    local traffic = require("flow.devices").traffic
    local function steps_of(reduce)
      local strategy, model = distribute.MirroredStrategy { cross_device_ops = distribute[reduce]() }
      strategy.scope(function()
        model = flow.Sequential { layers.Input { 3 }, layers.Dense(4), layers.BatchNormalization(), layers.Dropout(0.5), layers.Dense(2) }
        model:compile { optimizer = "sgd", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
      end)
      local how, before = { batch_size = 7, epochs = 4, verbose = 0, shuffle = false }
      model:fit(x, y, how)
      for _ = 1, 2 do collectgarbage() end      -- strategies of other tests are waited for when they go
      before = traffic(1)
      model:fit(x, y, how)
      return traffic(1), before
    end
    local after, before = steps_of "NcclAllReduce"
    assert.same({ 4, 0, 0 }, { after.replays - before.replays, after.downloads - before.downloads, after.waits - before.waits })
    after, before = steps_of "HierarchicalCopyAllReduce"
    assert.is_true(after.replays - before.replays > 4 and after.downloads - before.downloads >= 4)
  end)

  it("records a step on all at the same run, however the rows fall", function()
    local traffic = require("flow.devices").traffic
    local model, before = make_model(distribute.MirroredStrategy()), { traffic(0), traffic(1) }
    local features, labels = flow.ones { 8, 3 }, flow.zeros({ 8 }, { dtype = "int32" })
    local counts = {}
    for round = 1, 8 do      -- the first one has four rows each time, the second one three or four
      local rows = round % 2 == 1 and 7 or 8
      model:train_on_batch(features[{ { 1, rows } }], labels[{ { 1, rows } }])
      counts[round] = { traffic(0).replays - before[1].replays, traffic(1).replays - before[2].replays }
    end
    local all = {}
    for round, replays in ipairs { 0, 0, 1, 2, 3, 4, 5, 6 } do all[round] = { replays, replays } end
    assert.same(all, counts)
  end)

  it("is let go when one of its devices cannot go on, and goes on later", function()
    local C = require("flow.ffi").C
    local model, one = make_model(distribute.MirroredStrategy()), make_model(distribute.OneDeviceStrategy "cpu:0")
    local failures, after, ended = 0, 0
    repeat
      for _, each in ipairs { model, one } do each:train_on_batch(x, y) end
      C.flow_fail_allocation(after)
      local ok, problem = pcall(model.train_on_batch, model, x, y)
      C.flow_fail_allocation(-1)
      if ok then
        one:train_on_batch(x, y)
      else
        failures = failures + 1
        has(tostring(problem), "memory")
      end
      local found, expected = model.weights[1]:value():flatten():totable(), one.weights[1]:value():flatten():totable()
      for i = 1, #expected do assert.near(expected[i], found[i], 1e-5) end
      ended, after = ok and after > 10, after + 1
    until ended or after > 600
    assert.is_true(ended and failures > 10)
  end)
end)
