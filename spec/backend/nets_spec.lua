--- Whole nets: the kernels that their plans use, the same losses for any number of threads, and gradients of a whole step
-- against the same net as plain ops in float64.
local flow = require "flow"
local steps = require "flow.train.steps"
local backend = require "spec.support.backend"
local reference = require "spec.support.reference"

local nets = {}

--- He et al. 2016 for small images: three groups of residual blocks, one block each.
function nets.resnet(b, x)
  local function normalized(y, filters, kernel, strides)
    return b.BatchNormalization(b.Conv2D(y, filters, kernel, { strides = strides, padding = "same", use_bias = false }))
  end
  local y = b.ReLU(normalized(x, 16, 3, 1))
  for i, filters in ipairs { 16, 32, 64 } do
    local strides = i > 1 and 2 or 1
    local inner = normalized(b.ReLU(normalized(y, filters, 3, strides)), filters, 3, 1)
    local short_cut = i > 1 and normalized(y, filters, 1, strides) or y
    y = b.ReLU(b.Add { inner, short_cut })
  end
  return b.Dense(b.GlobalAveragePooling2D(y), 10)
end

--- Howard et al. 2017: depthwise convolutions, then 1x1 ones.
function nets.mobilenet(b, x)
  local y = b.Conv2D(x, 8, 3, { strides = 2, padding = "same", activation = "relu" })
  for i, filters in ipairs { 16, 24 } do
    y = b.ReLU(b.BatchNormalization(b.DepthwiseConv2D(y, 3, { strides = i, padding = "same", use_bias = false })))
    y = b.ReLU(b.BatchNormalization(b.Conv2D(y, filters, 1, { use_bias = false })))
  end
  return b.Dense(b.GlobalAveragePooling2D(y), 10)
end

--- Szegedy et al. 2015 in small: branches of one image, one of them averaged, are concatenated.
function nets.inception(b, x)
  local y = b.DepthwiseConv2D(x, 3, { depth_multiplier = 6, padding = "same", activation = "relu" })
  local averaged = b.Conv2D(b.AveragePooling2D(y, 3, { strides = 1, padding = "same" }), 8, 1, { activation = "relu" })
  y = b.AveragePooling2D(b.Concatenate { averaged, b.Conv2D(y, 12, 3, { padding = "same", activation = "relu" }) }, 2)
  return b.Dense(b.GlobalMaxPooling2D(y), 10)
end

--- Sizes that fit no vector.
function nets.odd(b, x)
  local y = b.Conv2D(x, 17, 5, { strides = 2, padding = "same", activation = "relu" })
  y = b.MaxPooling2D(b.Conv2D(y, 33, 3, { activation = "relu" }), 2)
  return b.Dense(b.Dense(b.Flatten(y), 11, { activation = "tanh" }), 10)
end

function nets.perceptron(b, x)
  local y = b.Dense(b.Flatten(b.Rescaling(x, 0.5)), 128, { activation = "relu" })
  return b.Dense(b.Dense(y, 33, { activation = "sigmoid" }), 10)
end

--- Convolutions at one size whose features are concatenated with earlier ones, and pooled only at the end.
function nets.concatenating(b, x)
  local first = b.Conv2D(x, 8, 3, { padding = "same", activation = "relu" })
  local second = b.Conv2D(first, 12, 3, { padding = "same", activation = "relu", dilation_rate = 2 })
  local joined = b.Concatenate { first, second }
  local third = b.Conv2D(joined, 8, 3, { padding = "same", activation = "relu" })
  local y = b.MaxPooling2D(b.Concatenate { third, x }, 3, { strides = 2, padding = "same" })
  return b.Dense(b.Flatten(y), 10)
end

--- One channel and pooling fused with its convolution.
function nets.digits(b, x)
  local y = b.MaxPooling2D(b.Conv2D(x, 16, 3, { activation = "relu" }), 2)
  y = b.MaxPooling2D(b.Conv2D(y, 32, 3, { activation = "relu" }), 2)
  return b.Dense(b.Flatten(y), 10)
end

local cases = {
  { "resnet", { 16, 16, 3 }, 8 }, { "resnet", { 16, 16, 3 }, 1 }, { "mobilenet", { 16, 16, 3 }, 8 },
  { "inception", { 13, 10, 3 }, 8 }, { "odd", { 13, 11, 3 }, 9 },
  { "odd", { 13, 11, 3 }, 1 }, { "perceptron", { 14, 14, 1 }, 32 }, { "perceptron", { 14, 14, 1 }, 1 },
  { "concatenating", { 9, 10, 3 }, 8 }, { "digits", { 28, 28, 1 }, 40 },
}

local function batch(shape, rows)
  return backend.uniform({ rows, unpack(shape) }, 11, -1, 1):to("float32"), backend.uniform({ rows }, 12, 0, 10):floor():to("int32")
end

--- Trains two steps with `threads`; the losses, and the plan's text.
local function train(net, shape, rows, threads)
  flow.config.set_threads(threads)
  flow.set_random_seed(3)
  local model = reference.model(net, shape)
  model:compile { optimizer = flow.optimizers.Adam(), loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  local x, labels = batch(shape, rows)
  local losses = {}
  for step = 1, 2 do losses[step] = model:train_on_batch(x, labels).loss end
  return losses, steps.describe(model._steps[#model._steps]), model
end

local heavy = { "convolution", "matmul", "dense", "pool", "batch_norm", "softmax", "cross_entropy", "adam" }

for _, case in ipairs(cases) do
  local name, shape, rows = unpack(case)
  describe(("%s, batch of %d:"):format(name, rows), function()
    local net = nets[name]

    it("no heavy op falls to the plain kernel", function()
      local _, text = train(net, shape, rows, 2)
      local seen = {}
      for line in text:gmatch("[^\n]+") do
        local op, variant = line:match("^%s*%d+%s+%a+%s+([%w_]+)%s+([%w_]+)")
        for _, word in ipairs(heavy) do
          if op and op:find(word, 1, true) then
            seen[word] = true
            assert.are_not.equal("plain", variant, line)
          end
        end
      end
      assert.is_true(seen.adam and (seen.dense or seen.matmul) and seen.cross_entropy, text)
    end)

    it("one thread and two give the same losses and weights to the bit", function()
      local one, _, model_one = train(net, shape, rows, 1)
      local two, _, model_two = train(net, shape, rows, 2)
      assert.same(one, two)
      assert.are_not.equal(one[1], one[2])
      for i, weights in ipairs(model_one:get_weights()) do
        backend.identical(weights, model_two:get_weights()[i], "weights " .. i)
      end
    end)

    it("the gradients of a step are those of float64", function()
      local x, labels = batch(shape, rows)
      local model, calls, expected_loss, expected, nearest
      local seed = 3
      repeat
        seed = seed + 1
        flow.set_random_seed(seed)
        model, calls = reference.model(net, shape)
        local run, variables = reference.function_of(net, calls)
        expected_loss, expected, nearest = reference.step(run, variables, x:to("float64"), labels)
      until nearest > 2e-6
      local own = reference.trainable(calls)
      local function training(input) return model(input, { training = true }) end
      local loss, gradients = reference.step(training, own, x, labels)
      reference.compare(expected_loss, expected, loss, gradients, 1e-5, "eager")
      local f = flow.fn(function(input, y) return reference.step(training, own, input, y) end)
      loss, gradients = f(x, labels)
      reference.compare(expected_loss, expected, loss, gradients, 1e-5, "traced")
    end)
  end)
end
