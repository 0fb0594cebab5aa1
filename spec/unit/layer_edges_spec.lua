-- layer_edges_spec.lua: what layers do with arguments and inputs that are nearly right: holes, NaN, other types, builds that fail.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers

local NAN = 0 / 0

local function refuses(pattern, f)
  local text = support.message_of(f)
  assert.truthy(text:find(pattern, 1, true), text)
end

local function largest(a, b) return (a - b):abs():max():item() end

describe("masks of a call with options", function()
  it("reach every option, whatever they are called", function()
    local Cross = layers.Layer:extend "Cross"
    local found
    function Cross:call(query, options)
      found = options
      return query
    end
    local x = layers.Masking()(flow.tensor { { { 1, 2 }, { 0, 0 } } })
    local names = { "t", "ewocm", "ri", "jwg", "vywtp", "y", "xezyqupp", "jic", "key", "value", "context" }
    for count = 1, #names do      -- a table that grew while it was walked lost some of these
      for first = 1, #names - count + 1 do
        local options = {}
        for i = first, first + count - 1 do options[names[i]] = x end
        Cross()(x, options)
        for i = first, first + count - 1 do assert.truthy(found[names[i] .. "_mask"], names[i]) end
      end
    end
  end)
end)

describe("the cell of a recurrent layer", function()
  it("has the options that are false", function()
    local x = flow.random.normal({ 2, 1, 4 }, { seed = 1 })
    local h, c = flow.random.normal({ 2, 3 }, { seed = 2 }), flow.random.normal({ 2, 3 }, { seed = 3 })
    local lstm = layers.LSTM(3, { use_bias = false, return_state = true })
    local y, step = lstm(x, { initial_state = { h, c } }), lstm.cell(x:squeeze(2), { h, c })
    for i = 1, 2 do assert.near(0, largest(y[1], step[i == 1 and 1 or 2]), 1e-6) end
    assert.near(0, largest(y[3], step[3]), 1e-6)
    assert.is_false(lstm.cell:get_config().use_bias)
  end)
end)

describe("vocabularies", function()
  it("of whole numbers have no other lines", function()
    local path = support.path()
    flow.io.write(path, "10\nx\n30\n")
    refuses('line 2 of ' .. path .. ' is not a whole number: "x"', function() layers.IntegerLookup { vocabulary = path } end)
    flow.io.write(path, "10\n1.5\n")
    refuses('line 2 of ' .. path .. ' is not a whole number: "1.5"', function() layers.IntegerLookup { vocabulary = path } end)
    flow.io.write(path, "10\r\n20\r\n")
    assert.same({ -1, 10, 20 }, layers.IntegerLookup { vocabulary = path }:get_vocabulary())
    os.remove(path)
  end)

  it("have weights that are numbers", function()
    refuses('idf_weights is a list of numbers, its entry 2 is the string "b"', function()
      layers.StringLookup { vocabulary = { "a", "b" }, output_mode = "tf_idf", idf_weights = { 1, "b" } }
    end)
  end)

  it("say which number they have no token for", function()
    local lookup = layers.StringLookup { vocabulary = { "a" }, invert = true, oov_token = false }
    assert.same({ "a" }, lookup(flow.tensor({ 1 }, { dtype = "int64" })):totable())
    refuses("the number 5 at position 2 is not one of its tokens, and it has no oov_token", function()
      lookup(flow.tensor({ 1, 5 }, { dtype = "int64" }))
    end)
  end)
end)

describe("TextVectorization", function()
  it("counts n-grams in whole numbers", function()
    for _, ngrams in ipairs { 2.5, 9, 1e12, NAN, 0 } do
      refuses("ngrams is a whole number from 1 to 8", function() layers.TextVectorization { ngrams = ngrams } end)
    end
  end)

  it("standardizes before a function splits, and not after it, as in Keras", function()
    local text = layers.TextVectorization { split = function(s) return { "[A]", s == "x" and "B" or "?" } end,
                                            vocabulary = { "[A]", "b", "B" } }
    assert.same({ { 2, 4 } }, text { "X!" }:totable())
  end)
end)

