--- Losses and metrics against Keras: values, gradients, and results of metrics with and without weights.
local flow = require "flow"
local golden = require "spec.support.golden"
local native = require "flow.ffi"
local C = native.C
local cases = require "spec.golden.measures"
for _, case in ipairs(require "spec.golden.measures_of_labels") do cases[#cases + 1] = case end

-- A text for numbers and lists of them, rounded to the precision of the stored ones.
local function near(expected, found, tolerance, where)
  if type(expected) == "number" then return assert.is_near(expected, found, tolerance * math.max(1, math.abs(expected)), where) end
  assert.equal(#expected, #found, where)
  for i = 1, #expected do near(expected[i], found[i], tolerance, where .. " " .. i) end
end

local function title(case)
  local options = {}
  for name, value in pairs(case.options or {}) do
    options[#options + 1] = name .. " " .. (type(value) == "table" and table.concat(value, " ") or tostring(value))
  end
  table.sort(options)
  return table.concat({ case.loss or case.metric, case.y_true and case.y_true.low or "", unpack(options) }, " ")
end

local function targets(case)
  local y_true = golden.make(case.y_true)
  if case.truth == "sequences" then return flow.tril(y_true + 1) end
  if case.turned then return flow.moveaxis(y_true, -1, case.turned + 1) end
  return case.signs and y_true:to("float32") * 2 - 1 or y_true
end

-- Lines of the library's table without a case here or in cases.py. of: the field of a case that names it; but(name): it needs none.
local function without_case(name_of, find, of, others, but)
  local has, missing = {}, {}
  for _, case in ipairs(cases) do
    if case[of] then has[find(case[of])] = true end
  end
  for _, name in ipairs(others) do has[find(name)] = true end
  for i = 0, 1000 do
    if name_of(i) == nil then break end
    local name = native.string(name_of(i))
    if not has[i] and not but(name) then missing[#missing + 1] = name end
  end
  return missing
end

it("every loss and metric of the library has a case", function()
  local losses, metrics = {}, {}
  for _, case in ipairs(golden.manifest.losses) do losses[#losses + 1] = case.loss end
  for _, case in ipairs(golden.manifest.metrics) do
    for _, name in ipairs(case.metrics) do metrics[#metrics + 1] = name end
  end
  local function is_choice(name) return name == "crossentropy" end      -- of one of the others, by the shapes
  local function is_loss(name) return C.flow_loss_find(name) >= 0 end    -- a metric that is the mean of a loss
  assert.same({}, without_case(C.flow_loss_name, C.flow_loss_find, "loss", losses, is_choice))
  assert.same({}, without_case(C.flow_metric_name, C.flow_metric_find, "metric", metrics, is_loss))
end)

describe("losses as in Keras:", function()
  for _, case in ipairs(cases) do
    if case.loss and not case.by_name then
      it(title(case), function()
        local loss, y_true, prediction = flow.losses[case.loss](case.options), targets(case), flow.Variable(golden.make(case.y_pred))
        local tape = flow.GradientTape()
        local mean = tape:record(function() return loss(y_true, prediction:value()):mean() end)
        near(case.values, loss:call(y_true, prediction:value()):totable(), 1e-5, "value")
        near(case.mean, mean:item(), 1e-5, "mean")
        near(case.gradient, tape:gradient(mean, { prediction })[1]:reshape { -1 }:totable(), 1e-5, "gradient")
      end)
    elseif case.loss then
      it(("%s by name, targets of rank %d"):format(case.loss, #case.y_true.shape), function()
        local shape = { unpack(case.y_pred.shape, 2) }
        local model = flow.Sequential { flow.layers.Input(shape), flow.layers.Activation("linear") }
        model:compile { loss = case.loss }
        local logs = model:test_on_batch(golden.make(case.y_pred), golden.make(case.y_true))
        near(case.mean, logs.loss, 1e-5, "loss")
      end)
    end
  end
end)

describe("metrics as in Keras:", function()
  for _, case in ipairs(cases) do
    if case.metric and not case.loss then
      it(title(case), function()
        local options = { unpack(case.options) }
        for name, value in pairs(case.options) do options[name] = value end
        for _, name in ipairs(case.null or {}) do options[name] = false end
        local metric = flow.metrics[case.metric](options)
        for i, update in ipairs(case.updates) do
          metric:update_state(golden.make(update.y_true), golden.make(update.y_pred), update.weights and golden.make(update.weights))
          near(case.results[i], metric:result(), 2e-5, "update " .. i)
        end
        metric:reset_state()
        local first = case.updates[1]
        local again = metric(golden.make(first.y_true), golden.make(first.y_pred))
        near(case.results[1], again, 2e-5, "after a reset")
      end)
    end
  end
end)
