--- Plans for predictions put a BatchNormalization after a convolution into its weights and bias: the values of eager calls, and nothing
--- else goes over the images. FLOW_CASES=10000 tries this many.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"
local backend = require "spec.support.backend"

local layers = flow.layers
local FIRST, LAST = (require "spec.support.case_numbers")(40)

--- A normalization with statistics and parameters that are not those of a new one.
local function random_norm(channels, number, options)
  local norm = layers.BatchNormalization(options)
  norm:build { -1, -1, -1, channels }
  for i, weight in ipairs(norm.weights) do
    weight:assign(backend.uniform({ channels }, number + i, 0.5, 2):to("float32"))
  end
  return norm
end

local function random_case(number)
  local draw = arguments.source(number).draw
  local channels, filters = draw(1, 12), draw(1, 20)
  local depthwise, with_bias, relu = draw(1, 3) == 1, draw(1, 3) > 1, draw(1, 2) == 1
  local options = { use_bias = with_bias, bias_initializer = "random_normal", padding = draw(1, 2) == 1 and "same" or "valid" }
  local convolution = depthwise and layers.DepthwiseConv2D(3, options) or layers.Conv2D(filters, draw(1, 3), options)
  local norm = random_norm(depthwise and channels or filters, number, { center = draw(1, 3) > 1, scale = draw(1, 3) > 1 })
  return {
    x = backend.uniform({ draw(4, 6), draw(6, 12), draw(6, 12), channels }, number, -1, 1):to("float32"),
    f = function(x)
      local y = norm(convolution(x))
      return relu and flow.relu(y) or y
    end,
    label = ("number %d: %s of %d channels, %s bias"):format(number, depthwise and "depthwise" or "dense", channels,
      with_bias and "with" or "no"),
  }
end

describe("a BatchNormalization after a convolution", function()
  it("is part of the convolution in plans, with the same values", function()
    for number = FIRST, LAST do
      local case = random_case(number)
      local y, predict = case.f(case.x), flow.fn(case.f)
      local planned = predict(case.x)
      assert.same(y.shape, planned.shape, case.label)
      assert.is_true(flow.max(flow.abs(y - planned)):item() <= 2e-5 * (flow.max(flow.abs(y)):item() + 1e-6), case.label)
      -- A line of the profile whose first operand are images; kernels have at most 3 rows.
      for line in tostring(flow.profile(function() predict(case.x) end)):gmatch "[^\n]+" do
        local op, operand = line:match "^(%S+)%s.-({%d[^}]*})"
        local batch = "{" .. case.x.shape[1] .. ", "
        local images = operand and select(2, operand:gsub(",", "")) == 3 and operand:sub(1, #batch) == batch
        assert.is_true(not images or op == "convolution", case.label .. ": " .. line)
      end
      if number % 50 == 0 then collectgarbage() end
    end
  end)
end)
