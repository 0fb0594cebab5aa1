--- Plans for predictions compute a depthwise convolution together with the pointwise one that alone reads it, and minima and sums with any:
--- the values of eager calls. Sizes, kernels, strides, activations and normalizations are random; FLOW_CASES=10000 tries this many.
local flow = require "flow"
local arguments = require "spec.backend.random_ops.arguments"
local backend = require "spec.support.backend"

local layers = flow.layers
local FIRST, LAST = (require "spec.support.case_numbers")(60)

--- A random activation: none, relu, relu6, or a ceiling alone, which may be below zero.
local function random_limit(draw)
  local kind, ceiling = draw(1, 4), draw(1, 8) / 4
  if kind == 1 then return function(x) return x end end
  if kind == 2 then return flow.relu end
  if kind == 3 then return function(x) return flow.minimum(flow.relu(x), ceiling) end end
  return function(x) return flow.minimum(ceiling, x) end
end

local function random_case(number)
  local draw = arguments.source(number).draw
  local kernel, dilation = { draw(1, 5), draw(1, 5) }, draw(1, 5) == 1 and 2 or 1
  local stride = dilation == 1 and draw(1, 3) or 1
  local channels = draw(1, 3) == 1 and draw(2, 5) or 8 * draw(1, draw(1, 5) == 1 and 30 or 6)
  local size = { draw((kernel[1] - 1) * dilation + 1, 30), draw((kernel[2] - 1) * dilation + 1, 30) }
  local options = {
    strides = stride, dilation_rate = dilation, padding = draw(1, 2) == 1 and "same" or "valid", use_bias = draw(1, 2) == 1,
    bias_initializer = "random_normal",
  }
  local first = layers.DepthwiseConv2D(kernel, options)
  local second = layers.Conv2D(draw(1, 90), 1, { use_bias = draw(1, 2) == 1, bias_initializer = "random_normal" })
  local norms = { draw(1, 2) == 1 and layers.BatchNormalization(), draw(1, 2) == 1 and layers.BatchNormalization() }
  local limits = { random_limit(draw), random_limit(draw) }
  return {
    x = backend.uniform({ draw(1, 3), size[1], size[2], channels }, number, -1, 1):to("float32"),
    f = function(x)
      local y = first(x)
      y = limits[1](norms[1] and norms[1](y) or y)
      y = second(y)
      return limits[2](norms[2] and norms[2](y) or y)
    end,
    label = ("number %d: %d x %d, strides %d, dilation %d, %s, of {%d, %d, %d}"):format(number, kernel[1], kernel[2], stride, dilation,
      options.padding, size[1], size[2], channels),
  }
end

local function is_close(expected, found, label)
  local scale = flow.max(flow.abs(expected)):item() + 1e-6
  assert.same(expected.shape, found.shape, label)
  assert.is_true(flow.max(flow.abs(expected - found)):item() <= 2e-5 * scale, label)
end

local function ops_of(f, ...)
  local arguments_of_f = { ... }
  return tostring(flow.profile(function() f(unpack(arguments_of_f)) end))
end

describe("a convolution and a minimum", function()
  it("are one op in plans, with the same values, unless a pool is between them", function()
    for number = FIRST, LAST do
      local draw = arguments.source(number).draw
      local size, channels = { draw(7, 40), draw(7, 40) }, draw(1, 3) == 1 and draw(1, 4) or 8 * draw(1, 6)
      local convolution = layers.Conv2D(draw(1, 3) == 1 and draw(1, 8) or draw(9, 70), draw(1, 7),
        { strides = draw(1, 2), padding = draw(1, 2) == 1 and "same" or "valid", use_bias = draw(1, 2) == 1 })
      local pool, ceilings = draw(1, 4) == 1, { draw(1, 8) / 4, draw(1, 8) / 4 }
      local twice, relu = draw(1, 4) == 1, draw(1, 2) == 1
      local function f(x)
        local y = convolution(x)
        if relu then y = flow.relu(y) end
        if pool then y = layers.MaxPooling2D(2, { padding = "same" })(y) end
        y = flow.minimum(y, ceilings[1])
        return twice and flow.minimum(ceilings[2], y) or y
      end
      local label = ("number %d: of {%d, %d, %d}"):format(number, size[1], size[2], channels)
      local x = backend.uniform({ draw(1, 3), size[1], size[2], channels }, number, -1, 1):to("float32")
      local predict = flow.fn(f)
      is_close(f(x), predict(x), label)
      if not pool then assert.is_nil(ops_of(predict, x):find("\nminimum ", 1, true), label) end
    end
  end)
end)

