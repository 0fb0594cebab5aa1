--- Gradients of convolutions over a batch whose size a function does not leave open, as where it has noise for 16 rows: they are made by
--- slots of rows, side by side, and are the same, to the bit, for any number of threads, and those of plans that go by rows but for
--- rounding. Sizes, kernels, strides and groups are random; FLOW_CASES=10000 tries this many.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"
local backend = require "spec.support.backend"

local layers = flow.layers
local FIRST, LAST = (require "spec.support.case_numbers")(40)

local function random_case(number)
  local draw = arguments.source(number).draw
  local kernel, kind = { draw(1, 5), draw(1, 5) }, draw(1, 4)
  local dtype = draw(1, 3) == 1 and "float64" or "float32"
  local options = { strides = draw(1, 2), padding = draw(1, 2) == 1 and "same" or "valid", use_bias = draw(1, 2) == 1, dtype = dtype }
  local channels = draw(1, 3) == 1 and draw(1, 7) or 8 * draw(1, 5)
  local layer
  if kind == 1 then
    layer = layers.DepthwiseConv2D(kernel, options)
  elseif kind == 2 then
    layer = layers.Conv2DTranspose(draw(1, 24), kernel, options)
  else
    if kind == 3 and channels % 4 == 0 then options.groups = 4 end
    layer = layers.Conv2D(4 * draw(1, 8), kernel, options)
  end
  local activation = draw(1, 2) == 1 and layers.ReLU { dtype = dtype } or layers.Activation("tanh", { dtype = dtype })
  local shape = { draw(2, 40), draw(5, 24), draw(5, 24), channels }
  return {
    x = backend.uniform(shape, number, -1, 1):to(dtype), dtype = dtype,
    layer = function(x) return activation(layer(x)) end,
    weights = function() return layer.trainable_variables end,
    label = ("number %d: kind %d, %d x %d, strides %d, %s, {%s}, %s"):format(number, kind, kernel[1], kernel[2], options.strides,
      options.padding, table.concat(shape, ", "), dtype),
  }
end

-- The gradients of x and of the weights; u: what the result is weighted by.
local function gradients_of(case, u)
  return function(x)
    local tape, y = flow.GradientTape(), nil
    tape:watch(x)
    tape:record(function() y = case.layer(x) * u end)
    local of = { x }
    for _, variable in ipairs(case.weights()) do of[#of + 1] = variable end
    return tape:gradient(y, of)
  end
end

local function same_bits(expected, found, label)
  for i = 1, #expected do assert.is_true(flow.all(expected[i]:eq(found[i])):item(), label .. ", gradient " .. i) end
end

local function is_close(expected, found, label)
  for i = 1, #expected do
    local scale = flow.max(flow.abs(expected[i])):item() + 1e-6
    assert.same(expected[i].shape, found[i].shape, label)
    assert.is_true(flow.max(flow.abs(expected[i] - found[i])):item() <= 5e-5 * scale, label .. ", gradient " .. i)
  end
end

describe("gradients of convolutions over a batch of a fixed size", function()
  teardown(function() flow.config.set_threads(0) end)

  it("are the same for any number of threads, and those of open sizes", function()
    for number = FIRST, LAST do
      local case = random_case(number)
      local y = case.layer(case.x)
      local u = backend.uniform(y.shape, number + 1, -1, 1):to(case.dtype)
      local fixed = gradients_of(case, u)
      local open = flow.fn(function(x, v) return gradients_of(case, v)(x) end)
      local traced, expected, eager = flow.fn(fixed), open(case.x, u), nil
      local planned
      for _, threads in ipairs { 2, 1, 3 } do
        flow.config.set_threads(threads)
        local found, found_planned = fixed(case.x), traced(case.x)
        if eager then
          same_bits(eager, found, case.label .. ", eager")
          same_bits(planned, found_planned, case.label .. ", traced")
        end
        eager, planned = found, found_planned
        is_close(expected, found, case.label .. ", eager")
        is_close(expected, found_planned, case.label .. ", traced")
      end
    end
  end)
end)
