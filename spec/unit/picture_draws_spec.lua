-- picture_draws_spec.lua: random flips, crops and colours of flow.image, flow.random's stateless functions and its Generator: their
-- distributions, that equal seeds draw equal numbers eagerly, in a trace and in ds:map, and what they refuse.
local support = require "spec.support.init"
local flow = require "flow"

local message_of = support.message_of
local image, random = flow.image, flow.random
local picture = random.uniform({ 7, 9, 3 }, { seed = 1 })

local function same(a, b) return flow.equal(a, b):all():item() end

describe("flow.random's stateless functions", function()
  local seed = { 7, 8 }

  it("have the moments of their distributions, and numbers of two halves that do not hang together", function()
    local MANY = 20000
    for _, case in ipairs {
      { random.stateless_uniform({ MANY }, seed, -1, 3), 1, 4 / math.sqrt(12) }, { random.stateless_normal({ MANY }, seed, 2, 3), 2, 3 },
      { random.stateless_uniform({ MANY }, seed, 0, 10, "int32"), 4.5, math.sqrt(8.25) },
      { random.stateless_truncated_normal({ MANY }, seed), 0, 0.8796 },
      { random.stateless_uniform({ MANY }, seed, 0, 1, "float64"), 0.5, 0.2887 },
    } do
      local x, mean, deviation = case[1]:to "float64", case[2], case[3]
      assert.is_true(math.abs(x:mean():item() - mean) < 4 * deviation / math.sqrt(MANY), tostring(x:mean()))
      assert.is_true(math.abs(x:std():item() - deviation) < 0.03 * deviation, tostring(x:std()))
      local first, second = x[{ { 1, MANY / 2 } }] - mean, x[{ { MANY / 2 + 1, -1 } }] - mean
      assert.is_true(math.abs((first * second):mean():item()) < 4 * deviation ^ 2 / math.sqrt(MANY / 2))
    end
    assert.is_true(random.stateless_truncated_normal({ MANY }, seed):abs():max():item() <= 2)
  end)

  it("draw the same of equal seeds, eagerly and in a trace, and others of other seeds", function()
    local function draw(pair) return random.stateless_normal({ 4, 3 }, pair) end
    local own = draw(seed)
    assert.is_true(same(own, draw(flow.tensor(seed, { dtype = "int32" }))))
    assert.is_true(same(own, flow.fn(draw)(flow.tensor(seed, { dtype = "int64" }))))
    for _, other in ipairs { { 7, 9 }, { 8, 7 }, { 8, 8 }, { 0, 0 } } do assert.is_false(same(own, draw(other))) end
  end)

  it("refuse wrong seeds and wrong ranges", function()
    for _, wrong in ipairs { { 1 }, { 1, 2, 3 }, flow.tensor { 1.5, 2 } } do
      assert.truthy(message_of(function() random.stateless_uniform({ 2 }, wrong) end):find("a seed is two whole numbers, got", 1, true))
    end
    local message = message_of(function() random.stateless_uniform({ 2 }, seed, 0, nil, "int32") end)
    assert.truthy(message:find("flow.random.stateless_uniform: whole numbers need maxval", 1, true), message)
  end)
end)

