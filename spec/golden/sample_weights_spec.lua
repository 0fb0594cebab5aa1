-- Losses and metrics with sample weights of every shape that Keras takes give what Keras gives.
local flow = require "flow"
local golden = require "spec.support.golden"
local cases = require "spec.golden.sample_weights"

local function is_mean(name) return name == "Mean" or name == "Sum" end

local function result_of(case, weights)
  local y_true, y_pred = golden.make(case.y_true), golden.make(case.y_pred)
  if case.kind == "loss" then return flow.losses[case.name](case.options)(y_true, y_pred, weights):item() end
  local metric = flow.metrics[case.name](case.options)
  if is_mean(case.name) then
    metric:update_state(y_pred, weights)
    metric:update_state(y_pred[{ { 1, 2 } }])
  else
    metric:update_state(y_true, y_pred, weights)
  end
  local value = metric:result()
  if type(value) == "number" then return value end
  local sum = 0
  for _, entry in ipairs(value) do sum = sum + entry end
  return sum / #value
end

describe("sample weights as in Keras:", function()
  for _, case in ipairs(cases) do
    it(("%s %s of %s"):format(case.kind, case.name, table.concat(case.y_pred.shape, "x")), function()
      local failures = {}
      for _, entry in ipairs(case.results) do
        local ok, found = pcall(result_of, case, entry.weights and golden.make(entry.weights))
        if not ok or not (math.abs(found - entry.result) <= 2e-5 * math.max(1, math.abs(entry.result))) then
          failures[#failures + 1] = ("weights %s: %s, expected %s"):format(
            entry.weights and "{" .. table.concat(entry.weights.shape, ", ") .. "}" or "none", tostring(found), entry.result)
        end
      end
      if #failures > 0 then error(table.concat(failures, "\n"), 0) end
    end)
  end
end)
