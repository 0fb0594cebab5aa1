-- transformations_spec.lua: layers for pictures change pictures and their masks by a transformation as Keras' layers do.
local flow = require "flow"
local expected = require "spec.golden.transformations"

local rows, height, width = unpack(expected.shape)

local function pictures()
  local list = {}
  for n = 0, rows * height * width - 1 do list[n + 1] = (n * 37 + (n * n) % 11 * 13) % 256 end
  return flow.tensor(list):reshape { rows, height, width, 1 }
end

-- The numbers of a transformation as the layer takes them.
local function transformation_of(given)
  local made = {}
  for name, value in pairs(given) do
    local x = flow.tensor(value)
    if name == "flips" then x = x:to "bool" end
    made[name] = (name == "flips" or name == "contrast_factor") and x:reshape { rows, 1, 1, 1 } or x:reshape { rows, 1 }
  end
  return made
end

local function near(wanted, found, shape, allowed, what)
  assert.same(shape, found.shape, what)
  local difference = (found:to "float32" - flow.tensor(wanted):reshape(shape)):abs():max():item()
  assert.is_true(difference <= allowed, ("%s differs by %g"):format(what, difference))
end

describe("a transformation", function()
  for i, case in ipairs(expected.cases) do
    it(("of %s changes pictures and masks as in Keras (%d)"):format(case.layer, i), function()
      local layer, x = flow.layers[case.layer](case.options), pictures()
      local masks, given = x:gt(100):to "int32", transformation_of(case.given)
      near(case.images, layer:transform_images(x, given), case.shape, 2e-2, "the pictures")
      local found = layer:transform_segmentation_masks(masks, given)
      assert.equal("int32", found.dtype)
      near(case.masks, found, case.shape, 0, "the masks")
      assert.same({ 2 }, layer:transform_labels(flow.tensor { 1, 2 }, given).shape)
    end)
  end
end)

describe("pictures by name", function()
  local function make(name, options)
    if name:find "^Resizing" or name:find "^Random[RZS]" then options.interpolation = "nearest" end
    return flow.layers[name](options)
  end

  -- Where pixels are only moved, masks that are the pictures stay the pictures.
  for name, options in pairs {
    RandomFlip = { seed = 3 }, RandomRotation = { factor = 0.4 }, RandomZoom = { height_factor = 0.4 }, RandomShear = { x_factor = 0.4 },
    RandomCrop = { height = 3, width = 4 }, CenterCrop = { height = 3, width = 3 }, Resizing = { height = 3, width = 3 },
  } do
    it("have masks that " .. name .. " moves with them, eagerly and traced", function()
      local layer, x = make(name, options), pictures()
      local traced = flow.fn(function(images, masks) return layer({ images = images, segmentation_masks = masks }, { training = true }) end)
      for _, result in ipairs { layer { images = x, segmentation_masks = x:to "int32" }, traced(x, x:to "int32") } do
        assert.same(result.images.shape, result.segmentation_masks.shape)
        assert.equal("int32", result.segmentation_masks.dtype)
        assert.equal(0, (result.images - result.segmentation_masks:to "float32"):abs():max():item())
      end
    end)
  end

  it("have masks that RandAugment moves by the draws of its layers", function()
    local layer, x = flow.layers.RandAugment { num_ops = 1, interpolation = "nearest", seed = 1 }, pictures()
    local moved = 0
    for _ = 1, 30 do
      local transformation = layer:get_random_transformation(x)
      local masks = layer:transform_segmentation_masks(x, transformation)
      local name = layer._list[transformation[1].number + 1].class_name
      if name == "RandomShear" or name == "RandomTranslation" or name == "RandomRotation" then
        assert.equal(0, (masks - layer:transform_images(x, transformation)):abs():max():item(), name)
        moved = moved + 1
      else
        assert.equal(0, (masks - x):abs():max():item(), name)
      end
    end
    assert.is_true(moved > 0)
  end)

  it("stay unchanged without training", function()
    local layer, x = flow.layers.RandomFlip(), pictures()
    assert.is_nil(layer:get_random_transformation(x, { training = false }))
    local result = layer({ images = x, segmentation_masks = x }, { training = false })
    assert.is_true(result.images:eq(x):all():item() and result.segmentation_masks:eq(x):all():item())
  end)
end)
