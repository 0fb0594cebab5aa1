-- images_spec.lua: the layers that prepare images: random ones by their distribution, edges and keys; adapt(); models and traces.
local support = require "spec.support.init"
local flow = require "flow"
local backend = require "spec.support.backend"
local layers, message_of = flow.layers, support.message_of

-- Images whose pixels are all different: 1, 2, 3, ...
local function counting(...)
  local shape, n = { ... }, 1
  for _, size in ipairs(shape) do n = n * size end
  return flow.arange(1, n + 1, { dtype = "float32" }):reshape(shape)
end

local function flat(t) return t:reshape { t.size }:totable() end

local function reversed(list)
  local result = {}
  for i = 1, #list do result[i] = list[#list + 1 - i] end
  return result
end

describe("RandomFlip", function()
  it("mirrors half of the images, the others stay", function()
    local n = 400
    local x = counting(1, 2, 3, 1):broadcast_to { n, 2, 3, 1 }
    local flips = { horizontal = { 3, 2, 1, 6, 5, 4 }, vertical = { 4, 5, 6, 1, 2, 3 }, horizontal_and_vertical = { 6, 5, 4, 3, 2, 1 } }
    for mode, flipped in pairs(flips) do
      local y = layers.RandomFlip { mode = mode, seed = 3 }(x, { training = true }):reshape({ n, 6 }):totable()
      local count = 0
      for _, image in ipairs(y) do
        if image[1] == 1 then assert.same({ 1, 2, 3, 4, 5, 6 }, image)
        else
          assert.same(flipped, image)
          count = count + 1
        end
      end
      assert.is_true(count > 150 and count < 250, mode .. count)
    end
  end)

  it("trains when it is called by itself, and not in inference", function()
    local x = counting(64, 2, 2, 3)
    local layer = layers.RandomFlip()
    assert.not_same(flat(x), flat(layer(x)))
    flow.set_random_seed(1)
    local trained = flat(layer(x, { training = true }))
    flow.set_random_seed(1)
    assert.same(trained, flat(layer(x)))
    assert.same(flat(x), flat(layer(x, { training = false })))
    local model = flow.Sequential { layers.Input { 2, 2, 3 }, layer }
    assert.same(flat(x), flat(model(x, { training = false })))
    assert.same(flat(x), flat(model:predict(x)))
  end)

  it("makes float32 of integers and takes single images", function()
    local x = counting(2, 3, 1):to("uint8")
    for seed = 1, 8 do
      local y = layers.RandomFlip { seed = seed }(x)
      assert.same({ "float32", 2, 3, 1 }, { y.dtype, unpack(y.shape) })
      local values = flat(y)
      if values[1] ~= 1 then values = reversed(values) end
      assert.same({ 1, 2, 3, 4, 5, 6 }, values)
    end
    assert.truthy(message_of(function() layers.RandomFlip()(flow.zeros { 2, 3 }) end)
      :find("expected {height, width, channels} or", 1, true))
    assert.truthy(message_of(function() layers.RandomFlip("both") end):find("mode must be", 1, true))
  end)
end)

describe("RandomRotation", function()
  it("turns about the centre, counter-clockwise for positive factors", function()
    local x = counting(1, 3, 3, 1)
    local quarter = layers.RandomRotation({ 0.25, 0.25 })(x, { training = true })
    for i, expected in ipairs { 3, 6, 9, 2, 5, 8, 1, 4, 7 } do assert.is_near(expected, flat(quarter)[i], 1e-4) end
    local half = layers.RandomRotation({ 0.5, 0.5 }, { interpolation = "nearest" })(x, { training = true })
    assert.same({ 9, 8, 7, 6, 5, 4, 3, 2, 1 }, flat(half))
  end)

  it("draws angles from the whole range", function()
    local n, least, most = 300, 1, 0
    local x = flow.zeros { n, 1, 101, 1 }      -- a line of light at the right end of a row in the middle
    x = flow.concat({ x[{ {}, {}, { 1, 100 } }], flow.ones { n, 1, 1, 1 } }, 3)
    x = flow.concat({ flow.zeros { n, 50, 101, 1 }, x, flow.zeros { n, 50, 101, 1 } }, 2)
    local y = layers.RandomRotation(0.1, { fill_mode = "constant" })(x, { training = true })
    local places = y:sum(3):reshape({ n, 101 }):argmax(2):totable()        -- the row where the light is now
    for _, row in ipairs(places) do
      local turn = math.asin((51 - row) / 50) / (2 * math.pi)
      least, most = math.min(least, turn), math.max(most, turn)
      assert.is_true(math.abs(turn) < 0.104)
    end
    assert.is_true(least < -0.09 and most > 0.09, least .. " " .. most)
  end)

  it("refuses factors of more than a turn", function()
    for _, factor in ipairs { 1.5, { -2, 0 }, { 1, 2, 3 } } do
      assert.truthy(message_of(function() layers.RandomRotation(factor) end)
        :find("factor must be a number or a list of two numbers", 1, true))
    end
  end)
end)

