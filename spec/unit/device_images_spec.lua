--- Images that a model begins with are rounded and scaled where a GPU's convolutions copy them (core/plan/passes/fuse_images.c): no launch
--- does it apart, and training goes as on the CPU.
local emulated = require "spec.support.emulated"
local flow = require "flow"

if emulated.missing() then
  pending("images on devices: " .. emulated.missing())
  return
end

local layers = flow.layers
local steps = require "flow.train.steps"

local function build(first)
  local model = flow.Sequential {
    layers.Input { 12, 12, 3 }, first or layers.Rescaling(1 / 255), layers.Conv2D(8, 3, { activation = "relu" }), layers.MaxPooling2D(),
    layers.Flatten(), layers.Dense(4, { dtype = "float32" }),
  }
  model:compile { optimizer = flow.optimizers.SGD(0.1), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  return model
end

local x = flow.random.uniform({ 6, 12, 12, 3 }, { maxval = 255, seed = 1 })
local y = flow.random.uniform({ 6 }, { maxval = 4, dtype = "int32", seed = 2 })

--- The losses of four steps; the ops of the last one, by name.
local function train(device, dtype, first)
  local losses, ops, model = {}, {}, nil
  flow.set_random_seed(3)
  flow.device(device, function() model = build(first and first()) end)
  for i = 1, 4 do losses[i] = model:train_on_batch(x:cast(dtype), y).loss end
  for op in steps.describe(model._steps[#model._steps]):gmatch("\n *%d+ %l+ +(%S+)") do ops[op] = (ops[op] or 0) + 1 end
  return losses, ops
end

describe("images that a model begins with", function()
  for _, policy in ipairs { "float32", "mixed_bfloat16" } do
    for _, dtype in ipairs { "float32", "uint8" } do
      for _, precision in ipairs { "fast", "exact" } do
        it(("are not scaled apart: %s in %s, %s"):format(dtype, policy, precision), function()
          flow.mixed_precision.set_global_policy(policy)
          flow.config.set_precision(precision)
          finally(function()
            flow.mixed_precision.set_global_policy "float32"
            flow.config.set_precision "exact"
          end)
          local expected = train("cpu:0", dtype)
          local found, ops = train("gpu:0", dtype)
          for i = 1, 4 do assert.is_near(expected[i], found[i], policy == "float32" and 2e-3 or 3e-2) end
          assert.is_true(found[4] < found[1])
          if precision == "fast" then assert.is_nil(ops.mul) end
        end)
      end
    end
  end

  -- As MNIST's, which have no axis for their only channel.
  it("are not rounded apart where they get another shape before the convolution", function()
    flow.mixed_precision.set_global_policy "mixed_bfloat16"
    finally(function() flow.mixed_precision.set_global_policy "float32" end)
    local function reshape() return layers.Reshape { 6, 24, 3 } end
    local expected = train("cpu:0", "float32", reshape)
    local found, ops = train("gpu:0", "float32", reshape)
    for i = 1, 4 do assert.is_near(expected[i], found[i], 3e-2 * math.max(1, expected[i])) end
    local _, scaled = train("gpu:0", "float32")
    assert.equal(scaled.cast, ops.cast, "casts of a step")
  end)

  -- A gradient that a function returns is not an operand of an optimizer.
  for _, precision in ipairs { "fast", "exact" } do
    it("have the gradients of the CPU where a function returns them: " .. precision, function()
      flow.config.set_precision(precision)
      finally(function() flow.config.set_precision "exact" end)
      local function gradients(device)
        local found
        flow.set_random_seed(3)
        flow.device(device, function()
          local model = build()
          local step = flow.fn(function(images, labels)
            local tape = flow.GradientTape()
            local loss = tape:record(function() return model.loss(labels, model(images, { training = true })) end)
            return tape:gradient(loss, model.trainable_variables)
          end)
          for _ = 1, 3 do found = step(x, y) end
        end)
        return found
      end
      local expected, found = gradients "cpu:0", gradients "gpu:0"
      for i = 1, #expected do
        local e, g = expected[i]:to "cpu:0", found[i]:to "cpu:0"
        assert.is_true(((e - g):square():sum() / e:square():sum()):item() < 1e-4, "gradient " .. i)
      end
    end)
  end
end)
