-- same_masks_spec.lua: a traced step that the user writes draws the same Dropout masks under every strategy of one replica, and leaves the
-- same random state. Predictions and tests of a model that draws in them, too, draw anew in each call, as in Keras. A layer with a seed
-- draws the same numbers whatever seed the program sets.
local flow = require "flow"
local native = require "flow.ffi"
local support = require "spec.support.init"
local layers = flow.layers

local function masks(strategy, of)
  flow.clear_session()
  flow.set_random_seed(5)
  local first, second = layers.Dropout(0.5), layers.Dropout(0.5)
  local x, list = flow.ones { 4, 8 }, {}
  local step = of(function(y) return second(first(y, { training = true }), { training = true }) end)
  for i = 1, 3 do list[i] = strategy:run(step, { x }):totable() end
  list[4] = flow.random.uniform({ 4 }):totable()
  return list
end

local function as_it_is(f) return f end

describe("a step with Dropout", function()
  for title, of in pairs { ["that is traced"] = flow.fn, ["that is a plain function"] = as_it_is } do
    it(title .. " draws what it draws under the default strategy under others of one replica, too", function()
      local expected = masks(flow.distribute.get_strategy(), of)
      assert.not_same(expected[1], expected[2])
      assert.same(expected, masks(flow.distribute.OneDeviceStrategy("cpu:0"), of))
      assert.same(expected, masks(flow.distribute.MirroredStrategy { devices = { "cpu:0" } }, of))
    end)
  end

  it("that cannot be traced runs as it is under the default strategy, each time", function()
    local calls = 0
    local function step(x)
      calls = calls + 1
      return x:sum():item() + calls
    end
    local strategy = flow.distribute.get_strategy()
    strategy:run(step, { flow.ones { 2 } })
    local before = calls
    assert.equal(2 + before + 1, strategy:run(step, { flow.ones { 2 } }))
  end)
end)

describe("a model that drops in predictions, too", function()
  local x = flow.ones { 6, 16 }
  local MCDropout = layers.Dropout:extend "MCDropout"
  function MCDropout:call(inputs) return layers.Dropout.call(self, inputs, { training = true }) end

  local function model(seed)
    flow.set_random_seed(7)
    local inputs = flow.Input { 16 }
    local m = flow.Model(inputs, MCDropout(0.5, { seed = seed })(inputs))
    m:compile { optimizer = "sgd", loss = "mse" }
    return m
  end

  local ways = {
    predict = function(m) return m:predict(x) end,
    ["predict in batches"] = function(m) return m:predict(x, { batch_size = 4 }) end,
    ["predict of a dataset"] = function(m) return m:predict(flow.data.Dataset.from_tensor_slices(x):batch(4)) end,
    predict_on_batch = function(m) return m:predict_on_batch(x) end,
    evaluate = function(m) return m:evaluate(x, flow.arange(96):reshape { 6, 16 }, { verbose = 0 }) end,
    ["evaluate of a dataset"] = function(m)
      return m:evaluate(flow.data.Dataset.from_tensor_slices { { x, flow.arange(96):reshape { 6, 16 } } }:batch(4), { verbose = 0 })
    end,
    test_on_batch = function(m) return m:test_on_batch(x, flow.arange(96):reshape { 6, 16 }) end,
  }
  local function values(found) return flow.is_tensor(found) and found:totable() or found end

  for title, way in pairs(ways) do
    for _, seed in ipairs { false, 5 } do
      it(("draws new masks in each %s%s, and the same ones from the same seed"):format(title, seed and " with a seed" or ""), function()
        local m, list = model(seed or nil), {}
        for i = 1, 4 do
          list[i] = values(way(m))
          for j = 1, i - 1 do assert.not_same(list[j], list[i]) end
        end
        local again = model(seed or nil)
        for i = 1, 4 do assert.same(list[i], values(way(again))) end
      end)
    end
  end

  it("draws the masks of a call however it is cut into batches", function()
    local function predictions(size)
      local m, list = model(), {}
      for i = 1, 3 do list[i] = m:predict(x, { batch_size = size }):totable() end
      return list
    end
    assert.same(predictions(6), predictions(4))
  end)

  it("draws masks of which each element is kept in about half of the calls", function()
    local m, sum, squares = model(), flow.zeros { 6, 16 }, flow.zeros { 6, 16 }
    for _ = 1, 200 do
      local y = m:predict(x, { verbose = 0 })
      sum, squares = sum + y, squares + y * y
    end
    local deviation = (squares / 200 - (sum / 200) ^ 2):sqrt()
    assert.is_true((sum / 200 - 1):abs():max():item() < 0.4)
    assert.is_true((deviation - 1):abs():max():item() < 0.2)
  end)

  it("is not one whose call was given training, which predictions of C overrule, too", function()
    local inputs, file = flow.Input { 16 }, support.file("model.keras", "")
    local m = flow.Model(inputs, layers.Dropout(0.5)(inputs, { training = true }))
    m:save(file)
    local out, outputs = native.out("flow_model"), native.out("flow_tensor", 1)
    native.check(native.C.flow_model_load(native.context, file, out))
    local in_c = native.own(out, native.C.flow_model_release)
    native.check(native.C.flow_model_predict(native.context, in_c, native.pointers { x }, 1, outputs))
    assert.same(x:totable(), native.tensor(outputs[0]):totable())
    assert.same(x:totable(), m:predict(x):totable())
    native.close(in_c, native.C.flow_model_release)
  end)

  it("draws others than in training, whose masks predictions do not change", function()
    local function losses(between)
      local m, list = model(), {}
      for i = 1, 3 do
        list[i] = m:train_on_batch(x, x).loss
        if between then m:predict(x) end
      end
      return list
    end
    assert.same(losses(false), losses(true))
  end)
end)

