-- rounding_spec.lua: a host may have set another way to round: numbers that the library computes have the same bits, and files the same
-- names. What Lua itself computes, such as a mean over the batches of an epoch, is the host's.
local ffi = require "ffi"
local flow = require "flow"
local support = require "spec.support.init"

ffi.cdef "int fesetround(int);"

local MODES = jit.arch == "x64" and { downward = 0x400, upward = 0x800, ["toward zero"] = 0xc00 } or {}

local function train(folder)
  flow.set_random_seed(3)
  local x, y = flow.random.normal({ 40, 5 }, { seed = 1 }), (flow.arange(40) % 3):cast "int32"
  local model = flow.Sequential { flow.layers.Input { 5 }, flow.layers.Dense(7, { activation = "gelu" }), flow.layers.BatchNormalization(),
                                  flow.layers.Dropout(0.3), flow.layers.Dense(3) }
  model:compile { optimizer = "adam", loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
  local data = flow.data.Dataset.from_tensor_slices { x, y }:map(function(a, b) return a * 0.1 + 0.3, b end, { num_parallel_calls = 2 })
  model:fit(data:batch(8), { epochs = 2, verbose = 0 })
  model:save(folder .. "/model.keras")
  model:save_weights(folder .. "/model.weights.h5")
  flow.train.Checkpoint { model = model }:write(folder .. "/checkpoint")
  return model
end

-- All weights as texts of their bits.
local function bits(model)
  local list = {}
  for _, weight in ipairs(model:get_weights()) do
    for _, value in ipairs(weight:reshape({ -1 }):totable()) do list[#list + 1] = ("%a"):format(value) end
  end
  return list
end

describe("a host that rounds", function()
  local wanted = bits(train(support.folder()))
  for name, mode in pairs(MODES) do
    it(name .. " has the same weights, and files that others read", function()
      local folder = support.folder()
      ffi.C.fesetround(mode)
      local ok, model = pcall(train, folder)
      local read, again = pcall(flow.load_model, folder .. "/model.keras")
      ffi.C.fesetround(0)
      assert.is_true(ok, tostring(model))
      assert.is_true(read, tostring(again))
      assert.same(wanted, bits(model))
      assert.same(wanted, bits(again))
      assert.same(wanted, bits(flow.load_model(folder .. "/model.keras")))
      local other = train(support.folder())
      for _, weight in ipairs(other.weights) do weight:assign(flow.zeros(weight.shape)) end
      other:load_weights(folder .. "/model.weights.h5")
      assert.same(wanted, bits(other))
      for _, weight in ipairs(other.weights) do weight:assign(flow.zeros(weight.shape)) end
      flow.train.Checkpoint { model = other }:read(folder .. "/checkpoint")
      assert.same(wanted, bits(other))
    end)
  end
end)
