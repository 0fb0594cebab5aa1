-- orthogonal_regularizer_spec.lua: OrthogonalRegularizer: values, gradients and losses are those of keras.regularizers.
local flow = require "flow"
local model_files = require "spec.support.model_files"
local support = require "spec.support.init"

local layers, Orthogonal = flow.layers, flow.regularizers.OrthogonalRegularizer

local WEIGHTS = flow.tensor { { 1, 2, 3 }, { 0.5, -1, 2 }, { 3, 1, -1 }, { 0, 0.25, 1 } }
local EXPECTED = {
  rows = { 0.1375633180141449, { { 0.009312189184129238, -0.009944414719939232, 0.0035255514085292816 },
    { -0.02087421715259552, 0.024312850087881088, 0.017374981194734573 },
    { -0.007141534239053726, 0.008354421705007553, -0.013070177286863327 },
    { -0.02032715082168579, -0.03184196725487709, 0.007960475981235504 } } },
  columns = { 0.09923109412193298, { { 0.0432094931602478, 0.01406950131058693, 0.020608533173799515 },
    { 0.00026586768217384815, 0.04235345870256424, -0.012073492631316185 },
    { -0.014447476714849472, 0.012532712891697884, 0.03749050199985504 },
    { 0.011236187070608139, 0.006727014202624559, -0.0001881031785160303 } } },
}

local function value_and_gradient(regularizer, w)
  local tape = flow.GradientTape()
  tape:watch(w)
  local value = tape:record(regularizer, w)
  return value, tape:gradient(value, w)
end

describe("OrthogonalRegularizer", function()
  it("gives Keras' values and gradients, of rows and of columns, eager and traced", function()
    for mode, expected in pairs(EXPECTED) do
      local regularizer = Orthogonal(0.3, mode)
      local function f(w) return value_and_gradient(regularizer, w) end
      for _, run in ipairs { f, flow.fn(f) } do
        local value, gradient = run(WEIGHTS)
        assert.near(expected[1], value:item(), 1e-7)
        assert.is_true((gradient - flow.tensor(expected[2])):abs():max():item() < 1e-7)
      end
    end
  end)

  it("is part of the loss of a layer's training, and of its file", function()
    local model = flow.Sequential { layers.Input { 4 }, layers.Dense(3, { kernel_regularizer = Orthogonal(0.3, "columns") }) }
    model.layers[1].kernel:assign(WEIGHTS)
    model:compile { optimizer = flow.optimizers.SGD(0.5), loss = "mse" }
    local x, y = flow.zeros { 2, 4 }, flow.zeros { 2, 3 }
    local again = model_files.assert_returns(model, { x })
    assert.near(0.09923110157251358, model:evaluate(x, y, { verbose = 0, return_dict = true }).loss, 1e-7)
    again:compile { optimizer = flow.optimizers.SGD(0.5), loss = "mse" }
    again:fit(x, y, { verbose = 0 })
    local moved = WEIGHTS - flow.tensor(EXPECTED.columns[2]) * 0.5
    assert.is_true((again.layers[1].kernel:value() - moved):abs():max():item() < 1e-6)
  end)

  it("is for matrices", function()
    local message = support.message_of(function() local _ = Orthogonal()(flow.ones { 3 }) end)
    assert.truthy(message:find("OrthogonalRegularizer is for weights that are matrices, got shape {3}", 1, true), message)
  end)
end)
