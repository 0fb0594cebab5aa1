-- fit_inside_spec.lua: what callbacks may do to the model that runs them: compile it again, or call it with so many signatures that the
-- step under way is forgotten.
require "spec.support.init"
local flow = require "flow"
local layers, callbacks = flow.layers, flow.callbacks

local x, y = flow.random.normal({ 12, 3 }, { seed = 1 }), flow.random.normal({ 12, 1 }, { seed = 2 })

local function trained()
  flow.set_random_seed(1)
  local input = flow.Input { 3 }
  local model = flow.Model { inputs = input, outputs = layers.Dense(1)(input) }
  model:compile { optimizer = "sgd", loss = "mse" }
  return model
end

-- Steps of other signatures, more than a model keeps: it predicts from every dtype.
local function many_steps(model)
  for _, dtype in ipairs { "float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bfloat16", "bool" } do
    model:predict(flow.ones({ 2, 3 }, { dtype = dtype }), { verbose = 0 })
  end
end

describe("callbacks may, while the model", function()
  for _, of_set in ipairs { false, true } do
    local source = of_set and "a data set" or "arrays"
    local function fit(model, options)
      options.verbose, options.epochs = 0, 2
      if of_set then return model:fit(flow.data.Dataset.from_tensor_slices { x, y }:batch(4), options).history.loss end
      options.batch_size, options.shuffle = 4, false
      return model:fit(x, y, options).history.loss
    end

    for _, hook in ipairs { "on_epoch_end", "on_train_batch_end" } do
      it(("learns from %s, call it in many other ways in %s"):format(source, hook), function()
        local expected, model = fit(trained(), {}), trained()
        assert.same(expected, fit(model, { callbacks = { callbacks.LambdaCallback { [hook] = function() many_steps(model) end } } }))
      end)

      it(("learns from %s, compile it in %s"):format(source, hook), function()
        local model = trained()
        local losses = fit(model, { callbacks = { callbacks.LambdaCallback { [hook] = function()
          model:compile { optimizer = "sgd", loss = "mae" }
        end } } })
        assert.equal(2, #losses)
        assert.near(model:evaluate(x, y, { verbose = 0 }).loss, (model:predict(x, { verbose = 0 }) - y):abs():mean():item(), 1e-6)
      end)
    end
  end

  it("predicts, compile it", function()
    local model = trained()
    local Compiling = callbacks.Callback:extend("Compiling")
    function Compiling:on_predict_batch_end() self.model:compile { loss = "mae" } end
    local expected = model:predict(x, { batch_size = 4, verbose = 0 })
    assert.same(expected:totable(), model:predict(x, { batch_size = 4, verbose = 0, callbacks = { Compiling() } }):totable())
  end)
end)
