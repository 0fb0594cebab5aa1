-- model_directory_spec.lua: flow.callbacks.ModelDirectory: a folder that a training goes on from, and leaves what it has learnt in.
local flow = require "flow"
local support = require "spec.support.init"

local x, y = flow.random.normal({ 60, 4 }, { seed = 1 }), flow.random.normal({ 60, 1 }, { seed = 2 })

describe("ModelDirectory", function()
  local folder, sink, said
  before_each(function()
    folder = support.folder() .. "/my model"
    said, sink = {}, flow.log.sink
    flow.log.sink = function(_, text) said[#said + 1] = text end
  end)
  after_each(function() flow.log.sink = sink end)

  -- Trains a new model; the error of a stopped training, or nil; the model and the History.
  local function train(epochs, options, stop_at)
    flow.clear_session()
    flow.set_random_seed(3)
    local model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(8, { activation = "relu" }), flow.layers.Dropout(0.2),
                                    flow.layers.Dense(1) }
    model:compile { optimizer = flow.optimizers.Adam(0.05), loss = "mse", metrics = { "mae" } }
    local bomb = flow.callbacks.LambdaCallback { on_train_batch_end = function()
      if model.optimizer.iterations == stop_at then error "bang" end
    end }
    local list = { bomb }
    if options then table.insert(list, 1, flow.callbacks.ModelDirectory(folder, options)) end
    local ok, history = pcall(model.fit, model, x, y, { epochs = epochs, batch_size = 10, verbose = 0, callbacks = list })
    return not ok and history or nil, model, ok and history
  end

  local function weights(model)
    local list = {}
    for i, t in ipairs(model:get_weights()) do list[i] = t:totable() end
    return list
  end

  local function files() return table.concat(flow.io.listdir(folder), " ") end

  it("keeps the last checkpoints and the model; a run that has ended already does nothing", function()
    local _, whole = train(4, { max_to_keep = 2 })
    assert.equal("checkpoint ckpt-3.safetensors ckpt-4.safetensors model.keras", files())
    assert.equal(folder .. "/ckpt-4", flow.train.latest_checkpoint(folder))
    assert.same(weights(whole), weights(flow.load_model(folder .. "/model.keras")))
    local before = support.read(folder .. "/model.keras")
    local _, again, history = train(4, { max_to_keep = 2 }, 25)      -- a step would stop it
    assert.same(weights(whole), weights(again))
    assert.equal(4, #history.history.loss)
    assert.equal(24, again.optimizer.iterations)
    assert.equal(before, support.read(folder .. "/model.keras"))
    assert.equal(("ModelDirectory: this training has ended already, after 4 epochs (%s/ckpt-4)"):format(folder), said[#said])
    flow.io.remove(folder .. "/model.keras")
    train(4, { max_to_keep = 2 })
    assert.is_true(flow.io.exists(folder .. "/model.keras"))
  end)

  it("a run that was stopped, and one with more epochs, end as one that was never interrupted", function()
    local _, whole, history = train(5)
    local problem = train(3, { save_freq = 4 }, 10)
    assert.truthy(problem:find "bang")
    assert.equal("checkpoint ckpt-1.safetensors ckpt-2.safetensors", files())
    train(3, { save_freq = 4 })
    assert.equal(("ModelDirectory: training continues in epoch 2 after batch 2 (%s/ckpt-2)"):format(folder), said[#said])
    local _, model, result = train(5, { save_freq = 4, export = true })
    assert.same(weights(whole), weights(model))
    assert.same(history.history, result.history)
    assert.is_true(flow.io.exists(folder .. "/export/model.onnx"))
  end)

  it("EarlyStopping has ended a run, too, and Ctrl-C has not", function()
    flow.set_random_seed(3)
    local function run(list)
      flow.clear_session()
      local model = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(1) }
      model:compile { optimizer = "sgd", loss = "mse" }
      table.insert(list, 1, flow.callbacks.ModelDirectory(folder, { save_freq = 1000 }))
      return model:fit(x, y, { epochs = 9, batch_size = 10, verbose = 0, callbacks = list }), model
    end
    local function stopper() return flow.callbacks.EarlyStopping { monitor = "loss", min_delta = 1e6, patience = 2 } end
    local first = run { stopper() }
    assert.equal(3, #first.epoch)
    assert.equal("checkpoint ckpt-1.safetensors model.keras", files())
    local second, model = run { stopper() }
    assert.equal(3, #second.epoch)
    assert.equal(18, model.optimizer.iterations)
    assert.truthy(said[#said]:find "has ended already, after 3 epochs")
  end)

  it("a damaged checkpoint gives way to the one before; without a folder it is in the job's", function()
    local _, whole = train(4)
    train(3, { max_to_keep = 3 })
    support.write(folder .. "/ckpt-3.safetensors", "nothing")
    local _, model = train(4, { max_to_keep = 3 })
    assert.same(weights(whole), weights(model))
    assert.truthy(table.concat(said, "\n"):find "ckpt%-3 cannot be used, the previous one is taken")
    assert.truthy(table.concat(said, "\n"):find "continues in epoch 3 after batch 0")
    local message = support.message_of(function() local _ = flow.callbacks.ModelDirectory() end)
    assert.equal("ModelDirectory: model_dir is missing, and so are FLOW_JOB_DIR and --job-dir, in which it would be made", message)
  end)
end)