describe("RandomZoom", function()
  it("zooms out for positive factors, in for negative ones", function()
    local x = counting(1, 1, 5, 1)
    local out = layers.RandomZoom { height_factor = { 0, 0 }, width_factor = { 1, 1 }, fill_mode = "constant", fill_value = -1 }
    assert.same({ -1, 1, 3, 5, -1 }, flat(out(x, { training = true })))
    local near = layers.RandomZoom { height_factor = { -0.5, -0.5 } }
    assert.same({ 2, 2.5, 3, 3.5, 4 }, flat(near(x, { training = true })))
    assert.truthy(message_of(function() layers.RandomZoom(-1) end):find("greater than -1", 1, true))
  end)

  it("uses one factor for both axes unless two are given", function()
    local function zooms(options)
      local n = 40
      local rows = flow.arange(0, 33, { dtype = "float32" }):reshape { 1, 33, 1, 1 }
      local x = flow.concat({ rows:broadcast_to { n, 33, 33, 1 }, rows:reshape({ 1, 1, 33, 1 }):broadcast_to { n, 33, 33, 1 } }, 4)
      local y = layers.RandomZoom(options)(x, { training = true })
      return y[{ {}, 17, 18 }]:reshape({ n, 2 }):totable(), y[{ {}, 18, 17 }]:reshape({ n, 2 }):totable()
    end
    local right, below = zooms { height_factor = 0.4 }
    local other_right, other_below = zooms { height_factor = 0.4, width_factor = 0.4 }
    local different = 0
    for i = 1, #right do
      assert.is_near(right[i][2], below[i][1], 1e-5)
      if math.abs(other_right[i][2] - other_below[i][1]) > 1e-3 then different = different + 1 end
    end
    assert.is_true(different > 30)
  end)
end)

describe("RandomContrast", function()
  it("keeps the mean of each channel and only strengthens, as Keras does for one number", function()
    local x = counting(50, 4, 4, 2):mod(17) + 100
    local y = layers.RandomContrast(0.5, { seed = 1 })(x, { training = true })
    local before, after = flat(x:mean(2):mean(2)), flat(y:mean(2):mean(2))
    for i = 1, #before do assert.is_near(before[i], after[i], 1e-3) end
    local spread = flat((y:max(2):max(2) - y:min(2):min(2)) / (x:max(2):max(2) - x:min(2):min(2)))
    local least, most = math.huge, 0
    for _, factor in ipairs(spread) do least, most = math.min(least, factor), math.max(most, factor) end
    assert.is_true(least >= 0.999 and least < 1.1 and most > 1.4 and most < 1.501, least .. " " .. most)
  end)

  it("stays in value_range", function()
    local x = counting(8, 4, 4, 1)
    local y = layers.RandomContrast({ 0, 1 }, { value_range = { 10, 90 } })(x, { training = true })
    assert.same({ 10, 90 }, { y:min():item(), y:max():item() })
    assert.truthy(message_of(function() layers.RandomContrast(2) end):find("from 0 to 1", 1, true))
  end)
end)

describe("what is drawn for an image", function()
  it("does not depend on the batch that it comes in", function()
    local x = counting(12, 5, 5, 3)
    local model = flow.Sequential { layers.Input { 5, 5, 3 }, layers.RandomRotation(0.5, { name = "r" }), layers.RandomFlip { name = "f" } }
    flow.set_random_seed(3)
    local whole = model(x, { training = true })
    assert.same({ 12, 5, 5, 3 }, whole.shape)
    flow.set_random_seed(3)
    local first = model(x[{ { 1, 5 } }], { training = true })
    local traced = flow.fn(function(input) return model(input, { training = true }) end)
    assert.same({ 12, 5, 5, 3 }, traced(x).shape)
    assert.same(flat(whole[{ { 1, 5 } }]), flat(first))
  end)

  it("differs from image to image and from seed to seed", function()
    local x = counting(1, 6, 6, 1):broadcast_to { 30, 6, 6, 1 }
    local y = layers.RandomRotation(0.5, { seed = 1, name = "r" })(x)
    local z = layers.RandomRotation(0.5, { seed = 2, name = "r" })(x)
    assert.same(flat(y), flat(layers.RandomRotation(0.5, { seed = 1, name = "r" })(x)))
    assert.not_same(flat(y), flat(z))
    local seen = {}
    for i = 1, 30 do seen[flat(y[i])[1]] = true end
    local count = 0
    for _ in pairs(seen) do count = count + 1 end
    assert.is_true(count > 25)
  end)
end)

