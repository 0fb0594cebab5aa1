-- Fast and exact precision: training goes the same way in both, and neither depends on the number of threads.
local ffi = require "ffi"
local flow = require "flow"
local nets = require "flow.cli.bench_nets"
local support = require "spec.support.init"

-- A trained copy of a net: this many steps with this many threads.
local function trained(name, batch, steps, threads)
  flow.config.set_threads(threads)
  flow.set_random_seed(5)
  local model, shape, classes = nets[name]()
  local x = flow.random.uniform({ batch, unpack(shape) }, { seed = 1 })
  local y = flow.random.uniform({ batch }, { maxval = classes, dtype = "int32", seed = 2 })
  model:fit(x, y, { batch_size = batch, epochs = steps, shuffle = false, verbose = 0 })
  return model:get_weights()
end

local function same_bits(a, b)
  if #a ~= #b then return false end
  for i = 1, #a do
    local count = 1
    for axis = 1, #a[i].shape do count = count * a[i].shape[axis] end
    if ffi.string(a[i]:data(), 4 * count) ~= ffi.string(b[i]:data(), 4 * count) then return false end
  end
  return true
end

local function reset()
  flow.config.set_precision("fast")
  flow.config.set_threads(0)
end

describe("precision", function()
  for _, precision in ipairs { "fast", "exact" } do
    for name, batch in pairs { resnet20 = 18, mobilenet = 5, flowers = 3, odd = 19, strided = 7, mnist = 33, unet = 3 } do
      it(("%s: %s gets the same bits from one thread and from two"):format(precision, name), function()
        finally(reset)
        flow.config.set_precision(precision)
        local steps = 4      -- the first runs of a plan go alone, whatever the number of threads
        assert.is_true(same_bits(trained(name, batch, steps, 1), trained(name, batch, steps, 2)))
      end)
    end
  end

  it("fast and exact learn the digits alike", function()
    finally(reset)
    local x, y = flow.datasets.mnist { path = support.root .. "lua/examples/digits" }
    local histories = {}
    for _, precision in ipairs { "exact", "fast" } do
      flow.config.set_precision(precision)
      flow.set_random_seed(3)
      local layers = flow.layers
      local model = flow.Sequential {      -- 3 x 3 convolutions of many channels: by tiles where it is allowed
        layers.Input { 28, 28 }, layers.Reshape { 28, 28, 1 }, layers.Rescaling(1 / 255),
        layers.Conv2D(16, 3, { padding = "same", activation = "relu" }), layers.MaxPooling2D(),
        layers.Conv2D(32, 3, { padding = "same", activation = "relu" }), layers.Conv2D(32, 3, { padding = "same", activation = "relu" }),
        layers.MaxPooling2D(), layers.Flatten(), layers.Dense(10),
      }
      model:compile { optimizer = flow.optimizers.Adam(), metrics = { "accuracy" },
                      loss = flow.losses.SparseCategoricalCrossentropy { from_logits = true } }
      local rows = math.min(2000, x.shape[1])
      histories[precision] = model:fit(x[{ { 1, rows } }], y[{ { 1, rows } }], { batch_size = 50, epochs = 3, verbose = 0 }).history
      local variants = {}
      for _, row in ipairs(flow.profile(function() model:train_on_batch(x[{ { 1, 50 } }], y[{ { 1, 50 } }]) end).rows) do
        variants[row.variant] = true
      end
      assert.is_true(variants.winograd)
    end
    for epoch = 1, 3 do
      local exact, fast = histories.exact.loss[epoch], histories.fast.loss[epoch]
      assert.is_near(exact, fast, 0.02 * exact + 0.002, "loss of epoch " .. epoch)
      assert.is_near(histories.exact.accuracy[epoch], histories.fast.accuracy[epoch], 0.01, "accuracy of epoch " .. epoch)
    end
    assert.is_true(histories.fast.accuracy[3] > 0.9)
    assert.are_not.equal(histories.exact.loss[3], histories.fast.loss[3])      -- or one mode was measured twice
  end)
end)
