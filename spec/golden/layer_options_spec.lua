--- Constraints and activity regularizers against Keras: losses and weights of five updates, by fit and by a loop of one's own.
local flow = require "flow"
local golden = require "spec.support.golden"
local model_files = require "spec.support.model_files"
local cases = {}
for _, kind in ipairs { "constraints", "activity", "conv_lstm" } do
  for _, case in ipairs(require("spec.golden.layer_" .. kind)) do cases[#cases + 1] = case end
end

local function new_model(case)
  local model = flow.models.model_from_json(case.model)
  model:set_weights(golden.make_all(case.weights))
  return model, flow.optimizers.from_json(case.optimizer)
end

local function near(wanted, found, what)
  local scale = math.max(1, math.abs(wanted))
  if not (math.abs(wanted - found) <= 1e-5 * scale) then error(("%s is %.9g, expected %.9g"):format(what, found, wanted), 2) end
end

local function check(case, losses, model)
  for i, wanted in ipairs(case.losses) do near(wanted, losses[i], "loss " .. i) end
  for i, values in ipairs(case.after) do
    local found = model.weights[i]:value():reshape({ -1 }):totable()
    for k, wanted in ipairs(values) do near(wanted, found[k], ("%s[%d]"):format(model.weights[i].name, k)) end
  end
end

-- What fit does with a batch, as a script would write it.
local function step(model, optimizer, x, y)
  local loss_of, tape = flow.losses.MeanSquaredError(), flow.GradientTape()
  local loss = tape:record(function()
    local total = loss_of(y, model(x, { training = true }))
    for _, added in ipairs(model.losses) do total = total + added end
    return total
  end)
  optimizer:apply_gradients(tape:gradient(loss, model.trainable_variables), model.trainable_variables)
  return loss
end

describe("options of layers in training, as in Keras:", function()
  for _, case in ipairs(cases) do
    local title = case.kind .. " of " .. case.name
    it(title .. ", by fit", function()
      local model, optimizer = new_model(case)
      model:compile { optimizer = optimizer, loss = "mse" }
      local history = model:fit(golden.make(case.x), golden.make(case.y), { batch_size = 8, epochs = 5, verbose = 0 })
      check(case, history.history.loss, model)
    end)
    for _, mode in ipairs { "eager", "traced" } do
      it(title .. ", by a loop of one's own, " .. mode, function()
        local model, optimizer = new_model(case)
        local x, y, losses = golden.make(case.x), golden.make(case.y), {}
        local f = function(a, b) return step(model, optimizer, a, b) end
        if mode == "traced" then f = flow.fn(f) end
        for i = 1, 5 do losses[i] = f(x, y):item() end
        optimizer:finalize_variable_values(case.name == "averages" and model.trainable_variables or {})
        check(case, losses, model)
      end)
    end
    it(title .. ", after it was written and read back", function()
      model_files.assert_returns(new_model(case), { golden.make(case.x) })
    end)
  end
end)
