-- image_layers_spec.lua: layers that change pictures by chance: what they draw, where they draw it, and what comes of labels and masks.
-- What they compute of what was drawn is compared with Keras by spec/golden/layer_cases/augment.py.
local support = require "spec.support.init"
local flow = require "flow"
local layers = flow.layers
local Dataset = flow.data.Dataset

local MANY = 4000

local function assert_near(expected, found, within, what)
  assert.is_true(math.abs(expected - found) <= within, ("%s: expected %g, found %g"):format(what or "", expected, found))
end

-- { mean, least, most } of what a layer makes of MANY pictures of one value.
local function spread(layer, value, shape)
  local y = layer(flow.full({ MANY, unpack(shape or { 1, 1, 3 }) }, value), { training = true })
  return y:mean():item(), y:min():item(), y:max():item(), y
end

describe("layers that change pictures by chance", function()
  it("draw brightness evenly between their factors, for each picture", function()
    local mean, least, most, y = spread(layers.RandomBrightness({ -0.1, 0.3 }, { value_range = { 0, 1 }, seed = 1 }), 0.5)
    assert_near(0.6, mean, 0.01)
    assert_near(0.4, least, 0.01)
    assert_near(0.8, most, 0.01)
    assert.equal(0, (y:max(4) - y:min(4)):max():item())      -- a picture is changed as a whole
  end)

  it("apply to as many pictures as their factors say", function()
    for name, options in pairs { RandomInvert = { factor = { 0.3, 0.3 } }, RandomGrayscale = { factor = 0.3 },
        RandomErasing = { factor = { 0.3, 0.3 }, scale = { 1, 1 }, fill_value = 255 } } do
      options.seed = 2
      local x = flow.broadcast_to(flow.tensor { 10, 20, 30 }, { MANY, 1, 1, 3 })
      local y = layers[name](options)(x)
      assert_near(0.3, (y - x):abs():sum(4):gt(0):to("float32"):mean():item(), 0.03, name)
    end
  end)

  it("keep bits from the lower factor to below the upper one, as Keras does", function()
    local _, _, _, y = spread(layers.RandomPosterization({ 1, 3 }, { seed = 3 }), 255)
    assert_near(0.5, y:eq(128):to("float32"):mean():item(), 0.03)
    assert_near(0.5, y:eq(192):to("float32"):mean():item(), 0.03)
  end)

  it("invert what is above their threshold", function()
    local _, _, _, y = spread(layers.Solarization { threshold_factor = { 0, 1 }, seed = 4 }, 51)
    assert_near(0.2, y:eq(204):to("float32"):mean():item(), 0.03)
    assert_near(0.8, y:eq(51):to("float32"):mean():item(), 0.03)
  end)

  it("cover boxes of the sizes that scale says", function()
    local _, _, _, y = spread(layers.RandomErasing { scale = { 0.25, 0.25 }, fill_value = 0, factor = { 1, 1 }, seed = 5 }, 1, { 8, 8, 1 })
    assert_near(0.75, y:mean():item(), 0.01)
    local covered = 64 - y:sum({ 2, 3, 4 })
    assert.is_true(covered:min():item() >= 16 and covered:max():item() <= 25)      -- a side is 4 pixels, or a part of 5
  end)

  it("move pictures by up to their factors, and masks with them", function()
    local x = flow.arange(0, 10):to("float32"):reshape { 1, 1, 10, 1 }
    local batch = flow.broadcast_to(x, { 500, 4, 10, 1 })
    local moved = layers.RandomTranslation(0, 0.2, { fill_mode = "constant", fill_value = -1, seed = 6 })
    local result = moved { images = batch, segmentation_masks = batch:to "int32" }
    local shift = 5 - result.images[{ {}, 2, 6, 1 }]
    assert_near(0, shift:mean():item(), 0.2)
    assert.is_true(shift:min():item() < -1.8 and shift:max():item() > 1.8 and shift:abs():max():item() <= 2.001)
    assert.equal("int32", result.segmentation_masks.dtype)
    local difference = result.segmentation_masks:to "float32" - result.images
    assert.is_true(difference[{ {}, 2, 6, 1 }]:abs():max():item() <= 0.51)
  end)

  it("shear to both sides", function()
    local x = flow.arange(0, 9):to("float32"):reshape { 1, 1, 9, 1 }
    local y = layers.RandomShear({ 0.5, 0.5 }, 0, { seed = 7 })(flow.broadcast_to(x, { 400, 5, 9, 1 }))
    local column = y[{ {}, 3, 5, 1 }]      -- two rows down: one pixel to a side
    assert_near(0.5, column:eq(5):to("float32"):mean():item(), 0.1)
    assert_near(0.5, column:eq(3):to("float32"):mean():item(), 0.1)
  end)

  it("cut out every part of a picture", function()
    local x = flow.arange(0, 24):to("float32"):reshape { 1, 4, 6, 1 }
    local crop, firsts = layers.RandomCrop(3, 4, { seed = 8 }), {}
    for _ = 1, 60 do
      local y = crop(x)
      assert.same({ 1, 3, 4, 1 }, y.shape)
      assert.equal(14, y[{ 1, 3, 3, 1 }]:item() - y[{ 1, 1, 1, 1 }]:item())
      firsts[y[{ 1, 1, 1, 1 }]:item()] = true
    end
    for _, first in ipairs { 0, 1, 2, 6, 7, 8 } do assert.is_true(firsts[first] or false, "none began at " .. first) end
    assert.same({ 1, 4, 6, 1 }, crop(x, { training = false }).shape)
  end)

  it("bend pictures a little, and more with a larger scale", function()
    local x = flow.random.uniform({ 2, 32, 32, 3 }, { seed = 1 }) * 255
    local small = (layers.RandomElasticTransform({ 1, 1 }, 0.4, { seed = 9 })(x) - x):abs():mean():item()
    local large = (layers.RandomElasticTransform({ 1, 1 }, { 1, 1 }, { seed = 9 })(x) - x):abs():mean():item()
    assert.is_true(small < large and large > 1, ("%g and %g"):format(small, large))
  end)

  it("spread values evenly, as Keras does", function()
    local x = flow.tensor { { { 10, 20, 30 }, { 30, 250, 30 } }, { { 0, 20, 31 }, { 90, 250, 30 } } }
    x = flow.stack({ x, flow.full_like(x, 200) }, -1)      -- a channel of one value stays unchanged
    local y = layers.Equalization()(x)
    assert.same({ { { 23, 70, 162 }, { 162, 255, 162 } }, { { 0, 70, 185 }, { 209, 255, 162 } } }, y[{ {}, {}, {}, 1 }]:totable())
    assert.equal(0, (y[{ {}, {}, {}, 2 }] - 200):abs():max():item())
    local z = layers.Equalization({ 0, 1 }, 16)(x / 255)
    assert_near(0.69803923, z[{ 1, 1, 2, 1 }]:item(), 1e-6)
    assert_near(0.8, z[{ 2, 2, 1, 1 }]:item(), 1e-6)
  end)

  it("mix pictures and their labels by the same share", function()
    local x = flow.broadcast_to(flow.arange(0, 50):to("float32"):reshape { 50, 1, 1, 1 }, { 50, 6, 6, 1 })
    for _, name in ipairs { "MixUp", "CutMix" } do
      local mixed = layers[name] { seed = 10 } { images = x, labels = flow.one_hot(flow.arange(0, 50), 50) }
      local of_labels = mixed.labels:matmul(flow.arange(0, 50):to("float32"):reshape { 50, 1 }):reshape { 50 }
      local of_pictures = mixed.images:mean({ 2, 3, 4 })
      assert.is_true((of_labels - flow.arange(0, 50):to "float32"):abs():max():item() > 0.5, name)
      assert_near(0, (of_labels - of_pictures):abs():mean():item(), name == "MixUp" and 1e-4 or 4, name)      -- boxes end between pixels
      assert_near(1, mixed.labels:sum(2):min():item(), 1e-5)
    end
  end)

  it("run some of several layers", function()
    local x = flow.random.uniform({ 2, 8, 8, 3 }, { seed = 1 }) * 255
    for _, layer in ipairs { layers.RandAugment { seed = 1 }, layers.AugMix { seed = 1 } } do
      local changed = 0
      for _ = 1, 8 do
        local y = layer(x)
        assert.is_true(y:min():item() >= -1e-3 and y:max():item() <= 255.001 and y:isnan():any():item() == false)
        changed = changed + ((y - x):abs():max():item() > 1 and 1 or 0)
      end
      assert.is_true(changed >= 4, layer.name)
    end
  end)
end)