describe("a layer's seed", function()
  local line, sequence, image = { 4, 12 }, { 4, 6, 5 }, { 3, 6, 6, 2 }
  local ones = { kernel_initializer = "ones", recurrent_initializer = "ones" }
  local function recurrent(class)
    return function(seed)
      return layers[class](3, { dropout = 0.4, recurrent_dropout = 0.3, seed = seed, kernel_initializer = ones.kernel_initializer,
                                recurrent_initializer = ones.recurrent_initializer })
    end
  end
  local draws = {
    Dropout = { line, function(seed) return layers.Dropout(0.5, { seed = seed }) end },
    ["Dropout of whole batches"] = { line, function(seed) return layers.Dropout(0.5, { seed = seed, noise_shape = { 1, 12 } }) end },
    ["Dropout of samples"] = { sequence, function(seed) return layers.Dropout(0.5, { seed = seed, noise_shape = { -1, 1, 5 } }) end },
    GaussianNoise = { line, function(seed) return layers.GaussianNoise(0.5, { seed = seed }) end },
    GaussianDropout = { line, function(seed) return layers.GaussianDropout(0.5, { seed = seed }) end },
    AlphaDropout = { line, function(seed) return layers.AlphaDropout(0.5, { seed = seed }) end },
    SpatialDropout1D = { sequence, function(seed) return layers.SpatialDropout1D(0.5, { seed = seed }) end },
    RandomRotation = { image, function(seed) return layers.RandomRotation(0.4, { seed = seed }) end },
    RandomContrast = { image, function(seed) return layers.RandomContrast(0.4, { seed = seed }) end },
    LSTM = { sequence, recurrent "LSTM" }, GRU = { sequence, recurrent "GRU" }, SimpleRNN = { sequence, recurrent "SimpleRNN" },
    Attention = { sequence, function(seed)
      local attend = layers.Attention { dropout = 0.5, seed = seed }
      return function(x, options) return attend({ x, x }, options) end
    end },
    SeedGenerator = { line, function(seed)
      local generator = flow.random.SeedGenerator(seed or nil)
      return function(x) return x + flow.random.normal({ 4, 12 }, { seed = generator }) end
    end },
  }

  local function drawn(global, case, seed)
    flow.set_random_seed(3)
    local x = flow.random.uniform(case[1])
    flow.set_random_seed(global)
    local layer, list = case[2](seed), {}
    local step = flow.fn(function(inputs) return layer(inputs, { training = true }) end)
    for i = 1, 3 do list[i] = step(x):totable() end
    return list
  end

  for title, case in pairs(draws) do
    it(("of %s decides what it draws, whatever seed the program sets"):format(title), function()
      local list = drawn(1, case, 5)
      assert.same(list, drawn(2, case, 5))
      assert.not_same(list, drawn(1, case, 6))
      for i = 2, 3 do assert.not_same(list[i - 1], list[i]) end
      assert.not_same(drawn(1, case), drawn(2, case))
    end)
  end

  it("decides the masks of fit, and of a model that a file gave", function()
    local x, file = flow.ones { 8, 12 }, support.file("model.keras", "")
    local function trained(global, loaded)
      flow.set_random_seed(global)
      local m = flow.Sequential { layers.Input { 12 }, layers.Dropout(0.5, { seed = 5 }), layers.Dense(2, { kernel_initializer = "ones" }) }
      m:compile { optimizer = flow.optimizers.SGD(0.1), loss = "mse" }
      if loaded then
        m:save(file)
        m = flow.load_model(file)
      end
      m:fit(x, flow.zeros { 8, 2 }, { batch_size = 4, epochs = 2, verbose = 0, shuffle = false })
      return m:get_weights()[1]:totable()
    end
    local expected = trained(1)
    assert.same(expected, trained(2))
    assert.same(expected, trained(3, true))
  end)
end)