describe("STFTSpectrogram", function()
  it("takes an fft_length that is odd, and frames of one sample", function()
    local odd = layers.STFTSpectrogram { mode = "stft", frame_length = 8, fft_length = 9, window = "boxcar", scaling = false }
    assert.same({ 1, 7, 10 }, { unpack(odd(flow.ones { 1, 32, 1 }).shape) })      -- 9 // 2 + 1 frequencies, twice
    assert.near(8, odd(flow.ones { 1, 32, 1 })[{ 1, 1, 1 }]:item(), 1e-5)
    local short = layers.STFTSpectrogram { mode = "real", frame_length = 1, window = "boxcar", scaling = false }
    assert.same({ 1, 5, 1 }, { unpack(short(flow.ones { 1, 5, 1 }).shape) })
  end)
end)

describe("adapt()", function()
  it("of Discretization puts NaNs last, as numpy does", function()
    local bins = layers.Discretization { num_bins = 4 }
    bins:adapt { 1, 2, NAN, 3, 4, NAN, 7, 8, 9, 1 }
    for i, expected in ipairs { 1.5, 4, 8.5 } do assert.near(expected, bins.bin_boundaries[i], 1e-5) end      -- keras 3.15
  end)

  it("of Normalization passes over batches without rows", function()
    local layer = layers.Normalization()
    layer:adapt { flow.tensor { { 1, 3 }, { 3, 5 } }, flow.zeros { 0, 2 } }
    assert.same({ 2, 4 }, layer.adapt_mean:totable())
    refuses("adapt() found no data", function() layers.Normalization():adapt(flow.zeros { 0, 2 }) end)
  end)
end)

describe("hashing", function()
  it("has a mask that is a string or a whole number", function()
    for _, value in ipairs { true, 1.5, NAN } do
      refuses("Hashing: mask_value is a string or a whole number", function() layers.Hashing { num_bins = 4, mask_value = value } end)
    end
  end)

  it("of several columns has no holes", function()
    refuses("entry 3 of the list is nil", function() layers.HashedCrossing { num_bins = 4 } { { 1, 2 }, { 3, 4 }, nil, { 4, 5 } } end)
  end)
end)

describe("FeatureSpace", function()
  local FeatureSpace = flow.utils.FeatureSpace

  it("names what is wrong with a cross", function()
    refuses("entry 1 of feature_names is true, expected the name of a feature", function() FeatureSpace.cross({ true, "a" }, 3) end)
    refuses("takes at least two names of features, got 1", function() FeatureSpace.cross({ "a" }, 3) end)
    refuses("crosses is a list", function() FeatureSpace { features = { a = "float" }, crosses = "a" } end)
    refuses("entry 2 of the list is nil", function()
      FeatureSpace { features = { a = "string_hashed", b = "string_hashed" }, crosses = { { "a", "b" }, nil, { "a", "b" } } }
    end)
  end)

  it("refuses features without a name", function()
    refuses("the features have names, found the key 1", function() FeatureSpace { features = { a = "float", "float" } } end)
  end)
end)

