-- layers_spec.lua: constructors, automatic names, layers called eagerly, and layers written in Lua.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local message_of = support.message_of

-- Expected outputs: Keras 3.13.
describe("Embedding", function()
  it("takes weights, as Keras' does, and has its variable by name", function()
    local table_of = flow.tensor { { 1, 2 }, { 3, 4 } }
    for _, weights in ipairs { table_of, { table_of } } do
      local layer = layers.Embedding(2, 2, { weights = weights, trainable = false })
      assert.same({ { 3, 4 } }, layer(flow.tensor({ 1 }, { dtype = "int32" })):totable())
      assert.same({ { 1, 2 }, { 3, 4 } }, layer.embeddings:totable())
      assert.equal(0, #layer.trainable_variables)
    end
    local ok, problem = pcall(layers.Embedding, 2, 2, { weights = flow.ones { 1, 2 } })
    assert.is_true(not ok and problem:find("has shape {1, 2}", 1, true) ~= nil)
  end)
end)

describe("layers of sequences", function()
  local function new_model()
    local input = flow.Input({ 3 }, { dtype = "int32" })
    local x = layers.Embedding(5, 2)(input)
    local model = flow.Model { inputs = input, outputs = {
      layers.GlobalAveragePooling1D { keepdims = true } (x), layers.GlobalMaxPooling1D()(layers.Identity()(x)) } }
    model:set_weights { flow.arange(10):to("float32"):reshape { 5, 2 } }
    return model
  end

  it("pool over the steps, in models and their files", function()
    local model, path = new_model(), support.file("steps.keras", "")
    model:save(path)
    for _, which in ipairs { model, flow.load_model(path) } do
      local mean, most = unpack(which:predict(flow.tensor({ { 0, 4, 1 }, { 2, 2, 3 } }, { dtype = "int32" }), { verbose = 0 }))
      assert.same({ 2, 1, 2 }, mean.shape)
      for i, expected in ipairs { 3.3333332538604736, 4.333333492279053, 4.666666507720947, 5.666666507720947 } do
        assert.near(expected, mean:reshape { -1 }[i]:item(), 1e-6)
      end
      assert.same({ { 8, 9 }, { 6, 7 } }, most:totable())
    end
  end)

  it("have gradients, and say what shape they expect", function()
    local x = flow.Variable { { { 1, 5 }, { 2, 4 }, { 6, 3 } } }
    local tape = flow.GradientTape()
    local loss = tape:record(function()
      return (layers.GlobalMaxPooling1D()(x:value()) * 10 + layers.GlobalAveragePooling1D()(x:value()) * 3):sum()
    end)
    local gradient = tape:gradient(loss, x):totable()
    for i, row in ipairs { { 1, 11 }, { 1, 1 }, { 11, 1 } } do
      for k, expected in ipairs(row) do assert.near(expected, gradient[1][i][k], 1e-6) end
    end
    assert.truthy(support.message_of(function() layers.GlobalAveragePooling1D()(flow.ones { 2, 3 }) end)
      :find("expected 3 {batch, steps, features}", 1, true))
  end)
end)

describe("layer constructors", function()
  before_each(function() flow.clear_session() end)

  it("take positions, options, or one table with everything", function()
    local x = flow.ones { 1, 4, 4, 2 }
    assert.same({ 1, 2, 2, 3 }, layers.Conv2D(3, 3)(x).shape)
    assert.same({ 1, 4, 4, 3 }, layers.Conv2D(3, 3, { padding = "same" })(x).shape)
    assert.same({ 1, 2, 2, 3 }, layers.Conv2D { filters = 3, kernel_size = 3 } (x).shape)
    assert.same({ 1, 3, 2, 3 }, layers.Conv2D(3, { 2, 3 })(x).shape)
    assert.same({ 1, 2, 2, 2 }, layers.DepthwiseConv2D(3)(x).shape)
    assert.same({ 1, 2, 2, 6 }, layers.DepthwiseConv2D(3, 2, "same", 3)(x).shape)
    assert.same({ 1, 2, 2, 2 }, layers.AveragePooling2D()(x).shape)
    assert.same({ 1, 4, 4, 2 }, layers.AveragePooling2D(3, 1, "same")(x).shape)
    assert.same({ 1, 1, 1, 2 }, layers.GlobalMaxPooling2D { keepdims = true } (x).shape)
    assert.same({ 1, 8, 4 }, layers.Reshape { 8, 4 } (x).shape)
    assert.same({ 1, 8, 4 }, layers.Reshape { 8, 4, name = "r" } (x).shape)
  end)

  it("name layers as Keras does", function()
    assert.equal("conv2d", layers.Conv2D(1, 1).name)
    assert.equal("conv2d_1", layers.Conv2D(1, 1).name)
    assert.equal("mine", layers.Conv2D(1, 1, { name = "mine" }).name)
    assert.equal("conv2d_2", layers.Conv2D(1, 1).name)
    assert.equal("depthwise_conv2d", layers.DepthwiseConv2D(3).name)
    assert.equal("max_pooling2d", layers.MaxPooling2D().name)
    assert.equal("average_pooling2d", layers.AveragePooling2D().name)
    assert.equal("global_max_pooling2d", layers.GlobalMaxPooling2D().name)
    assert.equal("re_lu", layers.ReLU().name)
    assert.equal("global_average_pooling2d", layers.GlobalAveragePooling2D().name)
    assert.equal("batch_normalization", layers.BatchNormalization().name)
    assert.equal("input_layer", flow.Input { 2 } .name)
    assert.equal("input_layer_1", flow.Input { 2 } .name)
    flow.clear_session()
    assert.equal("conv2d", layers.Conv2D(1, 1).name)
  end)

  it("that divide by norms have Keras' gradients for rows of zeros", function()
    local rows = flow.Variable(flow.tensor { { 0, 0 }, { 3, 4 } })
    local weights = flow.tensor { { 1, 2 }, { 1, 2 } }
    for limit, f in pairs { [1e12] = layers.UnitNormalization(), [1e7] = flow.normalize, [1e3] = layers.RMSNormalization() } do
      local tape = flow.GradientTape()
      local sum = tape:record(function() return (f(rows:value()) * weights):sum() end)
      local found = tape:gradient(sum, rows)
      assert.near(1, found[{ 1, 1 }]:item() / limit, 1e-5)
      assert.near(2, found[{ 1, 2 }]:item() / limit, 1e-5)
    end
  end)

  it("name what they were given wrongly", function()
    local function text(...) return message_of(...) end
    assert.truthy(text(function() layers.Dense(3, { unitz = 3 }) end):find('^Dense: unknown option "unitz"; did you mean "units"%?'))
    assert.truthy(text(function() layers.Dense() end):find('option "units" is missing', 1, true))
    assert.truthy(text(function() layers.Dense(0) end):find("units must be greater than 0, found 0", 1, true))
    assert.truthy(text(function() layers.Dense(1.5) end):find("units must be an integer, found 1.5", 1, true))
    for _, scale in ipairs { 0, -1 } do
      local dense = layers.Dense(3, { kernel_initializer = flow.initializers.VarianceScaling { scale = scale } })
      local found = text(function() dense(flow.ones { 1, 2 }) end)
      assert.truthy(found:find("VarianceScaling: scale must be greater than 0, found " .. scale, 1, true))
    end
    assert.truthy(text(function() layers.Dense(3, { activation = "rleu" }) end):find('did you mean "relu"?', 1, true))
    assert.truthy(text(function() layers.Conv2D(3, 3, { padding = "sam" }) end):find('padding must be "valid" or "same"', 1, true))
    assert.truthy(text(function() layers.Dense(3, { units = 4 }) end):find("units is given twice, by position and by name", 1, true))
    assert.truthy(text(function() layers.LayerNormalization(1, 1, 1, 1, 1, 1) end):find("at most 4 arguments by position, got 6", 1, true))
    assert.truthy(text(function() layers.Dense(3, { name = 5 }) end):find("name is a string, got the number 5", 1, true))
    assert.truthy(text(function() layers.BatchNormalization { axis = 0 } end):find("axes count from 1", 1, true))
    assert.equal('flow.layers has no "Dens"; did you mean "Dense"?', text(function() return layers.Dens end))
    assert.truthy(text(function() flow.Input { 2.5 } end):find("dimension 1 is the number 2.5", 1, true))
    assert.truthy(text(function() flow.Input(3) end):find("the shape is a list", 1, true))
    assert.truthy(text(function() flow.Input({ 3 }, { batch_size = 0 }) end):find("batch_size", 1, true))
    assert.truthy(text(function() flow.Input({ 3 }, { dtipe = "int32" }) end):find('unknown option "dtipe"', 1, true))
  end)
end)

describe("a layer", function()
  before_each(function() flow.clear_session() end)

  it("makes its variables at the first call", function()
    local dense = layers.Dense(3)
    assert.is_false(dense.built)
    assert.truthy(message_of(function() return dense.kernel end):find("it is made when the layer is first called", 1, true))
    local y = dense(flow.ones { 2, 4 })
    assert.same({ 2, 3 }, y.shape)
    assert.is_true(dense.built)
    assert.same({ 4, 3 }, dense.kernel.shape)
    assert.same({ "dense/kernel", "dense/bias" }, { dense.weights[1].path, dense.weights[2].path })
    assert.equal(15, dense:count_params())
  end)

  it("has nil for a variable that its options leave out, as Keras has None", function()
    local function built(layer, shape)
      layer:build(shape)
      return layer
    end
    assert.is_nil(built(layers.Dense(3, { use_bias = false }), { 2, 4 }).bias)
    assert.is_nil(built(layers.Conv2DTranspose(3, 2, { use_bias = false }), { 2, 4, 4, 1 }).bias)
    local normalized = built(layers.BatchNormalization { center = false, scale = false }, { 2, 4 })
    assert.same({}, { normalized.gamma, normalized.beta })
    assert.is_nil(built(layers.LayerNormalization { center = false }, { 2, 4 }).beta)
    for _, name in ipairs { "gamma", "embeddings" } do
      local text = message_of(function() return built(layers.Dense(3), { 2, 4 })[name] end)
      assert.truthy(text:find("has no " .. name, 1, true), text)
    end
  end)

  it("is built by hand once", function()
    local dense = layers.Dense(3)
    dense:build { -1, 4 }
    local kernel = dense.kernel
    dense:build { -1, 4 }
    assert.equal(kernel, dense.kernel)
    assert.truthy(message_of(function() layers.Dense(3):build(4) end):find("build() takes a shape", 1, true))
  end)

  it("takes nested lists, variables and lists of tensors", function()
    local dense = layers.Dense(1, { kernel_initializer = "ones" })
    assert.same({ { 3 }, { 7 } }, dense({ { 1, 2 }, { 3, 4 } }):totable())
    assert.same({ { 3 } }, dense(flow.Variable { { 1, 2 } }):totable())
    assert.same({ 5, 7 }, layers.Add()({ flow.tensor { 1, 2 }, flow.tensor { 4, 5 } }):totable())
  end)

  it("refuses shapes that do not fit, and works on", function()
    local dense = layers.Dense(3)
    dense(flow.ones { 1, 4 })
    assert.truthy(message_of(function() dense(flow.ones { 1, 5 }) end):find('^Dense "dense"'))
    assert.same({ 1, 3 }, dense(flow.ones { 1, 4 }).shape)
    assert.truthy(message_of(function() layers.Conv2D(3, 3)(flow.ones { 2, 128 }) end)
      :find('Conv2D "conv2d": input has 2 dimensions {2, 128}, expected 4 {batch, height, width, channels}', 1, true))
    assert.truthy(message_of(function() dense() end):find("called without an input", 1, true))
    local einsum = layers.EinsumDense("abcdefgh,bcdefgh->abcdefgh", { 2, 1, 2, 1, 2, 1, 2 })      -- the products need two axes more
    assert.truthy(message_of(function() einsum(flow.ones { 3, 2, 1, 2, 1, 2, 1, 2 }) end):find("the equation has too many axes", 1, true))
    assert.truthy(message_of(function() dense("x") end):find("expected a tensor or a number", 1, true))
    assert.truthy(message_of(function() dense(flow.ones { 1, 4 }, { trainin = true }) end):find('did you mean "training"?', 1, true))
  end)

  it("of depthwise convolution has Keras' weights", function()
    local layer = layers.DepthwiseConv2D(3, { depth_multiplier = 2 })
    layer:build { -1, 8, 8, 5 }
    assert.same({ 3, 3, 5, 2 }, layer.kernel.shape)
    assert.same({ 10 }, layer.bias.shape)
    assert.equal(100, layer:count_params())
    assert.truthy(message_of(function() layers.DepthwiseConv2D(3, { strides = { 1, 2 } }) end)
      :find("strides {1, 2} of a depthwise convolution must be equal", 1, true))
  end)

  it("drops out in training only", function()
    local drop = layers.Dropout(0.5)
    local x = flow.ones { 100 }
    assert.equal(100, drop(x):sum():item())
    local trained = drop(x, { training = true })
    assert.equal(0, trained:min():item())
    assert.equal(2, trained:max():item())
  end)

  it("has no field that does not exist", function()
    assert.equal('Dense "dense" has no field "kernle"; did you mean "kernel"?', message_of(function() return layers.Dense(2).kernle end))
  end)

  it("switches its variables on and off", function()
    local dense = layers.Dense(3)
    dense(flow.ones { 1, 2 })
    assert.equal(2, #dense.trainable_weights)
    dense.trainable = false
    assert.equal(0, #dense.trainable_weights)
    assert.equal(2, #dense.non_trainable_weights)
    dense.trainable = true
    assert.equal(2, #dense.trainable_weights)
    assert.truthy(message_of(function() dense.trainable = 1 end):find("trainable is true or false", 1, true))
    assert.equal(0, #layers.Dense(3, { trainable = false }).trainable_weights)
  end)

  it("normalizes by the batch only where it is trainable", function()
    local norm = layers.BatchNormalization { momentum = 0.5 }
    local x = flow.tensor { { 1 }, { 3 } }
    assert.near(-1, norm(x, { training = true })[{ 1, 1 }]:item(), 1e-3)
    assert.near(1, norm.moving_mean:item(), 1e-6)
    norm.trainable = false
    local before = norm.moving_mean:item()
    assert.near((3 - 1) / math.sqrt(norm.moving_variance:item() + 1e-3), norm(x, { training = true })[{ 2, 1 }]:item(), 1e-4)
    assert.equal(before, norm.moving_mean:item())
  end)

  it("gets and sets its weights in Keras' order", function()
    local norm = layers.BatchNormalization()
    norm(flow.ones { 1, 2 })
    norm:set_weights { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } }
    assert.same({ { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } },
      { norm.gamma:totable(), norm.beta:totable(), norm.moving_mean:totable(), norm.moving_variance:totable() })
    local copies = norm:get_weights()
    norm.gamma:assign { 0, 0 }
    assert.same({ 1, 2 }, copies[1]:totable())
    assert.truthy(message_of(function() norm:set_weights { { 1, 2 } } end):find("takes a list of 4 tensors, got 1 entries", 1, true))
    assert.truthy(message_of(function() norm:set_weights { { 1, 2 }, { 3 }, { 5, 6 }, { 7, 8 } } end)
      :find('entry 2 has shape {1}, "batch_normalization/beta" has {2}', 1, true))
    assert.same({ 0, 0 }, norm.gamma:totable())      -- nothing was set
  end)
end)

describe("a layer written in Lua", function()
  before_each(function() flow.clear_session() end)

  local Scale = layers.Layer:extend("Scale")
  function Scale:build(input_shape)
    self.gain = self:add_weight { name = "gain", shape = { input_shape[#input_shape] }, initializer = "ones" }
  end
  function Scale:call(x) return x * self.gain end

  it("builds itself from the input's shape and is named after its class", function()
    local scale = Scale()
    assert.equal("scale", scale.name)
    assert.same({ { 1, 2, 3 } }, scale({ { 1, 2, 3 } }):totable())
    assert.same({ "scale/gain" }, { scale.weights[1].path })
    scale.gain:assign { 2, 2, 2 }
    assert.same({ { 2, 4, 6 } }, scale({ { 1, 2, 3 } }):totable())
    assert.equal(1, #scale.weights)
    assert.equal("scale_1", Scale().name)
    assert.equal("other", Scale { name = "other" } .name)
  end)

  local Block = layers.Layer:extend("Block")
  function Block:init(units, options)
    self.dense = layers.Dense(units, { kernel_initializer = "ones" })
    self.rest = { layers.Dropout(0.5), Scale() }
  end
  function Block:call(x)
    x = self.dense(x)
    for _, layer in ipairs(self.rest) do x = layer(x) end
    return x
  end

  it("owns the layers in its fields and in lists, and hands training down to them", function()
    local block = Block(50)
    local x = flow.ones { 1, 2 }
    assert.equal(100, block(x):sum():item())
    assert.equal(0, block(x, { training = true }):min():item())
    assert.equal(2, block(x):min():item())
    assert.equal(3, #block.weights)
    block.trainable = false
    assert.equal(0, #block.trainable_weights)
    assert.is_false(block.dense.trainable)
  end)

  it("lets a replaced layer go", function()
    local block = Block(2)
    block(flow.ones { 1, 2 })
    block.dense = layers.Dense(2, { use_bias = false })
    block(flow.ones { 1, 2 })
    assert.equal(2, #block.weights)
    block.dense = block.dense
    assert.equal(2, #block.weights)
  end)

  it("trains as a part of a model", function()
    local model = flow.Sequential { layers.Input { 2 }, Scale(), Block(3), layers.Dense(1) }
    model:compile { optimizer = flow.optimizers.SGD(0.05), loss = "mse" }
    local gain = model.layers[1].gain:value()
    model:train_on_batch(flow.ones { 4, 2 }, flow.zeros { 4, 1 })
    assert.not_same(gain:totable(), model.layers[1].gain:totable())
    assert.equal(6, #model.trainable_variables)
  end)

  it("needs a call, and a build that fails leaves nothing behind", function()
    local Empty = layers.Layer:extend("Empty")
    assert.truthy(message_of(function() Empty()(flow.ones { 1 }) end):find("define function Empty:call(x)", 1, true))
    local Bad, broken = layers.Layer:extend("Bad"), true
    function Bad:build() self:add_weight { shape = { 2 } }; if broken then error("not yet", 0) end end
    function Bad:call(x) return x end
    local bad = Bad()
    assert.has_error(function() bad(flow.ones { 1 }) end, "not yet")
    broken = false
    bad(flow.ones { 1 })
    assert.equal(1, #bad.weights)
    assert.truthy(message_of(function() layers.Layer:extend() end):find("the class needs a name", 1, true))
  end)

  it("refuses an epsilon below 0 in the same words in all normalizations", function()
    for _, name in ipairs { "BatchNormalization", "GroupNormalization", "LayerNormalization", "RMSNormalization" } do
      local ok, problem = pcall(layers[name], { epsilon = -1 })
      assert.is_false(ok)
      assert.truthy(tostring(problem):find("epsilon must be 0 or greater, found -1", 1, true), name)
    end
  end)

  it("reports errors in call at the line of call", function()
    local Wrong = layers.Layer:extend("Wrong")
    local line = debug.getinfo(1, "l").currentline + 1
    function Wrong:call(x) return x + flow.ones { 7, 7, 7 } end
    local _, message = pcall(Wrong(), flow.ones { 2 })
    assert.truthy(message:find("layers_spec.lua:" .. line .. ": ", 1, true), message)
  end)

  it("adds weights with a checked shape", function()
    local scale = Scale()
    assert.truthy(message_of(function() scale:add_weight { shape = { -1 } } end):find("no batch dimension", 1, true))
    assert.truthy(message_of(function() scale:add_weight { shap = { 1 } } end):find('did you mean "shape"?', 1, true))
    local fixed = scale:add_weight { name = "fixed", shape = { 2 }, initializer = "zeros", trainable = false }
    assert.is_false(fixed.trainable)
    assert.same({ 0, 0 }, fixed:totable())
  end)
end)

describe("random layers that are called eagerly", function()
  local function masks(layer, x)
    local list = {}
    for i = 1, 6 do list[i] = table.concat(layer(x, { training = true }):reshape({ -1 }):totable(), " ") end
    return list
  end

  local function different(list)
    local seen, count = {}, 0
    for _, text in ipairs(list) do
      if not seen[text] then seen[text], count = true, count + 1 end
    end
    return count
  end

  local pictures = flow.arange(64):to("float32"):reshape { 2, 4, 4, 2 }
  local makers = {
    Dropout = function(seed) return layers.Dropout(0.5, { seed = seed, name = "a" }) end,
    SpatialDropout2D = function(seed) return layers.SpatialDropout2D(0.5, { seed = seed, name = "b" }) end,
    GaussianNoise = function(seed) return layers.GaussianNoise(1, { seed = seed, name = "c" }) end,
    GaussianDropout = function(seed) return layers.GaussianDropout(0.5, { seed = seed, name = "c" }) end,
    AlphaDropout = function(seed) return layers.AlphaDropout(0.5, { seed = seed, name = "c" }) end,
    RandomFlip = function(seed) return layers.RandomFlip("horizontal", { seed = seed, name = "d" }) end,
    RandomZoom = function(seed) return layers.RandomZoom(0.5, { seed = seed, name = "e" }) end,
  }

  for name, make in pairs(makers) do
    it("draw new numbers in each call, and repeat by their seed or that of the program: " .. name, function()
      assert.truthy(different(masks(make(), pictures)) > 1)
      local first = masks(make(7), pictures)
      assert.truthy(different(first) > 1)
      flow.random.uniform { 1 }
      assert.same(first, masks(make(7), pictures))
      flow.set_random_seed(4)
      first = masks(make(), pictures)
      flow.set_random_seed(4)
      assert.same(first, masks(make(), pictures))
    end)
  end

  it("have the gradient of what they drew", function()
    local dropout, x = layers.Dropout(0.5), flow.Variable(flow.ones { 40 })
    for _ = 1, 3 do
      local tape, y = flow.GradientTape()
      local sum = tape:record(function()
        y = dropout(x:value(), { training = true })
        return y:sum()
      end)
      assert.same(y:totable(), tape:gradient(sum, x):totable())
    end
  end)

  it("takes initializers of add_weight by name, with options, and as functions", function()
    local made = {}
    local Three = flow.layers.Layer:extend "Three"
    function Three:build()
      made[1] = self:add_weight { name = "named", shape = { 2 }, initializer = "ones" }
      made[2] = self:add_weight { name = "chosen", shape = { 2 }, initializer = flow.initializers.Constant(3) }
      made[3] = self:add_weight { name = "function", shape = { 2 }, initializer = function(shape) return flow.zeros(shape) + 5 end }
    end
    function Three:call(x) return x end
    Three()(flow.zeros { 1, 2 })
    for i, expected in ipairs { 1, 3, 5 } do assert.same({ expected, expected }, made[i]:value():totable()) end
    local function of(initializer)
      local Bad = flow.layers.Layer:extend "Bad"
      function Bad:build() self:add_weight { shape = { 2 }, initializer = initializer } end
      function Bad:call(x) return x end
      local ok, message = pcall(function() Bad { name = "bad" } (flow.zeros { 1, 2 }) end)
      assert.is_false(ok)
      return message
    end
    assert.truthy(of(7):find('initializer is a name such as "zeros", one such as flow.initializers.Constant(1), or a function', 1, true))
    assert.truthy(of(function() return flow.zeros { 3 } end):find("expected a tensor of the shape {2}", 1, true))
  end)
end)
