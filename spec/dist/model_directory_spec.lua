-- model_directory_spec.lua: flow.callbacks.ModelDirectory with several processes: a job that was killed goes on, to the bits of one that
-- was not, with workers and with parameter servers, and SidecarEvaluator reads its checkpoints.
local support = require "spec.support.init"

local SCRIPT = [[
  local flow = require "flow"
  local options = flow.args { folder = "run", kill = 0, servers = false }
  flow.set_random_seed(1)
  local strategy = options.servers and flow.distribute.ParameterServerStrategy() or flow.distribute.MultiWorkerMirroredStrategy()
  local x, y = flow.random.normal({ 96, 4 }, { seed = 1 }), flow.random.normal({ 96, 1 }, { seed = 2 })
  local model
  strategy.scope(function()
    model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(8, { activation = "relu" }), flow.layers.Dense(1) }
    model:compile { optimizer = flow.optimizers.Adam(0.05), loss = "mse" }
  end)
  local kill = flow.callbacks.LambdaCallback { on_epoch_begin = function(epoch)
    if options.kill > 0 and epoch == options.kill and strategy.cluster_resolver.is_chief then os.exit(9) end
  end }
  local history = model:fit(x, y, { epochs = 4, batch_size = 16, verbose = 0,
                                    callbacks = { flow.callbacks.ModelDirectory(options.folder, { max_to_keep = 2 }), kill } })
  local sum = 0
  for _, t in ipairs(model:get_weights()) do sum = sum + t:abs():sum():item() end
  print(("%d epochs, %.17g, %d updates"):format(#history.history.loss, sum, model.optimizer.iterations))]]

local function launch(options, arguments, wanted)
  local path = support.file("task.lua", SCRIPT)
  local text, code = support.run(("cd '%s'; FLOW_THREADS=1 FLOWLUA_PATH='%slua' timeout -k 5 100 %s launch %s %s -- %s"):format(
    support.root, support.root, support.program, options, path, arguments))
  assert.equal(wanted, code == 0, text)
  return text, text:match "%[worker:0%] (%d+ epochs[^\n]*)"
end

describe("ModelDirectory in a cluster", function()
  for _, case in ipairs { { "workers", "--workers 2", "" }, { "parameter servers", "--workers 1 --parameter-servers 2", "--servers" } } do
    it("goes on with " .. case[1], function()
      local whole, folder = support.folder(), support.folder()
      local _, wanted = launch(case[2], case[3] .. " --folder " .. whole, true)
      launch(case[2], case[3] .. " --kill 2 --folder " .. folder, false)
      local text, found = launch(case[2], case[3] .. " --folder " .. folder, true)
      assert.equal(1, support.count(text, "ModelDirectory: training continues in epoch 3 after batch 0"), text)
      assert.equal(wanted, found, text)
      assert.truthy(wanted:find "^4 epochs.* 24 updates$", wanted)
      local files = support.run("cd " .. folder .. " && echo *")
      assert.equal("checkpoint ckpt-3.safetensors ckpt-4.safetensors model.keras\n", files)
      local again, same = launch(case[2], case[3] .. " --folder " .. folder, true)
      assert.equal(1, support.count(again, "this training has ended already, after 4 epochs"), again)
      assert.equal(wanted, same)
      assert.equal(files, support.run("cd " .. folder .. " && echo *"))
    end)
  end

  it("leaves what SidecarEvaluator evaluates", function()
    local folder = support.folder()
    launch("--workers 1", "--folder " .. folder, true)
    local text, code = support.run(("cd '%s'; FLOWLUA_PATH='%slua' timeout -k 5 60 %s %s 2>&1"):format(folder, support.root,
      support.program, support.file("evaluate.lua", ([[
        local flow = require "flow"
        local model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(8, { activation = "relu" }), flow.layers.Dense(1) }
        model:compile { optimizer = flow.optimizers.Adam(), loss = "mse" }
        local x, y = flow.random.normal({ 96, 4 }, { seed = 1 }), flow.random.normal({ 96, 1 }, { seed = 2 })
        flow.train.SidecarEvaluator { model = model, data = flow.data.Dataset.from_tensor_slices { x, y }:batch(16), checkpoint_dir = "%s",
                                      max_evaluations = 1 }:start()
        print(("loss %%.4f"):format(model:evaluate(x, y, { verbose = 0 }).loss))
        print(("file %%.4f"):format(flow.load_model("%s/model.keras"):evaluate(x, y, { verbose = 0 }).loss))]]):format(folder, folder))))
    assert.equal(0, code, text)
    assert.equal(text:match "file (%S+)", text:match "loss (%S+)", text)
  end)
end)
