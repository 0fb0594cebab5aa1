-- The nets of texts that speed is measured on: what they are made of, and that a step of training moves all of it.
local flow = require "flow"
local nets = require "flow.cli.bench_nets"

local WORDS, WIDTH, CLASSES = 20000, 128, 2
local HEAD = (WIDTH + 1) * CLASSES

-- Numbers of parameters by the formulas of the layers.
local NORM, INSIDE = 2 * WIDTH, 4 * WIDTH
local BLOCK = 4 * WIDTH * (WIDTH + 1) + (WIDTH + 1) * INSIDE + (INSIDE + 1) * WIDTH + 2 * NORM
local parameters = {
  embedding = WORDS * WIDTH + (WIDTH + 1) * 64 + 65 * CLASSES,
  lstm = WORDS * WIDTH + 4 * (2 * WIDTH + 1) * WIDTH + HEAD,
  gru = WORDS * WIDTH + 3 * (2 * WIDTH + 2) * WIDTH + HEAD,
  transformer = (WORDS + 128) * WIDTH + 2 * BLOCK + HEAD,
}

describe("the bench's net", function()
  for name, count in pairs(parameters) do
    it(name .. " has the layers that it names, and trains", function()
      local model, shape, classes = nets[name]()
      assert.equal(count, model:count_params())
      assert.equal("int32", model.inputs[1].dtype)
      local before = model:get_weights()
      local x = flow.random.uniform({ 3, unpack(shape) }, { maxval = WORDS, dtype = "int32", seed = 1 })
      local y = flow.random.uniform({ 3 }, { maxval = classes, dtype = "int32", seed = 2 })
      local loss = model:fit(x, y, { batch_size = 3, epochs = 5, shuffle = false, verbose = 0 }).history.loss
      assert.is_true(loss[5] < loss[1], ("loss %g after %g"):format(loss[5], loss[1]))
      for i, weight in ipairs(model:get_weights()) do
        local moved = flow.max(flow.abs(weight - before[i])):item()
        assert.is_true(moved > 0, "weight " .. i .. " stays unchanged")
      end
      model:close()
    end)
  end
end)
