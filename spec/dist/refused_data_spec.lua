-- refused_data_spec.lua: labels that are out of range on all workers alike: each says so, and where the programs go on, the cluster trains
-- to the bits of one that has met no such labels, also where rows were on their way to the other worker when the step failed.
local support = require "spec.support.init"

local SCRIPT = [[
  local flow = require "flow"
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  flow.set_random_seed(3)
  local model = strategy.scope(function()
    local made = flow.Sequential { flow.layers.Input { 400 }, flow.layers.Dense(300, { activation = "relu" }), flow.layers.Dense(5) }
    made:compile { optimizer = "sgd", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    return made
  end)
  local x, y = flow.random.normal({ 200, 400 }, { seed = 1 }), flow.random.uniform({ 200 }, { maxval = 5, dtype = "int32", seed = 2 })
  local wrong = flow.full({ 200 }, 7, { dtype = "int32" })
  for _ = 1, 3 do
    if arg[1] == "wrong" then print("!", pcall(model.fit, model, x, wrong, { batch_size = 100, shuffle = false, verbose = 0 })) end
    model:fit(x, y, { batch_size = 100, shuffle = false, verbose = 0 })
  end
  local parts = {}
  for _, weight in ipairs(model:get_weights()) do parts[#parts + 1] = ("%.17g"):format(flow.sum(weight * weight):item()) end
  print("= " .. table.concat(parts, " "))
]]

local function train(environment, argument)
  local output, code = support.run(("env FLOW_INSECURE=1 FLOWLUA_PATH=%slua %s timeout -k 5 60 %s launch --workers 2 --threads 1 %s -- %s")
    :format(support.root, environment, support.program, support.file("task.lua", SCRIPT), argument))
  assert.equal(0, code, output)
  local said = {}
  for line in output:gmatch "%] = ([^\n]+)" do said[#said + 1] = line end
  assert.equal(2, #said, output)
  assert.equal(said[1], said[2], output)
  return said[1], output
end

describe("labels that every worker refuses", function()
  for _, environment in ipairs { "FLOW_SHARED_MEMORY=1", "FLOW_SHARED_MEMORY=0" } do
    it("leave the training unchanged, " .. environment, function()
      local weights, output = train(environment, "wrong")
      assert.equal(6, support.count(output, "!\tfalse\t.-label 7 of row 1 is outside 0..4"), output)
      assert.equal(train(environment, "right"), weights)
    end)
  end
end)