describe("draws of such layers", function()
  local x = flow.full({ 6, 1, 1, 3 }, 100)

  it("follow from the seed, and differ from call to call", function()
    local one, same = layers.RandomBrightness(0.3, { seed = 5 }), layers.RandomBrightness(0.3, { seed = 5 })
    local first, second = one(x), one(x)
    assert.same(first:totable(), same(x):totable())
    assert.same(second:totable(), same(x):totable())
    assert.not_same(first:totable(), second:totable())
  end)

  it("differ from step to step of a traced function, and from picture to picture", function()
    local layer = layers.RandomBrightness(0.3, { seed = 5 })
    local f = flow.fn(function(pictures) return layer(pictures, { training = true }) end)
    local first, second = f(x):totable(), f(x):totable()
    assert.not_same(first, second)
    assert.not_same(first[1], first[2])
  end)

  it("are made in data sets, batched or not, and in fit, not in predict", function()
    local pictures = flow.full({ 8, 4, 4, 3 }, 100)
    local layer = layers.RandomBrightness(0.3)
    for _, stage in ipairs { Dataset.from_tensor_slices(pictures), Dataset.from_tensor_slices(pictures):batch(8) } do
      local found = {}
      for y in stage:map(function(picture) return layer(picture, { training = true }) end):batch(8):iter() do found[1] = y end
      local means = found[1]:reshape({ 8, 48 }):mean(2)
      assert.is_true(means:max():item() - means:min():item() > 5)
    end
    local model = flow.Sequential { layers.Input { 4, 4, 3 }, layers.RandomTranslation(0.2, 0.2), layers.RandomHue(0.1), layers.Flatten(),
      layers.Dense(1) }
    model:compile { loss = "mse" }
    assert.equal(2, #model:fit(pictures, flow.ones { 8, 1 }, { epochs = 2, verbose = 0 }).history.loss)
    assert.same(model:predict(pictures, { verbose = 0 }):totable(), model:predict(pictures, { verbose = 0 }):totable())
  end)

  it("take a SeedGenerator, as all functions of flow.random do", function()
    local one, same = flow.random.SeedGenerator(7), flow.random.SeedGenerator(7)
    local function draw(seed)
      return { flow.random.normal({ 3 }, { seed = seed }):totable(), flow.random.gamma({ 2 }, 1, { seed = seed }):totable() }
    end
    local first = draw(one)
    assert.same(first, draw(same))
    assert.not_same(first, draw(one))
    local f = flow.fn(function(a) return a + flow.random.normal({ 3 }, { seed = one }) end)
    assert.not_same(f(flow.zeros { 3 }):totable(), f(flow.zeros { 3 }):totable())
  end)
end)

describe("errors of such layers", function()
  it("say what was given", function()
    local function message(f) return support.message_of(f) end
    assert.equal("RandomHue: factor is a number from 0 to 1, or a list of two, got the number 2",
      message(function() layers.RandomHue(2) end))
    assert.equal("RandomInvert: value_range is a list of two numbers, the smaller one first, got a table",
      message(function() layers.RandomInvert { value_range = { 3, 1 } } end))
    assert.equal("RandomGaussianBlur: kernel_size is an odd number or a list of two",
      message(function() layers.RandomGaussianBlur { kernel_size = 4 } end))
    local mix = layers.MixUp { name = "mix" }
    assert.equal('MixUp "mix": labels of rank 1, expected {batch, classes}: a mixture of two classes needs flow.one_hot',
      message(function() mix { images = flow.ones { 2, 4, 4, 3 }, labels = flow.tensor { 0, 1 } } end))
    assert.equal('MixUp "mix": data by name has its pictures as images = x', message(function() mix { pictures = 1 } end))
    assert.equal('MixUp "mix": input has 2 dimensions, expected {height, width, channels} or {batch, height, width, channels}',
      message(function() mix(flow.ones { 2, 2 }) end))
    local bend = layers.RandomElasticTransform { name = "bend" }
    assert.equal('RandomElasticTransform "bend": bounding_boxes is not supported: boxes are not moved along with pictures',
      message(function() bend { images = flow.ones { 1, 2, 2, 3 }, bounding_boxes = {} } end))
  end)
end)
