-- stock_callbacks_spec.lua: the callbacks that come with flowlua, beyond what is compared with Keras (spec/golden/callbacks_spec.lua):
-- resuming from what they remember, stopping, wrong arguments, tables that go on.
local support = require "spec.support.init"
local flow = require "flow"
local layers, callbacks = flow.layers, flow.callbacks
local message_of = support.message_of

local x, y = flow.ones { 8, 1 }, flow.ones { 8, 1 } * 2

local function linear()
  local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1) }
  model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse", metrics = { "mae" } }
  return model
end

local function printed(f)
  local parts = {}
  flow.log.sink = function(level, text) parts[#parts + 1] = level .. ": " .. text end
  local ok, message = pcall(f)
  flow.log.sink = nil
  if not ok then error(message, 0) end
  return table.concat(parts)
end

local content = support.read

local function fresh_folder() return support.file("empty", ""):match("^(.*)/") end

-- Gives the logs of the epochs these values, and keeps what the callback remembers after each epoch.
local Script = callbacks.Callback:extend("Script")
function Script:on_epoch_end(epoch, logs) logs.val_loss = self.values[epoch + 1] end

-- Runs all epochs at once and, in a second model, in two parts with the state carried over; both must do the same to the end.
local function compare_resumed(make, values, cut)
  local function run(model, callback, first, last, state)
    local list = { Script { values = values }, callback }
    if state then
      list[3] = callbacks.LambdaCallback { on_train_begin = function() callback:set_state(state) end }
    end
    return model:fit(x, y, { epochs = last, initial_epoch = first, verbose = 0, callbacks = list, shuffle = false })
  end
  local whole = linear()
  local start = whole:get_weights()
  local one = make("one")
  local history = run(whole, one, 0, #values)
  local parts = linear()
  parts:set_weights(start)
  local early = make("two")
  run(parts, early, 0, cut)
  local late = make("two")
  local rest = run(parts, late, cut, #values, early:get_state())
  assert.equal(#history.epoch, cut + #rest.epoch)
  assert.equal(whole.optimizer.learning_rate, parts.optimizer.learning_rate)
  assert.same(one:get_state(), late:get_state())
  return history
end

describe("What callbacks remember", function()
  it("lets EarlyStopping stop where it would have", function()
    local history = compare_resumed(function() return callbacks.EarlyStopping { patience = 3 } end, { 5, 4, 4.5, 4.2, 4.1, 3, 2 }, 3)
    assert.equal(5, #history.epoch)
  end)

  it("lets ReduceLROnPlateau go on waiting", function()
    compare_resumed(function() return callbacks.ReduceLROnPlateau { patience = 3, cooldown = 1, factor = 0.5 } end,
      { 5, 5, 5, 5, 5, 5, 5, 5, 5 }, 3)
  end)

  it("lets CSVLogger write the same table", function()
    local folder, names = fresh_folder(), {}
    local function make(name)
      names[#names + 1] = name
      return callbacks.CSVLogger(folder .. "/" .. name .. ".csv")
    end
    compare_resumed(make, { 5, 4, 3, 2 }, 2)
    local text = content(folder .. "/one.csv")
    assert.truthy(text:find("^epoch,loss,mae,val_loss\r\n0,.*\r\n3,[%d.]+,[%d.]+,2.0\r\n$"), text)
    assert.equal(text, content(folder .. "/two.csv"))
  end)

  it("takes back what was logged after the backup was made", function()
    local path = fresh_folder() .. "/log.csv"
    local model, logger = linear(), callbacks.CSVLogger(path)
    model:fit(x, y, { epochs = 2, verbose = 0, callbacks = { logger } })
    local state, text = logger:get_state(), content(path)
    local again = callbacks.CSVLogger(path, { append = true })
    model:fit(x, y, { epochs = 3, verbose = 0, callbacks = { again } })
    assert.truthy(#content(path) > #text)
    again = callbacks.CSVLogger(path)
    again:set_state(state)
    again:on_train_end()
    assert.equal(text, content(path))
  end)
end)

describe("CSVLogger", function()
  it("says what is missing where an epoch ends that no training began", function()
    local path = fresh_folder() .. "/log.csv"
    assert.equal(("CSVLogger: call on_train_begin() before the first epoch ends: it opens %s"):format(path),
      message_of(function() callbacks.CSVLogger(path):on_epoch_end(1, { loss = 1 }) end))
  end)

  it("goes on in a table with append = true, without a second header, and starts from the beginning without", function()
    local path, model = fresh_folder() .. "/log.csv", linear()
    for _, append in ipairs { true, true, false } do
      model:fit(x, y, { epochs = 2, verbose = 0, callbacks = { callbacks.CSVLogger(path, ",", append) } })
      local _, lines = content(path):gsub("\r\n", "")
      local _, headers = content(path):gsub("epoch", "")
      assert.equal(1, headers)
      assert.is_true(lines == 3 or lines == 5)
    end
    local _, lines = content(path):gsub("\r\n", "")
    assert.equal(3, lines)
  end)

  it("quotes what needs it and says when a file cannot be written", function()
    local path, model = fresh_folder() .. "/log.csv", linear()
    model:fit(x, y, { verbose = 0, callbacks = {
      callbacks.LambdaCallback { on_epoch_end = function(_, logs) logs.note = 'a,"b"' end }, callbacks.CSVLogger(path) } })
    assert.truthy(content(path):find(',"a,""b""",', 1, true), content(path))
    local nowhere = callbacks.CSVLogger "/proc/nowhere/log.csv"
    local message = message_of(function() model:fit(x, y, { verbose = 0, callbacks = { nowhere } }) end)
    assert.truthy(message:find("CSVLogger: cannot write /proc/nowhere/log.csv", 1, true), message)
  end)
end)

describe("TerminateOnNaN", function()
  local nan = flow.full({ 8, 1 }, 0 / 0)

  it("stops after the batch, and the end of training is called", function()
    local epochs, ended = 0, false
    local text = printed(function()
      linear():fit(x, nan, { batch_size = 2, epochs = 3, verbose = 0, callbacks = { callbacks.TerminateOnNaN(), callbacks.LambdaCallback {
        on_epoch_end = function() epochs = epochs + 1 end, on_train_end = function() ended = true end } } })
    end)
    assert.equal("print: Batch 0: Invalid loss, terminating training\n", text)
    assert.same({ 1, true }, { epochs, ended })
  end)

  it("raises with raise_error = true", function()
    local message = message_of(function()
      linear():fit(x, nan, { verbose = 0, callbacks = { callbacks.TerminateOnNaN { raise_error = true } } })
    end)
    assert.equal("NaN or Inf loss encountered at batch 0. Loss value: nan. Terminating training immediately.", message)
  end)
end)

describe("Stopping", function()
  it("works from every hook, and an epoch has one batch at least", function()
    local stops = { on_train_begin = { 1, 1 }, on_epoch_begin = { 1, 1 }, on_train_batch_begin = { 1, 1 }, on_train_batch_end = { 1, 1 },
                    on_test_begin = { 4, 1 }, on_test_batch_end = { 4, 1 }, on_test_end = { 4, 1 }, on_epoch_end = { 4, 1 } }
    for hook, expected in pairs(stops) do
      local model = linear()
      local before = model.optimizer.iterations
      local history = model:fit(x, y, { batch_size = 2, epochs = 3, verbose = 0, validation_data = { x, y }, callbacks = {
        callbacks.LambdaCallback { [hook] = function() model.stop_training = true end } } })
      assert.same(expected, { model.optimizer.iterations - before, #history.epoch }, hook)
      assert.equal(1, #history.history.val_loss, hook)
    end
  end)
end)

describe("ProgbarLogger", function()
  it("draws in the place of the bar that fit has", function()
    local function lines(method, list)
      local model = linear()
      local text = printed(function() model[method](model, x, y, { verbose = 2, callbacks = list }) end)
      return (text:gsub("%d+s", "Ts"):gsub("%d+[mu]s/", "T/"):gsub("%d+%.%d+", "0.0"))
    end
    for _, method in ipairs { "fit", "evaluate" } do
      assert.equal(lines(method, {}), lines(method, { callbacks.ProgbarLogger() }))
      assert.equal("print: 1/1 - Ts - T/step - loss: 0.0 - mae: 0.0\n", lines(method, {}))
    end
  end)
end)

describe("Arguments of callbacks", function()
  it("are checked and named", function()
    local cases = {
      { function() callbacks.EarlyStopping { patienc = 3 } end, 'EarlyStopping: unknown option "patienc"; did you mean "patience"?' },
      { function() callbacks.EarlyStopping { patience = -1 } end, "patience is a whole number from 0, got the number -1" },
      { function() callbacks.EarlyStopping { mode = "down" } end, 'mode is "auto", "min" or "max", got the string "down"' },
      { function() callbacks.ReduceLROnPlateau { factor = 1 } end, "factor, what the learning rate is multiplied with, is below 1, got 1" },
      { function() callbacks.LearningRateScheduler(3) end, "schedule is a function, got the number 3" },
      { function() callbacks.LearningRateScheduler() end, "schedule is missing: it is a function" },
      { function() callbacks.ModelCheckpoint("model") end, 'the path ends in .keras' },
      { function() callbacks.ModelCheckpoint("m.keras", { save_weights_only = true }) end, "ends in .weights.h5" },
      { function() callbacks.ModelCheckpoint("m.keras", { save_freq = 0 }) end, 'save_freq is "epoch" or a number of batches' },
      { function() callbacks.CSVLogger("a.csv", ", ") end, "separator is a single character" },
      { function() return callbacks.EarlyStoping end, 'did you mean "EarlyStopping"?' },
    }
    for _, case in ipairs(cases) do
      local message = message_of(case[1])
      assert.truthy(message:find(case[2], 1, true), message)
    end
  end)

  it("take positions as Keras", function()
    local mine = callbacks.EarlyStopping("val_mae", 0.5, 7, 1, "max")
    assert.same({ "val_mae", 0.5, 7, 1, "max" }, { mine.monitor, mine.min_delta, mine.patience, mine.verbose, mine.mode })
  end)

  it("need a mode where it is not known what is better, and know it of losses and metrics", function()
    local model = linear()
    local function fit(monitor)
      model:fit(x, y, { verbose = 0, callbacks = { callbacks.LambdaCallback { on_epoch_end = function(_, logs) logs.mine = 1 end },
                                                   callbacks.EarlyStopping { monitor = monitor } } })
    end
    assert.truthy(message_of(fit, "mine"):find('give mode = "min" or mode = "max"', 1, true))
    fit("mae")
    fit("val_loss")
  end)
end)

describe("A value that is not in the logs", function()
  it("is told by a warning that lists what there is", function()
    local text = printed(function()
      linear():fit(x, y, { verbose = 0, callbacks = { callbacks.EarlyStopping(), callbacks.ReduceLROnPlateau() } })
    end)
    assert.equal("warning: Early stopping conditioned on metric `val_loss` which is not available. Available metrics are: loss,mae" ..
      "warning: Learning rate reduction is conditioned on metric `val_loss` which is not available. Available metrics are: " ..
      "learning_rate,loss,mae", text)
  end)
end)
