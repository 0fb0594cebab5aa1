--- The gradients of a whole training step against float64: one step of the flowers net on a batch of 32, traced as fit does it.
local flow = require "flow"
local golden = require "spec.support.golden"
local precisions = require "spec.support.precision"
local case = require "spec.golden.gradients"
local layers = flow.layers

local function net(size)
  local list = { layers.Input { size, size, 3 }, layers.Rescaling(1 / 255) }
  for _, filters in ipairs { 16, 32, 64 } do
    list[#list + 1] = layers.Conv2D(filters, 3, { padding = "same", activation = "relu" })
    list[#list + 1] = layers.MaxPooling2D()
  end
  for _, layer in ipairs { layers.Flatten(), layers.Dense(128, { activation = "relu" }), layers.Dense(5, { activation = "softmax" }) } do
    list[#list + 1] = layer
  end
  return flow.Sequential(list)
end

local weights, x, y = golden.make_all(case.weights), golden.make(case.x), golden.make(case.y)

--- Loss and gradients (copies in Lua's hands) with this many threads.
local function one_step(precision, threads)
  flow.config.set_precision(precision)
  flow.config.set_threads(threads)
  local model = net(case.size)
  model:set_weights(weights)
  local loss_of = flow.losses.SparseCategoricalCrossentropy()
  local step = flow.fn(function(images, labels)
    local tape = flow.GradientTape()
    local loss = tape:record(function() return loss_of(labels, model(images, { training = true })) end)
    return loss, tape:gradient(loss, model.trainable_variables)
  end)
  -- The first two runs of a plan go alone, whatever the number of threads; a GPU has recorded it from the second one on, and is seen
  -- with and without that.
  for _ = 1, precisions.on_gpu and (precision == "exact" and 1 or 0) or 2 do step(x, y) end
  return step(x, y)
end

--- |found - expected| / |expected| over the elements that are stored.
local function relative_error(gradient, where)
  local expected, size = golden.stored("gradients", where)
  local found, difference, norm = gradient:data(), 0, 0
  for i = 0, size - 1 do
    local d = found[i * where.stride] - expected[i]
    difference, norm = difference + d * d, norm + expected[i] * expected[i]
  end
  assert.is_true(norm > 0)
  return math.sqrt(difference / norm)
end

describe("the gradients of a training step are those of float64", function()
  -- gradients.py tells why the bounds are so far above what is found here, 2e-6.
  -- On a GPU that is TF32, whose rounding is 5e-4 of a factor.
  for precision, bound in pairs { exact = 1e-4, fast = precisions.on_gpu and 0.2 or 2e-3 } do
    it("within " .. bound .. " in " .. precision .. " mode, the same bits for one thread and two", function()
      finally(function()
        flow.config.set_precision(precisions.default)
        flow.config.set_threads(0)
      end)
      local loss, gradients = one_step(precision, 1)
      assert.is_near(case.loss, loss:item(), math.max(1e-5, 0.1 * (bound - 2e-3)))
      for i, where in ipairs(case.results) do
        local found = relative_error(gradients[i], where)
        if not (found <= bound) then error(("%s: relative error %.2e"):format(where.name, found)) end
      end
      if loss.device ~= "cpu" then return end      -- threads are the CPU's
      local _, others = one_step(precision, 2)
      for i = 1, #gradients do assert.is_true(golden.same_bits(gradients[i], others[i]), "gradient " .. i) end
    end)
  end
end)
