-- model:quantize: predictions in int8: how near they are, what files keep, what a quantized model refuses.
local flow = require "flow"
local support = require "spec.support.init"
local steps = require "flow.train.steps"

local layers, message_of = flow.layers, support.message_of
local first_case, last_case = require "spec.support.case_numbers"(15)

local function has(text, part) assert.truthy(tostring(text):find(part, 1, true), tostring(text) .. "\nlacks: " .. part) end

-- A network with all that is quantized, and what is folded into it. Weights are drawn from the seed.
local function network(seed)
  flow.set_random_seed(seed)
  local model = flow.Sequential {
    layers.Input { 12, 12, 3 }, layers.Conv2D(8, 3, { use_bias = false, padding = "same" }), layers.BatchNormalization(), layers.ReLU(6),
    layers.DepthwiseConv2D(3, { strides = 2, padding = "same" }), layers.Activation "relu", layers.Conv2D(16, 1, { activation = "relu" }),
    layers.MaxPooling2D(), layers.Flatten(), layers.Dense(20, { activation = "relu" }), layers.Dense(5) }
  model.layers[2].moving_mean:assign(flow.random.normal({ 8 }, { stddev = 0.1, seed = 1 }))
  model.layers[2].moving_variance:assign(flow.random.uniform({ 8 }, { minval = 0.5, maxval = 2, seed = 2 }))
  return model
end

local pictures = flow.random.uniform({ 40, 12, 12, 3 }, { minval = -1, seed = 7 })

local function predict(model, x) return model:predict(x or pictures, { verbose = 0 }) end
local function distance(a, b) return (a - b):abs():max():item() end

