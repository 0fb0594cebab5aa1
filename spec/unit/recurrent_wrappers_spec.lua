-- recurrent_wrappers_spec.lua: Bidirectional and TimeDistributed: what golden cases do not say: training, files, clones, layers in Lua.
require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"

local layers = flow.layers

local function near(a, b, tolerance)
  assert.same({ unpack(a.shape) }, { unpack(b.shape) })
  local distance = (a - b):abs():max():item()
  assert.is_true(distance <= (tolerance or 1e-6), distance)
end

local function normal(shape, seed) return flow.random.normal(shape, { seed = seed }) end

describe("Bidirectional", function()
  it("is its two layers, each with half of the states", function()
    local both = layers.Bidirectional(layers.LSTM(3, { return_sequences = true, return_state = true }))
    local x, states = normal({ 2, 5, 4 }, 1), {}
    for i = 1, 4 do states[i] = normal({ 2, 3 }, 1 + i) end
    local result = both(x, { initial_state = states })
    local f = both.forward_layer(x, { initial_state = { states[1], states[2] } })
    local b = both.backward_layer(x, { initial_state = { states[3], states[4] } })
    near(result[1], flow.concat({ f[1], b[1]:flip(2) }, -1))
    for i, expected in ipairs { f[2], f[3], b[2], b[3] } do near(result[1 + i], expected) end
    near(both(x, states)[1], result[1])
    assert.equal(5, #result)
  end)

  it("leaves the layer that it is given alone, and names its own as Keras does", function()
    local given = layers.GRU(3, { name = "words" })
    given(flow.ones { 1, 2, 4 })
    local both = layers.Bidirectional(given, { name = "both" })
    both(flow.ones { 1, 2, 4 })
    local names = {}
    for i, v in ipairs(both.weights) do names[i] = v.path end
    local forward, backward = "both/forward_words/gru_cell/", "both/backward_words/gru_cell/"
    assert.same({ forward .. "kernel", forward .. "recurrent_kernel", forward .. "bias", backward .. "kernel",
      backward .. "recurrent_kernel", backward .. "bias" }, names)
    assert.equal("backward_words", both.backward_layer.name)
    assert.equal(2 * given:count_params(), both:count_params())
  end)

  it("builds by itself, freezes both layers and gives a config as Keras does", function()
    local both = layers.Bidirectional(layers.LSTM(3), { merge_mode = false })
    both:build { -1, 5, 4 }
    assert.equal(6, #both.trainable_weights)
    both.trainable = false
    assert.equal(0, #both.trainable_weights)
    local config = both:get_config()
    assert.equal("LSTM", config.layer.class_name)
    assert.is_true(config.backward_layer.config.go_backwards)
    assert.equal(require("flow.json").null, config.merge_mode)
  end)

  it("takes the number of steps from each batch, with a mask from an Embedding, and trains", function()
    local words = flow.Input({ -1 }, { dtype = "int32" })
    local h = layers.Embedding(9, 4, { mask_zero = true })(words)
    h = layers.Bidirectional(layers.LSTM(3, { return_sequences = true }))(h)
    h = layers.Bidirectional(layers.GRU(2, { dropout = 0.2, recurrent_dropout = 0.2 }), { merge_mode = "ave" })(h)
    local model = flow.Model { inputs = words, outputs = layers.Dense(1)(h) }
    assert.same({ -1, -1, 6 }, model.layers[3].output.shape)
    model:compile { optimizer = "adam", loss = "mse" }
    local x = flow.tensor({ { 1, 2, 3, 0 }, { 4, 0, 0, 0 }, { 5, 6, 7, 8 } }, { dtype = "int32" })
    local before = model:evaluate(x, flow.ones { 3, 1 }, { verbose = 0 }).loss
    model:fit(x, flow.ones { 3, 1 }, { epochs = 10, verbose = 0 })
    assert.is_true(model:evaluate(x, flow.ones { 3, 1 }, { verbose = 0 }).loss < before)
    local longer = flow.tensor({ { 1, 2, 3, 0, 0, 0 }, { 4, 0, 0, 0, 0, 0 }, { 5, 6, 7, 8, 0, 0 } }, { dtype = "int32" })
    near(model:predict(x, { verbose = 0 }), model:predict(longer, { verbose = 0 }))
  end)

  it("comes back from files and clones, with layers that a script wrote inside", function()
    local Sum = layers.Layer:extend("Sum")
    function Sum:init(options)
      self.go_backwards, self.return_sequences, self.return_state = options.go_backwards or false, false, false
      self.stateful = false
    end
    function Sum:build(shape) self.gain = self:add_weight { name = "gain", shape = { shape[3] }, initializer = "ones" } end
    function Sum:call(x) return (self.go_backwards and x:flip(2) or x):cumsum(2)[{ {}, { 2, 2 } }]:squeeze(2) * self.gain end
    local function make(inner) return flow.Sequential { layers.Input { 5, 4 }, layers.Bidirectional(inner), layers.Dense(2) } end
    local x = normal({ 3, 5, 4 }, 7)
    local model = make(Sum {})
    model_files.assert_returns(model, { x }, { in_c = false, custom_objects = { Sum = Sum } })
    local own = make(layers.SimpleRNN(3, { kernel_regularizer = flow.regularizers.L2(0.1) }))
    local copy = flow.models.clone_model(own)
    copy:set_weights(own:get_weights())
    near(own:predict(x, { verbose = 0 }), copy:predict(x, { verbose = 0 }))
    assert.equal(2, #copy.losses)
    assert.same(own:to_json(), copy:to_json())
  end)

  it("computes in the dtype of its policy", function()
    local both = layers.Bidirectional(layers.GRU(3, { dtype = "mixed_bfloat16" }), { dtype = "mixed_bfloat16" })
    assert.equal("bfloat16", both(flow.ones { 2, 3, 4 }).dtype)
    assert.equal("float32", both.weights[1].dtype)
  end)

  it("says what it does not take", function()
    local function problem(f, ...) return select(2, pcall(f, ...)) end
    local rnn = layers.LSTM
    assert.matches("Dense \"%S+\" has no return_sequences", problem(layers.Bidirectional, layers.Dense(3)))
    assert.matches("merge_mode is \"concat\", \"sum\"", problem(layers.Bidirectional, rnn(3), { merge_mode = "max" }))
    assert.matches("go in the same direction", problem(layers.Bidirectional, rnn(3), { backward_layer = rnn(3) }))
    assert.matches("both need the same", problem(layers.Bidirectional, rnn(3),
      { backward_layer = rnn(3, { go_backwards = true, return_state = true }) }))
    assert.matches("initial_state holds 3 tensors", problem(function()
      local state = flow.ones { 1, 3 }
      layers.Bidirectional(rnn(3))(flow.ones { 1, 2, 3 }, { initial_state = { state, state, state } })
    end))
    assert.matches("did you mean \"initial_state\"", problem(function()
      layers.Bidirectional(rnn(3))(flow.ones { 1, 2, 3 }, { initial_states = {} })
    end))
  end)
end)

describe("TimeDistributed", function()
  it("calls a layer of Lua for more steps than a call of Lua has arguments", function()
    local Halves = layers.Layer:extend "Halves"
    function Halves:call(x) return { x, x * 0.5 } end
    local Doubled = layers.Layer:extend "Doubled"
    function Doubled:call(x) return x * 2 end
    local x = flow.ones { 1, 9000, 2 }
    local y = layers.TimeDistributed(Doubled())(x)
    assert.same({ 1, 9000, 2 }, { y.shape[1], y.shape[2], y.shape[3] })
    assert.equal(36000, y:sum():item())
    local list = layers.TimeDistributed(Halves())(x)
    assert.same({ 18000, 9000 }, { list[1]:sum():item(), list[2]:sum():item() })
  end)

  it("gives a layer each step, all at once where rows do not meet", function()
    local dense, x = layers.Dense(3, { activation = "tanh" }), normal({ 2, 4, 5 }, 1)
    local y = layers.TimeDistributed(dense)(x)
    for t = 1, 4 do near(y[{ {}, { t, t } }]:squeeze(2), dense(x[{ {}, { t, t } }]:squeeze(2))) end
  end)

  it("gives what a script wrote, and statistics of a batch in training, one step after the other", function()
    local Center, sizes = layers.Layer:extend("Center"), {}
    function Center:call(x)
      sizes[#sizes + 1] = x.shape[1]
      return x - x:mean(1, true)
    end
    local x = normal({ 6, 3, 2 }, 2)
    local y = layers.TimeDistributed(Center())(x)
    assert.same({ 6, 6, 6 }, sizes)
    near(y, x - x:mean(1, true), 1e-6)
    local normalized = layers.TimeDistributed(layers.BatchNormalization())(x, { training = true })
    near(normalized:mean(1), flow.zeros { 3, 2 }, 1e-5)
  end)

  it("holds models, also those with several outputs, and unknown steps", function()
    local input = flow.Input { 6, 6, 2 }
    local h = layers.Conv2D(3, 3)(input)
    local inner = flow.Model { inputs = input, outputs = { layers.GlobalAveragePooling2D()(h), layers.Flatten()(h * 2) } }
    local movie = flow.Input { -1, 6, 6, 2 }
    local outputs = layers.TimeDistributed(inner)(movie)
    assert.same({ -1, -1, 48 }, outputs[2].shape)
    local model = flow.Model { inputs = movie, outputs = outputs }
    local x = normal({ 2, 3, 6, 6, 2 }, 3)
    local found = model:predict(x, { verbose = 0 })
    local expected = inner:predict(x[{ {}, { 2, 2 } }]:squeeze(2), { verbose = 0 })
    for i = 1, 2 do near(found[i][{ {}, { 2, 2 } }]:squeeze(2), expected[i], 1e-5) end
    model_files.assert_returns(model, { x }, { in_c = false })
  end)

  it("draws other dropout masks for other steps, and hands its mask on", function()
    local dropped = layers.TimeDistributed(layers.Dropout(0.5))(flow.ones { 1, 2, 64 }, { training = true })
    assert.is_true((dropped[{ {}, { 1, 1 } }] - dropped[{ {}, { 2, 2 } }]):abs():max():item() > 0)
    local embedded = layers.Embedding(5, 4, { mask_zero = true })(flow.tensor({ { 1, 2, 0 } }, { dtype = "int32" }))
    assert.same({ { true, true, false } }, layers.TimeDistributed(layers.Dense(2))(embedded)._keras_mask:totable())
  end)

  it("trains frozen and free layers in a plan", function()
    local inner = flow.Sequential { layers.Input { 6 }, layers.Dense(4), layers.BatchNormalization(), layers.Dropout(0.1) }
    local model = flow.Sequential { layers.Input { 3, 6 }, layers.TimeDistributed(inner), layers.Flatten(), layers.Dense(1) }
    model:compile { optimizer = "sgd", loss = "mse" }
    local x, y = normal({ 8, 3, 6 }, 5), flow.ones { 8, 1 }
    local first = model:fit(x, y, { epochs = 8, verbose = 0 }).history.loss
    assert.is_true(first[8] < first[1])
    inner.trainable = false
    model:compile { optimizer = "sgd", loss = "mse" }
    local before = inner:get_weights()
    model:fit(x, y, { epochs = 1, verbose = 0 })
    for i, value in ipairs(inner:get_weights()) do near(value, before[i], 0) end
  end)

  it("says what it does not take", function()
    local function problem(f, ...) return select(2, pcall(f, ...)) end
    assert.matches("takes a layer such as layers.Dense", problem(layers.TimeDistributed, 3))
    assert.matches("expected 3 dimensions or more", problem(layers.TimeDistributed(layers.Dense(3)), flow.ones { 2, 3 }))
    assert.matches("the first two dimensions must be the same", problem(layers.TimeDistributed(layers.Dense(3)), flow.ones { 2, 3, 4 },
      { mask = flow.ones { 2, 4 } }))
    local x = flow.Input { 3, 4 }
    assert.matches("called on one tensor", problem(layers.TimeDistributed(layers.Dense(3)), { x, x }))
  end)
end)