describe("sampling", function()
  -- 0 times such a value is NaN, of which pixels inside the image must see nothing.
  it("gives an infinite fill value, or a NaN, to the pixels that are outside alone", function()
    local t = flow.tensor { { 1, 0, 0.5, 0, 1, 0, 0, 0 } }
    for _, dtype in ipairs { "float32", "float64" } do
      for _, fill in ipairs { math.huge, -math.huge, 0 / 0 } do
        local attributes = { sampling = { interpolation = 1, fill_mode = 2, fill_value = fill } }
        local list = flat(backend.apply("sample_image", { flow.ones({ 1, 3, 3, 1 }, dtype), t:astype(dtype) }, attributes)[1])
        for i = 1, 9 do
          if i % 3 > 0 then assert.equals(1, list[i])
          elseif fill == fill then assert.equals(fill, list[i])
          else assert.is_true(list[i] ~= list[i]) end
        end
      end
    end
  end)

  it("has the transposed sampling as its gradient", function()
    local x, u = flow.random.normal({ 2, 5, 6, 3 }, { seed = 1 }), flow.random.normal({ 2, 5, 6, 3 }, { seed = 2 })
    local t = flow.tensor { { 0.9, -0.3, 0.7, 0.25, 1.1, -1, 0, 0 }, { 1.3, 0.1, -2, -0.2, 1.2, 0.3, 0.01, 0.02 } }
    for fill_mode = 0, 3 do
      for interpolation = 0, 1 do
        local attributes = { sampling = { interpolation = interpolation, fill_mode = fill_mode } }
        local y = backend.apply("sample_image", { x, t }, attributes)[1]
        local v = flow.Variable(x)
        local tape = flow.GradientTape()
        local loss = tape:record(function() return (backend.apply("sample_image", { v:value(), t }, attributes)[1] * u):sum() end)
        local dx = tape:gradient(loss, { v })[1]
        assert.is_near((y * u):sum():item(), (dx * x):sum():item(), 1e-3)
      end
    end
  end)
end)

describe("Normalization", function()
  it("adapts to a tensor and to batches alike", function()
    local x = flow.random.normal({ 50, 4, 3 }, { seed = 1 }) * 3 + 5
    local layer = layers.Normalization()
    layer:adapt(x)
    local mean = x:reshape({ 200, 3 }):mean(1)
    for i = 1, 3 do assert.is_near(mean:totable()[i], layer.adapt_mean:totable()[i], 1e-5) end
    local y = layer(x):reshape { 200, 3 }
    for i = 1, 3 do
      assert.is_near(0, y:mean(1):totable()[i], 1e-5)
      assert.is_near(1, y:square():mean(1):totable()[i], 1e-4)
    end
    local batches = layers.Normalization()
    batches:adapt { x[{ { 1, 20 } }], x[{ { 21, 27 } }], x[{ { 28, 50 } }] }
    for i = 1, 3 do
      assert.is_near(layer.adapt_mean:totable()[i], batches.adapt_mean:totable()[i], 1e-4)
      assert.is_near(layer.adapt_variance:totable()[i], batches.adapt_variance:totable()[i], 1e-3)
    end
    local scalar = layers.Normalization { axis = {} }
    scalar:adapt(x)
    assert.is_near(x:mean():item(), scalar.mean:item(), 1e-4)
    assert.same({ { 1, 1, 3 }, { 1, 1, 1 } }, { layer.mean.shape, scalar.variance.shape })      -- as in Keras
    assert.is_true(layer.mean:reshape { 3 }:eq(layer.adapt_mean):all():item())
    local given = layers.Normalization { mean = { 2, 2, 2 }, variance = { 1, 4, 9 } }
    assert.is_nil(given.mean)
    given:build { -1, 3 }
    assert.same({ { { 2, 2, 2 } }, { { 1, 4, 9 } } }, { given.mean:totable(), given.variance:totable() })
    assert.same({ "mean", "variance", "count" }, { layer.weights[1].name, layer.weights[2].name,
                                                  layer.weights[3].name })
  end)

  it("says what does not fit", function()
    assert.truthy(message_of(function() layers.Normalization { mean = 1 } end):find("must both be given", 1, true))
    assert.truthy(message_of(function() layers.Normalization { mean = { 1, 2 }, variance = { 1, 2 } }(flow.zeros { 2, 3 }) end)
      :find("has 2 values, which do not fit", 1, true))
    local layer = layers.Normalization()
    layer:adapt(flow.zeros { 2, 3 })
    assert.truthy(message_of(function() layer:adapt(flow.zeros { 2, 4 }) end):find("does not fit the shape", 1, true))
    assert.truthy(message_of(function() layers.Normalization { mean = 1, variance = 1 }:adapt(flow.zeros { 2, 3 }) end)
      :find("adapt() is for layers without", 1, true))
  end)
end)
