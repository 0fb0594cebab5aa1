-- All losses and metrics give what Keras gives, for predictions of rank 1 to 4, with sample weights of every shape that Keras takes; losses
-- compute in their dtype.
local flow = require "flow"
local json = require "flow.json"
local golden = require "spec.support.golden"

local cases = json.decode(flow.io.read_file "spec/golden/sample_weights.json").cases
local LOW, HIGH = 0.125, 2      -- of weights

local function is_mean(name) return name == "Mean" or name == "Sum" end

local function mean_of(value)
  if type(value) == "number" then return value end
  if flow.is_tensor(value) then return value:to("float64"):mean():item() end
  local sum = 0
  for _, entry in ipairs(value) do sum = sum + mean_of(entry) end
  return sum / #value
end

local function result_of(case, weights)
  local y_true, y_pred = golden.make(case.y_true), golden.make(case.y_pred)
  if case.kind == "loss" then return mean_of(flow.losses[case.name](case.options)(y_true, y_pred, weights)) end
  local metric = flow.metrics[case.name](case.options)
  local first = { { 1, 2 } }
  if is_mean(case.name) then
    metric:update_state(y_pred, weights)
    metric:update_state(y_pred[first])
  else
    metric:update_state(y_true, y_pred, weights)
    if y_true.rank == y_pred.rank then metric:update_state(y_true[first], y_pred[first]) end
  end
  return mean_of(metric:result())
end

-- The shape, the weights and the result that "3:6x1:0.25" stands for: the fourth of the case's weights has shape {6, 1}.
local function result_in(case, text)
  local number, shape, result = text:match "^(%d+):(.-):(.+)$"
  if shape == "none" then return shape, nil, tonumber(result) end
  local entry = { shape = {}, seed = case.seed + tonumber(number), low = LOW, high = HIGH }
  for size in shape:gmatch "%d+" do entry.shape[#entry.shape + 1] = tonumber(size) end
  return "{" .. table.concat(entry.shape, ", ") .. "}", golden.make(entry), tonumber(result)
end

local function check_results(case)
  local failures = {}
  for _, text in ipairs(case.results) do
    local shape, weights, expected = result_in(case, text)
    local ok, found = pcall(result_of, case, weights)
    if not ok or not (math.abs(found - expected) <= 2e-5 * math.max(1, math.abs(expected))) then
      failures[#failures + 1] = ("weights %s: %s, expected %s"):format(shape, tostring(found), expected)
    end
  end
  if #failures > 0 then error(table.concat(failures, "\n"), 0) end
end

describe("sample weights as in Keras:", function()
  for _, case in ipairs(cases) do
    if case.kind ~= "dtype" then
      it(("%s %s of %s and %s%s"):format(case.kind, case.name, table.concat(case.y_true.shape, "x"), table.concat(case.y_pred.shape, "x"),
        case.options.reduction and ", " .. case.options.reduction or ""), function() check_results(case) end)
    end
  end
end)

local ALLOWED = { float64 = 1e-12, float16 = 2e-3, bfloat16 = 1.5e-2 }
local ROUNDED = { LogCosh = 5e-9 }      -- Keras takes the logarithm of 2 in float32

describe("losses compute in their dtype:", function()
  for _, case in ipairs(cases) do
    if case.kind == "dtype" then
      it(case.name .. " in " .. case.dtype, function()
        local loss = flow.losses[case.name] { dtype = case.dtype }
        local result = loss(golden.make(case.y_true), golden.make(case.y_pred), golden.make(case.weights))
        assert.equal(case.result_dtype, result.dtype)
        local allowed = case.dtype == "float64" and ROUNDED[case.name] or ALLOWED[case.dtype]
        assert.near(case.result, result:item(), allowed * math.max(1, math.abs(case.result)))
        assert.equal(case.dtype, loss.dtype)
      end)
    end
  end

  it("also by a policy, with masks, and in a step of a model", function()
    local loss = flow.losses.MeanSquaredError { dtype = flow.mixed_precision.Policy "mixed_float16" }
    assert.equal("float16", loss.dtype)
    local y_pred = flow.tensor { { 1, 2 }, { 3, 4 }, { 5, 7 } }
    y_pred._keras_mask = flow.tensor({ true, false, true }, { dtype = "bool" })
    assert.near((2.5 + 37) / 2, flow.losses.MeanSquaredError { dtype = "float64" }(flow.zeros { 3, 2 }, y_pred):item(), 1e-12)
    local Own, seen = flow.losses.Loss:extend "OwnInDtype", nil
    function Own:call(a, b)
      seen = { a.dtype, b.dtype }
      return (a - b):square():mean(-1)
    end
    local value = Own { dtype = "float64" }(flow.ones({ 2, 2 }, { dtype = "int32" }), flow.tensor { { 1, 2 }, { 3, 4 } })
    assert.same({ "float64", "float64", "float64", 3.5 }, { seen[1], seen[2], value.dtype, value:item() })
    local input = flow.Input { 2 }
    local model = flow.Model(input, flow.layers.Dense(1, { kernel_initializer = "ones" })(input))
    model:compile { optimizer = "sgd", loss = flow.losses.MeanSquaredError { dtype = "float64" } }
    assert.near(29, model:train_on_batch(flow.tensor { { 1, 2 }, { 3, 4 } }, flow.zeros { 2, 1 }).loss, 1e-6)
  end)
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
      own:update_state(flow.zeros { 2, 1 }, flow.tensor { { 1 }, { 2 } }, { sample_weight = flow.tensor { 1, 0 } })
      assert.equal(1, own:result())
    end
  end)
end)
