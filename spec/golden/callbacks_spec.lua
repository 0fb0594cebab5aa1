-- callbacks_spec.lua: callbacks do with given results of epochs what Keras' did (callbacks.py): the same prints, stops, learning
-- rates, files and tables.
local support = require "spec.support.init"
local flow = require "flow"
local layers, callbacks = flow.layers, flow.callbacks
local cases = require "spec.golden.callbacks"

local function schedule(epoch, rate)
  return epoch < 2 and rate or rate * 0.5
end

-- The results of the epochs are those given, whatever the model did.
local Results = callbacks.Callback:extend("Results")
function Results:on_epoch_end(epoch, logs)
  for name in pairs(logs) do logs[name] = nil end
  logs.loss = 0.125
  logs[self.key] = self.values[epoch + 1]
end

-- Runs a case in its own folder; paths in what it printed are made relative to that.
local function run(case)
  local folder = support.file("empty", ""):match("^(.*)/")
  local options = {}
  for name, value in pairs(case.options) do options[name] = value end
  for _, name in ipairs { "filepath", "filename" } do options[name] = options[name] and folder .. "/" .. options[name] end
  if case.class == "LearningRateScheduler" then options.schedule = schedule end
  local model = flow.Sequential { layers.Input { 1 }, layers.Dense(1) }
  model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
  local weights, printed, rates = {}, {}, nil
  flow.log.sink = function(level, text) if level == "print" then printed[#printed + 1] = text end end
  local ok, history = pcall(model.fit, model, flow.ones { 8, 1 }, flow.ones { 8, 1 } * 2, {
    batch_size = 2, epochs = #case.values, verbose = 0, callbacks = {
      Results { key = case.key, values = case.values }, callbacks[case.class](options),
      callbacks.LambdaCallback { on_epoch_end = function() weights[#weights + 1] = model:get_weights()[1]:item() end } } })
  flow.log.sink = nil
  if not ok then error(history, 0) end
  if history.history.learning_rate then
    rates = history.history.learning_rate
    rates[#rates + 1] = model.optimizer.learning_rate
  end
  local text = table.concat(printed):gsub(folder .. "/", "")
  return { epochs = #history.epoch, printed = text, rates = rates, folder = folder, weights = weights,
           weight = model:get_weights()[1]:item(), model = model }
end

local content = support.read

describe("Callbacks as Keras':", function()
  for _, case in ipairs(cases) do
    it(case.class .. ", " .. case.name, function()
      local found = run(case)
      assert.equal(case.printed, found.printed)
      assert.equal(case.epochs, found.epochs)
      assert.equal(case.rates and #case.rates, found.rates and #found.rates)
      for i, rate in ipairs(case.rates or {}) do assert.near(rate, found.rates[i], rate * 1e-7) end
      if case.weights_of then assert.equal(found.weights[case.weights_of], found.weight) end
      if case.table then assert.equal(case.table, content(found.folder .. "/log.csv")) end
      if case.files then
        local listed = support.run("cd " .. found.folder .. " && find . -type f ! -name empty | cut -c3- | LC_ALL=C sort")
        assert.equal(table.concat(case.files, "\n") .. "\n", listed)
      end
    end)
  end
end)
