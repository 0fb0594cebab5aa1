-- Predictions of fewer rows than there are threads: threads divide the layers of a single picture among them, and change no bit. Nets are
-- random; FLOW_CASES=10000 tries this many of each kind.
local flow = require "flow"
local backend = require "spec.support.backend"
local layers = flow.layers
local FIRST, LAST = (require "spec.support.case_numbers")(12)
local draw = require "spec.support.draw"

-- A net of several kinds of layers, wide enough that its layers are cut.
local function net(seed)
  local state = { number = seed * 7919 + 1 }
  local size, channels = draw(state, 9, 40), draw(state, 3, 70)
  local input = layers.Input { size, size + draw(state, 0, 5), channels }
  local x = input
  for _ = 1, draw(state, 2, 5) do
    local kind, filters = draw(state, 1, 10), draw(state, 5, 90)
    if kind == 1 then x = layers.Conv2D(filters, 3, { padding = "same", activation = "relu" })(x)
    elseif kind == 2 then x = layers.Conv2D(filters, 1, { strides = draw(state, 1, 2) })(x)
    elseif kind == 3 then x = layers.DepthwiseConv2D(3, { padding = "same" })(x)
    elseif kind == 4 then x = layers.BatchNormalization()(layers.Conv2D(filters, 5, { padding = "same", strides = 2 })(x))
    elseif kind == 5 then
      local y = layers.Conv2D(filters, 3, { padding = "same" })(x)
      x = layers.Add() { y, layers.Conv2D(filters, 1)(x) }
    elseif kind == 7 then x = layers.Concatenate() { x, layers.Conv2D(filters, 1, { activation = "gelu" })(x), x }
    elseif kind == 9 then
      x = layers.Conv2DTranspose(filters, draw(state, 2, 5), { strides = draw(state, 1, 2), padding = "same", activation = "relu" })(x)
    elseif kind == 10 then x = layers.Conv2D(draw(state, 1, 4), draw(state, 1, 5), { padding = "same" })(x)
    elseif kind == 8 then                                        -- channels are scaled, as in squeeze-and-excitation
      local y = layers.Conv2D(filters, 3, { padding = "same", activation = "swish" })(x)
      x = y * layers.Dense(filters, { activation = "sigmoid" })(layers.GlobalAveragePooling2D { keepdims = true }(y)) + 1
    else x = layers.MaxPooling2D(2, { padding = "same" })(layers.Conv2D(filters, 3, { padding = "same", activation = "relu" })(x)) end
  end
  local output = layers.Dense(7)(layers.Flatten()(x))
  return flow.Model { inputs = input, outputs = output }, { size, input.shape[3], channels }
end

-- One of layers over steps of time: products of matrices of each row, in some nets so deep that they are split, softmax, axes that move,
-- recurrent layers.
local function sequence_net(seed)
  local state = { number = seed * 104729 + 1 }
  local steps, features = draw(state, 2, 150), 8 * draw(state, 1, 24)
  local input = layers.Input { steps, features }
  local x, width = input, features
  for _ = 1, draw(state, 1, 3) do
    local kind = draw(state, 1, 6)
    local heads, size = draw(state, 1, 8), draw(state, 1, 40)
    if kind == 1 then x = x + layers.MultiHeadAttention(heads, size)(layers.LayerNormalization()(x), x)
    elseif kind == 2 then x = layers.Attention() { x, layers.Dense(width, { activation = "gelu" })(x) }
    elseif kind == 3 then x = layers.Permute { 2, 1 }(layers.Softmax(draw(state, 2, 3))(layers.Permute { 2, 1 }(x)))
    elseif kind > 4 then      -- threads divide the units of each step, where these are many
      local class = ({ "LSTM", "GRU", "SimpleRNN" })[draw(state, 1, 3)]
      width = 16 * draw(state, 1, 16)
      x = layers[class](width, { return_sequences = true, go_backwards = draw(state, 0, 1) == 1 })(x)
    else x = layers.Dot { axes = { 3, 2 } } { x, layers.Dot { axes = { 2, 2 } } { x, x } } end
  end
  return flow.Model { inputs = input, outputs = layers.Dense(5)(layers.LayerNormalization()(x)) }, { steps, features }
end

