--- Stateful layers against Keras: losses of fit, and what evaluate and predict give after it, batch after batch.
local support = require "spec.support.init"
local flow = require "flow"
local golden = require "spec.support.golden"
local cases = require "spec.golden.stateful"

local ROWS = 3

local function near(wanted, found, what)
  if not (math.abs(wanted - found) <= 1e-5 * math.max(1, math.abs(wanted))) then
    error(("%s is %.9g, expected %.9g"):format(what, found, wanted), 2)
  end
end

local function states_of(model)
  local list = {}
  for _, layer in ipairs(model.layers) do
    if pcall(function() return layer.states end) then
      for _, v in ipairs(layer.states) do list[#list + 1] = v end
    end
  end
  return list
end

local function check(case, model, fit)
  local x, y = golden.make(case.x), golden.make(case.y)
  for i, loss in ipairs(fit(model, x, y)) do near(case.losses[i], loss, "loss " .. i) end
  local options = { batch_size = ROWS, verbose = 0 }
  near(case.evaluated, model:evaluate(x, y, options).loss, "evaluate")
  local predicted = model:predict(x, options):reshape({ 2 * ROWS, -1 }):sum(2):totable()
  for i, wanted in ipairs(case.predicted) do near(wanted, predicted[i], "prediction " .. i) end
  local states = states_of(model)
  assert.equal(#case.states, #states)
  for i, wanted in ipairs(case.states) do near(wanted, states[i]:value():sum():item(), "state " .. i) end
end

local function new_model(case, options)
  local model = flow.models.model_from_json(case.model)
  model:set_weights(golden.make_all(case.weights))
  model:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse", run_eagerly = options and options.run_eagerly }
  return model
end

local function by_fit(model, x, y)
  return model:fit(x, y, { batch_size = ROWS, epochs = 3, shuffle = false, verbose = 0 }).history.loss
end

describe("stateful layers, as in Keras:", function()
  for _, case in ipairs(cases) do
    it(case.name .. ", fit", function() check(case, new_model(case), by_fit) end)

    it(case.name .. ", from a Dataset", function()
      check(case, new_model(case), function(model, x, y)
        return model:fit(flow.data.Dataset.from_tensor_slices({ x, y }):batch(ROWS), { epochs = 3, verbose = 0 }).history.loss
      end)
    end)

    it(case.name .. ", run eagerly", function() check(case, new_model(case, { run_eagerly = true }), by_fit) end)

    it(case.name .. ", saved and opened, whose states begin with zeros", function()
      local model = new_model(case)
      model:predict(golden.make(case.x), { batch_size = ROWS, verbose = 0 })
      local path = support.path()
      model:save(path .. ".keras")
      local opened = flow.models.load_model(path .. ".keras")
      os.remove(path)
      os.remove(path .. ".keras")
      check(case, opened, by_fit)
    end)
  end
end)