describe("a convolution and a tensor that is added to it", function()
  it("are one op in plans, with the relu after it, with the same values", function()
    local added_to = 0
    for number = FIRST, LAST do
      local draw = arguments.source(number).draw
      local size, channels = { draw(7, 40), draw(7, 40) }, draw(1, 3) == 1 and draw(1, 4) or 8 * draw(1, 6)
      local filters, options = draw(1, 3) == 1 and draw(1, 8) or draw(9, 70), { strides = draw(1, 2), padding = "same" }
      local one, two = layers.Conv2D(filters, draw(1, 5), options), layers.Conv2D(filters, draw(1, 5), options)
      local kind, relu, norm = draw(1, 4), draw(1, 2) == 1, draw(1, 2) == 1 and layers.BatchNormalization()
      local function f(x, r)
        local y = one(x)
        if norm then y = norm(y) end
        local other = kind == 1 and two(x) or kind == 2 and flow.sin(y) or r      -- kind 2: a second reader
        y = number % 2 == 0 and y + other or other + y
        return relu and flow.relu(y) or y
      end
      local label = ("number %d: of {%d, %d, %d} to %d, kind %d"):format(number, size[1], size[2], channels, filters, kind)
      local x = backend.uniform({ draw(1, 3), size[1], size[2], channels }, number, -1, 1):to("float32")
      local r = backend.uniform(one(x).shape, number + 1, -1, 1):to("float32")
      local predict = flow.fn(f)
      is_close(f(x, r), predict(x, r), label)
      local profile = ops_of(predict, x, r)
      -- Of few results a norm is not folded into the weights, which are more, and so stands between.
      if not norm or filters > 8 then assert.equal(kind ~= 2, profile:find("\nconvolution_add ", 1, true) ~= nil, label) end
      added_to = added_to + (kind ~= 2 and 1 or 0)
    end
    assert.is_true(added_to > 0)
  end)

  it("stay two where the tensor has another shape, or is the convolution itself", function()
    local x, convolution = flow.random.normal { 2, 6, 6, 4 }, layers.Conv2D(5, 3)
    local one_row = flow.random.normal { 1, 4, 5 }
    local cases = {
      function() return convolution(x) + one_row end,
      function() local y = convolution(x) return y + y end,
    }
    for i, f in ipairs(cases) do
      local planned = flow.fn(f)
      is_close(f(), planned(), "case " .. i)
      assert.is_nil(ops_of(planned):find("convolution_add", 1, true), "case " .. i)
    end
  end)
end)

describe("a depthwise convolution and a pointwise one", function()
  it("are one op in plans, with the same values", function()
    for number = FIRST, LAST do
      local case = random_case(number)
      local y, predict = case.f(case.x), flow.fn(case.f)
      is_close(y, predict(case.x), case.label)
      local profile = ops_of(predict, case.x)
      assert.is_truthy(profile:find("separable_convolution", 1, true), case.label)
      assert.is_nil(profile:find("\nconvolution ", 1, true), case.label)
      assert.is_nil(profile:find("\nminimum ", 1, true), case.label)
      if number % 50 == 0 then collectgarbage() end
    end
  end)

  it("stay two where something else reads the first one's result, the second has strides or padding, or there are gradients", function()
    local x = flow.random.normal { 2, 6, 6, 8 }
    local first, second = layers.DepthwiseConv2D(3), layers.Conv2D(4, 1)
    local strided, padded = layers.Conv2D(4, 1, { strides = 2 }), layers.Conv2D(4, 1)
    local cases = {
      function() local y = first(x) return second(y), y end,
      function() return strided(first(x)) end,
      function() return padded(layers.ZeroPadding2D(1)(first(x))) end,
      function()
        local tape, y = flow.GradientTape(), nil
        tape:record(function() y = second(first(x)) end)
        return tape:gradient(y, first.trainable_variables)[1]
      end,
    }
    for i, f in ipairs(cases) do
      local expected, planned = f(), flow.fn(f)
      is_close(expected, planned(), "case " .. i)
      assert.is_nil(ops_of(planned):find("separable_convolution", 1, true), "case " .. i)
    end
  end)

  it("keep a NaN, and let what is infinite be the ceiling", function()
    local first = layers.DepthwiseConv2D(1, { depthwise_initializer = "ones" })
    local second = layers.Conv2D(2, 1, { kernel_initializer = "ones" })
    local function f(x) return flow.minimum(flow.relu(second(flow.minimum(flow.relu(first(x)), 6))), 7) end
    local x = flow.tensor { { { { 0 / 0, 1 }, { 1 / 0, 0 }, { 1 / 0, 1 / 0 }, { -1 / 0, 2 } } } }
    local y = flow.fn(f)(x):totable()[1][1]
    assert.is_true(y[1][1] ~= y[1][1])
    assert.same({ { 6, 6 }, { 7, 7 }, { 2, 2 } }, { y[2], y[3], y[4] })
  end)
end)