describe("flow.random.Generator", function()
  it("draws in a trace what follows from its own seed, other numbers in each run and each call", function()
    local function drawn(global)
      flow.set_random_seed(global)
      local generator = random.Generator.from_seed(3)
      local f = flow.fn(function() return flow.stack { generator:normal {}, generator:uniform {} } end)
      return { f():totable(), f():totable() }
    end
    local first = drawn(1)
    assert.same(first, drawn(2))
    assert.are_not.same(first[1], first[2])
  end)

  it("draws other numbers in each pass over a data set, as seeded layers do there", function()
    local function passes(global)
      flow.set_random_seed(global)
      local generator, flip = random.Generator.from_seed(3), flow.layers.RandomFlip("horizontal", { seed = 5 })
      local seeds = random.SeedGenerator(4)
      local dataset = flow.data.Dataset.range(16):map(function()
        local flipped = flip(flow.tensor { { { 1 }, { 2 } } }, { training = true })
        return flow.stack { generator:uniform {}, flow.random.uniform({}, { seed = seeds }), flipped[{ 1, 1, 1 }] }
      end)
      local list = {}
      for pass = 1, 3 do
        list[pass] = {}
        for x in dataset:iter() do table.insert(list[pass], x:totable()) end
      end
      return list
    end
    local first = passes(1)
    assert.same(first, passes(2))
    for column = 1, 3 do
      local texts = {}
      for pass = 1, 3 do
        local values = {}
        for i, row in ipairs(first[pass]) do values[i] = row[column] end
        texts[pass] = table.concat(values, " ")
      end
      assert.is_true(texts[1] ~= texts[2] and texts[2] ~= texts[3] and texts[1] ~= texts[3], column .. ": " .. texts[1])
    end
  end)

  it("draws numbers that follow from its seed, one after the other", function()
    local function list(generator)
      return { generator:normal { 3 }, generator:uniform({ 3 }, 0, 5), generator:make_seeds(2):to "float64" }
    end
    local generator = random.Generator.from_seed(3)
    local first, again, next_ones = list(generator), list(random.Generator.from_seed(3)), list(generator)
    generator:reset_from_seed(3)
    local reset = list(generator)
    for i = 1, 3 do
      assert.is_true(same(first[i], again[i]) and same(first[i], reset[i]))
      assert.is_false(same(first[i], next_ones[i]))
    end
    local parts = generator:split(2)
    assert.is_false(same(parts[1]:normal { 3 }, parts[2]:normal { 3 }))
  end)

  it("draws whole numbers of all that a dtype holds", function()
    local generator = random.Generator.from_seed(3)
    local RANGES = { uint8 = { 0, 2 ^ 8 }, int8 = { -2 ^ 7, 2 ^ 8 }, int32 = { -2 ^ 31, 2 ^ 32 }, int64 = { -2 ^ 63, 2 ^ 64 } }
    for dtype, range in pairs(RANGES) do
      local x = generator:uniform_full_int({ 100, 200 }, dtype)
      assert.equal(dtype, x.dtype)
      x = (x:to "float64" - range[1]) / range[2]
      assert.is_true(x:min():item() >= 0 and x:max():item() <= 1)
      assert.is_true(math.abs(x:mean():item() - 0.5) < 0.01 and math.abs(x:std():item() - 12 ^ -0.5) < 0.01, tostring(x:mean()))
    end
    assert.equal("int64", generator:uniform_full_int({ 2 }).dtype)
    local message = message_of(function() generator:uniform_full_int({ 2 }, "float32") end)
    assert.truthy(message:find("the dtype is int8, uint8, int32 or int64, got the string", 1, true), message)
  end)

  it("goes on where another one was", function()
    local generator = random.Generator.from_seed(3)
    generator:normal { 3 }
    local other = random.Generator.from_state(generator.state, "philox")
    assert.is_true(same(generator:normal { 3 }, other:normal { 3 }))
    local message = message_of(function() random.Generator.from_state { 1, 2, 3 } end)
    assert.truthy(message:find("set_state takes what get_state gave", 1, true), message)
  end)

  it("makes other seeds for every element of a dataset", function()
    local generator = random.Generator.from_seed(1)
    local dataset = flow.data.Dataset.range(6):map(function() return random.stateless_uniform({}, generator:make_seeds()[{ {}, 1 }]) end)
    local seen, count = {}, 0
    for x in dataset:iter() do
      if not seen[x:item()] then seen[x:item()], count = true, count + 1 end
    end
    assert.equal(6, count)
  end)
end)

