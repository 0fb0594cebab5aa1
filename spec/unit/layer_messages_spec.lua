-- layer_messages_spec.lua: what layers refuse, in words, and what those of them do that are random in training. Values and gradients
-- against Keras are in spec/golden.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local function problem_of(f)
  return (support.message_of(f):gsub("^[^\n]-%.lua:%d+: ", ""))
end

describe("names of layers", function()
  before_each(flow.clear_session)

  it("are Keras'", function()
    local options = { Embedding = { 3, 2 }, RepeatVector = { 2 }, Permute = { { 1 } }, SpatialDropout2D = { 0.5 }, GaussianNoise = { 0.1 },
                      GaussianDropout = { 0.1 }, AlphaDropout = { 0.1 }, Conv2DTranspose = { 1, 1 }, SeparableConv2D = { 1, 1 } }
    for class, name in pairs {
      LayerNormalization = "layer_normalization", Embedding = "embedding", UpSampling2D = "up_sampling2d", ZeroPadding2D = "zero_padding2d",
      Cropping2D = "cropping2d", Multiply = "multiply", Permute = "permute", RepeatVector = "repeat_vector", LeakyReLU = "leaky_re_lu",
      ELU = "elu", PReLU = "p_re_lu", SpatialDropout2D = "spatial_dropout2d", GaussianNoise = "gaussian_noise",
      GaussianDropout = "gaussian_dropout", AlphaDropout = "alpha_dropout",
      Conv2DTranspose = "conv2d_transpose", SeparableConv2D = "separable_conv2d",
    } do
      assert.equal(name, layers[class](unpack(options[class] or {})).name)
    end
  end)
end)