describe("single pictures by several threads", function()
  after_each(function() flow.config.set_threads(0) end)

  for _, kind in ipairs { "net", "sequence net" } do
    it("of a random " .. kind, function()
      for seed = FIRST, LAST do
        flow.set_random_seed(seed)
        local model, shape = (kind == "net" and net or sequence_net)(seed)
        for rows = 1, 3 do
          local x = flow.random.normal({ rows, unpack(shape) }, { seed = seed })
          flow.config.set_threads(1)
          local expected = model:predict_on_batch(x)
          for _, threads in ipairs { 2, 3, 13 } do
            flow.config.set_threads(threads)
            for run = 1, 2 do
              local found = model:predict_on_batch(x)
              assert.is_true(found:eq(expected):all():item(), ("seed %d, %d rows, %d threads, run %d"):format(seed, rows, threads, run))
            end
          end
        end
        model:close()
      end
    end)
  end

  -- Calls of one row go by pieces, those of two by rows.
  it("single calls, of operands that are repeated along any axes", function()
    for case = 20 * FIRST - 19, 20 * LAST do
      local state = { number = case * 7919 + 77 }
      local shape = { 1, draw(state, 1, 60), draw(state, 1, 40), draw(state, 1, 70) }
      local function operand(seed)
        local own = { 1 }
        for axis = 2, 4 do own[axis] = draw(state, 0, 2) > 0 and shape[axis] or 1 end
        return flow.random.normal(own, { seed = seed })
      end
      local a, b, c = flow.random.normal(shape, { seed = case }), operand(case + 1000), operand(case + 2000)
      local kind, axis = draw(state, 1, 11), draw(state, 2, 4)
      local axes = ({ { 1, 3, 2, 4 }, { 1, 4, 3, 2 }, { 1, 2, 4, 3 } })[draw(state, 1, 3)]
      local function both(f, ...)
        local twice = {}
        for i, x in ipairs { ... } do twice[i] = flow.concat({ x, x }, 1) end
        local found, expected = f(...), f(unpack(twice))
        assert.same(found.shape, expected[{ { 2, 2 } }].shape)
        assert.is_true(found:eq(expected[{ { 2, 2 } }]):all():item(), ("case %d, kind %d"):format(case, kind))
      end
      if kind == 1 then both(function(x, y) return x * y end, b, a)
      elseif kind == 2 then both(function(x, y, z) return flow.where(y:gt(0), x, z) end, a, b, c)
      elseif kind == 3 then both(function(x, y) return flow.exp(x - y) end, a, b)
      elseif kind == 4 then both(function(x, y) return x:gt(y) end, a, c)
      elseif kind == 5 then both(function(x) return flow.softmax(x, axis) end, a)
      elseif kind == 6 then both(function(x) return flow.log_softmax(x, axis) end, a)
      elseif kind == 7 then both(function(x) return flow.transpose(x, axes) end, a)
      elseif kind == 8 or kind == 9 then
        local attributes = { normalization = { axis = axis - 1, epsilon = 1e-3, uncentered = kind - 8 } }
        for output = 1, 2 do both(function(x) return backend.apply("normalize", { x }, attributes)[output] end, a) end
        both(function(x, g)
          local y, r = unpack(backend.apply("normalize", { x }, attributes))
          return backend.apply("normalize_gradient", { g, y, r }, attributes)[1]
        end, a, a * a)
        local parameter = flow.random.normal({ unpack(shape, axis) }, { seed = case })
        both(function(x) return backend.apply("layer_norm", { x, parameter, parameter }, attributes)[1] end, a)
      elseif kind == 10 then both(function(x) return flow.gelu(x, false) end, a)
      else both(function(x, y) return flow.concat({ x, y, x * 2 }, axis) end, a, a + 1) end
    end
  end)

  it("in loops and under wrappers", function()
    flow.set_random_seed(3)
    local frames = layers.Input { 4, 20, 20, 8 }
    local x = layers.ConvLSTM2D(16, 3, { padding = "same", return_sequences = true })(frames)
    x = layers.TimeDistributed(layers.Conv2D(24, 3, { activation = "relu" }))(x)
    local model = flow.Model { inputs = frames, outputs = layers.GRU(5)(layers.TimeDistributed(layers.GlobalAveragePooling2D())(x)) }
    local data = flow.random.normal({ 1, 4, 20, 20, 8 }, { seed = 4 })
    flow.config.set_threads(1)
    local expected = model:predict_on_batch(data)
    for _, threads in ipairs { 2, 7 } do
      flow.config.set_threads(threads)
      for _ = 1, 8 do assert.is_true(model:predict_on_batch(data):eq(expected):all():item()) end
    end
  end)

  it("in training, one row a step", function()
    local function weights(threads)
      flow.config.set_threads(threads)
      flow.set_random_seed(3)
      local model = flow.Sequential {
        layers.Input { 30, 30, 3 },
        layers.Conv2D(32, 3, { activation = "relu" }), layers.MaxPooling2D(), layers.BatchNormalization(),
        layers.Conv2D(48, 3, { padding = "same", activation = "relu" }), layers.DepthwiseConv2D(3), layers.Flatten(), layers.Dense(5),
      }
      model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
      local y = flow.random.uniform({ 12 }, { maxval = 5, dtype = "int32", seed = 2 })
      model:fit(flow.random.normal({ 12, 30, 30, 3 }, { seed = 1 }), y, { batch_size = 1, epochs = 2, verbose = 0, shuffle = false })
      return model:get_weights()
    end
    local expected = weights(1)
    for _, threads in ipairs { 2, 5 } do
      for i, found in ipairs(weights(threads)) do assert.is_true(found:eq(expected[i]):all():item()) end
    end
  end)
end)
