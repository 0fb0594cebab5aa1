--- Convolutions in plans take zeros around their images as padding: the values and gradients of eager calls, which write the zeros into a
--- larger tensor. Sizes, kernels, strides and margins are random; FLOW_CASES=10000 tries this many.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"
local backend = require "spec.support.backend"

local layers = flow.layers
local FIRST, LAST = (require "spec.support.case_numbers")(40)

local function random_case(number)
  local draw = arguments.source(number).draw
  local kernel, dilation = { draw(1, 7), draw(1, 7) }, draw(1, 4) == 1 and 2 or 1
  local stride = dilation == 1 and draw(1, 3) or 1
  local reach = { (kernel[1] - 1) * dilation, (kernel[2] - 1) * dilation }
  local beyond = draw(1, 5) == 1 and 1 or 0      -- a row of zeros that no window needs
  local margins = { { draw(0, reach[1]) + beyond, draw(0, reach[1]) }, { draw(0, reach[2]), draw(0, reach[2]) } }
  local channels = draw(1, 3) == 1 and draw(1, 5) or 8 * draw(1, 4)
  local options = { strides = stride, dilation_rate = dilation, padding = draw(1, 2) == 1 and "same" or "valid" }
  local depthwise = draw(1, 2) == 1
  local convolution = depthwise and layers.DepthwiseConv2D(kernel, options) or layers.Conv2D(draw(1, 20), kernel, options)
  local more = draw(1, 2) == 1 and layers.BatchNormalization() or layers.ReLU()
  local zeros = layers.ZeroPadding2D(margins)
  local size = { draw(reach[1] + 1, 20), draw(reach[2] + 1, 20) }
  return {
    x = backend.uniform({ draw(1, 5), size[1], size[2], channels }, number, -1, 1):to("float32"),
    f = function(x)
      local y
      local tape = flow.GradientTape()
      tape:record(function()
        tape:watch(x)
        y = more(convolution(zeros(x)))
      end)
      return y, tape:gradient(y, { x, convolution.trainable_variables[1] }, flow.sin(y))
    end,
    predict = function(x) return more(convolution(zeros(x))) end,
    is_folded = beyond == 0 and options.padding == "valid" and (margins[1][1] + margins[1][2] + margins[2][1] + margins[2][2] > 0),
    label = ("number %d: %s %d x %d, strides %d, dilation %d, %s, margins %d %d %d %d of {%d, %d, %d}"):format(number,
      depthwise and "depthwise" or "dense", kernel[1], kernel[2], stride, dilation, options.padding, margins[1][1], margins[1][2],
      margins[2][1], margins[2][2], size[1], size[2], channels),
  }
end

local function is_close(expected, found, label)
  local scale = flow.max(flow.abs(expected)):item() + 1e-6
  assert.same(expected.shape, found.shape, label)
  assert.is_true(flow.max(flow.abs(expected - found)):item() <= 2e-5 * scale, label)
end

describe("zeros around the images of a convolution", function()
  it("become its padding in plans, with the same values and gradients", function()
    local folded = 0
    for number = FIRST, LAST do
      local case = random_case(number)
      local y, gradients = case.f(case.x)
      local planned, planned_gradients = flow.fn(case.f)(case.x)
      is_close(y, planned, case.label)
      for i = 1, 2 do is_close(gradients[i], planned_gradients[i], case.label) end
      local predict = flow.fn(case.predict)
      is_close(y, predict(case.x), case.label)
      local profile = tostring(flow.profile(function() predict(case.x) end))
      if case.is_folded then
        assert.is_nil(profile:find("\nslice_gradient", 1, true), case.label)
        folded = folded + 1
      end
      if number % 50 == 0 then collectgarbage() end
    end
    assert.is_true(folded > 0)
  end)

  it("stay what they are for another reader", function()
    local zeros, convolution = layers.ZeroPadding2D(1), layers.Conv2D(4, 3)
    local function f(x)
      local padded = zeros(x)
      return convolution(padded), padded
    end
    local x = flow.random.normal { 2, 5, 6, 3 }
    local y, padded = f(x)
    local planned, planned_zeros = flow.fn(f)(x)
    is_close(y, planned, "the convolution")
    assert.same(padded:totable(), planned_zeros:totable())
  end)
end)
