-- extended_spec.lua: classes of scripts that extend one of the library's: layers, losses, metrics, schedules, optimizers. The library's own
-- objects, of which golden specs have Keras' numbers, are what they are compared with.
local support = require "spec.support.init"
local flow = require "flow"
local layers, losses, metrics, optimizers = flow.layers, flow.losses, flow.metrics, flow.optimizers
local schedules = optimizers.schedules
local message_of = support.message_of

local x = flow.random.normal({ 4, 5, 6 }, { seed = 1 })

local function near(a, b, tolerance) assert.is_near(0, (a - b):abs():max():item(), tolerance or 1e-6) end

-- A layer of the library with the weights of one that extends its class.
local function plain(layer, made, input)
  made(input)
  made:set_weights(layer:get_weights())
  return made
end

describe("a layer that extends one of the library's", function()
  it("takes what that one takes, is named after its own class, and may compute something else", function()
    local MCDropout = layers.Dropout:extend "MCDropout"
    function MCDropout:call(inputs) return layers.Dropout.call(self, inputs, { training = true }) end
    local layer = MCDropout(0.5)
    assert.same({ "mc_dropout", 0.5 }, { layer.name, layer.rate })
    assert.is_true(layer(flow.ones { 8, 100 }):eq(0):any():item())
    local model = flow.Sequential { layers.Input { 100 }, MCDropout(0.5) }
    assert.is_true(model:predict(flow.ones { 8, 100 }, { verbose = 0 }):eq(0):any():item())
    assert.equal("dropout", layers.Dropout(0.1).name:match "^%a+")
  end)

  it("is not trained where its options say so, with its own init, too", function()
    local Frozen = layers.Dense:extend "Frozen"
    function Frozen:init(units) layers.Dense.init(self, units) end
    for _, layer in ipairs { Frozen(2, { trainable = false }), layers.Dense:extend "FrozenToo"(2, { trainable = false }) } do
      layer:build { -1, 3 }
      assert.same({ false, 0 }, { layer.trainable, #layer.trainable_weights })
    end
    assert.is_true(Frozen(2).trainable)
  end)

  it("has an init that calls the library's, fields, and its own weights; files keep all of it", function()
    local Gained = layers.Dense:extend "Gained"
    function Gained:init(units, factor, options)
      self.factor = factor
      layers.Dense.init(self, units, options)
    end
    function Gained:build(shape)
      layers.Dense.build(self, shape)
      self.gain = self:add_weight { name = "gain", shape = { shape[#shape] }, initializer = "ones" }
    end
    function Gained:call(inputs) return layers.Dense.call(self, inputs * self.gain) * self.factor end
    function Gained:get_config()
      local config = layers.Dense.get_config(self)
      config.factor = self.factor
      return config
    end
    local model = flow.Sequential { layers.Input { 5, 6 },
                                    Gained(3, 2, { activation = "relu", kernel_constraint = flow.constraints.MaxNorm(2), name = "g" }) }
    local layer = model.layers[1]
    assert.same({ "g", "relu", 3 }, { layer.name, layer.activation, #layer.trainable_weights })
    local dense = { get_weights = function() return { unpack(layer:get_weights(), 1, 2) } end }
    near(plain(dense, layers.Dense(3, { activation = "relu" }), x)(x) * 2, model(x))
    model:compile { loss = "mse", optimizer = "sgd" }
    model:fit(x, flow.ones { 4, 5, 3 }, { epochs = 2, verbose = 0 })
    assert.is_true(layer.gain:value():ne(1):any():item())
    local path = support.folder() .. "/gained.keras"
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { Gained = Gained } })
    near(model(x), again(x))
    assert.same({ 2, 1 }, { again.layers[1].factor, again.layers[1].kernel_constraint and 1 })
  end)

  it("may be called on several tensors, give several, be a cell or a wrapper", function()
    local Causal = layers.MultiHeadAttention:extend "Causal"
    function Causal:call(query, value)
      return layers.MultiHeadAttention.call(self, query, value, { use_causal_mask = true }) + query
    end
    local layer = Causal(2, 3)
    local y, whole = layer(x, x), layers.MultiHeadAttention(2, 3)
    whole(x, x)
    whole:set_weights(layer:get_weights())
    near(whole(x, x, { use_causal_mask = true }) + x, y)
    local input = layers.Input { 5, 6 }
    near(y, flow.Model { inputs = input, outputs = layer(input, input) }(x))

    local Doubled = layers.LSTMCell:extend "Doubled"
    function Doubled:call(inputs, states, options)
      local output, after = layers.LSTMCell.call(self, inputs, states, options)
      return output * 2, after
    end
    local rnn = layers.RNN(Doubled(3))
    local y2 = rnn(x)
    near(plain(rnn, layers.RNN(layers.LSTMCell(3)), x)(x) * 2, y2)

    local Masked = layers.LSTM:extend "Masked"
    function Masked:call(inputs, options) return layers.LSTM.call(self, inputs, { mask = options.mask }) * 2 end
    local model = flow.Sequential { layers.Input { 5 }, layers.Embedding(10, 4, { mask_zero = true }), Masked(3) }
    local ids = flow.tensor { { 1, 2, 3, 0, 0 }, { 4, 0, 0, 0, 0 } }
    local lstm = plain(model.layers[2], layers.LSTM(3), flow.zeros { 1, 5, 4 })
    near(lstm(model.layers[1](ids)) * 2, model(ids))

    local Both = layers.Bidirectional:extend "Both"
    function Both:call(inputs, options) return layers.Bidirectional.call(self, inputs, options) * 2 end
    local both = Both(layers.LSTM(2))
    local y3 = both(x)
    near(plain(both, layers.Bidirectional(layers.LSTM(2)), x)(x) * 2, y3)
  end)

  it("says what init forgot, and which option the library's layer does not have", function()
    local Forgot = layers.Dense:extend "Forgot"
    function Forgot:init(units) self.own = units end
    assert.equal("Forgot: init() has to call Dense.init(self, ...), as super().__init__(...) in Python",
      message_of(function() Forgot(3) end))
    local Plain = layers.Dense:extend "Plain"
    assert.matches('^Dense: unknown option "actvation"; did you mean "activation"?', message_of(function() Plain(3, { actvation = 1 }) end))
  end)
end)

describe("a loss, metric or schedule that extends one of the library's", function()
  local y_true, y_pred = flow.tensor { { 0 }, { 1 } }, flow.tensor { { 0.2 }, { 3 } }

  it("computes with it", function()
    local Weighted = losses.BinaryCrossentropy:extend "Weighted"
    function Weighted:init(weight, options)
      losses.BinaryCrossentropy.init(self, options)
      self.weight = weight
    end
    function Weighted:call(a, b) return losses.BinaryCrossentropy.call(self, a, b) * self.weight end
    local loss = Weighted(3, { from_logits = true, reduction = "sum" })
    assert.equal("sum", loss.reduction)
    near(losses.BinaryCrossentropy { from_logits = true, reduction = "sum" }(y_true, y_pred) * 3, loss(y_true, y_pred))

    local OfLogits = metrics.MeanIoU:extend "OfLogits"
    function OfLogits:update_state(a, b, weight) metrics.MeanIoU.update_state(self, a, flow.argmax(b, -1) - 1, weight) end
    local own, known = OfLogits { num_classes = 3, name = "iou" }, metrics.MeanIoU { num_classes = 3, sparse_y_pred = false }
    local labels, scores = flow.tensor({ { 0, 1 }, { 2, 2 } }, { dtype = "int32" }), flow.random.normal({ 2, 2, 3 }, { seed = 4 })
    assert.equal(known(labels, scores), own(labels, scores))
    own:reset_state()
    assert.same({ "iou", 0 }, { own.name, own:result() })

    local Twice = metrics.BinaryAccuracy:extend "Twice"
    function Twice:result() return metrics.BinaryAccuracy.result(self) * 2 end
    assert.equal(2, Twice { threshold = 0.5 }(y_true, y_pred))
    local Far = metrics.MeanMetricWrapper:extend "Far"
    function Far:init(factor)
      metrics.MeanMetricWrapper.init(self, function(a, b, options) return (a - b):abs() * options.factor end, "far", { factor = factor })
    end
    local far = Far(10)
    assert.is_near(11, far(y_true, y_pred), 1e-5)
    assert.equal("far", far.name)

    local Warm = schedules.CosineDecay:extend "Warm"
    function Warm:init(rate, steps, warm)
      schedules.CosineDecay.init(self, rate, steps)
      self.warm = warm
    end
    function Warm:call(step) return flow.where(step:lt(self.warm), step * 0.01, schedules.CosineDecay.call(self, step)) end
    local warm, known_rate = Warm(0.1, 10, 3), schedules.CosineDecay(0.1, 10)
    assert.is_near(0.02, warm(2), 1e-7)
    assert.is_near(known_rate(7), warm(7), 1e-7)
    assert.equal(10, warm:get_config().decay_steps)
    assert.same({ rate = 0.1, steps = 10, warm = 3 }, flow.optimizers.schedules.serialize(warm).config)
  end)

  it("trains, and is kept in files", function()
    local Weighted = losses.MeanSquaredError:extend "WeightedError"
    function Weighted:call(a, b) return losses.MeanSquaredError.call(self, a, b) * 2 end
    local Twice = metrics.MeanAbsoluteError:extend "TwiceOff"
    function Twice:update_state(a, b, weight) metrics.MeanAbsoluteError.update_state(self, a * 2, b * 2, weight) end
    local model = flow.Sequential { layers.Input { 6 }, layers.Dense(1) }
    model:compile { loss = Weighted(), metrics = { Twice { name = "off" }, "mse", "mae" }, optimizer = "sgd" }
    local rows, truth = x:reshape { 20, 6 }, flow.ones { 20, 1 }
    local logs = model:evaluate(rows, truth, { verbose = 0 })
    assert.is_near(logs.mse * 2, logs.loss, 1e-5)
    assert.is_near(logs.mae * 2, logs.off, 1e-5)
    local path = support.folder() .. "/extended.keras"
    model:save(path)
    local again = flow.load_model(path, { custom_objects = { WeightedError = Weighted, TwiceOff = Twice } })
    assert.same(logs, again:evaluate(rows, truth, { verbose = 0 }))
  end)
end)

describe("an optimizer that extends one of the library's", function()
  local CASES = {
    { "SGD", {} }, { "SGD", { momentum = 0.9 } }, { "SGD", { momentum = 0.9, nesterov = true, clipnorm = 1 } }, { "Adam", {} },
    { "Adam", { amsgrad = true, beta_2 = 0.6 } }, { "AdamW", {} }, { "AdamW", { weight_decay = 0.2 } }, { "RMSprop", {} },
    { "RMSprop", { momentum = 0.5, centered = true } }, { "Adagrad", {} }, { "Adadelta", {} }, { "Adamax", {} }, { "Lion", {} },
    { "Nadam", {} }, { "Ftrl", { l1_regularization_strength = 0.01, beta = 0.1, l2_regularization_strength = 0.1,
                                 l2_shrinkage_regularization_strength = 0.05 } },
    { "Adam", { gradient_accumulation_steps = 2, use_ema = true } }, { "Lamb", {} },
  }
  for _, case in ipairs(CASES) do
    it("updates as " .. case[1] .. ", alone, in fit and after it was read from a file", function()
      local name, options, calls = case[1], { learning_rate = 0.05 }, 0
      for option, value in pairs(case[2]) do options[option] = value end
      local Mine = optimizers[name]:extend("Mine" .. name)
      function Mine:update_step(gradient, variable, rate)
        calls = calls + 1
        optimizers[name].update_step(self, gradient, variable, rate)
      end
      local known, own = optimizers[name](options), Mine(options)
      assert.equal(known.name, own.name)
      local a, b = flow.Variable { 1, -2, 3 }, flow.Variable { 1, -2, 3 }
      for step = 1, 6 do
        local gradient = flow.random.normal({ 3 }, { seed = step })
        known:apply_gradients({ gradient }, { a })
        own:apply_gradients({ gradient }, { b })
      end
      near(a:value(), b:value(), 1e-5)
      assert.is_true(calls > 0)

      local rows, truth = x:reshape { 20, 6 }, flow.ones { 20, 1 }
      local function fit(optimizer)
        flow.set_random_seed(3)
        local model = flow.Sequential { layers.Input { 6 }, layers.Dense(4), layers.Dense(1) }
        model:compile { loss = "mse", optimizer = optimizer }
        return model, model:fit(rows, truth, { epochs = 2, batch_size = 5, shuffle = false, verbose = 0 }).history.loss[2]
      end
      local _, expected = fit(optimizers[name](options))
      local model, found = fit(Mine(options))
      assert.is_near(expected, found, 1e-5)
      local path = support.folder() .. "/optimizer.keras"
      model:save(path)
      local again = flow.load_model(path, { custom_objects = { ["Mine" .. name] = Mine } })
      assert.equal("Mine" .. name, require("flow.object").class_of(again.optimizer).name)
      local more = { epochs = 1, batch_size = 5, shuffle = false, verbose = 0 }
      assert.is_near(model:fit(rows, truth, more).history.loss[1], again:fit(rows, truth, more).history.loss[1], 1e-6)
    end)
  end

  it("may have an init, variables of its own, and another apply_gradients", function()
    local Counting = optimizers.AdamW:extend "Counting"
    function Counting:init(rate, factor)
      optimizers.AdamW.init(self, rate, 0, { beta_1 = 0.5 })
      self.factor = factor
    end
    function Counting:build(variables)
      optimizers.AdamW.build(self, variables)
      self.count = self:add_variable({}, "zeros", { name = "count" })
    end
    function Counting:update_step(gradient, variable, rate)
      self.count:assign_add(1)
      optimizers.AdamW.update_step(self, gradient * self.factor, variable, rate)
    end
    local v, own = flow.Variable { 1, 2 }, Counting(0.1, 2)
    own:apply_gradients({ flow.tensor { 1, 1 } }, { v })
    near(flow.tensor { 0.9, 1.9 }, v:value(), 1e-5)
    assert.same({ 1, 0.5, 2, { 1, 1 } }, { own.count:item(), own.beta_1, own.factor, own._momentums[1]:totable() })

    local Centered = optimizers.SGD:extend "Centered"
    function Centered:apply_gradients(gradients, variables)
      local list = {}
      for i, gradient in ipairs(gradients) do list[i] = gradient - gradient:mean() end
      return optimizers.SGD.apply_gradients(self, list, variables)
    end
    local model = flow.Sequential { layers.Input { 6 }, layers.Dense(2, { kernel_initializer = "zeros" }) }
    model:compile { loss = "mse", optimizer = Centered(0.1) }
    model:fit(x:reshape { 20, 6 }, flow.ones { 20, 2 }, { verbose = 0 })
    assert.is_near(0, model.layers[1].kernel:value():sum():item(), 1e-5)
    assert.matches("update_step%(%) is for classes that extend it", message_of(function() optimizers.SGD():update_step(1, 2, 3) end))
  end)
end)