-- The ops of the prediction that ran last, by name.
local function ops_of(model)
  local counts = {}
  for name in steps.describe(model._steps[#model._steps]):gmatch "\n%s*%d+ %a+%s+([%l_]+)" do counts[name] = (counts[name] or 0) + 1 end
  return counts
end

describe("model:quantize", function()
  it("predicts nearly the same in bytes, which go from one layer to the next", function()
    local model = network(1)
    local before = predict(model)
    assert.is_nil(ops_of(model).quantized_convolution)
    model:quantize(pictures)
    local after = predict(model)
    local largest = before:abs():max():item()
    assert.is_true(distance(before, after) < 0.05 * largest)
    assert.is_true(distance(before, after) > 0)
    local counts = ops_of(model)
    assert.are.equal(5, counts.quantized_convolution)
    assert.are.equal(1, counts.quantize)                 -- of the pictures
    assert.is_nil(counts.convolution)
    assert.is_true(distance(model(pictures), after) < 0.05 * largest)      -- eagerly
  end)

  it("takes the largest bytes of a pooling, which are the bytes of its largest numbers", function()
    for seed = first_case, last_case do
      flow.set_random_seed(seed)
      local function pick(from, to) return flow.random.randint({}, from, to):item() end
      local channels, size = pick(1, 40), pick(5, 14)
      local function block(height)      -- also gives the height of what it makes of that one
        local activation = pick(0, 2) > 0 and "relu" or nil
        local convolution = layers.Conv2D(pick(1, 40), pick(1, 4), { padding = "same", activation = activation })
        local window, strides = pick(1, 4), pick(1, 3)
        local same = pick(0, 2) > 0 or window > height
        return convolution, layers.MaxPooling2D(window, { strides = strides, padding = same and "same" or "valid" }),
          same and math.ceil(height / strides) or math.floor((height - window) / strides) + 1
      end
      local convolution, pool, height = block(size)
      local second, last = block(height)
      local ends = pick(0, 2) > 0 and layers.Flatten() or layers.Conv2D(3, 1)
      local model = flow.Sequential { layers.Input { size, size, channels }, convolution, pool, second, last, ends, layers.Dense(4) }
      local x = flow.random.normal({ 9, size, size, channels })
      model:quantize(x)
      local found = predict(model, x)
      assert.are.equal(1, ops_of(model).quantize, "seed " .. seed)
      assert.are.equal(0, distance(found, model(x)), "seed " .. seed)      -- eagerly op after op
      assert.are.equal(0, distance(predict(model, x[{ { 2, 2 } }]), found[{ { 2, 2 } }]), "seed " .. seed)
    end
  end)

  it("adds a shortcut to the sums of a convolution, with the numbers of a separate addition", function()
    local function residual(whole)
      flow.set_random_seed(6)
      local input = flow.Input { 12, 12, 3 }
      local function normed(x) return layers.BatchNormalization()(layers.Conv2D(8, 3, { padding = "same", use_bias = false })(x)) end
      local first = layers.ReLU()(normed(input))
      local second, shortcut = normed(first), layers.Conv2D(8, 1, { use_bias = false })(first)
      local sum = layers.Add() { second, shortcut }
      local last = layers.Add() { normed(layers.ReLU()(sum)), first }
      return flow.Model { inputs = input, outputs = whole and last or { second, shortcut, first, sum, last } }
    end
    local parts, model = residual(false), residual(true)
    model:set_weights(parts:get_weights())
    for _, m in ipairs { parts, model } do m:quantize(pictures) end
    assert.are.equal(0, distance(predict(parts)[5], predict(model)))
    assert.is_nil(ops_of(model).add)
    assert.is_nil(steps.describe(model._steps[#model._steps]):find "fused[^\n]*None")          -- of a batch
    local seen = predict(parts)                     -- whose sums other readers keep apart
    assert.are.equal(0, distance(seen[1] + seen[2], seen[4]))
  end)

  it("takes a Dataset of batches with targets, and lists for several inputs", function()
    local model = network(2)
    local before = predict(model)
    model:quantize(flow.data.Dataset.from_tensor_slices({ pictures, flow.zeros { 40 } }):batch(16))
    assert.is_true(distance(before, predict(model)) < 0.05 * before:abs():max():item())
    local a, b = flow.Input { 4 }, flow.Input { 3 }
    local two = flow.Model { inputs = { a, b }, outputs = layers.Dense(2)(layers.Concatenate() { a, b }) }
    local x = { flow.random.normal({ 9, 4 }, { seed = 3 }), flow.random.normal({ 9, 3 }, { seed = 4 }) }
    local exact = predict(two, x)
    two:quantize(x)
    assert.is_true(distance(exact, predict(two, x)) < 0.05)
    assert.are.equal(1, ops_of(two).quantized_convolution)
  end)

  it("gives the same bits with every instruction set", function()
    local script = support.file("bits.lua", [[
      local flow = require "flow"
      local layers = flow.layers
      flow.set_random_seed(3)
      local x = flow.random.uniform({ 8, 9, 9, 5 }, { minval = -1, seed = 4 })
      local model = flow.Sequential { layers.Input { 9, 9, 5 }, layers.Conv2D(33, 3, { activation = "relu" }), layers.DepthwiseConv2D(3),
        layers.Conv2D(40, 1, { activation = "relu" }), layers.Flatten(), layers.Dense(7) }
      for _, layer in ipairs(model.layers) do       -- numbers that do not depend on the instruction set
        for _, v in ipairs(layer.weights) do v:assign(flow.random.uniform(v.shape, { minval = -0.2, maxval = 0.2, seed = 5 })) end
      end
      for i, layer in ipairs { model.layers[1], model.layers[2], model.layers[3], model.layers[5] } do
        require("flow.layers.quantization").set(layer, "QUANTIZED", -1, i)
      end
      for _, value in ipairs(model:predict(x, { verbose = 0 }):reshape { -1 }:totable()) do io.write(("%a "):format(value)) end]])
    local first
    for _, isa in ipairs { "plain", "avx2", "avx512" } do
      local text, code = support.run(("FLOW_ISA=%s %s %s"):format(isa, support.command, script))
      assert.are.equal(0, code, text)
      if text:find "does not have these kernels" then
        print("this machine has no " .. isa)
      else
        first = first or text
        assert.is_true(#text > 200)
        assert.are.equal(first, text, isa)
      end
    end
  end)

  it("as \"int8\" finds the range of each row, of Dense layers, as Keras", function()
    local model = flow.Sequential { layers.Input { 3 }, layers.Dense(2) }
    model:set_weights { flow.tensor { { 1, -0.5 }, { 0.25, 2 }, { -0.125, 1 } }, flow.tensor { 0.5, -1 } }
    model:quantize "int8"
    -- keras.Sequential([Input((3,)), Dense(2)]) with these weights after quantize("int8"), of Keras 3.15
    local keras = flow.tensor { { 1.6200944185256958, 5.539401531219482 }, { 0.5, -1 }, { 128.24581909179688, -249.5691680908203 } }
    assert.is_true(distance(keras, predict(model, flow.tensor { { 1, 2, 3 }, { 0, 0, 0 }, { 100, 5, -206 } })) < 1e-4)
    local mixed = network(3)
    local before = predict(mixed)
    mixed:quantize "int8"
    assert.is_true(distance(before, predict(mixed)) < 0.05 * before:abs():max():item())
    assert.are.equal(2, ops_of(mixed).quantized_convolution)
  end)

  it("is kept in .keras files, by layers of layers, and by copies", function()
    local folder = support.folder()
    local model = network(4)
    model:quantize(pictures)
    local bits = predict(model)
    model:save(folder .. "/m.keras")
    assert.are.equal(0, distance(bits, predict(flow.load_model(folder .. "/m.keras"))))
    assert.are.equal(0, distance(bits, flow.models.shared(folder .. "/m.keras"):predict(pictures)))
    local copy = flow.models.clone_model(model)
    copy:set_weights(model:get_weights())
    assert.are.equal(0, distance(bits, predict(copy)))

    local Twice = layers.Layer:extend "Twice"
    function Twice:init() self.first, self.second = layers.Dense(4, { activation = "relu" }), layers.Dense(4) end
    function Twice:call(x) return self.second(self.first(x)) end
    local own = flow.Sequential { layers.Input { 4 }, Twice(), flow.Sequential { layers.Dense(3) } }
    local x = flow.random.normal({ 20, 4 }, { seed = 5 })
    own:quantize(x, { filters = function(layer) return layer ~= own.layers[1].first end })
    local own_bits = predict(own, x)
    assert.are.equal(2, ops_of(own).quantized_convolution)
    own:save(folder .. "/own.keras")
    local loaded = flow.load_model(folder .. "/own.keras", { custom_objects = { Twice = Twice } })
    assert.are.equal(0, distance(own_bits, predict(loaded, x)))
  end)

  it("follows the kernels and the last calibration", function()
    local model = flow.Sequential { layers.Input { 2 }, layers.Dense(1, { use_bias = false }) }
    model:set_weights { flow.tensor { { 1 }, { 0 } } }
    local x = flow.tensor { { 1, 0 }, { -1, 0 } }
    model:quantize(x)
    assert.is_true(math.abs(predict(model, x)[1][1]:item() - 1) < 0.01)
    assert.is_true(predict(model, x * 10)[1][1]:item() < 1.02)       -- outside of the range: its end
    model:set_weights { flow.tensor { { 3 }, { 0 } } }
    assert.is_true(math.abs(predict(model, x)[1][1]:item() - 3) < 0.03)
    model:quantize(x * 10)
    assert.is_true(math.abs(predict(model, x * 10)[1][1]:item() - 30) < 0.3)
  end)

  it("refuses to train, and names what it cannot do", function()
    local model = network(5)
    model:quantize(pictures)
    model:compile { loss = "mse" }
    has(message_of(function() model:fit(pictures, flow.zeros { 40, 5 }, { verbose = 0 }) end), "it is quantized to int8 and only predicts")
    assert.is_number(model:evaluate(pictures, flow.zeros { 40, 5 }, { verbose = 0 }).loss)
    local recorder = flow.GradientTape()
    local loss = recorder:record(function() return model(pictures):sum() end)
    has(message_of(function() recorder:gradient(loss, model.trainable_variables) end), "a quantized layer only predicts")
    has(message_of(function() model:quantize "int4" end), "the mode \"int4\" is not supported")
    local without = flow.Sequential { layers.Input { 2 }, layers.ReLU() }
    has(message_of(function() without:quantize "int8" end), "has no layer that can be quantized")
    has(message_of(function() model:quantize(pictures, { filters = 3 }) end), "filters is a pattern")
    local ok, problem = pcall(model.quantize, model, flow.full({ 2, 12, 12, 3 }, 0 / 0))
    assert.is_false(ok)
    has(problem, "while its range is looked for")
    assert.is_true(distance(predict(model), model(pictures)) < 1e-3)      -- it is unchanged
  end)

  it("leaves the float32 model to export", function()
    local folder = support.folder()
    local model = network(6)
    model:quantize(pictures)
    local bits = predict(model)
    model:export(folder .. "/m.onnx")
    assert.is_true(flow.io.exists(folder .. "/m.onnx"))
    assert.are.equal(0, distance(bits, predict(model)))
  end)

  local function convolutions(x)
    x = layers.MaxPooling2D()(layers.Conv2D(12, 3, { activation = "relu" })(x))
    return layers.MaxPooling2D()(layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(16, 3, { use_bias = false })(x))))
  end

  local function residual(x)
    x = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(8, 3, { strides = 2, padding = "same", use_bias = false })(x)))
    for _, filters in ipairs { 8, 16 } do
      local strides = filters / 8
      local y = layers.Conv2D(filters, 3, { strides = strides, padding = "same", use_bias = false })(x)
      y = layers.Conv2D(filters, 3, { padding = "same", use_bias = false })(layers.ReLU()(layers.BatchNormalization()(y)))
      if strides > 1 then x = layers.Conv2D(filters, 1, { strides = strides })(x) end
      x = layers.ReLU()(layers.Add() { x, layers.BatchNormalization()(y) })
    end
    return x
  end

  for name, body in pairs { convolutions = convolutions, ["residual blocks"] = residual } do
    it("tells digits within 0.5 points of float32 by " .. name, function()
      flow.set_random_seed(8)
      local x, y, x_test, y_test = flow.datasets.mnist { path = support.root .. "lua/examples/digits" }
      local input = flow.Input { 28, 28 }
      local features = body(layers.Rescaling(1 / 255)(layers.Reshape { 28, 28, 1 }(input)))
      local model = flow.Model { inputs = input, outputs = layers.Dense(10)(layers.Flatten()(features)) }
      model:compile { optimizer = flow.optimizers.Adam(0.005), metrics = { "accuracy" },
                      loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
      model:fit(x, y, { epochs = 4, verbose = 0 })
      local function accuracies()
        return model:evaluate(x, y, { verbose = 0 }).accuracy, model:evaluate(x_test, y_test, { verbose = 0 }).accuracy
      end
      local known, new = accuracies()
      model:quantize(x[{ { 1, 200 } }])
      local known_in_bytes, new_in_bytes = accuracies()
      assert.is_true(new > 0.85, "float32 gets " .. new)
      assert.is_true(math.abs(known - known_in_bytes) <= 0.005, known .. " and in bytes " .. known_in_bytes)
      assert.is_true(math.abs(new - new_in_bytes) <= 0.005, new .. " and in bytes " .. new_in_bytes)
    end)
  end
end)
