--- Models with recurrent layers train on a GPU as they do on the CPU, and a step costs few launches however long its sequences are. On an
--- emulated GPU (spec/cuda/emulation/emulation.h).
local emulated = require "spec.support.emulated"
local flow = require "flow"
local launches = require "spec.support.launches"
local support = require "spec.support.init"
local layers = flow.layers
local ffi = require "ffi"

if emulated.missing() then
  pending("recurrent layers on a GPU: " .. emulated.missing())
  return
end

local N, STEPS, FEATURES = 6, 9, 3

-- Sequences of different lengths, the rest of which is 0; and numbers for them.
local function sequences(steps)
  local x = flow.random.normal({ N, steps, FEATURES }, { seed = 3 }):totable()
  for i, sequence in ipairs(x) do
    for t = steps - i % 3 + 1, steps do
      for k = 1, FEATURES do sequence[t][k] = 0 end
    end
  end
  return flow.tensor(x), flow.random.normal({ N, 1 }, { seed = 4 })
end

local function model_of(make)
  flow.random.set_seed(5)
  local model = flow.Sequential { flow.Input { STEPS, FEATURES }, layers.Masking(), make(true), make(false), layers.Dense(1) }
  model:compile { optimizer = "adam", loss = "mse", metrics = { "mae" } }
  return model
end

-- Losses of a training, and predictions after it.
local function trained(device, make)
  return flow.device(device, function()
    local model = model_of(make)
    local x, y = sequences(STEPS)
    local history = model:fit(x, y, { epochs = 3, batch_size = 4, shuffle = false, verbose = 0 })
    return history.history.loss, model:predict(x, { verbose = 0 }):flatten():totable()
  end)
end

local function near(expected, found, tolerance)
  assert.equal(#expected, #found)
  for i, value in ipairs(expected) do
    assert.is_true(math.abs(value - found[i]) <= tolerance * (1 + math.abs(value)), ("%d: %g, %g"):format(i, value, found[i]))
  end
end

describe("on a GPU", function()
  local cases = {
    ["SimpleRNN"] = function(whole) return layers.SimpleRNN(5, { return_sequences = whole }) end,
    ["LSTM"] = function(whole) return layers.LSTM(8, { return_sequences = whole }) end,
    ["LSTM, backwards"] = function(whole) return layers.LSTM(7, { return_sequences = whole, go_backwards = not whole }) end,
    ["GRU"] = function(whole) return layers.GRU(8, { return_sequences = whole }) end,
    ["GRU with the reset before the product"] = function(whole)
      return layers.GRU(6, { return_sequences = whole, reset_after = false })
    end,
    ["both directions"] = function(whole) return layers.Bidirectional(layers.LSTM(4, { return_sequences = whole })) end,
  }
  for name, make in pairs(cases) do
    it(name .. " trains as on the CPU", function()
      local losses, predictions = trained("cpu", make)
      local found, predicted = trained("gpu:0", make)
      near(losses, found, 2e-3)
      near(predictions, predicted, 5e-3)
    end)
  end

  for _, class in ipairs { "LSTM", "GRU" } do
    it(class .. " has launches in a step that do not grow with the sequences", function()
      local counts = {}
      for i, steps in ipairs { 4, 40 } do
        local list = support.file("launches", "")
        ffi.C.setenv("FLOW_EMULATED_LAUNCHES", list, 1)
        finally(function() ffi.C.setenv("FLOW_EMULATED_LAUNCHES", "", 1) end)
        flow.device("gpu:0", function()
          local model = flow.Sequential { flow.Input { steps, FEATURES }, layers[class](8), layers.Dense(1) }
          model:compile { optimizer = "adam", loss = "mse" }
          local x, y = sequences(steps)
          for _ = 1, 2 do model:train_on_batch(x, y) end
        end)
        counts[i] = launches.nodes(launches.read(list))
      end
      assert.is_true(counts[1] > 0)
      assert.is_true(counts[2] <= counts[1] + 2, counts[1] .. ", " .. counts[2])      -- long sums are cut into two launches
    end)
  end
end)
