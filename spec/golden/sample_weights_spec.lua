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

describe("sample weights in a step of a model", function()
  it("weigh the metrics of weighted_metrics alone, also where a step gives weights to all", function()
    local CustomModel = flow.Model:extend "CustomModel"
    function CustomModel:train_step(data)
      local x, y, sample_weight = unpack(data)
      local y_pred = self(x, { training = true })
      local loss = self:compute_loss { y = y, y_pred = y_pred, sample_weight = sample_weight }
      for _, metric in ipairs(self.metrics) do
        if metric.name == "loss" then metric:update_state(loss) else metric:update_state(y, y_pred, { sample_weight = sample_weight }) end
      end
      return self:get_metrics_result()
    end
    local input = flow.Input { 1 }
    for _, eager in ipairs { false, true } do
      local model, own = CustomModel(input, flow.layers.Dense(1, { kernel_initializer = "ones" })(input)), flow.metrics.MeanSquaredError()
      model:compile { optimizer = "sgd", loss = "mse", metrics = { "mae" }, weighted_metrics = { own }, run_eagerly = eager }
      local weights = flow.tensor { 1, 2, 1, 5 }
      local history = model:fit(flow.tensor { { 1 }, { 2 }, { 3 }, { 4 } }, flow.zeros { 4, 1 },
        { sample_weight = weights, batch_size = 4, verbose = 0 }).history
      assert.near(24.5, history.loss[1], 1e-5)                      -- Keras' results
      assert.near(2.5, history.mae[1], 1e-6)
      assert.near(10.88888931, history.mean_squared_error[1], 1e-5)
      own:reset_state()
      own:update_state(flow.zeros { 2 }, flow.tensor { 1, 2 }, { sample_weight = flow.tensor { 1, 0 } })
      assert.equal(1, own:result())
    end
  end)
end)
