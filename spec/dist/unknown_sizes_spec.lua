-- unknown_sizes_spec.lua: two workers that read their own batches, in the same step of different sizes, train as one process does that
-- has the rows of both.
local clusters = require "spec.support.clusters"
local support = require "spec.support.init"

-- Batches of three samples {size, 8}: sizes by worker and step. The second worker has no third batch. The layers are large enough for their
-- gradients to be exchanged in the ways that there are.
local BEGIN = [[
  local flow = require "flow"
  local layers = flow.layers
  local SIZES = { [0] = { 3, 7, 5 }, { 6, 2 } }
  local function batch(worker, n)
    return flow.random.normal({ 3, SIZES[worker][n], 8 }, { seed = 10 * worker + n }), flow.ones { 3, 2 } * (n + worker)
  end
  local function net()
    flow.set_random_seed(3)
    local input = flow.Input { -1, 8 }
    local x = layers.GlobalAveragePooling1D()(layers.Dense(300, { activation = "relu" })(layers.Dense(300)(input)))
    local model = flow.Model { inputs = input, outputs = layers.Dense(2)(layers.Dense(520, { activation = "tanh" })(x)) }
    model:compile { optimizer = flow.optimizers.SGD(0.05), loss = "mse" }
    return model
  end
  local function sums(model)
    local list = {}
    for i, v in ipairs(model:get_weights()) do list[i] = ("%.9g"):format((v:to "float64" * v):sum():item()) end
    return table.concat(list, " ")
  end
]]

local WORKER = [[
  local strategy = flow.distribute.MultiWorkerMirroredStrategy { communication_options = { implementation = "RING" } }
  local me, model = strategy.cluster_resolver.task_id, nil
  strategy.scope(function() model = net() end)
  local spec = { { shape = { -1, -1, 8 }, dtype = "float32" }, { shape = { -1, 2 }, dtype = "float32" } }
  local data = flow.data.Dataset.from_generator(function()
    local n = 0
    return function()
      n = n + 1
      if SIZES[me][n] then return batch(me, n) end
    end
  end, { output_signature = spec })
  data = strategy:distribute_datasets_from_function(function() return data end)
  local history = model:fit(data, { verbose = 0, epochs = 2 }).history
  print("=", sums(model))
  print("=", ("%.9g"):format(history.loss[2]), ("%.9g"):format(model:evaluate(data, { verbose = 0 }).loss))
]]

-- The loss of a step is the mean over the rows of both workers; that of an epoch, too.
local ALONE = [[
  local model = net()
  local loss, evaluated, rows = 0, 0, 0
  local function squares(worker, n)
    local x, y = batch(worker, n)
    return (model(x) - y):square():mean(2):sum()
  end
  local function count(n) return (SIZES[0][n] and 3 or 0) + (SIZES[1][n] and 3 or 0) end
  for epoch = 1, 2 do
    loss, rows = 0, 0
    for n = 1, 3 do
      local tape = flow.GradientTape()
      local sum = tape:record(function()
        local total = squares(0, n)
        if SIZES[1][n] then total = total + squares(1, n) end
        return total / count(n)
      end)
      loss, rows = loss + sum:item() * count(n), rows + count(n)
      model.optimizer:apply_gradients(tape:gradient(sum, model.trainable_variables), model.trainable_variables)
    end
  end
  for n = 1, 3 do evaluated = evaluated + squares(0, n):item() + (SIZES[1][n] and squares(1, n):item() or 0) end
  print("=", sums(model))
  print("=", ("%.9g"):format(loss / rows), ("%.9g"):format(evaluated / rows))
]]

local function numbers(line)
  local list = {}
  for number in line:gmatch "%S+" do list[#list + 1] = tonumber(number) end
  return list
end

describe("two workers with batches of different sizes", function()
  for _, environment in ipairs { "FLOW_SHARED_MEMORY=1", "FLOW_SHARED_MEMORY=0" } do
    it("train as one process with the rows of both, " .. environment, function()
      local said, output, code = clusters.launch(WORKER, { begin = BEGIN, launch = "", environment = environment })
      assert.equal(0, code, output)
      assert.equal(2, #said[0], output)
      assert.same(said[0], said[1], output)
      local alone, failed = support.run(("%s %s"):format(support.command, support.file("alone.lua", BEGIN .. ALONE)))
      assert.equal(0, failed, alone)
      local line = 0
      for text in alone:gmatch "=\t([^\n]*)" do
        line = line + 1
        local expected, found = numbers(text), numbers(said[0][line])
        assert.equal(#expected, #found)
        for i, value in ipairs(expected) do
          assert.truthy(math.abs(found[i] - value) <= 2e-5 * math.max(1, math.abs(value)), ("%.9g, %.9g"):format(found[i], value))
        end
      end
      assert.equal(2, line, alone)
    end)
  end
end)
