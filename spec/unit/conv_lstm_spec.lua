-- conv_lstm_spec.lua: ConvLSTM1D, ConvLSTM2D and ConvLSTM3D: what golden cases do not say: plans, dropout, unknown steps, files, errors.
local support = require "spec.support.init"
local flow = require "flow"
local model_files = require "spec.support.model_files"

local layers = flow.layers
local SHAPES = { ConvLSTM1D = { 2, 4, 6, 2 }, ConvLSTM2D = { 2, 4, 5, 4, 2 }, ConvLSTM3D = { 2, 4, 3, 4, 3, 2 } }

local function normal(shape, seed) return flow.random.normal(shape, { seed = seed }) end
local function problem(f, ...) return select(2, pcall(f, ...)) end
local function near(a, b, tolerance)
  assert.same({ unpack(a.shape) }, { unpack(b.shape) })
  local distance = (a - b):abs():max():item()
  assert.is_true(distance <= (tolerance or 1e-6), distance)
end

local function each(f)
  for name, shape in pairs(SHAPES) do f(layers[name], shape, name) end
end

describe("ConvLSTM", function()
  it("gives what a loop of one's own over single steps gives", function()
    each(function(class, shape)
      local layer = class(3, 3, { padding = "same", return_sequences = true, return_state = true })
      local x, states, outputs = normal(shape, 1), nil, {}
      local sequence, h, c = unpack(layer(x))
      for t = 1, shape[2] do
        local found = layer(x[{ {}, { t, t } }], { initial_state = states })
        outputs[t], states = found[1], { found[2], found[3] }
      end
      near(sequence, flow.concat(outputs, 2))
      near(h, states[1])
      near(c, states[2])
    end)
  end)

  it("is one loop of a plan, however many steps there are, and its gradient another", function()
    each(function(class, shape)
      local layer, lines = class(2, 2, { dropout = 0.2 }), {}
      local f = flow.fn(function(x)
        local tape = flow.GradientTape()
        local y = tape:record(function() return layer(x, { training = true }):sum() end)
        return y, tape:gradient(y, layer.trainable_weights)
      end)
      for _, steps in ipairs { 3, 30 } do
        shape[2] = steps
        f(normal(shape, 2))
        lines[#lines + 1] = select(2, f:describe():gsub("\n", "\n"))
      end
      assert.equal(lines[1], lines[2])
    end)
  end)

  it("drops the same cells of all steps, in training alone", function()
    local layer = layers.ConvLSTM2D(2, 1, { dropout = 0.5, activation = "linear", recurrent_activation = "linear", use_bias = false,
                                             seed = 3, return_sequences = true })
    local x = flow.ones { 1, 2, 6, 6, 1 }
    layer:build { -1, 2, 6, 6, 1 }
    layer:set_weights { flow.ones { 1, 1, 1, 8 }, flow.zeros { 1, 1, 2, 8 } }
    -- c2 = f c1 + i g, where i, f and g are 0 or 2: 4 times 1 + f, or 0; a cell of which all three are kept has c2 = 12 in both
    local dropped = layer(x, { training = true })
    local values = {}
    for _, v in ipairs(dropped:reshape({ -1 }):totable()) do values[v] = true end
    for v in pairs(values) do assert.is_true(v == 0 or v == 8 or v == 24, v) end
    assert.is_true(values[0] and values[8] and values[24])
    near(layer(x)[{ {}, { 1, 1 } }], flow.ones { 1, 1, 6, 6, 2 })
    local kept = layers.ConvLSTM2D(2, 1, { recurrent_dropout = 0.9, return_sequences = true })
    local y, z = kept(x, { training = true }), kept(x)
    near(y[{ {}, { 1, 1 } }], z[{ {}, { 1, 1 } }])      -- the first state is zeros
    assert.is_true((y - z):abs():max():item() > 0)
  end)

  it("takes any number of steps in a model, beside Bidirectional, and files are read by Lua and C", function()
    each(function(class, shape, name)
      local input = flow.Input { -1, unpack(shape, 3) }
      local sequence, a, b = unpack(class(3, 2, { padding = "same", return_sequences = true, return_state = true, name = name })(input))
      local both = layers.Bidirectional(class(2, 2, { padding = "same", return_sequences = true }))(sequence)
      local again = class(3, 3, { padding = "same", dilation_rate = 2 })(both, { initial_state = { a, b } })
      local model = flow.Model { inputs = input, outputs = again }
      for _, steps in ipairs { 1, 3 } do
        shape[2] = steps
        near(model(normal(shape, 4)), model:predict(normal(shape, 4), { verbose = 0 }))
      end
      local plain = flow.Sequential { layers.Input { unpack(shape, 2) }, class(3, 2, { strides = 2, return_sequences = true }),
                                      layers.Flatten(), layers.Dense(2) }
      local path = support.path()
      plain:save(path .. ".keras")
      local x = normal(shape, 5)
      local expected = plain:predict(x, { verbose = 0 })
      near(expected, flow.models.load_model(path .. ".keras"):predict(x, { verbose = 0 }), 0)
      near(expected, model_files.predict_in_c(path .. ".keras", { x })[1])
      os.remove(path .. ".keras")
    end)
  end)

  it("learns which way a square moves", function()
    local rows = {}
    for i = 1, 16 do
      local frames = {}
      for t = 1, 3 do
        frames[t] = {}
        for r = 1, 5 do
          frames[t][r] = {}
          for c = 1, 5 do frames[t][r][c] = { r == 3 and c == (i % 2 == 0 and t + 1 or 5 - t) and 1 or 0 } end
        end
      end
      rows[i] = frames
    end
    flow.utils.set_random_seed(1)
    local y = {}
    for i = 1, 16 do y[i] = { i % 2 } end
    local model = flow.Sequential { layers.Input { 3, 5, 5, 1 }, layers.ConvLSTM2D(3, 3), layers.GlobalMaxPooling2D(),
                                    layers.Dense(1, { activation = "sigmoid" }) }
    model:compile { optimizer = flow.optimizers.Adam(0.05), loss = "binary_crossentropy" }
    local loss = model:fit(flow.tensor(rows), flow.tensor(y), { epochs = 40, verbose = 0 }).history.loss
    assert.is_true(loss[40] < 0.1, loss[40])
  end)

  it("says what does not fit", function()
    local x = normal({ 2, 3, 4, 4, 2 }, 1)
    local function says(text, f, ...)
      local found = problem(f, ...)
      assert.is_truthy(tostring(found):find(text, 1, true), found)
    end
    says("expected 5 {batch, steps, height, width, channels}", layers.ConvLSTM2D(2, 2), normal({ 2, 3, 4, 2 }, 1))
    says("with known sizes after the steps", layers.ConvLSTM2D(2, 2), flow.Input { 3, -1, 4, 2 })
    says("strides {2, 2} and dilation_rate {2, 2} cannot both", layers.ConvLSTM2D, 2, 2, { strides = 2, dilation_rate = 2 })
    says("cannot both be greater than 1", layers.ConvLSTM3D, 2, 2, { strides = 2, dilation_rate = 2 })
    says("filters must be greater than 0", layers.ConvLSTM1D, 0, 2)
    says("channels_first", layers.ConvLSTM2D, 2, 2, { data_format = "channels_first" })
    says("state 1 of initial_state has shape {2, 4, 4, 2}, expected {2, 3, 3, 2}", layers.ConvLSTM2D(2, 2), x,
      { initial_state = { flow.zeros { 2, 4, 4, 2 }, flow.zeros { 2, 3, 3, 2 } } })
    local built = layers.ConvLSTM2D(2, 2)
    built(x)
    says("3 channels, but the layer was built for 2", built, normal({ 2, 3, 4, 4, 3 }, 1))
  end)
end)
