-- Predictions of fewer rows than there are threads: threads divide the layers of a single picture among them, and change no bit.
local flow = require "flow"
local layers = flow.layers
local cases = tonumber(os.getenv "FLOW_CASES" or 6)

local function draw(state, from, to)
  state.number = (state.number * 16807) % 2147483647
  return from + state.number % (to - from + 1)
end

-- A net of several kinds of layers, wide enough that its layers are cut.
local function net(seed)
  local state = { number = seed * 7919 + 1 }
  local size, channels = draw(state, 9, 40), draw(state, 3, 70)
  local input = layers.Input { size, size + draw(state, 0, 5), channels }
  local x = input
  for _ = 1, draw(state, 2, 5) do
    local kind, filters = draw(state, 1, 6), draw(state, 5, 90)
    if kind == 1 then x = layers.Conv2D(filters, 3, { padding = "same", activation = "relu" })(x)
    elseif kind == 2 then x = layers.Conv2D(filters, 1, { strides = draw(state, 1, 2) })(x)
    elseif kind == 3 then x = layers.DepthwiseConv2D(3, { padding = "same" })(x)
    elseif kind == 4 then x = layers.BatchNormalization()(layers.Conv2D(filters, 5, { padding = "same", strides = 2 })(x))
    elseif kind == 5 then
      local y = layers.Conv2D(filters, 3, { padding = "same" })(x)
      x = layers.Add() { y, layers.Conv2D(filters, 1)(x) }
    else x = layers.MaxPooling2D(2, { padding = "same" })(layers.Conv2D(filters, 3, { padding = "same", activation = "relu" })(x)) end
  end
  local output = layers.Dense(7)(layers.Flatten()(x))
  return flow.Model { inputs = input, outputs = output }, { size, input.shape[3], channels }
end

describe("single pictures by several threads", function()
  after_each(function() flow.config.set_threads(0) end)

  for seed = 1, cases do
    it("net " .. seed, function()
      flow.set_random_seed(seed)
      local model, shape = net(seed)
      for rows = 1, 3 do
        local x = flow.random.normal({ rows, unpack(shape) }, { seed = seed })
        flow.config.set_threads(1)
        local expected = model:predict_on_batch(x)
        for _, threads in ipairs { 2, 3, 13 } do
          flow.config.set_threads(threads)
          for run = 1, 6 do
            local found = model:predict_on_batch(x)
            assert.is_true(found:eq(expected):all():item(), ("%d rows, %d threads, run %d"):format(rows, threads, run))
          end
        end
      end
      model:close()
    end)
  end

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