describe("a build that fails", function()
  it("leaves neither weights nor what they add to the loss", function()
    local Half = layers.Layer:extend "Half"
    function Half:build(shape)
      self:add_weight { name = "w", shape = { shape[#shape] }, regularizer = "l2", initializer = "ones" }
      if not self.goes_on then error "no" end
    end
    function Half:call(x) return x end
    for _, build in ipairs { function(layer) layer(flow.ones { 1, 2 }) end, function(layer) layer:build { -1, 2 } end } do
      local layer = Half()
      assert.is_false((pcall(build, layer)))
      assert.same({ 0, 0 }, { #layer.weights, #layer.losses })
      layer.goes_on = true
      build(layer)
      assert.same({ 1, 1 }, { #layer.weights, #layer.losses })
    end
  end)

  it("adds no weight whose regularizer or constraint is refused", function()
    local layer = layers.Layer:extend "Plain"()
    for _, option in ipairs { "regularizer", "constraint" } do
      assert.is_false((pcall(layer.add_weight, layer, { shape = { 2 }, [option] = "no such one" })))
      assert.equal(0, #layer.weights)
    end
    refuses('dtype is a name such as "float32", got the number 5', function() layer:add_weight { shape = { 2 }, dtype = 5 } end)
  end)
end)

describe("options", function()
  it("of layers are what they seem", function()
    refuses("lora_alpha is a number", function() layers.Dense(3, { lora_rank = 2, lora_alpha = "x" }) end)
    refuses("output_size is a whole number from 1", function() layers.AdaptiveAveragePooling1D(math.huge) end)
    refuses("value_range is a list of two numbers", function() layers.RandomBrightness(0.2, { value_range = { 0, NAN } }) end)
    refuses("kernel_size is an odd number", function() layers.RandomGaussianBlur { kernel_size = { -1, 3 } } end)
    refuses("unknown policy", function() layers.CategoryEncoding { num_tokens = 4, dtype = "floaty" } end)
  end)

  it("may be entries of configs, whose axes count from 0", function()
    local config = layers.Conv2D(2, 3, { kernel_constraint = flow.constraints.UnitNorm { axis = { 1, 2, 3 } } }):get_config()
    local layer = layers.Conv2D(2, 3, { kernel_constraint = config.kernel_constraint })
    assert.same({ 0, 1, 2 }, { unpack(layer:get_config().kernel_constraint.config.axis) })
  end)

  it("that are set take no names from layers that come later", function()
    flow.clear_session()
    local first = layers.RandomBrightness(0.2)
    first.factor = 0.3
    assert.equal("random_brightness_1", layers.RandomBrightness(0.1).name)
    assert.same({ -0.3, 0.3 }, first.factor)
  end)

  it("of classes come from tables", function()
    refuses("Zeros.from_config takes a table", function() flow.initializers.Zeros.from_config() end)
    refuses("DTypePolicy.from_config takes a table", function() flow.mixed_precision.Policy("float32").from_config() end)
  end)
end)

describe("cells", function()
  it("that files cannot hold are named", function()
    local cell = { state_size = 2, call = function(_, x, states) return x, states end }
    local layer = layers.RNN { cell, layers.LSTMCell(2) }
    refuses("its cell is not a layer, so that a file cannot hold it", function() layer:get_config() end)
  end)

  it("of a stateful class that keeps tables in its fields have their own states", function()
    local Kept = layers.RNN:extend "Kept"
    local layer = Kept(layers.SimpleRNNCell(2), { stateful = true })
    layer.blocks = { layers.Dense(2) }
    local x = flow.ones { 1, 2, 3 }
    local first = layer(x)
    assert.is_true(largest(first, layer(x)) > 0)
    assert.equal(1, #layer.states)
  end)
end)

describe("merging layers", function()
  it("take one row with the rows of a batch, eagerly as traced", function()
    local row, rows = flow.tensor { { 1, 4 } }, flow.tensor { { 2, 3 }, { 5, 1 }, { 4, 4 } }
    local want = { Add = row + rows, Subtract = row - rows, Multiply = row * rows, Average = (row + rows) / 2,
                   Maximum = flow.maximum(row, rows), Minimum = flow.minimum(row, rows) }
    for name, values in pairs(want) do
      local a, b = flow.Input { 2 }, flow.Input { 2 }
      local model = flow.Model({ a, b }, layers[name]() { a, b })
      assert.same(values:totable(), model({ row, rows }):totable())
      assert.same(values:totable(), flow.fn(function(x) return model { row, x } end)(rows):totable())
    end
    refuses("which cannot be added", function() layers.Add() { rows, rows[{ { 1, 2 } }] } end)
  end)
end)
