-- saving_spec.lua: two workers, started by flowlua launch: who writes a file, what becomes of an error, and that a training which was
-- killed goes on to the same losses.
local clusters = require "spec.support.clusters"
local support = require "spec.support.init"


local BEGIN = [[
  local flow = require "flow"
  local ffi = require "ffi"
  ffi.cdef "int getpid(void); int kill(int process, int signal); int usleep(unsigned microseconds);"
  local index = tonumber(os.getenv("TF_CONFIG"):match('"index":(%d)'))
  local folder = ...
  local strategy = flow.distribute.MultiWorkerMirroredStrategy()
  flow.set_random_seed(3)
  local model = strategy.scope(function()
    local made = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(6, { activation = "relu" }), flow.layers.BatchNormalization(),
                                   flow.layers.Dropout(0.2), flow.layers.Dense(1) }
    made:compile { optimizer = flow.optimizers.Adam(0.01), loss = "mse", metrics = { "mae" } }
    return made
  end)
  local function there(name) return tostring(flow.io.exists(folder .. "/" .. name)) end
  local x, y = flow.random.normal({ 50, 4 }, { seed = 1 }), flow.random.normal({ 50, 1 }, { seed = 2 })
]]

local folder

local function launch(script, arguments)
  return clusters.launch(script, { begin = BEGIN, arguments = folder .. " " .. (arguments or ""), launch = "--kill-after 1" })
end

local function make_folder()
  folder = support.folder()
end

local function remove_folder() os.execute("chmod -R u+w " .. folder .. "; rm -rf " .. folder) end

