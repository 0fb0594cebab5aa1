-- transpose_filters_spec.lua: a step on a GPU turns the kernels of its convolutions, and their gradients, by a node each
-- (core/plan/passes/transpose_filters.c). On an emulated GPU (spec/cuda/emulation/emulation.h).
local emulated = require "spec.support.emulated"
local flow = require "flow"
local layers = flow.layers

if emulated.missing() then
  pending("turned kernels: " .. emulated.missing())
  return
end

local x = flow.random.normal({ 4, 9, 9, 8 }, { seed = 1 })
local y = flow.random.uniform({ 4 }, { maxval = 3, dtype = "int32", seed = 2 })

local function model_of(...)
  local list = { layers.Input { 9, 9, 8 }, ... }
  list[#list + 1] = layers.GlobalAveragePooling2D()
  list[#list + 1] = layers.Dense(3)
  return flow.Sequential(list)
end

-- The weights after two steps with momentum, in one list, and the plan of a step.
local function trained(device, make, optimizer)
  return flow.device(device, function()
    flow.random.set_seed(7)
    local model = make()
    model:compile { optimizer = optimizer or flow.optimizers.SGD(0.1, { momentum = 0.9 }),
                    loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
    for _ = 1, 2 do model:train_on_batch(x, y) end
    local list = {}
    for _, weight in ipairs(model:get_weights()) do
      for _, number in ipairs(weight:to("cpu"):flatten():totable()) do list[#list + 1] = number end
    end
    return list, require("flow.train.steps").describe(model._steps[#model._steps])
  end)
end

local function count(text, op)
  local found = 0
  for line in text:gmatch("[^\n]+") do if line:match("^ *%d+ %l+%s+" .. op) then found = found + 1 end end
  return found
end

local function compare(make, tolerance, optimizer)
  local cpu, cpu_text = trained("cpu", make, optimizer and optimizer())
  local gpu, text = trained("gpu:0", make, optimizer and optimizer())
  assert.equal(#cpu, #gpu)
  for i = 1, #cpu do assert.near(cpu[i], gpu[i], tolerance * math.max(1, math.abs(cpu[i]))) end
  assert.equal(0, count(cpu_text, "transpose_filters"))
  return text
end

describe("kernels of convolutions on a GPU", function()
  it("are turned once for a step, and their gradients once", function()
    local text = compare(function()
      return model_of(layers.Conv2D(8, 3, { activation = "relu" }), layers.Conv2D(16, 3, { padding = "same" }), layers.Conv2D(12, 1))
    end, 1e-5)
    assert.equal(2, count(text, "transpose_filters"))
  end)

  it("are cast while they are turned", function()
    finally(function() flow.mixed_precision.set_global_policy("float32") end)
    flow.mixed_precision.set_global_policy("mixed_bfloat16")
    local text = compare(function() return model_of(layers.Conv2D(8, 3, { activation = "relu" }), layers.Conv2D(16, 3)) end, 2e-2)
    assert.equal(2, count(text, "transpose_filters"))
    assert.equal(1, count(text, "transpose_filters .* {3, 3, 8, 8} {3, 3, 8, 16} %-> bfloat16{8, 3, 3, 8} bfloat16{16, 3, 3, 8}"))
  end)

  it("stay where they are if their channels do not fill what a library reads at once", function()
    local text = compare(function() return model_of(layers.Conv2D(6, 3), layers.Conv2D(5, 3)) end, 1e-5)
    assert.equal(2, count(text, "transpose_filters"))
    assert.equal(1, count(text, "transpose_filters .* {3, 3, 8, 6} %-> {6, 3, 3, 8}"))
    assert.equal(1, count(text, "transpose_filters .* {6, 3, 3, 8} %-> {3, 3, 8, 6}"))
  end)

  it("may be in groups, of transposed convolutions, and read several times", function()
    local text = compare(function()
      local input, twice = flow.Input { 9, 9, 8 }, layers.Conv2D(8, 3, { padding = "same", activation = "relu" })
      local middle = layers.DepthwiseConv2D(3)(layers.Conv2D(8, 3, { groups = 4 })(twice(twice(input))))
      return flow.Model(input, layers.Dense(3)(layers.GlobalAveragePooling2D()(layers.Conv2DTranspose(4, 2)(middle))))
    end, 1e-5)
    assert.equal(2, count(text, "transpose_filters"))
  end)

  it("have gradients that others read as they are", function()
    local Watching = flow.Model:extend("Watching")
    function Watching:train_step(data)
      local tape = flow.GradientTape()
      local loss = tape:record(function() return self:compute_loss(data[1], data[2], self(data[1], { training = true })) end)
      local gradients = tape:gradient(loss, self.trainable_variables)
      self.optimizer:apply_gradients(gradients, self.trainable_variables)
      return { loss = loss, first = gradients[1]:abs():max(), second = gradients[3]:abs():max() }
    end
    local text = compare(function()
      local model = model_of(layers.Conv2D(8, 3), layers.Conv2D(8, 3))
      return Watching { inputs = model.inputs, outputs = model.outputs }
    end, 1e-5)
    assert.equal(1, count(text, "transpose_filters"))
  end)

  it("have gradients that are clipped where they are", function()
    local text = compare(function() return model_of(layers.Conv2D(8, 3), layers.Conv2D(8, 3)) end, 1e-5,
      function() return flow.optimizers.SGD(0.1, { clipnorm = 0.01 }) end)
    assert.equal(2, count(text, "transpose_filters"))
  end)

  it("are those of the run's beginning", function()
    local function run(device)
      return flow.device(device, function()
        flow.random.set_seed(7)
        local conv = layers.Conv2D(8, 3, { use_bias = false })
        conv(x)
        local f = flow.fn(function(input)
          local before = conv(input)
          conv.kernel:assign_add(conv.kernel * 0.5)
          return before, conv(input)
        end)
        local before, after = f(x)
        assert.equal(device == "cpu" and 0 or 1, count(f:describe(), "transpose_filters"))
        return before:to("cpu"):flatten():totable(), after:to("cpu"):flatten():totable()
      end)
    end
    local before, after = run("gpu:0")
    local on_cpu = run("cpu")
    for i = 1, #before do
      assert.near(on_cpu[i], before[i], 1e-4)
      assert.near(1.5 * before[i], after[i], 1e-4)
    end
  end)
end)
