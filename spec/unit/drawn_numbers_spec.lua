-- drawn_numbers_spec.lua: what layers draw in training follows from the seed and from what the program does after it was set: not from
-- the names of layers, which count on through a process, nor from what was made before. Two calls of a layer in one step draw different
-- numbers.
local flow = require "flow"
local layers = flow.layers

local function pictures(layer) return { layers.Input { 8, 8, 3 }, layer, layers.Flatten(), layers.Dense(2) }, { 8, 8, 3 } end
local function sequences(layer) return { layers.Input { 5, 3 }, layer, layers.Flatten(), layers.Dense(2) }, { 5, 3 } end

-- What draws in training, each made anew by its function.
local NETS = {
  Dropout = function() return sequences(layers.Dropout(0.5)) end,
  ["Dropout with a noise_shape"] = function() return sequences(layers.Dropout(0.5, { noise_shape = { -1, 1, 3 } })) end,
  ["Dropout with a seed"] = function() return sequences(layers.Dropout(0.5, { seed = 3 })) end,
  SpatialDropout1D = function() return sequences(layers.SpatialDropout1D(0.5)) end,
  GaussianNoise = function() return sequences(layers.GaussianNoise(0.5)) end,
  GaussianDropout = function() return sequences(layers.GaussianDropout(0.5)) end,
  AlphaDropout = function() return sequences(layers.AlphaDropout(0.5)) end,
  GRU = function() return sequences(layers.GRU(4, { dropout = 0.3, recurrent_dropout = 0.3, return_sequences = true })) end,
  LSTMCell = function() return sequences(layers.RNN(layers.LSTMCell(4, { dropout = 0.3 }), { return_sequences = true })) end,
  ["two of a kind"] = function()
    local first, second = layers.Dropout(0.5), layers.Dropout(0.5)
    return { layers.Input { 5, 3 }, first, second, layers.Flatten(), layers.Dense(2) }, { 5, 3 }
  end,
  RandomFlip = function() return pictures(layers.RandomFlip()) end,
  RandomZoom = function() return pictures(layers.RandomZoom(0.4, 0.4)) end,
  RandomBrightness = function() return pictures(layers.RandomBrightness(0.4)) end,
}

local function trained(build)
  flow.set_random_seed(7)
  local list, shape = build()
  local model = flow.Sequential(list)
  model:compile { optimizer = "adam", loss = "mse" }
  local x = flow.random.normal { 20, unpack(shape) }
  local history = model:fit(x, flow.random.normal { 20, 2 }, { epochs = 3, batch_size = 8, verbose = 0 }).history.loss
  model:close()
  return history
end

-- How much of two masks of many elements differs.
local function difference(a, b) return a:ne(b):to("float32"):mean():item() end

describe("what layers draw in a training", function()
  for name, build in pairs(NETS) do
    it("is the same when the program does the same again after set_random_seed: " .. name, function()
      local expected = trained(build)
      layers.Dropout(0.1)
      assert.same(expected, trained(build))
      flow.clear_session()
      assert.same(expected, trained(build))
    end)
  end

  it("does not follow from names", function()
    local function of(first, second)
      return trained(function()
        return { layers.Input { 6 }, layers.Dropout(0.5, { name = first }), layers.Dropout(0.5, { name = second }), layers.Dense(2) }, { 6 }
      end)
    end
    assert.same(of("a", "b"), of("b", "some_other_name"))
  end)
end)

describe("what a layer draws in a traced function", function()
  local x = flow.ones { 32, 64 }

  it("is different in each call, and in each run", function()
    local drop = layers.Dropout(0.5)
    local f = flow.fn(function(y) return drop(y, { training = true }), drop(y, { training = true }) end)
    local a, b = f(x)
    local c, d = f(x)
    for _, pair in ipairs { { a, b }, { c, d }, { a, c }, { b, d }, { a, d } } do
      local part = difference(pair[1], pair[2])
      assert.is_true(part > 0.4 and part < 0.6, tostring(part))
    end
  end)

  it("is different in the rounds of a loop, and in two loops", function()
    local drop = layers.Dropout(0.5)
    local function along(y)
      local all = flow.scan(function(state, row) return state, drop(row, { training = true }) end, flow.zeros { 1 }, y)
      return all
    end
    local f = flow.fn(function(y) return along(y), along(y) end)
    local a, b = f(flow.ones { 2, 32, 64 })
    for _, pair in ipairs { { a, b }, { a[1], a[2] }, { b[1], b[2] }, { a[1], b[2] } } do
      local part = difference(pair[1], pair[2])
      assert.is_true(part > 0.4 and part < 0.6, tostring(part))
    end
  end)

  -- As in Keras, where each layer counts its own draws from its seed.
  it("is the same for layers with the same seed: call by call, whatever draws between them", function()
    local function dropout(seed) return layers.Dropout(0.5, { seed = seed }) end
    local function masks(first, second, between)
      local function both(y)
        local function drop(layer) return layer(y, { training = true }) end
        return drop(first), drop(first), drop(between), drop(second), drop(second)
      end
      local list = { both(x) }
      for _, mask in ipairs { flow.fn(both)(x) } do list[#list + 1] = mask end
      return list
    end
    local same = masks(dropout(3), dropout(3), layers.Dropout(0.5))
    local other = masks(dropout(3), dropout(4), dropout(3))
    for first = 1, 6, 5 do      -- eager, traced
      for i = 0, 1 do
        assert.equal(0, difference(same[first + i], same[first + 3 + i]))
        local part = difference(other[first + i], other[first + 3 + i])
        assert.is_true(part > 0.4 and part < 0.6, tostring(part))
      end
      for _, pair in ipairs { { same[first], same[first + 1] }, { same[first], same[first + 2] }, { same[first + 1], same[first + 2] } } do
        local part = difference(pair[1], pair[2])
        assert.is_true(part > 0.4 and part < 0.6, tostring(part))
      end
      assert.equal(0, difference(other[first], other[first + 2]))
    end
    -- a seed of 0 is not the same as none
    local zero, none = dropout(0), layers.Dropout(0.5)
    local a, b = flow.fn(function(y) return zero(y, { training = true }), none(y, { training = true }) end)(x)
    local part = difference(a, b)
    assert.is_true(part > 0.4 and part < 0.6, tostring(part))
  end)

  it("is the same for images and their masks that are augmented by layers with one seed", function()
    local images, labels = layers.RandomFlip { seed = 5 }, layers.RandomFlip { seed = 5 }
    local batch = flow.random.uniform({ 16, 6, 6, 1 }, { seed = 1 })
    local function both(y) return images(y, { training = true }), labels(y, { training = true }) end
    local f = flow.fn(both)
    for _ = 1, 2 do
      local a, b = f(batch)
      assert.equal(0, difference(a, b))
      assert.is_true(difference(a, batch) > 0)
    end
  end)

  it("is one mask for all calls of a cell: the steps of a sequence", function()
    local cell = layers.SimpleRNNCell(4, { dropout = 0.5, activation = "linear", kernel_initializer = "ones" })
    local f = flow.fn(function(y)
      local zeros = flow.zeros { 32, 4 }
      return cell(y, { zeros }, { training = true })[1], cell(y, { zeros }, { training = true })[1]
    end)
    local first, second = f(x)
    assert.equal(0, difference(first, second))
  end)
end)
