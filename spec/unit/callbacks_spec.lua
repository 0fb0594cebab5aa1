-- callbacks_spec.lua: which hooks run, in which order, with which arguments.
local support = require "spec.support.init"
local flow = require "flow"
local layers, callbacks = flow.layers, flow.callbacks
local message_of = support.message_of

local function linear()
  local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1) }
  model:compile { optimizer = "sgd", loss = "mse", metrics = { "mae" } }
  return model
end
local x, y = flow.ones { 3, 1 }, flow.ones { 3, 1 }

local Recorder = callbacks.Callback:extend("Recorder")
function Recorder:init() self.events = {} end
local function keys(logs)
  local list = {}
  for key in pairs(logs) do list[#list + 1] = key end
  table.sort(list)
  return table.concat(list, ",")
end
for _, hook in ipairs { "on_train_begin", "on_train_end", "on_test_begin", "on_test_end", "on_predict_begin", "on_predict_end" } do
  Recorder[hook] = function(self, logs) table.insert(self.events, hook .. " " .. keys(logs)) end
end
for _, hook in ipairs { "on_epoch_begin", "on_epoch_end", "on_train_batch_begin", "on_train_batch_end", "on_test_batch_begin",
                        "on_test_batch_end", "on_predict_batch_begin", "on_predict_batch_end" } do
  Recorder[hook] = function(self, index, logs) table.insert(self.events, hook .. " " .. index .. " " .. keys(logs)) end
end

describe("callbacks", function()
  it("are called in Keras' order with indices from 0 and the logs", function()
    local recorder, model = Recorder(), linear()
    local how = { batch_size = 2, epochs = 2, verbose = 0, callbacks = { recorder }, validation_data = { x, y }, validation_freq = 2 }
    model:fit(x, y, how)
    local batches = { "on_train_batch_begin 0 ", "on_train_batch_end 0 loss,mae",
                      "on_train_batch_begin 1 ", "on_train_batch_end 1 loss,mae" }
    local expected = { "on_train_begin ", "on_epoch_begin 0 " }
    for _, event in ipairs(batches) do table.insert(expected, event) end
    table.insert(expected, "on_epoch_end 0 loss,mae")
    table.insert(expected, "on_epoch_begin 1 ")
    for _, event in ipairs(batches) do table.insert(expected, event) end
    for _, event in ipairs { "on_test_begin ", "on_test_batch_begin 0 ", "on_test_batch_end 0 loss,mae", "on_test_batch_begin 1 ",
                             "on_test_batch_end 1 loss,mae", "on_test_end loss,mae", "on_epoch_end 1 loss,mae,val_loss,val_mae",
                             "on_train_end loss,mae,val_loss,val_mae" } do table.insert(expected, event) end
    assert.same(expected, recorder.events)
    assert.equal(model, recorder.model)
    assert.same({ epochs = 2, steps = 2, verbose = 0 }, recorder.params)
  end)

  it("see at the end of fit what came of the last epoch, without what they added to its logs, as in Keras", function()
    local recorder = Recorder()
    linear():fit(x, y, { verbose = 0, callbacks = { recorder, callbacks.LearningRateScheduler(function(_, rate) return rate end),
      callbacks.LambdaCallback { on_epoch_end = function(_, logs) logs.more = 1 end }, recorder } })
    local seen = recorder.events
    assert.equal("on_epoch_end 0 learning_rate,loss,mae,more", seen[#seen - 2])
    assert.equal("on_train_end loss,mae", seen[#seen])
  end)

  -- Numbers of batches, losses and shapes as Keras 3 has them.
  it("look between executions of several steps", function()
    local events = {}
    local Watcher = callbacks.Callback:extend("Watcher")
    for _, what in ipairs { "train", "test", "predict" } do
      Watcher["on_" .. what .. "_batch_begin"] = function(_, batch) table.insert(events, what .. " " .. batch) end
      Watcher["on_" .. what .. "_batch_end"] = function(_, batch, logs)
        local seen = logs.outputs and "{" .. table.concat(logs.outputs.shape, ", ") .. "}" or ("%.4f"):format(logs.loss)
        table.insert(events, ("%s %d %s"):format(what, batch, seen))
      end
    end
    local rows = (flow.arange(18):reshape { 9, 2 } / 10)
    local sums = rows:sum(2):reshape { 9, 1 }
    local function model()
      local made = flow.Sequential { layers.Input { 2 }, layers.Dense(1, { kernel_initializer = "ones" }) }
      made:compile { optimizer = "sgd", loss = "mse", steps_per_execution = 2 }
      return made
    end
    local how = { batch_size = 2, verbose = 0, shuffle = false, callbacks = { Watcher() } }
    local trained = model()
    trained:fit(rows, sums * 2, how)
    how.shuffle = nil
    trained:evaluate(rows, sums, how)
    trained:predict(rows, how)
    assert.same({ "train 0", "train 1 0.6818", "train 2", "train 3 2.7767", "train 4", "train 5 3.3381",
                  "test 0", "test 1 0.1101", "test 2", "test 3 0.2729", "test 4", "test 5 0.3253",
                  "predict 0", "predict 1 {4, 1}", "predict 2", "predict 3 {4, 1}", "predict 4", "predict 5 {1, 1}" }, events)
    events = {}
    local data = flow.data.Dataset
    local pairs_of = data.from_tensor_slices({ rows, sums * 2 }):batch(2)
    pairs_of = pairs_of:filter(function(a) return a:sum():ge(0) end)      -- how many there are is not known
    model():fit(pairs_of, { verbose = 0, callbacks = { Watcher() } })
    assert.same({ "train 0", "train 1 0.6818", "train 2", "train 3 2.7767", "train 4", "train 5 3.3381" }, events)
  end)

  it("watch evaluate and predict", function()
    local recorder, model = Recorder(), linear()
    model:evaluate(x, y, { verbose = 0, callbacks = recorder })
    assert.same({ "on_test_begin ", "on_test_batch_begin 0 ", "on_test_batch_end 0 loss,mae", "on_test_end loss,mae" }, recorder.events)
    recorder = Recorder()
    model:predict(x, { batch_size = 2, verbose = 0, callbacks = { recorder } })
    assert.same({ "on_predict_begin ", "on_predict_batch_begin 0 ", "on_predict_batch_end 0 outputs", "on_predict_batch_begin 1 ",
                  "on_predict_batch_end 1 outputs", "on_predict_end " }, recorder.events)
  end)

  it("stop training between batches and between epochs", function()
    local model = linear()
    local ran = 0
    local history = model:fit(x, y, { batch_size = 1, epochs = 5, verbose = 0, callbacks = { callbacks.LambdaCallback {
      on_train_batch_end = function(batch) ran = ran + 1; if batch == 1 then model.stop_training = true end end } } })
    assert.equal(2, ran)
    assert.same({ 0 }, history.epoch)
    history = model:fit(x, y, { epochs = 5, verbose = 0, callbacks = { callbacks.LambdaCallback {
      on_epoch_end = function(epoch) model.stop_training = epoch == 2 end } } })
    assert.same({ 0, 1, 2 }, history.epoch)
    assert.equal(2, #model:fit(x, y, { epochs = 2, verbose = 0 }).epoch)      -- the flag does not stay
  end)

  it("share one table of logs, which History and the printed line take in", function()
    local lines = {}
    flow.log.sink = function(_, text) lines[#lines + 1] = text end
    local history = linear():fit(x, y, { verbose = 2, callbacks = { callbacks.LambdaCallback {
      on_epoch_end = function(_, logs) logs.rate = 0.5 end } } }).history
    flow.log.sink = nil
    assert.same({ 0.5 }, history.rate)
    assert.truthy(lines[#lines]:find(" - rate: 0.5000", 1, true))
  end)

  it("keep a History that is given to them", function()
    local mine = callbacks.History()
    assert.equal(mine, linear():fit(x, y, { epochs = 2, verbose = 0, callbacks = { mine } }))
    assert.equal(2, #mine.history.loss)
  end)

  it("may run the model themselves", function()
    local model, found = linear(), {}
    model:fit(x, y, { batch_size = 1, verbose = 0, callbacks = { callbacks.LambdaCallback {
      on_epoch_end = function() found.loss = model:evaluate(x, y, { verbose = 0 }).loss end,
      on_train_batch_begin = function() found.shape = model:predict(x, { verbose = 0 }).shape end } } })
    assert.is_true(found.loss >= 0)
    assert.same({ 3, 1 }, found.shape)
  end)

  it("pass their errors through, and the model works on", function()
    local model = linear()
    assert.has_error(function()
      model:fit(x, y, { verbose = 0, callbacks = { callbacks.LambdaCallback { on_train_batch_end = function() error("mine", 0) end } } })
    end, "mine")
    model:fit(x, y, { verbose = 0 })
    assert.equal(0, model._steps[1].running)
  end)

  it("take options as fields, and name what they were given wrongly", function()
    local Mine = callbacks.Callback:extend("Mine")
    assert.equal(3, Mine { patience = 3 } .patience)
    assert.truthy(message_of(function() callbacks.LambdaCallback { on_epoch_ends = print } end)
      :find('did you mean "on_epoch_end"?', 1, true))
    assert.truthy(message_of(function() callbacks.LambdaCallback { on_epoch_end = 3 } end):find("on_epoch_end is a function", 1, true))
    assert.truthy(message_of(function() return callbacks.Histroy end):find('flow.callbacks has no "Histroy"', 1, true))
    assert.truthy(message_of(function() linear():fit(x, y, { callbacks = "x" }) end):find("callbacks is a list", 1, true))
  end)

  it("may have Keras' other names of hooks, are given their model by a method, and call what they extend", function()
    local seen = {}
    local Old = callbacks.Callback:extend "Old"
    function Old:on_batch_begin(batch) seen[#seen + 1] = "begin " .. batch end
    function Old:on_batch_end(batch, logs)
      callbacks.Callback.on_batch_end(self, batch, logs)
      seen[#seen + 1] = "end " .. batch
    end
    function Old:on_epoch_end(epoch, logs) callbacks.Callback.on_epoch_end(self, epoch, logs) end
    function Old:set_model(model)
      callbacks.Callback.set_model(self, model)
      seen[#seen + 1] = "model"
    end
    function Old:set_params(params) seen[#seen + 1] = "epochs " .. params.epochs end
    local Both = Old:extend "Both"
    function Both:on_train_batch_end() seen[#seen + 1] = "own end" end
    local model = linear()
    model:fit(x, y, { batch_size = 4, epochs = 1, verbose = 0, callbacks = { Old(), Both() } })
    assert.same({ "model", "epochs 1", "model", "epochs 1" }, { unpack(seen, 1, 4) })
    assert.same({ "begin 0", "begin 0", "end 0", "own end" }, { unpack(seen, 5, 8) })
  end)

  it("call hooks that the class they extend does not have: of the library's and of a script's classes", function()
    local Mine = callbacks.Callback:extend "Mine"
    local bases, seen = { Mine, callbacks.LambdaCallback, callbacks.History, callbacks.EarlyStopping, callbacks.TerminateOnNaN }, {}
    for i, Base in ipairs(bases) do
      local Own = Base:extend("Own" .. i)
      function Own:on_test_begin(logs) Base.on_test_begin(self, logs) end
      function Own:on_train_batch_begin(batch, logs)
        Base.on_train_batch_begin(self, batch, logs)
        seen[i] = batch
      end
      linear():fit(x, y, { validation_data = { x, y }, verbose = 0, callbacks = { Own() } })
    end
    assert.same({ 0, 0, 0, 0, 0 }, seen)
  end)

  -- As in Keras, where the hooks of Callback do nothing: loops of scripts call all of them.
  it("have all hooks, in loops of a script, too", function()
    local seen = {}
    local Old = callbacks.Callback:extend "Old"
    function Old:on_batch_end(batch) seen[#seen + 1] = batch end
    local Mine = callbacks.Callback:extend "Mine"
    function Mine:on_epoch_end(epoch, logs) seen[#seen + 1] = epoch + logs.loss end
    local schedule = callbacks.LearningRateScheduler(function(_, rate) return rate end)
    local file = support.folder() .. "/log.csv"
    local list = { callbacks.Callback(), Old(), Mine(), callbacks.LambdaCallback(), callbacks.EarlyStopping { monitor = "loss" },
      callbacks.History(), callbacks.TerminateOnNaN(), callbacks.ReduceLROnPlateau { monitor = "loss" }, schedule,
      callbacks.CSVLogger(file), callbacks.ModelCheckpoint { filepath = file .. ".keras", save_freq = 100 } }
    local function all(hook, ...)
      for _, cb in ipairs(list) do cb[hook](cb, ...) end
    end
    local model = linear()
    all("set_model", model)
    for _, what in ipairs { "train", "test", "predict" } do
      all("on_" .. what .. "_begin")
      if what == "train" then all("on_epoch_begin", 1) end
      all("on_" .. what .. "_batch_begin", 0)
      all("on_" .. what .. "_batch_end", 0)
      if what == "train" then all("on_epoch_end", 1, { loss = 2 }) end
      all("on_" .. what .. "_end")
    end
    assert.same({ 0, 3 }, seen)
    assert.truthy(message_of(function() callbacks.TensorBoard(support.folder()):on_epoch_begin(0) end)
      :find("TensorBoard has no model yet: call set_model(model) before its hooks, as fit does", 1, true))
  end)
end)
