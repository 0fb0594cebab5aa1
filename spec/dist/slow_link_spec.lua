-- slow_link_spec.lua: two workers in network namespaces of their own, between which every packet takes 10 ms, or some are lost
-- (slow_link.c), train to the same bits as over a fast network.
local support = require "spec.support.init"

local link = support.program:match("^(.*/)") .. "slow_link"

local SCRIPT = [[
  local flow = require "flow"
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  flow.set_random_seed(3)
  local model = strategy.scope(function()
    local made = flow.Sequential { flow.layers.Input { 400 }, flow.layers.Dense(300, { activation = "relu" }), flow.layers.Dense(5) }
    made:compile { optimizer = "adam", loss = "mse", metrics = { "mae" } }
    return made
  end)
  local x, y = flow.random.normal({ 300, 400 }, { seed = 1 }), flow.random.normal({ 300, 5 }, { seed = 2 })
  local history = model:fit(x, y, { batch_size = 100, epochs = 2, verbose = 0 }).history
  local parts = { ("%.9g %.9g"):format(history.loss[2], history.mae[2]) }
  for _, weight in ipairs(model:get_weights()) do parts[#parts + 1] = ("%.17g"):format(flow.sum(weight * weight):item()) end
  print("= " .. table.concat(parts, " "))
]]

-- What both workers say, and all output.
local function run(before, addresses)
  local script, commands = support.file("task.lua", SCRIPT), {}
  for task = 0, 1 do
    local config = ([[{"cluster":{"worker":["%s","%s"]},"task":{"type":"worker","index":%d}}]]):format(addresses[1], addresses[2], task)
    commands[task + 1] = support.file("command" .. task, ([[
      export FLOW_SHARED_MEMORY=0 FLOW_INSECURE=1 FLOWLUA_PATH=%slua TF_CONFIG='%s'
      exec timeout -k 5 60 %s %s]]):format(support.root, config, support.program, script))
  end
  local output, code = support.run(before:format(commands[1], commands[2]))
  local said = {}
  for line in ("\n" .. output):gmatch "\n= ([^\n]+)" do said[#said + 1] = line end
  return said, output, code
end

local function unavailable()
  return os.execute(("%q 0 true true 2>/dev/null"):format(link)) ~= 0
    and "network namespaces and TUN devices need root and a kernel that has them"
end

describe("the bits of a training are left alone by a link", function()
  local fast
  local function check_link(how)
    fast = fast or run("sh %s & sh %s; wait", { "127.0.0.1:23517", "127.0.0.1:23518" })
    local said, output, code = run(("%q %s 'sh %%s' 'sh %%s'"):format(link, how), { "10.99.0.1:2222", "10.99.0.2:2222" })
    assert.equal(0, code, output)
    assert.equal(2, #said, output)
    assert.same(fast, said, output)
    assert.equal(said[1], said[2], output)
    return output
  end

  it("that is slow", function()
    if unavailable() then return pending(unavailable()) end
    check_link "10"
  end)

  for _, percent in ipairs { 1, 5 } do
    it(("that loses %d %% of the packets"):format(percent), function()
      if unavailable() then return pending(unavailable()) end
      local output = check_link(("1,0,%d"):format(percent))
      local count = 0
      for lost in output:gmatch "slow_link: (%d+) of %d+ packets" do count = count + lost end
      assert.is_true(count > 0, output)
    end)
  end
end)