describe("flow.image", function()
  it("flips about half of the pictures, each of a batch for itself", function()
    local batch = flow.stack { picture, picture, picture, picture, picture, picture, picture, picture }
    for _, name in ipairs { "flip_left_right", "flip_up_down" } do
      local flipped, whole = image[name](picture), 0
      for seed = 1, 8 do
        local some = image["random_" .. name](batch, seed)
        for i = 1, 8 do
          local is_flipped = same(some[i], flipped)
          assert.is_true(is_flipped or same(some[i], picture))
          whole = whole + (is_flipped and 1 or 0)
        end
      end
      assert.is_true(whole > 16 and whole < 48, whole .. " of 64")
      local one = image["stateless_random_" .. name](picture, { 4, 5 })
      assert.is_true(same(one, flow.fn(function(x) return image["stateless_random_" .. name](x, { 4, 5 }) end)(picture)))
    end
  end)

  it("crops at every place there is", function()
    local places = flow.arange(63):reshape { 7, 9, 1 }
    local seen, count = {}, 0
    for seed = 1, 200 do
      local crop = image.random_crop(places, { 6, 7, 1 }, seed)
      assert.same({ 6, 7, 1 }, crop.shape)
      local first = crop[{ 1, 1, 1 }]:item()
      if not seen[first] then seen[first], count = true, count + 1 end
      assert.equal(first + 9 * 5 + 6, crop[{ 6, 7, 1 }]:item())
    end
    assert.equal(2 * 3, count)
    local function crop() return image.stateless_random_crop(places, { 2, 2, 1 }, { 1, 2 }) end
    assert.is_true(same(crop(), crop()))
  end)

  it("draws colours between their bounds, as the function that is told a number", function()
    for seed = 1, 10 do
      local delta = (image.random_brightness(picture, 0.3, seed) - picture):mean():item()
      assert.is_true(math.abs(delta) <= 0.3)
      local factor = (image.random_contrast(picture, 0.5, 2, seed):std() / picture:std()):item()
      assert.is_true(factor > 0.4 and factor < 2.1, factor)
      for _, other in ipairs { image.random_hue(picture, 0.2, seed), image.random_saturation(picture, 0.2, 0.9, seed) } do
        assert.is_true((other:max(-1) - picture:max(-1)):abs():max():item() < 1e-5)      -- the value of each pixel stays
      end
    end
    local pair, whole = { 9, 9 }, (picture * 255):to "uint8"
    for name, bounds in pairs { brightness = { 0.2 }, hue = { 0.2 }, contrast = { 0.2, 0.8 }, saturation = { 0.2, 0.8 } } do
      local f = image["stateless_random_" .. name]
      local arguments = { picture, unpack(bounds) }
      table.insert(arguments, pair)
      assert.is_true(same(f(unpack(arguments)), f(unpack(arguments))))
      arguments[1] = whole
      assert.equal("uint8", f(unpack(arguments)).dtype)
    end
  end)

  it("runs in ds:map with seeds of the elements", function()
    local counter = flow.data.Dataset.counter()
    local pairs_of = flow.data.Dataset.zip(flow.data.Dataset.from_tensor_slices(flow.stack { picture, picture, picture }), counter)
    local function augment(x, number) return image.stateless_random_crop(x, { 3, 3, 3 }, flow.stack { number, number }) end
    local i = 0
    for x in pairs_of:map(augment):iter() do
      assert.is_true(same(x, augment(picture, flow.tensor(i, { dtype = "int64" }))))
      i = i + 1
    end
    assert.equal(3, i)
  end)

  it("flips the pictures of batches in ds:map, also of a smaller last one", function()
    local batches = flow.data.Dataset.from_tensor_slices(flow.stack { picture, picture, picture, picture, picture }):batch(2)
    local sizes, flipped = {}, image.flip_left_right(picture)
    for x in batches:map(function(x) return image.random_flip_left_right(x) end):iter() do
      sizes[#sizes + 1] = x.shape[1]
      for i = 1, x.shape[1] do assert.is_true(same(x[i], picture) or same(x[i], flipped)) end
    end
    assert.same({ 2, 2, 1 }, sizes)
  end)

  it("draws other numbers in each pass of ds:map", function()
    local rows = flow.data.Dataset.from_tensor_slices(flow.reshape(flow.arange(400):to "float32", { 100, 1, 2, 2 }))
    local layers = flow.layers
    local recurrent = layers.RNN(layers.LSTMCell(2, { dropout = 0.5 }))
    for name, draw in pairs {
      RandomFlip = function(x) return layers.RandomFlip("horizontal")(x, { training = true }) end,
      GaussianNoise = function(x) return layers.GaussianNoise(0.5)(x, { training = true }) end,
      Dropout = function(x) return layers.Dropout(0.5)(x, { training = true }) end,
      ["dropout in a loop"] = function(x) return recurrent(flow.reshape(x, { 1, 2, 2 }), { training = true }) end,
    } do
      local ds = rows:map(draw)
      local function pass()
        local list = {}
        for x in ds:iter() do list[#list + 1] = x end
        return flow.stack(list)
      end
      local first, second = pass(), pass()
      assert.equal(100, first.shape[1])
      assert.is_false(same(first, second), name)
    end
  end)

  it("says what does not fit", function()
    for text, f in pairs {
      ["a picture has rank 3, a batch rank 4, got rank 2"] = function() image.flip_left_right(flow.ones { 2, 2 }) end,
      ["6 rows after 3 and 2 columns after 0 are not in a picture of 7 x 9"] = function()
        image.crop_to_bounding_box(picture, 3, 0, 6, 2)
      end,
      ["a picture of 7 x 9 does not fit in 8 x 9 from row 2, column 0 on"] = function() image.pad_to_bounding_box(picture, 2, 0, 8, 9) end,
      ["central_fraction is above 0 and at most 1, got 0"] = function() image.central_crop(picture, 0) end,
      ["axis 1 has 7 elements, 8 are asked for"] = function() image.random_crop(picture, { 8, 2, 3 }) end,
      ["max_delta is from 0 to 0.5, got 0.6"] = function() image.random_hue(picture, 0.6) end,
      ["lower is from 0 and below upper, got 2 and 1"] = function() image.random_contrast(picture, 2, 1) end,
      ["one channel, got 3"] = function() image.grayscale_to_rgb(picture) end,
      ["boxes have shape {n, 4}, got {2, 3}"] = function() image.non_max_suppression(flow.ones { 2, 3 }, flow.ones { 2 }, 1) end,
      ["scores have shape {2}, got {3}"] = function() image.non_max_suppression(flow.ones { 2, 4 }, flow.ones { 3 }, 1) end,
      ["flow.image.stateless_random_crop: a seed is two whole numbers, got the number 3"] = function()
        image.stateless_random_crop(picture, { 1, 1, 1 }, 3)
      end,
    } do
      local message = message_of(f)
      assert.truthy(message:find(text, 1, true), message)
    end
  end)
end)
