-- compression_spec.lua: gradients that travel as 16-bit floats: two workers that add up over TCP learn as with float32, and stay equal.
local support = require "spec.support.init"

local SCRIPT = [[
  local flow = require "flow"
  local layers = flow.layers
  local strategy = flow.distribute.MultiWorkerMirroredStrategy {
    communication_options = { implementation = "RING", compression = "%s" } }
  flow.set_random_seed(3)
  local model = strategy.scope(function()
    local made = flow.Sequential { layers.Input { 8, 8, 1 }, layers.Conv2D(8, 3, { activation = "relu" }), layers.Flatten(),
                                   layers.Dense(24, { activation = "relu" }), layers.Dense(4) }
    made:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    return made
  end)
  local x, y = flow.random.normal({ 256, 8, 8, 1 }, { seed = 1 }), flow.random.uniform({ 256 }, { seed = 2, maxval = 4, dtype = "int32" })
  local losses = model:fit(x, y, { batch_size = 32, epochs = 8, shuffle = false, verbose = 0 }).history.loss
  local weights = {}
  for _, weight in ipairs(model:get_weights()) do weights[#weights + 1] = ("%%.17g"):format(flow.sum(weight * weight):item()) end
  print("= " .. table.concat(losses, " ") .. " | " .. table.concat(weights, " "))
]]

-- The losses of the first worker and the weights of both.
local function train(dtype, memory)
  local output, code = support.run(("FLOW_SHARED_MEMORY=%d FLOWLUA_PATH=%slua timeout -k 5 60 %s launch --workers 2 --threads 1 %s"):format(
    memory, support.root, support.program, support.file("task.lua", SCRIPT:format(dtype))))
  assert.equal(0, code, output)
  local losses, weights = {}, {}
  for worker, numbers, digests in output:gmatch "%[worker:(%d)%] = ([^|]*) | ([^\n]*)" do
    weights[tonumber(worker)] = digests
    if worker == "0" then
      for number in numbers:gmatch "%S+" do losses[#losses + 1] = tonumber(number) end
    end
  end
  assert.equal(8, #losses, output)
  return losses, weights
end

describe("gradients that travel as 16-bit floats", function()
  local exact, weights = train("none", 0)

  for _, dtype in ipairs { "bfloat16", "float16" } do
    it("teach what those of float32 do: " .. dtype, function()
      local losses, rounded = train(dtype, 0)
      assert.equal(rounded[0], rounded[1])
      assert.not_equal(weights[0], rounded[0])
      assert.is_true(exact[8] < 0.8 * exact[1])
      for epoch = 1, 8 do assert.is_true(math.abs(losses[epoch] - exact[epoch]) < 0.01 * exact[1], table.concat(losses, " ")) end
    end)
  end

  it("are not rounded where workers share memory", function()
    local _, shared = train("bfloat16", 1)
    assert.same(weights, shared)
  end)
end)