describe("layers refuse", function()
  before_each(flow.clear_session)

  it("count_params() before they are built", function()
    for _, layer in ipairs { layers.Dense(2), layers.Dropout(0.5), flow.Sequential { layers.Dense(2) } } do
      local text = problem_of(function() layer:count_params() end)
      assert.truthy(text:find(": count_params() before it is built: call it on a tensor, or build(input_shape)", 1, true), text)
      layer(flow.ones { 2, 3 })
      assert.equal(#layer.weights > 0 and 8 or 0, layer:count_params())
    end
  end)

  it("a call() that returns nothing", function()
    local said = "call() returned nothing, expected a tensor or a list of tensors: is a return missing?"
    for name, base in pairs { Silent = layers.Layer, SilentModel = flow.Model } do
      local Silent = base:extend(name)
      function Silent:call(x) self.seen = x * 2 end
      for _, x in ipairs { flow.ones { 2, 3 }, flow.Input { 3 } } do
        local text = problem_of(function() Silent()(x) end)
        assert.truthy(text:find(said, 1, true) and text:find(name .. ' "', 1, true), text)
      end
    end
  end)

  it("two inputs side by side, and what is not a table of options", function()
    local a = flow.ones { 2, 3 }
    for _, second in ipairs { a, { a, a }, flow.Input { 3 }, true } do
      local text = problem_of(function() layers.Add()(a, second) end)
      assert.truthy(text:find("its second argument is", 1, true), text)
      assert.truthy(text:find("several inputs are one list, layer({ a, b })", 1, true), text)
    end
  end)

  it("inputs beyond the only one of a layer that is written in Lua or prepares data", function()
    local x, words = flow.ones { 2, 4, 4, 3 }, { "a", "b" }
    for _, layer in ipairs {
      layers.Lambda(function(input) return input end), layers.Discretization { bin_boundaries = { 1, 2 } },
      layers.AdaptiveAveragePooling2D(2), layers.MelSpectrogram(),
    } do
      local text = problem_of(function() layer(x, x) end)
      assert.truthy(text:find("a tensor float32 {2, 4, 4, 3} cpu is one argument too many", 1, true), text)
    end
    for _, layer in ipairs {
      layers.StringLookup { vocabulary = words }, layers.Hashing(4), layers.TextVectorization { vocabulary = words },
    } do
      local text = problem_of(function() layer(words, words) end)
      assert.truthy(text:find("takes one input and options by name, got a table as well", 1, true), text)
      local pairs_of_words = flow.data.Dataset.from_tensor_slices { words, words }
      text = problem_of(function() pairs_of_words:map(layer) end)      -- it gets both components
      assert.truthy(text:find("takes one input and options by name, got the string", 1, true), text)
    end
  end)

  it("names that are not known, with those that are", function()
    for option, names in pairs { activation = { "reluu", "relu", "softmax" }, kernel_regularizer = { "l33", "L1", "L2" },
                                 kernel_initializer = { "glorot_unform", "glorot_uniform", "zeros" } } do
      local text = problem_of(function() layers.Dense(2, { [option] = names[1] }) end)
      for _, name in ipairs { ('%s "%s" is not known'):format(option, names[1]), "There are ", unpack(names, 2) } do
        assert.truthy(text:lower():find(name:lower(), 1, true), text)
      end
    end
  end)
  local image = flow.ones { 2, 4, 5, 3 }

  it("an index that is not in the table", function()
    local embedding = layers.Embedding(3, 2)
    assert.same({ 2, 2, 2 }, embedding(flow.tensor { { 0, 2 }, { 1, 1 } }).shape)       -- floats, as Keras casts them
    assert.truthy(problem_of(function() embedding(flow.tensor({ 0, 3 }, { dtype = "int32" })) end):find(
      "index 3 of row 2 is outside 0..2", 1, true))
    assert.truthy(problem_of(function() embedding(flow.tensor { -1 }) end):find("index -1 of row 1 is outside 0..2", 1, true))
    assert.truthy(problem_of(function() layers.Embedding(0, 2) end):find("input_dim", 1, true))
  end)

  it("an index that is not in the table while a model trains, by its sample", function()
    local model = flow.Sequential { layers.Input { 2 }, layers.Embedding(3, 2), layers.Flatten(), layers.Dense(1) }
    model:compile { loss = "mse" }
    local x = flow.tensor { { 0, 1 }, { 1, 2 }, { 2, 2 }, { 0, 7 } }
    assert.equal('Sequential "sequential": index 7 of row 2 is outside 0..2, counted from 0 (sample 4 of the data, counted from 1)',
      problem_of(function() model:fit(x, flow.zeros { 4, 1 }, { batch_size = 2, shuffle = false, verbose = 0 }) end))
    model:fit(x[{ { 1, 3 } }], flow.zeros { 3, 1 }, { verbose = 0 })
  end)

  it("shapes that do not fit, in the words of the layer", function()
    local a, b = flow.ones { 2, 3 }, flow.ones { 2, 4 }
    for class, verb in pairs { Multiply = "multiplied", Subtract = "subtracted", Average = "averaged", Maximum = "compared" } do
      assert.truthy(problem_of(function() layers[class]()({ a, b }) end):find(
        "inputs 1 and 2 have shapes {2, 3} and {2, 4}, which cannot be " .. verb, 1, true))
    end
    assert.truthy(problem_of(function() layers.Subtract()({ a, a, a }) end):find("2", 1, true))
    assert.truthy(problem_of(function() layers.Cropping2D { { 2, 2 }, { 0, 0 } } (image) end):find(
      "the input {2, 4, 5, 3} is too small to cut off 4 rows and 0 columns", 1, true))
    assert.truthy(problem_of(function() layers.RepeatVector(2)(image) end):find("{batch, features}", 1, true))
    assert.truthy(problem_of(function() layers.UpSampling2D()(a) end):find("{batch, height, width, channels}", 1, true))
    assert.truthy(problem_of(function() layers.LayerNormalization { axis = 1 } (a) end):find("not the batch", 1, true))
  end)

  it("options that make no sense", function()
    assert.truthy(problem_of(function() layers.ZeroPadding2D { { 1, 2, 3 } } end):find("padding has 3 numbers", 1, true))
    assert.truthy(problem_of(function() layers.ZeroPadding2D(-1) end):find("padding holds -1", 1, true))
    assert.truthy(problem_of(function() layers.Cropping2D(0.5) end):find("cropping holds 0.5", 1, true))
    assert.truthy(problem_of(function() layers.Permute { 1, 3 } end):find("expected each axis from 1 to their number once", 1, true))
    assert.truthy(problem_of(function() layers.LeakyReLU(-1) end):find("negative_slope must be 0 or greater, found -1", 1, true))
    assert.truthy(problem_of(function() layers.GaussianNoise(2) end):find("stddev must be between 0 and 1, found 2", 1, true))
    for _, class in ipairs { "GaussianDropout", "AlphaDropout" } do
      assert.truthy(problem_of(function() layers[class](1) end):find("rate must be from 0 to below 1, found 1", 1, true))
    end
    assert.truthy(problem_of(function() layers.SpatialDropout2D(2) end):find("rate must be between 0 and 1, found 2", 1, true))
    assert.truthy(problem_of(function() layers.PReLU { shared_axes = { 4 } } (image) end):find("shared_axes names axis 4", 1, true))
    assert.truthy(problem_of(function() layers.Conv2DTranspose(2, 3, { strides = 2, dilation_rate = 2 }) end):find("cannot both", 1, true))
  end)

  it("that take one tensor say so where they are called on two", function()
    local makers = { SpectralNormalization = function() return layers.SpectralNormalization(layers.Dense(3)) end,
      STFTSpectrogram = layers.STFTSpectrogram, MelSpectrogram = layers.MelSpectrogram }
    for name, make in pairs(makers) do
      local eager = problem_of(function() make()({ flow.ones { 1, 4000, 1 }, flow.ones { 1, 4000, 1 } }) end)
      assert.matches("^" .. name .. ' "[%w_]+": takes 1 input, found 2$', eager)
      local symbolic = problem_of(function() make()({ flow.Input { 4000, 1 }, flow.Input { 4000, 1 } }) end)
      assert.matches("^" .. name .. ' "[%w_]+": takes 1 input, found 2$', symbolic)
    end
  end)
end)

describe("layers that are random in training", function()
  before_each(function() flow.clear_session() flow.set_random_seed(11) end)

  it("zero whole channels, or none of a channel", function()
    local y = layers.SpatialDropout2D(0.25)(flow.ones { 50, 3, 4, 8 }, { training = true })
    local low, high = y:min({ 2, 3 }), y:max({ 2, 3 })
    assert.equal(0, (high - low):abs():max():item())
    local kept = (high * 0.75):mean():item()
    assert.is_true(math.abs(kept - 0.75) < 0.08, kept)
    assert.near(1 / 0.75, high:max():item(), 1e-6)
  end)

  it("add noise of the deviation that was asked for, another one at every step, and none in inference", function()
    local noise, x = layers.GaussianNoise(0.5), flow.zeros { 64, 10, 100 }
    assert.equal(0, noise(x):abs():max():item())
    local y = noise(x, { training = true })
    assert.is_true(math.abs(y:mean():item()) < 0.01)
    assert.is_true(math.abs(y:square():mean():item() - 0.25) < 0.01)
    assert.is_true(math.abs((y * y * y * y):mean():item() / 0.0625 - 3) < 0.15)        -- the kurtosis of a normal distribution
    local step = flow.fn(function(a) return noise(a, { training = true }) end)
    local first, second = step(x):copy(), step(x):copy()
    assert.is_true((first - second):abs():max():item() > 0.5)
    assert.is_true(math.abs(second:square():mean():item() - 0.25) < 0.01)
  end)

  it("multiply by noise of mean 1 and variance rate / (1 - rate), and by none in inference", function()
    local dropout, x = layers.GaussianDropout(0.2), flow.full({ 64, 10, 100 }, 3)
    assert.equal(0, (dropout(x) - x):abs():max():item())
    local factor = dropout(x, { training = true }) / 3
    assert.near(1, factor:mean():item(), 0.01)
    assert.near(0.25, (factor - 1):square():mean():item(), 0.01)
    assert.near(3, ((factor - 1):square():square():mean() / 0.0625):item(), 0.15)      -- the kurtosis of a normal distribution
    assert.is_true((dropout(x, { training = true }) / 3 - factor):abs():max():item() > 0.5)
    assert.equal(0, dropout(flow.zeros { 4, 5 }, { training = true }):abs():max():item())
  end)

  -- Mean 0 and variance 1 are what selu's networks keep; what is dropped is one value: a (-1.7581) + b of the paper.
  it("keep mean and variance of standardized values while a share of them becomes one value", function()
    local dropout, x = layers.AlphaDropout(0.3), flow.random.normal({ 64, 10, 100 }, { seed = 5 })
    assert.equal(0, (dropout(x) - x):abs():max():item())
    local y = dropout(x, { training = true })
    assert.near(0, y:mean():item(), 0.015)
    assert.near(1, y:square():mean():item(), 0.02)
    local saturated, rate = -1.7580993408473766, 0.3
    local a = ((1 - rate) * (1 + rate * saturated ^ 2)) ^ -0.5
    local b = -a * saturated * rate
    local dropped = (y - (a * saturated + b)):abs():lt(1e-5)
    assert.near(rate, dropped:to("float32"):mean():item(), 0.01)
    local kept = dropped:logical_not()
    assert.is_true(((x * a + b - y) * kept:to("float32")):abs():max():item() < 1e-5)
    y = layers.AlphaDropout(0.5, { noise_shape = { -1, 1, 1 } })(flow.ones { 64, 3, 4 }, { training = true })
    assert.equal(0, (y:max({ 2, 3 }) - y:min({ 2, 3 })):abs():max():item())             -- whole samples
    assert.is_true(y:max():item() > y:min():item())
    assert.equal("float32", layers.AlphaDropout(0.5)(flow.arange(6):reshape { 2, 3 }, { training = true }).dtype)
  end)
end)
