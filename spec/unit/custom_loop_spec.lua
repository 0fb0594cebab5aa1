-- custom_loop_spec.lua: training loops that the user writes on several replicas: strategy:run with tapes, optimizers and sums over replicas
-- gives what one replica computes from the whole batch.
require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local distribute = flow.distribute

flow.log.sink = function() end
flow.config.set_logical_devices("cpu", 3)
local strategy = distribute.MirroredStrategy()

local function numbers(f)
  return strategy:experimental_distribute_values_from_function(function(context) return f(context.replica_id_in_sync_group) end)
end

local function lists(value)
  local result = {}
  for i, entry in ipairs(value.values) do result[i] = entry:totable() end
  return result
end

local function near(expected, found, tolerance)
  assert.equal(#expected, #found)
  for i = 1, #expected do assert.near(expected[i], found[i], tolerance or 1e-6) end
end

describe("a replica context of three", function()
  local function run(f, ...) return strategy:run(f, { ... }) end
  local function context() return distribute.get_replica_context() end

  it("sums and averages over replicas, floats and whole numbers, tables of them, and what is not a tensor", function()
    local x = numbers(function(i) return flow.tensor { i, 10 } end)
    local whole = numbers(function(i) return flow.tensor({ 2 ^ 30 + i }, { dtype = "int64" }) end)
    local sum, results, total, ones = run(function(v, w)
      return context():all_reduce("sum", v), context():all_reduce("MEAN", { v, { y = v * 2 } }), context():all_reduce("sum", w),
        context():all_reduce("sum", 1)
    end, x, whole)
    for i = 1, 3 do
      assert.same({ 3, 30 }, lists(sum)[i])
      near({ 1, 10 }, lists(results[1])[i])
      near({ 2, 20 }, lists(results[2].y)[i])
      assert.same({ 3 * 2 ^ 30 + 3 }, lists(total)[i])
      assert.equal(3, lists(ones)[i])
    end
    assert.equal("int64", total.values[1].dtype)
  end)

  it("gathers, in the order of the replicas", function()
    local rows, columns = run(function(v)
      return context():all_gather(v), context():all_gather(v, -1)
    end, numbers(function(i) return flow.tensor { { i, -i } } end))
    for i = 1, 3 do
      assert.same({ { 0, 0 }, { 1, -1 }, { 2, -2 } }, lists(rows)[i])
      assert.same({ { 0, 0, 1, -1, 2, -2 } }, lists(columns)[i])
    end
  end)

  it("has the gradient of a sum over replicas in every replica", function()
    local gradient = run(function(v)
      local tape = flow.GradientTape()
      tape:watch(v)
      local loss = tape:record(function() return (context():all_reduce("sum", v) ^ 2):sum() end)
      return tape:gradient(loss, v)
    end, numbers(function(i) return flow.tensor { i + 1 } end))
    for i = 1, 3 do near({ 3 * 2 * 6 }, lists(gradient)[i], 1e-4) end
  end)
end)

describe("a training loop that the user writes", function()
  -- The weights after three batches, and the losses. place: what makes the model; split: runs a step with x, y and the global rows.
  local function train(place, split)
    flow.set_random_seed(5)
    local x, y = flow.random.normal { 20, 4 }, flow.random.normal { 20, 2 }
    local model, optimizer
    place(function()
      model = flow.Sequential { layers.Input { 4 }, layers.Dense(5, { activation = "tanh" }), layers.Dense(2) }
      optimizer = flow.optimizers.Adam(0.05)
    end)
    local mse = flow.losses.MeanSquaredError { reduction = "none" }
    local function step(a, b)
      local tape = flow.GradientTape()
      local loss = tape:record(function()
        return flow.nn.compute_average_loss(mse(b, model(a, { training = true })), { global_batch_size = 7 })
      end)
      optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
      return loss
    end
    local losses = {}
    local ds = flow.data.Dataset.from_tensor_slices { x, y }:batch(7)
    for _ = 1, 2 do split(ds, step, losses) end
    return model.layers[2].kernel:reshape({ 10 }):totable(), losses
  end

  local function on_one(ds, step, losses)
    for a, b in ds:iter() do losses[#losses + 1] = step(a, b):item() end
  end
  local function on_three(ds, step, losses)
    for a, b in strategy:experimental_distribute_dataset(ds):iter() do
      losses[#losses + 1] = strategy:reduce("sum", (strategy:run(step, { a, b }))):item()
    end
  end
  local function traced_around(ds, step, losses)
    local whole_step = flow.fn(function(a, b) return strategy:reduce("sum", (strategy:run(step, { a, b }))) end)
    for a, b in strategy:experimental_distribute_dataset(ds):iter() do losses[#losses + 1] = whole_step(a, b):item() end
  end

  it("learns the same on three replicas as on one, also from batches that do not divide", function()
    local weights, losses = train(function(f) f() end, on_one)
    assert.is_true(losses[6] < losses[1])
    for _, split in ipairs { on_three, traced_around } do
      local found, their_losses = train(strategy.scope, split)
      near(losses, their_losses, 1e-5)
      near(weights, found, 1e-4)
    end
  end)

  it("adds to variables of all replicas what each of them adds", function()
    local count = flow.Variable(0, { trainable = false, sync = "SUM_ON_READ" })
    for _ = 1, 2 do strategy:run(function(v) count:assign_add(v:sum()) end, { numbers(function(i) return flow.tensor { i, 1 } end) }) end
    assert.equal(12, count:item())
  end)
end)

describe("a flow.fn that calls strategy:run", function()
  it("has a function that is written inside of it traced once, as long as that sees the same values", function()
    local traces, factor = {}, 1
    local function note(f) traces[#traces + 1] = f end
    local function twice(x) return x * 2 end
    local step = flow.fn(function(x)
      local function inner(y) return twice(y) end
      local by = factor
      local function of_replica(y)
        note(inner)
        return inner(y):sum() * by
      end
      return strategy:reduce("sum", strategy:run(of_replica, { x }))
    end)
    local x = numbers(function(i) return flow.tensor { i, 10 } end)
    for _ = 1, 3 do assert.equal(66, step(x):item()) end
    local before = #traces
    factor = 2
    for _ = 1, 3 do assert.equal(132, step(x):item()) end
    assert.equal(2 * before, #traces)
    -- others in the same line
    local sums, two = {}, { function(y) return y:sum() end, function(y) return y:sum() * 2 end }
    for i = 1, 2 do sums[i] = strategy:run(two[i], { x }) end
    assert.same({ { 10, 11, 12 }, { 20, 22, 24 } }, { lists(sums[1]), lists(sums[2]) })
  end)

  it("draws the same weights and noise with any number of replicas", function()
    local x, y = flow.random.normal({ 12, 3 }, { seed = 1 }), flow.random.normal({ 12, 1 }, { seed = 2 })
    -- The losses of steps in a flow.fn, where is_whole, or outside of one, of a model that the first step builds.
    local function losses_of(devices, is_whole)
      flow.set_random_seed(1)
      local of_some, model, optimizer = distribute.MirroredStrategy { devices = devices }, nil, nil
      of_some.scope(function()
        model, optimizer = flow.Sequential { layers.Dense(4), layers.Dropout(0.5), layers.Dense(1) }, flow.optimizers.SGD(0.1)
      end)
      local function step(a, b)
        local tape = flow.GradientTape()
        local loss = tape:record(function()
          return flow.nn.compute_average_loss((model(a, { training = true }) - b):square():mean(-1))
        end)
        optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss
      end
      local function summed(a, b) return of_some:reduce("sum", of_some:run(step, { a, b })) end
      local run, found = is_whole and flow.fn(summed) or summed, {}
      local batches = of_some:experimental_distribute_dataset(flow.data.Dataset.from_tensor_slices { x, y }:batch(6))
      for a, b in batches:iter() do found[#found + 1] = run(a, b):item() end
      return found
    end
    for _, is_whole in ipairs { true, false } do
      local one = losses_of({ "cpu:0" }, is_whole)
      near(one, losses_of({ "cpu:0", "cpu:1" }, is_whole), 1e-5)
      near(one, losses_of({ "cpu:0", "cpu:1", "cpu:2" }, is_whole), 1e-5)
    end
  end)
end)
