-- batch_norm_relu_spec.lua: on a GPU a normalization takes the sum and the relu after it over (core/plan/passes/fuse_batch_norm.c). On an
-- emulated GPU (spec/cuda/emulation/emulation.h).
local emulated = require "spec.support.emulated"
local flow = require "flow"
local layers = flow.layers

if emulated.missing() then
  pending("normalizations with relus: " .. emulated.missing())
  return
end

local x = flow.random.normal({ 4, 6, 6, 3 }, { seed = 1 })

-- Outputs and gradients of a model in training on a device, in one list; and what the plan does.
local function trained(device, make, returned)
  return flow.device(device, function()
    flow.random.set_seed(7)
    local model = make()
    local f = flow.fn(function(input)
      local tape, y = flow.GradientTape(), nil
      local target = tape:record(function()
        y = model(input, { training = true })
        return (flow.square(y:to("float32")) * 0.5 + y):sum()
      end)
      local found = tape:gradient(target, model.trainable_variables)
      found[#found + 1] = returned and y or y:to("float32") * 1
      for _, variable in ipairs(model.non_trainable_variables) do found[#found + 1] = variable + 0 end
      return unpack(found)
    end)
    local list = {}
    for _, result in ipairs { f(x) } do
      for _, number in ipairs(result:to("cpu"):flatten():totable()) do list[#list + 1] = number end
    end
    return list, f:describe()
  end)
end

local function count(text, op)
  local found = 0
  for line in text:gmatch("[^\n]+") do if line:match("^%s*%d+ %l+%s+" .. op .. " ") then found = found + 1 end end
  return found
end

local function compare(make, tolerance, returned)
  local cpu, cpu_text = trained("cpu", make, returned)
  local gpu, text = trained("gpu:0", make, returned)
  assert.equal(#cpu, #gpu)
  local apart, all = 0, 0
  for i = 1, #cpu do apart, all = apart + (cpu[i] - gpu[i]) ^ 2, all + cpu[i] ^ 2 end
  assert.is_true(apart <= tolerance ^ 2 * all, math.sqrt(apart / all) .. " apart")
  assert.equal(0, count(cpu_text, "batch_norm_relu"))
  return text
end

local function norm(input, filters)
  return layers.BatchNormalization()(layers.Conv2D(filters, 3, { padding = "same", use_bias = false })(input))
end

local function model_of(f)
  return function()
    local input = flow.Input { 6, 6, 3 }
    return flow.Model(input, f(input))
  end
end

local function head(y) return layers.Dense(2)(layers.GlobalAveragePooling2D()(y)) end

describe("a normalization on a GPU", function()
  it("takes the relu after it over", function()
    local text = compare(model_of(function(input) return head(layers.ReLU()(norm(layers.ReLU()(norm(input, 8)), 8))) end), 1e-4)
    assert.equal(2, count(text, "batch_norm_relu"))
    assert.equal(0, count(text, "batch_norm"))
    assert.equal(0, count(text, "relu"))
  end)

  it("takes a sum before it over, on whichever side, of the later one of two normalizations", function()
    local text = compare(model_of(function(input)
      local first = layers.ReLU()(norm(input, 8))
      local second = layers.ReLU()(layers.Add() { first, norm(first, 8) })
      return head(layers.ReLU()(layers.Add() { norm(second, 8), norm(second, 8) }))
    end), 1e-4)
    assert.equal(3, count(text, "batch_norm_relu"))
    assert.equal(1, count(text, "batch_norm"))
    assert.equal(0, count(text, "relu"))
  end)

  it("leaves alone what others read, what broadcasts, what comes later and what is returned", function()
    local text = compare(model_of(function(input)
      local y = norm(input, 8)
      return head(layers.Add() { layers.ReLU()(y), y })
    end), 1e-4)
    assert.equal(0, count(text, "batch_norm_relu"))
    text = compare(model_of(function(input)
      local one = layers.Dense(8)(layers.GlobalAveragePooling2D { keepdims = true }(input))
      return head(layers.ReLU()(layers.Add() { norm(input, 8), one }))
    end), 1e-4)
    assert.equal(0, count(text, "batch_norm_relu"))
    text = compare(model_of(function(input)
      local y = norm(input, 8)
      return head(layers.ReLU()(layers.Add() { y, layers.Conv2D(8, 1)(input) }))
    end), 1e-4)
    assert.equal(0, count(text, "batch_norm_relu"))
    text = compare(model_of(function(input) return layers.ReLU()(norm(input, 4)) end), 1e-4, true)
    assert.equal(0, count(text, "batch_norm_relu"))
  end)

  it("does in 16 bits", function()
    flow.mixed_precision.set_global_policy("mixed_bfloat16")
    finally(function() flow.mixed_precision.set_global_policy("float32") end)
    local text = compare(model_of(function(input)
      local first = layers.ReLU()(norm(input, 8))
      return head(layers.ReLU()(layers.Add() { first, norm(first, 8) }))
    end), 0.05)
    assert.equal(2, count(text, "batch_norm_relu"))
  end)
end)
