-- stft_spec.lua: flow.initializers.STFT gives what Keras' gives, and is in files as there (stft.py).
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
