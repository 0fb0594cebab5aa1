-- stft_spec.lua: flow.initializers.STFT gives what Keras' gives, and is in files as there (stft.py); weights of mel bands.
local support = require "spec.support.init"
local flow = require "flow"
local json = require "flow.json"

local golden = json.decode(flow.io.read_file "spec/golden/stft.json")
local STFT = flow.initializers.STFT

describe("initializers.STFT", function()
  it("gives Keras' values", function()
    for i, case in ipairs(golden.cases) do
      local made = STFT.from_config(case.serialized.config)
      local values = made { unpack(case.shape) }
      assert.near(0, (values:reshape { -1 } - flow.tensor(case.values)):abs():max():item(), 2e-6, "case " .. i)
      assert.same(case.serialized.config, made:get_config())
    end
    assert.equal(STFT, flow.keras.initializers.STFTInitializer)
  end)

  it("is the initializer of a layer, also from a file", function()
    local model = flow.Sequential { flow.layers.Input { 16, 1 },
                                    flow.layers.Conv1D(5, 8, { kernel_initializer = STFT { side = "imag", window = false } }) }
    local path = support.folder() .. "/m.keras"
    model:save(path)
    local entry = json.decode(model:to_json()).config.layers[2].config.kernel_initializer
    assert.same({ "keras.initializers", "STFT", "imag" }, { entry.module, entry.class_name, entry.config.side })
    local loaded = flow.load_model(path)
    assert.equal(0, (loaded.layers[1].kernel - model.layers[1].kernel):abs():max():item())
    assert.equal("STFT", json.decode(loaded:to_json()).config.layers[2].config.kernel_initializer.class_name)
  end)

  it("says what it takes", function()
    assert.matches("window is hann, hamming", support.message_of(function() STFT("real", "kaiser") end), 1, true)
    assert.matches("the shape is {samples, 1, frequencies}, got {4, 3}", support.message_of(function() STFT() { 4, 3 } end), 1, true)
    assert.matches("side", support.message_of(function() STFT "both" end), 1, true)
  end)
end)

describe("linear_to_mel_weight_matrix", function()
  it("gives TensorFlow's values", function()
    for _, case in ipairs(golden.bands) do
      local values = flow.linear_to_mel_weight_matrix(unpack(case.arguments))
      assert.same({ case.arguments[2], case.arguments[1] }, { unpack(values.shape) })
      assert.near(0, (values:reshape { -1 } - flow.tensor(case.values)):abs():max():item(), 2e-6)
    end
    assert.same({ 129, 20 }, { unpack(flow.linear_to_mel_weight_matrix { dtype = "float64" }.shape) })
  end)

  it("refuses edges that are none", function()
    for _, edges in ipairs { { 3800, 125 }, { -1, 100 }, { 100, 5000 } } do
      assert.matches("the edges are " .. edges[1] .. " and " .. edges[2] .. " hertz",
        support.message_of(function() flow.linear_to_mel_weight_matrix(4, 6, 8000, edges[1], edges[2]) end), 1, true)
    end
    assert.same({ 1, 128, 8 }, { unpack(flow.layers.MelSpectrogram { max_freq = 9000 }(flow.ones { 1, 4000 }).shape) })
  end)
end)