describe("workers that save", function()
  before_each(make_folder)
  after_each(remove_folder)

  it("write once with one path, each with their own paths, and the chief alone", function()
    local said, output, code = launch([[
      model:save(folder .. "/one.keras")
      print("=", there "one.keras")
      local own = ("own%d.weights.h5"):format(index)
      model:save_weights(folder .. "/" .. own)
      print("=", there(own))
      if index == 0 then
        model:save(folder .. "/chief.keras")
        model:save(folder .. "/chief.keras")
      end
      model:export(folder .. "/served")
      print("=", there "served/signature.json", there "served/model.onnx")
      strategy:reduce("sum", 1)
      if index == 0 then ffi.C.usleep(100000) end
      print("=", pcall(model.save, model, folder .. "/one.keras", { overwrite = false }))
      model:save(folder .. "/last.keras")
      print("=", there "last.keras", there "chief.keras")
      for _ = 1, 140 do
        if index == 0 then model:save_weights(folder .. "/often.safetensors") end
      end
      model:save_weights(folder .. "/./behind.safetensors")
      print("=", there "behind.safetensors")]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.equal("true", said[worker][1], output)
      assert.equal("true", said[worker][2])
      assert.equal("true\ttrue", said[worker][3])
      assert.truthy(said[worker][4]:find("^false\t.*one.keras already exists, and overwrite is false"), said[worker][4])
      assert.equal("true\ttrue", said[worker][5])
      assert.equal("true", said[worker][6])
    end
    assert.truthy(said[1][4]:find("the chief did not write " .. folder .. "/one.keras: save: ", 1, true), said[1][4])
  end)

  it("do not wait for a chief that is gone, and save what they have", function()
    local said, output = launch([[
      if index == 0 then      -- it dies while the other waits for it
        require("flow.saving.keras").save = function()
          while there "comes" == "false" do ffi.C.usleep(10000) end
          ffi.C.usleep(500000)
          ffi.C.kill(ffi.C.getpid(), 9)
        end
      else
        flow.io.write(folder .. "/comes", "")
      end
      print("=", pcall(model.save, model, folder .. "/m.keras"))
      print("=", there "m.keras")
      model:save(folder .. "/m.keras")
      print("=", there "m.keras")]])
    assert.truthy(said[1][1]:find("^false\t.*worker:0"), output)
    assert.equal("false", said[1][2])
    assert.equal("true", said[1][3])
  end)

  it("find out which of them wrote", function()
    local said, output, code = launch([[
      local native = require "flow.saving.keras"
      local save, count = native.save, 0
      native.save = function(...) count = count + 1 return save(...) end
      for _ = 1, 70 do model:save(folder .. "/same.keras") end
      print("=", count)
      model:save(("%s/mine%d.keras"):format(folder, index))
      model:save(folder .. "/same.keras")
      print("=", count)
      strategy:close()
      model:save(("%s/mine%d.keras"):format(folder, index))
      print("=", count)]])
    assert.equal(0, code, output)
    assert.same({ "70", "72", "73" }, said[0])
    assert.same({ "0", "1", "2" }, said[1])
  end)

  it("have the chief's checkpoints and their numbers", function()
    local said, output, code = launch([[
      local checkpoint = flow.train.Checkpoint { model = model }
      if index == 0 then checkpoint:save(folder .. "/ck/chief") end
      strategy:reduce("sum", 1)
      print("=", checkpoint:save(folder .. "/ck/c"))
      local manager = flow.train.CheckpointManager(checkpoint, folder .. "/managed", { max_to_keep = 2 })
      for _ = 1, 2 do manager:save() end
      print("=", manager:save(), #manager.checkpoints, manager.latest_checkpoint, checkpoint.save_counter:item())
      strategy:reduce("sum", 1)
      local w = flow.Variable(index == 0 and 1 or 2)
      local plain = flow.train.Checkpoint { w = w }
      print("=", plain:write(folder .. "/plain"), there "plain.safetensors")
      plain:restore(folder .. "/plain")
      print("=", w:item())]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.equal(folder .. "/ck/c-2", said[worker][1], output)
      assert.equal(("%s/managed/ckpt-5\t2\t%s/managed/ckpt-5\t5"):format(folder, folder), said[worker][2])
      assert.equal(folder .. "/plain\ttrue", said[worker][3])
      assert.equal("1", said[worker][4])
    end
    assert.equal("checkpoint\nckpt-4.safetensors\nckpt-5.safetensors\n", (support.run("ls " .. folder .. "/managed")))
  end)

  it("all fail where the chief's disk does, and a worker that saves alone is told", function()
    local said, output, code = launch([[
      local fit = { epochs = 2, verbose = 0, callbacks = {} }
      local file = io.open(folder .. "/file", "w")
      file:close()
      fit.callbacks[1] = flow.callbacks.ModelCheckpoint(folder .. "/file/m.keras")
      print("=", pcall(model.fit, model, x, y, fit))
      fit.callbacks[1] = flow.callbacks.BackupAndRestore(folder .. "/file/backup")
      print("=", pcall(model.fit, model, x, y, fit))
      fit.callbacks[1] = flow.callbacks.BackupAndRestore(folder .. "/backup")
      fit.callbacks[2] = flow.callbacks.LambdaCallback { on_epoch_end = function(epoch)
        if epoch == 1 and index == 0 then os.execute(("rm -r %s/backup; touch %s/backup"):format(folder, folder)) end
      end }
      print("=", pcall(model.fit, model, x, y, fit))
      strategy._worker.timeout = 0.2
      local function alone() return index == 1 and model:save(folder .. "/alone.keras") end
      print("=", pcall(alone))
      print("=", strategy:reduce("sum", 1):item())]])
    assert.equal(0, code, output)
    for worker = 0, 1 do
      assert.truthy(said[worker][1]:find("^false\t.*" .. folder .. "/file"), output)
      assert.truthy(said[worker][2]:find("^false\t.*" .. folder .. "/file"), output)
      assert.truthy(said[worker][3]:find("^false\t.*" .. folder .. "/backup"), output)
      assert.equal("2", said[worker][5])
    end
    assert.truthy(said[1][1]:find("the chief did not write", 1, true), output)
    assert.truthy(said[1][2]:find("the chief could not restore", 1, true), output)
    assert.truthy(said[1][3]:find("the chief did not write the backup: ", 1, true), output)
    assert.truthy(said[1][4]:find("alone.keras is to be saved, but the chief has saved nothing for 0.2 s", 1, true), output)
  end)
end)

describe("callbacks of several workers", function()
  before_each(make_folder)
  after_each(remove_folder)

  it("write the chief's files, and those of workers that name others", function()
    local said, output, code = launch([[
      local callbacks = flow.callbacks
      local list = { callbacks.CSVLogger(folder .. "/log.csv"), callbacks.TensorBoard(folder .. "/logs"),
                     callbacks.ModelCheckpoint(folder .. "/m-{epoch}.keras", { save_best_only = true, monitor = "loss" }),
                     callbacks.EarlyStopping { monitor = "loss", patience = 0, min_delta = 100, restore_best_weights = true } }
      if index == 0 then table.insert(list, 1, callbacks.ModelCheckpoint(folder .. "/chief-{epoch}.weights.h5",
                                                                         { save_weights_only = true })) end
      if index == 1 then table.insert(list, 1, callbacks.CSVLogger(folder .. "/own.csv")) end
      local history = model:fit(x, y, { epochs = 5, verbose = 0, callbacks = list, validation_data = { x, y } })
      print("=", #history.history.loss, history.history.loss[2], history.history.val_mae[1], model.weights[1]:value():sum():item())
      local own
      flow.distribute.OneDeviceStrategy("cpu:0").scope(function()
        own = flow.Sequential { flow.layers.Input { 4 }, flow.layers.Dense(1) }
        own:compile { loss = "mse" }
      end)
      local alone = callbacks.CSVLogger(folder .. "/log.csv")
      rawset(alone, "_silent", true)      -- of an earlier fit
      if index == 1 then own:fit(x, y, { verbose = 0, epochs = 7, callbacks = { alone } }) end]])
    assert.equal(0, code, output)
    assert.equal(said[0][1], said[1][1])
    assert.truthy(said[0][1]:find("^2\t"), output)
    local listing = support.run(("cd %s; ls; ls logs/*; cat own.csv | wc -l; cat log.csv | wc -l"):format(folder))
    assert.equal(2, select(2, listing:gsub("events%.out", "")), listing)
    assert.truthy(listing:find("chief-1.weights.h5\nchief-2.weights.h5\nlog.csv\nlogs\nm-1.keras\n", 1, true), listing)
    assert.truthy(listing:find("3\n8\n", 1, true), listing)
  end)

  it("stop all where one worker's wants it, and say so", function()
    local said, output, code = launch([[
      local stopper = flow.callbacks.LambdaCallback { on_train_batch_end = function(batch)
        if index == 1 and batch == 1 then model.stop_training = true end
      end }
      model:fit(x, y, { epochs = 3, batch_size = 10, verbose = 0, callbacks = { stopper } })
      print("=", model._train_steps)
      for _, hook in ipairs { "on_train_batch_end", "on_test_batch_end" } do
        local killer = flow.callbacks.LambdaCallback { [hook] = function(batch)
          if index == 1 and batch == 1 then ffi.C.kill(ffi.C.getpid(), 2) end
        end }
        local backup = flow.callbacks.BackupAndRestore(folder .. "/backup", { save_freq = 1 })
        model:fit(x, y, { epochs = 3, batch_size = 10, verbose = 0, callbacks = { killer, backup }, validation_data = { x, y } })
        print("=", there "backup")
      end]])
    assert.equal(130, code, output)
    assert.equal(said[0][1], said[1][1])
    assert.truthy(output:find("[worker:0] fit: another worker asked to stop", 1, true), output)
    assert.falsy(output:find("[worker:1] fit: another worker asked to stop", 1, true), output)
    for worker = 0, 1 do
      assert.equal("true", said[worker][2])
      assert.equal("true", said[worker][3])
      local text = ("[worker:%d] fit: %s after batch"):format(worker, worker == 1 and "interrupted" or "another worker was interrupted")
      assert.equal(2, select(2, output:gsub(text:gsub("%p", "%%%0"), "")), output)
    end
  end)
end)

describe("BackupAndRestore of several workers", function()
  before_each(make_folder)
  after_each(remove_folder)

  -- arguments: which data; of which worker ("all") the process dies after which batch of this process; whether the workers see the folder
  local TRAIN = [[
    local _, kind, victim, at, private = ...
    local seen = 0
    local deadly = flow.callbacks.LambdaCallback { on_train_batch_end = function()
      seen = seen + 1
      if (victim == "all" or victim == tostring(index)) and seen == tonumber(at) then ffi.C.kill(ffi.C.getpid(), 9) end
    end }
    local place = private and index == 1 and folder .. "/elsewhere" or folder
    local backup = flow.callbacks.BackupAndRestore(place .. "/backup", { save_freq = 4 })
    local options = { epochs = 3, verbose = 0, callbacks = { flow.callbacks.CSVLogger(folder .. "/log.csv"), backup, deadly },
                      validation_data = { x, y } }
    local history
    if kind == "tensors" then
      options.batch_size = 5
      history = model:fit(x, y, options)
    else
      local data = flow.data.Dataset.from_tensor_slices { x, y }
      if kind == "own" then      -- a third for the chief, which has no data left while the other goes on
        data = strategy:distribute_datasets_from_function(function(context)
          local part = context.input_pipeline_id == 0 and data:take(17) or data:skip(17)
          return part:shuffle(20):batch(3)
        end)
      else
        data = data:shuffle(20):batch(5)
      end
      history = model:fit(data, options)
    end
    for i, loss in ipairs(history.history.loss) do print("=", ("%.17g %.17g"):format(loss, history.history.val_loss[i])) end
    local sum = 0
    for _, v in ipairs(model.weights) do sum = sum + v:value():to("float64"):sum():item() end
    print("=", ("%.17g"):format(sum), flow.random.normal({ 1 }):item(), there "backup", there "elsewhere")]]

  local function goes_on(kind, ...)
    local expected, output, code = launch(TRAIN, kind)
    assert.equal(0, code, output)
    assert.equal(4, #expected[0], output)
    assert.same(expected[0], expected[1])
    os.execute("mv " .. folder .. "/log.csv " .. folder .. "/expected.csv")
    for _, death in ipairs { ... } do
      local said, text, killed = launch(TRAIN, kind .. " " .. death)
      -- Whom the launcher sees end first, who was killed or who noticed it, is a race.
      assert.truthy(killed == 137 or (killed == 1 and text:find("was killed by SIGKILL", 1, true)), text)
      assert.same({ [0] = {}, {} }, said)
    end
    local said, text, ended = launch(TRAIN, kind .. " nobody 0 private")
    assert.equal(0, ended, text)
    assert.truthy(text:find("BackupAndRestore: training continues in epoch 2", 1, true), text)
    assert.same(expected, said)
    assert.equal("", (support.run(("cmp %s/log.csv %s/expected.csv"):format(folder, folder))))
  end

  it("goes on when all were killed, and when one was, whatever folder the others see", function()
    goes_on("tensors", "all 6", "1 11")
  end)
  it("goes on in a shuffled data set", function() goes_on("dataset", "0 15") end)
  it("goes on in the data of each worker", function() goes_on("own", "all 10", "1 12") end)
end)
