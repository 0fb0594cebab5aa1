-- relu_gradient_spec.lua: a convolution's gradient on a GPU is stopped by the relu before where it is made, and summed for the bias of
-- that relu (core/plan/passes/fuse_relu_gradient.c). On an emulated GPU (spec/cuda/emulation/emulation.h).
local emulated = require "spec.support.emulated"
local flow = require "flow"
local layers = flow.layers

if emulated.missing() then
  pending("gradients through relus: " .. emulated.missing())
  return
end

local x = flow.random.normal({ 4, 9, 9, 3 }, { seed = 1 })

-- Gradients, twice, of the sum of squares of a net's outputs by all its variables, on a device, in one list; and what the plan does.
-- returned: once, so that they are themselves what the plan returns.
local function gradients(device, make, returned)
  return flow.device(device, function()
    flow.random.set_seed(7)
    local model = make()
    local f = flow.fn(function(input)
      local tape = flow.GradientTape()
      local target = tape:record(function()
        local outputs, total = model(input), 0
        if type(outputs) ~= "table" then outputs = { outputs } end
        for _, y in ipairs(outputs) do total = total + flow.square(y:to("float32")):sum() end
        return total
      end)
      local found = tape:gradient(target, model.trainable_variables)
      for i = 1, #found do found[i] = returned and found[i] or found[i] * 2 end
      return unpack(found)
    end)
    local list = {}
    for _, gradient in ipairs { f(x) } do
      for _, number in ipairs(gradient:to("cpu"):flatten():totable()) do list[#list + 1] = number end
    end
    return list, f:describe()
  end)
end

local function count(text, op)
  local found = 0
  for line in text:gmatch("[^\n]+") do if line:match("^%s*%d+ %l+%s+" .. op .. " ") then found = found + 1 end end
  return found
end

local function compare(make, tolerance)
  local cpu = gradients("cpu", make)
  local gpu, text = gradients("gpu:0", make)
  assert.equal(#cpu, #gpu)
  for i = 1, #cpu do assert.near(cpu[i], gpu[i], tolerance * math.max(1, math.abs(cpu[i]))) end
  return text
end

local function sequential(...)
  local list = { layers.Input { 9, 9, 3 }, ... }
  return function() return flow.Sequential(list) end
end

local function conv(filters, options)
  options = options or {}
  return layers.Conv2D(filters, options.size or 3, { padding = "same", activation = options.activation or "relu",
                                                     use_bias = options.use_bias ~= false, groups = options.groups })
end

describe("a gradient through a relu on a GPU", function()
  it("is stopped by the convolution after it, which sums it for the bias", function()
    local text = compare(function() return sequential(conv(8), conv(16), conv(5))() end, 1e-4)
    assert.equal(2, count(text, "convolution_gradient_relu"))
    assert.equal(1, count(text, "convolution_gradient"))
  end)

  it("is where the relu's result is pooled", function()
    local text = compare(function()
      return sequential(conv(8), layers.MaxPooling2D(), conv(16), layers.MaxPooling2D(), conv(5))()
    end, 1e-4)
    assert.equal(2, count(text, "convolution_gradient_relu"))
  end)

  it("is without a bias, and where groups leave no engine", function()
    local text = compare(function()
      return sequential(conv(8, { use_bias = false }), conv(8, { groups = 4 }), conv(4, { use_bias = false }))()
    end, 1e-4)
    assert.equal(2, count(text, "convolution_gradient_relu"))
  end)

  it("is where the relu comes after a normalization", function()
    local text = compare(function()
      return sequential(conv(8, { activation = "linear" }), layers.BatchNormalization(), layers.ReLU(), conv(8), conv(5))()
    end, 1e-4)
    assert.equal(2, count(text, "convolution_gradient_relu"))
    assert.equal(0, count(text, "relu_gradient"))
  end)

  it("is with the gradients of others that read what the relu gave", function()
    local function make(f)
      return function()
        local input = flow.Input { 9, 9, 3 }
        return flow.Model(input, f(conv(8)(input)))
      end
    end
    local text = compare(make(function(first) return { first, conv(8)(first) } end), 1e-4)
    assert.equal(1, count(text, "convolution_gradient_relu"))
    assert.equal(1, count(text, "convolution_gradient"))
    assert.equal(0, count(text, "relu_gradient"))
    text = compare(make(function(first) return layers.Add() { first, conv(8)(first) } end), 1e-4)
    assert.equal(1, count(text, "convolution_gradient_relu"))
    text = compare(make(function(first) return layers.Add() { conv(8)(first), conv(8)(first), conv(8, { groups = 4 })(first) } end), 1e-4)
    assert.equal(1, count(text, "convolution_gradient_relu"))
    text = compare(make(function(first)
      local y = layers.ReLU()(layers.Add() { first, layers.BatchNormalization()(conv(8, { activation = "linear" })(first)) })
      return conv(4)(y)
    end), 1e-3)
    assert.equal(2, count(text, "convolution_gradient_relu"))
    assert.equal(0, count(text, "relu_gradient"))
  end)

  it("is left alone where what others add comes later", function()
    local function make()
      local input = flow.Input { 9, 9, 3 }
      local first = conv(8)(input)
      local square = layers.Multiply() { first, first }
      return flow.Model(input, layers.Add() { square, layers.Conv2D(8, 1)(first) })
    end
    assert.equal(0, count(compare(make, 1e-3), "convolution_gradient_relu"))
  end)

  it("is left alone where the gradient of the bias is returned", function()
    local _, text = gradients("gpu:0", sequential(conv(8), conv(5)), true)
    assert.equal(0, count(text, "convolution_gradient_relu"))
  end)

  it("is on no CPU", function()
    local _, text = gradients("cpu", sequential(conv(8), conv(16), conv(5)))
    assert.equal(0, count(text, "convolution_gradient_relu"))
    assert.equal(3, count(text, "convolution_gradient"))
  end)

  it("is in 16 bits, its sums in 32", function()
    flow.mixed_precision.set_global_policy("mixed_bfloat16")
    finally(function() flow.mixed_precision.set_global_policy("float32") end)
    local text = compare(function() return sequential(conv(8), conv(16), conv(5))() end, 0.05)
    assert.equal(2, count(text, "convolution_gradient_relu"))
    for line in text:gmatch("[^\n]+") do
      if line:match("convolution_gradient_relu") then assert.matches(" {%d+} {%d+} $", line) end
    end
  end)
end)
