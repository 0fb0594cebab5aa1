--- Two workers whose kernels round differently, as in a cluster of old and new machines: both take those that both have, so that their
--- variables stay equal, and the first one says so.
local clusters = require "spec.support.clusters"
local flow = require "flow"

local BEGIN = [[
  local ffi = require "ffi"
  ffi.cdef "int setenv(const char *name, const char *value, int replace);"
  local index, isa = tonumber(os.getenv("TF_CONFIG"):match('"index":(%d)')), ...
  if index == 1 and isa ~= "" then ffi.C.setenv("FLOW_ISA", isa, 1) end      -- before kernels are chosen
  local flow = require "flow"
  flow.log.sink = function(_, text) if text:find("computes with", 1, true) then print("=", text) end end
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
]]

--- A large layer, whose gradient travels as factors where that takes less time, and more samples than a kernel's block of them. Then
--- optimizers whose updates are products and means, which each worker makes for itself.
local SCRIPT = [[
  local function digest(model)
    local sum = 0      -- in Lua: a sum of a tensor is rounded by the kernels, too
    for _, weights in ipairs(model.weights) do
      for _, value in ipairs(weights:value():flatten():totable()) do sum = (sum * 31 + value * 1e6) % 1e9 end
    end
    print("=", ("%.17g"):format(sum))
  end
  local model
  strategy.scope(function()
    flow.set_random_seed(3)
    model = flow.Sequential {
      flow.layers.Input { 1200 }, flow.layers.Dense(700, { activation = "relu", dtype = "mixed_bfloat16" }), flow.layers.Dense(3) }
    model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  end)
  local x, y = flow.random.normal({ 400, 1200 }, { seed = 1 }), flow.random.randint({ 400 }, 0, 3, { seed = 2 })
  model:fit(x, y, { batch_size = 200, epochs = 2, verbose = 0 })
  digest(model)
  for _, name in ipairs { "muon", "adafactor" } do
    strategy.scope(function()
      model = flow.Sequential { flow.layers.Input { 200 }, flow.layers.Dense(300, { activation = "tanh" }), flow.layers.Dense(70) }
      model:compile { optimizer = name, loss = "mse" }
    end)
    local inputs, targets = flow.random.normal({ 400, 200 }, { seed = 1 }), flow.random.normal({ 400, 70 }, { seed = 2 })
    model:fit(inputs, targets, { batch_size = 50, epochs = 1, verbose = 0 })
    digest(model)
  end]]

local function launch(isa)
  local said, output, code = clusters.launch(SCRIPT, {
    begin = BEGIN, arguments = isa, launch = "--kill-after 1", environment = "FLOW_SHARED_MEMORY=0" })
  assert.equal(0, code, output)
  return said, output
end

describe("workers with other instruction sets", function()
  it("keep equal variables, and one of them tells", function()
    if flow.isa() == "plain" then pending "this process has the portable kernels, and there are no others" return end
    local said, output = launch "plain"
    assert.equal(4, #said[0], output)
    assert.equal(3, #said[1], output)
    local tells = "worker:1 127.0.0.1:%d+ computes with plain, and this worker with " .. flow.isa() .. ".*: all take plain"
    assert.truthy(said[0][1]:find(tells), said[0][1])
    assert.same({ unpack(said[0], 2) }, said[1], output)
  end)

  it("are not suspected where all have the same", function()
    local said, output = launch "''"
    assert.equal(3, #said[0], output)
    assert.same(said[0], said[1], output)
  end)
end)
